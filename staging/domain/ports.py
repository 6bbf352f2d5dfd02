"""What the services and the executor need from outside, as Protocols. Implementations: storage, messaging,
workers.erp."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, Protocol, runtime_checkable

from staging.contracts.form import Catalogue
from staging.contracts.preparation import PrepareItem, Preview
from staging.contracts.query import QueryInfo, QueryRequest, QueryResult
from staging.domain.identity import Actor, Tenant
from staging.domain.operation import Told


@dataclass(frozen=True, slots=True)
class Route:
    """Where a command goes after confirm, by its form's policy."""

    command_type: str
    form_id: str
    module_id: str
    target_table: str
    op_type: str
    auto_execute: bool
    requires_approval: bool


@dataclass(frozen=True, slots=True)
class Prepared:
    """What preparing yields. ``payload`` is normalized and JSON-ready (decimals as exact strings, ISO dates, NFC).

    ``pins``: the values, as the user saw them, of the record fields this operation reads or writes (JSON-ready);
    ``target_version``: fingerprint of the pins ("" where there is no target). Only pins are compared later.
    """

    route: Route
    payload: dict[str, Any]
    target_bill_id: str
    source_ref: dict[str, Any] | None
    pins: dict[str, Any]
    target_version: str
    preview: Preview


@dataclass(frozen=True, slots=True)
class Execution:
    """What the adapter executes: the row's content, untrusted until checked (a foreign row was prepared by nobody).

    ``payload`` came through ``domain.intake`` (Decimals, no floats). ``prepared`` is True for rows that our own confirm
    wrote: payload already normalized, pins present. ``allow_duplicate``: the person overrode the duplicate guard.
    """

    op_id: str
    actor: Actor
    route: Route
    target_bill_id: str
    payload: dict[str, Any]
    source_ref: dict[str, Any] | None
    pins: dict[str, Any] | None
    target_version: str
    prepared: bool
    allow_duplicate: bool = False


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a successful execution did. ``message`` in zh and en; ``result`` is kept in the ledger, JSON-ready."""

    result_bill_id: str
    message: Mapping[str, str]
    result: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """A row of ``ai_op_ledger`` as committed."""

    op_id: str
    command_type: str
    payload_hash: str
    result: dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class LedgerRow:
    """What an attempt enters before it does anything."""

    key: str
    op_id: str
    command_type: str
    payload_hash: str


class ErpTransaction(Protocol):
    """An open transaction of the ERP database. ``connection`` is opaque outside storage and workers.erp."""

    connection: Any

    def commit(self) -> None: ...

    def rollback(self) -> None: ...


class Ledger(Protocol):
    """The proof of what happened, in the ERP database."""

    def insert_first(
        self, connection: Any, tenant: Tenant, key: str, op_id: str, command_type: str, payload_hash: str
    ) -> LedgerEntry | None:
        """Insert the row and return None, or return the committed entry that was there before (waits for a twin)."""

    def insert_all(
        self, connection: Any, tenant: Tenant, rows: Sequence[LedgerRow]
    ) -> Mapping[str, LedgerEntry]:
        """``insert_first`` of several keys; gives, by key, the entries that were there before."""

    def store_result(self, connection: Any, tenant: Tenant, key: str, result: Mapping[str, Any]) -> None: ...

    def store_results(
        self, connection: Any, tenant: Tenant, results: Mapping[str, Mapping[str, Any]]
    ) -> None:
        """``store_result`` of several keys."""

    def lookup(self, connection: Any, tenant: Tenant, key: str) -> LedgerEntry | None:
        """A completed lookup: the entry, or None which means *absent*. Any doubt raises."""

    def fence(self, connection: Any, op_id: str, claim_seq: int) -> None:
        """Bar claims of ``op_id`` up to ``claim_seq``, the seq of the row's event, from committing (separate
        databases)."""

    def is_fenced(self, connection: Any, op_id: str, claim_seq: int) -> bool: ...


class CatalogueProblem(Protocol):
    """Something in the form catalogue that the live database does not bear out."""

    @property
    def where(self) -> str:
        """Form and field (or table) it is about."""

    @property
    def severity(self) -> Literal["error", "warning"]:
        """A warning works, but not as a careful reader would expect."""

    def message(self, locale: str) -> str:
        """What is wrong and what to do, "zh" or "en"."""


class ErpAdapter(Protocol):
    """The ERP as Opstage needs it. All methods are synchronous; errors are ``domain.errors.OpstageError``."""

    ledger: Ledger
    catalogue: Catalogue

    def route(self, form_id: str, op_type: str, command_type: str = "", payload: Any = None) -> Route:
        """Resolve form/op or command to its policy. Raises form_not_found, or forbidden for an op without policy.

        ``payload`` decides value-dependent approval (e.g. above an amount); None: the strictest answer.
        """

    def prepare(self, actor: Actor, item: PrepareItem) -> Prepared:
        """Validate, normalize, resolve, check permission, state and duplicates; read-only."""

    def recheck(self, actor: Actor, prepared: Prepared) -> None:
        """At confirm: permission and pins again. Raises forbidden, version_conflict, state_conflict …"""

    def may_approve(self, actor: Actor, route: Route) -> bool:
        """True where the actor's grants let them approve this command (grant ``approve`` on the form)."""

    def restore_payload(self, prepared: Prepared) -> dict[str, Any]:
        """The prepared payload as input of another ``prepare`` (person's edits, re-staging)."""

    def forms(self, actor: Actor, q: str) -> list[dict[str, Any]]:
        """Forms the actor may act on: id, label, module, opTypes; ``q``: words of id or label, empty for all."""

    def form_schema(self, actor: Actor, form_id: str) -> dict[str, Any]:
        """A form for rendering, labels in the actor's language. Raises form_not_found."""

    def field_options(self, actor: Actor, form_id: str, field: str, q: str, page: int) -> QueryResult:
        """Choices of a reference field. Raises form_not_found, field_unknown."""

    def lookup_record(self, actor: Actor, form_id: str, record: str) -> dict[str, Any]:
        """One record by id or document number. Raises record_not_found, record_ambiguous."""

    def query_records(self, actor: Actor, form_id: str, request: QueryRequest) -> QueryResult:
        """Query Framework over the form's records, within the actor's tenant and grants."""

    def queries(self, actor: Actor) -> list[QueryInfo]:
        """Registered domain queries that the actor may ask, in the actor's language."""

    def run_query(self, actor: Actor, name: str, request: QueryRequest) -> QueryResult:
        """Ask a registered query, within the actor's tenant. Raises form_not_found, forbidden, field_…, query_…"""

    def transaction(self) -> AbstractContextManager[ErpTransaction]:
        """BEGIN on the ERP database; rolls back on leaving unless committed. Never retries by itself."""

    def apply(self, tx: ErpTransaction, execution: Execution) -> Outcome:
        """Check again (permission, state, pins, rules) and make the business change inside ``tx``; no commit."""

    def in_sets(self, execution: Execution) -> bool:
        """True where ``apply_all`` does several of this kind together; False where one after the other."""

    def apply_all(self, tx: ErpTransaction, executions: Sequence[Execution]) -> Sequence[Outcome]:
        """``apply`` of several operations of one tenant: as if in the order given, outcomes in that order.

        Raises if any of them is refused: roll back, and ``apply`` them one by one to learn which. May refuse more than
        ``apply`` would, never less.
        """

    def check(self) -> Sequence[CatalogueProblem]:
        """Compare the catalogue with the live database; empty where it fits."""

    def introspect(self, tables: Sequence[str], locale: str) -> str:
        """Draft catalogue entries (YAML) for ``tables`` from the live database; comments in ``locale``.

        Raises ValueError where none of them exists.
        """

    def close(self) -> None: ...


