"""What a person, an operator or the ERP does to an operation after confirm: cancel, retry, approve, reject,
complete."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from staging import failpoints
from staging.contracts.error import ErrorCode
from staging.contracts.status import StatusCode
from staging.domain.errors import Refused
from staging.domain.identity import Actor, ActorKind
from staging.domain.intake import sanitize_text
from staging.domain.lifecycle import Verb, sources
from staging.domain.operation import Operation
from staging.domain.ports import ErpAdapter
from staging.services.access import fetch, may_approve, moved_on, not_found, require_kind, require_maker
from staging.services.confirm import code_after_waiting
from staging.services.tell import Teller
from staging.storage import archive, audit, operations
from staging.storage.dialect import db_now
from staging.storage.unit_of_work import QueueStore, UnitOfWork

_TEXT_LIMIT = 2000


class ControlService:
    """Each call is one compare-and-set; state_conflict where the operation has moved on meanwhile."""

    def __init__(self, store: QueueStore, adapter: ErpAdapter, teller: Teller) -> None:
        self._store, self._adapter, self._teller = store, adapter, teller

    def cancel(self, actor: Actor, op_id: str, reason: str = "") -> Operation:
        """Stop what no worker has yet: the maker (also through an agent) or an operator."""
        require_kind(actor, ActorKind.AGENT, ActorKind.PERSON, ActorKind.OPERATOR)

        def check(operation: Operation) -> None:
            if actor.kind is not ActorKind.OPERATOR:
                require_maker(actor, operation)

        text = sanitize_text(reason, _TEXT_LIMIT)
        changes = operations.error_changes(text or _meaning(actor, StatusCode.CANCELLED), "cancelled", None)
        return self._move(actor, op_id, Verb.CANCEL, lambda _: StatusCode.CANCELLED, changes, check, text)

    def retry(self, actor: Actor, op_id: str) -> Operation:
        """Send a 423, 500 or 504 back to 100 with fresh attempts: the maker in person, or an operator.

        An expiry that is over holds no longer when the maker retries: that is their yes anew. Nobody else can give it,
        so that an operator is refused then (expired), instead of the row ending at 410 at once.
        """
        require_kind(actor, ActorKind.PERSON, ActorKind.OPERATOR)

        def check(operation: Operation) -> None:
            if actor.kind is ActorKind.PERSON:
                require_maker(actor, operation)
            else:
                self._require_time_left(operation)

        changes = {
            "iAttempt": 0,
            "tExpireAt": operations.EXPIRY_AHEAD,
            "tNotBefore": None,
            "sErrorMsg": None,
            "sErrorCode": "",
            "jErrorDetail": None,
            "tExecutedDate": None,
        }
        return self._move(actor, op_id, Verb.RETRY, lambda _: StatusCode.SUBMITTED, changes, check)

    def approve(self, actor: Actor, op_id: str) -> Operation:
        """A second person with the grant lets it go on."""
        changes = {"sApprovePerson": actor.user_id}

        def target(operation: Operation) -> StatusCode:
            return code_after_waiting(False, operation.auto_execute)

        return self._move(actor, op_id, Verb.APPROVE, target, changes, self._check_approver(actor))

    def reject(self, actor: Actor, op_id: str, reason: str = "") -> Operation:
        """A second person with the grant stops it; ``reason`` is shown to the maker."""
        text = sanitize_text(reason, _TEXT_LIMIT)
        changes = operations.error_changes(text or _meaning(actor, StatusCode.CANCELLED), "rejected", None)
        changes["sApprovePerson"] = actor.user_id
        check = self._check_approver(actor)
        return self._move(actor, op_id, Verb.REJECT, lambda _: StatusCode.CANCELLED, changes, check, text)

    def complete(self, actor: Actor, op_id: str, *, result_bill_id: str = "", error: str = "") -> Operation:
        """The ERP's (or the maker's) word on a 103: the record it became, or why it did not. Exactly one of the two."""
        require_kind(actor, ActorKind.PERSON, ActorKind.SERVICE)
        if bool(result_bill_id) == bool(error):
            both = {"zh": "请给出 resultBillId 或 error 之一", "en": "give either resultBillId or error"}
            raise Refused(ErrorCode.FIELD_REQUIRED, {"field": "resultBillId"}, text=both)

        def check(operation: Operation) -> None:
            if actor.kind is ActorKind.PERSON:
                require_maker(actor, operation)

        if error:
            text = sanitize_text(error, _TEXT_LIMIT)
            changes = operations.error_changes(text, ErrorCode.BUSINESS_RULE.value, None)
            return self._move(
                actor, op_id, Verb.COMPLETE, lambda _: StatusCode.RULE_REFUSED, changes, check, text
            )
        done = {
            "sResultBillId": sanitize_text(result_bill_id, 200),
            "sResultMsg": _meaning(actor, StatusCode.EXECUTED),
            "tExecutedDate": db_now(),
        }
        return self._move(actor, op_id, Verb.COMPLETE, lambda _: StatusCode.EXECUTED, done, check)

    def _require_time_left(self, operation: Operation) -> None:
        with self._store.read() as connection:
            if not operations.is_expired(connection, operation.id):
                return
        text = {
            "zh": "提交人设定的有效期已过，只有提交人本人可以重试",
            "en": "The time its maker set is over: only the maker can retry it",
        }
        raise Refused(ErrorCode.EXPIRED, text=text)

    def _check_approver(self, actor: Actor) -> Callable[[Operation], None]:
        require_kind(actor, ActorKind.PERSON)

        def check(operation: Operation) -> None:
            if not may_approve(actor, operation, self._adapter):
                raise Refused(ErrorCode.FORBIDDEN)

        return check

    def _move(
        self,
        actor: Actor,
        op_id: str,
        verb: Verb,
        target: Callable[[Operation], StatusCode],
        changes: Mapping[str, Any],
        check: Callable[[Operation], None],
        message: str = "",
    ) -> Operation:
        with self._store.read() as connection:
            operation = fetch(connection, actor, op_id, self._adapter)
        check(operation)

        def work(unit: UnitOfWork) -> bool:
            source = operation.status_code
            if source is None or source not in sources(verb):
                return False
            if not operations.move(
                unit.connection,
                verb,
                operation,
                target(operation),
                actor=actor,
                message=message,
                changes=changes,
            ):
                return False
            entry = audit.AuditEntry(actor, verb.value, op_id, {"message": message} if message else None)
            audit.append(unit.connection, [entry])
            unit.touch(op_id)
            failpoints.reached("W13", op_id)
            return True

        moved, told = self._store.transact(work)
        self._teller.committed(told)
        with self._store.read() as connection:
            now = operations.get(connection, actor.tenant, op_id)
            now = now or archive.get(connection, actor.tenant, op_id)
        if now is None:
            raise not_found()
        if not moved:
            raise moved_on(now)
        return now


def _meaning(actor: Actor, code: StatusCode) -> str:
    return code.meaning(actor.locale)
