"""Takes in rows that foreign SQL wrote: derives what it left to us and sends each where policy says.

Payload, permission and state are checked when it is executed, like any other row's; here only what is needed to route.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from staging.contracts.error import ErrorCode
from staging.contracts.status import StatusCode
from staging.domain.canonical import payload_hash
from staging.domain.errors import OpstageError, Refused, Transient
from staging.domain.identity import is_valid_id
from staging.domain.intake import parse_json, require_object
from staging.domain.lifecycle import Verb
from staging.domain.operation import Operation
from staging.domain.ports import ErpAdapter
from staging.services.confirm import code_after_waiting
from staging.services.tell import Teller
from staging.settings import Settings
from staging.storage import operations
from staging.storage.dberrors import is_db_error
from staging.storage.unit_of_work import QueueStore, UnitOfWork
from workers.outcomes import refused

log = logging.getLogger(__name__)


class Admission:
    def __init__(self, store: QueueStore, adapter: ErpAdapter, teller: Teller, settings: Settings) -> None:
        self._store, self._adapter, self._teller, self._settings = store, adapter, teller, settings

    def admit(self, ids: Sequence[str]) -> None:
        """Admit those of ``ids`` nobody has; each in a transaction of its own, so that a bad one holds up no other."""
        with self._store.begin() as unit:
            if self._store.has_user_column(unit.connection):
                operations.maker_from_user_column(unit.connection, ids)
                unit.commit()
        with self._store.read() as connection:
            rows = [o for o in operations.by_ids(connection, ids) if o.seq == 0]
        for row in rows:
            self._admit(row)

    def _admit(self, row: Operation) -> None:
        target, derived, error = self._derive(row)

        def work(unit: UnitOfWork) -> None:
            if operations.admit(unit.connection, row, derived):
                self._route(unit, replace(row, seq=1), target, error)

        try:
            _, told = self._store.transact(work)
        except operations.KeyTaken:
            conflict = Refused(ErrorCode.IDEMPOTENCY_CONFLICT)
            _, told = self._store.transact(
                lambda unit: self._route(unit, row, conflict.status_code, conflict)
            )
        self._teller.committed([t for t in told if t.event.code != StatusCode.SUBMITTED])

    def _route(
        self, unit: UnitOfWork, row: Operation, target: StatusCode, error: OpstageError | None
    ) -> None:
        if target is not StatusCode.SUBMITTED:
            changes: dict[str, Any] = {}
            message = ""
            if error is not None:
                done = refused(row, error)
                message = done.message
                changes = operations.error_changes(message, done.error_code, done.detail)
            operations.move(unit.connection, Verb.ROUTE, row, target, message=message, changes=changes)
        unit.touch(row.id)

    def _derive(self, row: Operation) -> tuple[StatusCode, dict[str, Any], OpstageError | None]:
        derived: dict[str, Any] = {
            "command_type": row.command_type,
            "module_id": row.module_id,
            "target_table": row.target_table,
            "payload_hash": "",
            "needs_approval": 0,
        }
        try:
            if not is_valid_id(row.id):
                text = {
                    "zh": "操作编号只能含字母、数字、_ 和 -",
                    "en": "an operation id has letters, digits, _ and - only",
                }
                raise Refused(ErrorCode.PAYLOAD_INVALID, text=text)
            if not row.maker:
                text = {"zh": "该行没有提交人", "en": "the row names no maker"}
                raise Refused(ErrorCode.FORBIDDEN, text=text)
            limits = {
                "max_bytes": self._settings.payload_max_bytes,
                "max_depth": self._settings.payload_max_depth,
            }
            payload = require_object(parse_json(row.payload_json, **limits))
            route = self._adapter.route(row.form_id, row.op_type, row.command_type, payload)
        except Transient:
            raise
        except OpstageError as error:
            return error.status_code, derived, error
        except Exception as error:
            if is_db_error(error):
                raise
            # Left at 100 it would come back with every batch, and each time take the batch down with it.
            log.exception("operation %s: cannot be taken in", row.id)
            text = {"zh": "无法解读该行数据", "en": "the row's data could not be understood"}
            return StatusCode.PAYLOAD_INVALID, derived, Refused(ErrorCode.PAYLOAD_INVALID, text=text)
        derived |= {
            "command_type": route.command_type,
            "module_id": route.module_id,
            "target_table": route.target_table,
            "payload_hash": payload_hash(payload),
            "needs_approval": int(route.requires_approval),
        }
        return code_after_waiting(route.requires_approval, row.auto_execute), derived, None
