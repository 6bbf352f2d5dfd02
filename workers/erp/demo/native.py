"""The demo ERP's side of its own forms: what a user saves there, without the queue."""

from __future__ import annotations

from staging.domain.canonical import payload_hash
from staging.domain.ports import Execution
from workers.erp.sql.adapter import SqlAdapter


class DemoAdapter(SqlAdapter):
    """The generic adapter, and ``ports.NativeForms``: the demo has no web pages, Opstage's stand in for them."""

    def save_form(self, key: str, execution: Execution) -> str:
        """One transaction. A second save under the same key (two clicks, a lost answer) gives the first one's record,
        whatever it carries."""
        tenant, route = execution.actor.tenant, execution.route
        with self.transaction() as tx:
            before = self.ledger.insert_first(
                tx.connection,
                tenant,
                key,
                execution.op_id,
                route.command_type,
                payload_hash(execution.payload),
            )
            if before is not None:
                return str((before.result or {})["resultBillId"])
            outcome = self.apply(tx, execution)
            kept = {
                "resultBillId": outcome.result_bill_id,
                "message": dict(outcome.message),
                "result": dict(outcome.result),
            }
            self.ledger.store_result(tx.connection, tenant, key, kept)
            tx.commit()
        return outcome.result_bill_id