@runtime_checkable
class NativeForms(Protocol):
    """What an adapter may offer besides where its ERP has no forms of its own, as the demo's: Opstage stands in."""

    def save_form(self, key: str, execution: Execution) -> str:
        """Save what the user filled in, at most once per idempotency ``key``; id of the record. Raises as ``apply``."""


@dataclass(frozen=True, slots=True)
class Published:
    """``reached``: the events were handed to the server. ``raised``: no wake-up was on its way, or nobody can tell."""

    reached: bool
    raised: bool = True


class Notifier(Protocol):
    """Tells listeners after commit. Bounded time, never raises for an unreachable server."""

    def publish(
        self, events: Iterable[Told], *, raise_flag: bool = False, drop: Sequence[str] = ()
    ) -> Published:
        """In the same round trip ``raise_flag`` raises the wake flag, and the keys ``drop`` are deleted."""


class Dispatcher(Protocol):
    """Hints workers that rows are due. Bounded time, never raises for an unreachable broker."""

    def announce(self, op_ids: Sequence[str], *, raised: bool | None = None) -> bool:
        """True if handed to the broker, or if a message is on its way that will do. ``raised``: what came of raising
        the wake flag, where the caller did."""

    def arrived(self) -> None:
        """Says, before it looks for due rows, the worker that got a message."""


class PreparationStore(Protocol):
    """Snapshots between prepare and confirm. Losing one is an inconvenience, never a wrong result."""

    def put(self, preparation_id: str, snapshot: Mapping[str, Any], ttl_s: int) -> None: ...

    def get(self, preparation_id: str) -> dict[str, Any] | None: ...

    def drop(self, preparation_id: str) -> None: ...

    def key(self, preparation_id: str) -> str:
        """The key of the notifier's server that it is kept under."""


class Clock(Protocol):
    """Now, aware UTC. Only for display and TTLs; leases and due times use database time."""

    def __call__(self) -> datetime: ...
