"""The ledger: what happened under an idempotency key, written in the transaction of the business change.

Twins (two attempts under one key, at once) meet at the ledger row: the second insert waits until the first commits or
rolls back, then either finds the first one's entry or runs itself. Waits end at the connection's lock timeout, with an
error.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from sqlalchemy import ARRAY, Connection, Select, String, any_, bindparam, func, select, update
from sqlalchemy.dialects.mysql import insert as mysql_insert
from sqlalchemy.dialects.postgresql import insert as pg_insert
from sqlalchemy.dialects.sqlite import insert as sqlite_insert
from sqlalchemy.exc import IntegrityError
from sqlalchemy.sql.dml import Insert

from staging.domain.canonical import decimal_text
from staging.domain.identity import Tenant
from staging.domain.ports import LedgerEntry, LedgerRow
from staging.storage.bulk import as_given, given_rows, kept, select_given, takes_json
from staging.storage.bulk_mariadb import execute_given, takes_json_table, update_given
from staging.storage.dialect import is_mysql, one_or_many
from workers.erp.tables import op_fence, op_ledger

_DUPLICATE_KEY = 1062
_PROBE = "probe"  # command type of the row a lookup inserts and rolls back; never committed
_l, _f = op_ledger.c, op_fence.c

_OF_TENANT = (_l.sBrandsId == bindparam("b"), _l.sSubsidiaryId == bindparam("s"))
_READ = select(_l.sIdempotencyKey, _l.sOpId, _l.sCommandType, _l.sPayloadHash, _l.sResult).where(*_OF_TENANT)
_BY_KEY = _l.sIdempotencyKey == any_(bindparam("keys", type_=ARRAY(String)))
_AMONG = _READ.where(_l.sIdempotencyKey.in_(bindparam("keys", expanding=True)))
_ENTRIES: dict[str, Select[Any]] = {
    # One text however many keys there are, so that it is prepared once.
    "postgresql": _READ.where(_BY_KEY),
    "sqlite": _AMONG,
    # A locking read is a current read whatever the isolation level; elsewhere the plain one is.
    "mysql": _AMONG.with_for_update(read=True),
}
_RESULT = (
    update(op_ledger)
    .where(_l.sIdempotencyKey == bindparam("k"), *_OF_TENANT)
    .values(sResult=bindparam("result"))
)
_GIVEN = given_rows(op_ledger, ("sIdempotencyKey", "sResult"))
_RESULTS_GIVEN = (
    update(op_ledger)
    # By key as well: for as many rows as it expects of JSON the planner would read a ledger of some thousands whole.
    .where(_l.sIdempotencyKey == _GIVEN.c.sIdempotencyKey, _BY_KEY, *_OF_TENANT)
    .values(sResult=kept(_GIVEN, _l.sResult))
)
_RESULTS_MARIADB = update_given(
    op_ledger, (_l.sIdempotencyKey, _l.sBrandsId, _l.sSubsidiaryId), (_l.sResult,)
)
_FENCED = select(_f.iClaimSeq).where(_f.sOpId == bindparam("op"))
_FENCED_MYSQL = _FENCED.with_for_update(read=True)

_COUNTED = {"preserve_rowcount": True}  # SQLAlchemy keeps an INSERT's row count only when asked to
_INSERT: dict[str, Insert] = {
    "postgresql": pg_insert(op_ledger).on_conflict_do_nothing().execution_options(**_COUNTED),
    "sqlite": sqlite_insert(op_ledger).on_conflict_do_nothing().execution_options(**_COUNTED),
    # Never INSERT IGNORE: it would also swallow a value too long or of the wrong type. 1062 alone is caught.
    "mysql": mysql_insert(op_ledger),
}
_COLUMNS = ("sIdempotencyKey", "sBrandsId", "sSubsidiaryId", "sOpId", "sCommandType", "sPayloadHash")
_INSERT_ALL: dict[str, Insert] = {
    "postgresql": pg_insert(op_ledger)
    .from_select(list(_COLUMNS), select_given(op_ledger, _COLUMNS))
    .on_conflict_do_nothing()
    .returning(_l.sIdempotencyKey),
    "sqlite": sqlite_insert(op_ledger).on_conflict_do_nothing().returning(_l.sIdempotencyKey),
}


def _fence_statements() -> dict[str, Insert]:
    pg, lite, my = pg_insert(op_fence), sqlite_insert(op_fence), mysql_insert(op_fence)
    return {
        "postgresql": pg.on_conflict_do_update(
            index_elements=[_f.sOpId], set_={_f.iClaimSeq: func.greatest(_f.iClaimSeq, pg.excluded.iClaimSeq)}
        ),
        "sqlite": lite.on_conflict_do_update(
            index_elements=[_f.sOpId], set_={_f.iClaimSeq: func.max(_f.iClaimSeq, lite.excluded.iClaimSeq)}
        ),
        "mysql": my.on_duplicate_key_update(
            {_f.iClaimSeq: func.greatest(_f.iClaimSeq, my.inserted.iClaimSeq)}
        ),
    }


_FENCE = _fence_statements()


class SqlLedger:
    """``ports.Ledger`` over SQLAlchemy Core: ``connection`` is an open ``Connection`` of the ERP database.

    Database errors (lock timeout, deadlock, lost connection) come out as SQLAlchemy raised them: the transaction has to
    be rolled back as a whole, and the whole of it may be tried again.
    """

    def insert_first(
        self,
        connection: Connection,
        tenant: Tenant,
        key: str,
        op_id: str,
        command_type: str,
        payload_hash: str,
    ) -> LedgerEntry | None:
        """Insert the row and return None, or return the committed entry that was there before (waits for a twin).

        Must be the first statement of the transaction that makes the business change.
        """
        row = _values(tenant, LedgerRow(key, op_id, command_type, payload_hash))
        return None if self._inserted(connection, row) else self._there(connection, tenant, [key])[key]

    def insert_all(
        self, connection: Connection, tenant: Tenant, rows: Sequence[LedgerRow]
    ) -> dict[str, LedgerEntry]:
        """``insert_first`` of several keys, in their order so that two who meet do not deadlock."""
        ordered = sorted(rows, key=lambda row: row.key)
        values = [_values(tenant, row) for row in ordered]
        if is_mysql(connection.dialect):
            taken = self._taken_mysql(connection, values)
        else:
            family = connection.dialect.name
            given = as_given(values) if family == "postgresql" else values
            new = set(connection.execute(_INSERT_ALL[family], given).scalars())
            taken = [row.key for row in ordered if row.key not in new]
        return self._there(connection, tenant, taken)

    def _taken_mysql(self, connection: Connection, values: Sequence[Mapping[str, str]]) -> list[str]:
        """Keys that were there before. All in one statement first, which one such key alone would undo."""
        together = connection.begin_nested()
        try:
            connection.execute(_INSERT["mysql"], values)
        except IntegrityError as error:
            if not _is_duplicate(error):
                raise
            together.rollback()
            return [row["sIdempotencyKey"] for row in values if not self._inserted(connection, row)]
        together.commit()
        return []

    @staticmethod
    def _there(connection: Connection, tenant: Tenant, keys: Sequence[str]) -> dict[str, LedgerEntry]:
        if not keys:
            return {}
        asked = {"keys": list(keys), **_of(tenant)}
        found = {
            key: LedgerEntry(
                op_id, command_type, payload_hash, None if result is None else json.loads(result)
            )
            for key, op_id, command_type, payload_hash, result in connection.execute(
                _ENTRIES[_family(connection)], asked
            )
        }
        if missing := set(keys) - found.keys():
            # Conflict with a row that cannot be read: someone deletes ledger rows, or isolation is not READ COMMITTED.
            raise RuntimeError(f"ledger rows {sorted(missing)} conflict but cannot be read; nothing was done")
        return found

    def store_result(
        self, connection: Connection, tenant: Tenant, key: str, result: Mapping[str, Any]
    ) -> None:
        """Keep ``result`` (JSON-ready; Decimals become exact strings) in the row this transaction inserted."""
        self.store_results(connection, tenant, {key: result})

    def store_results(
        self, connection: Connection, tenant: Tenant, results: Mapping[str, Mapping[str, Any]]
    ) -> None:
        """``store_result`` of several keys."""
        rows = [{"sIdempotencyKey": key, "sResult": _text(result)} for key, result in results.items()]
        if not rows:
            return
        if takes_json(connection, rows):
            given = {"keys": list(results), **as_given(rows)}
            stored = connection.execute(_RESULTS_GIVEN, {**_of(tenant), **given}).rowcount
        elif takes_json_table(connection, rows):
            of = {"sBrandsId": tenant.brands_id, "sSubsidiaryId": tenant.subsidiary_id}
            stored = execute_given(connection, _RESULTS_MARIADB, [of | row for row in rows])
        else:
            bound = [{**_of(tenant), "k": row["sIdempotencyKey"], "result": row["sResult"]} for row in rows]
            stored = connection.execute(_RESULT, one_or_many(bound)).rowcount
        if stored != len(rows):
            raise RuntimeError(f"a ledger row of {sorted(results)} is gone; nothing may be committed")

    def lookup(self, connection: Connection, tenant: Tenant, key: str) -> LedgerEntry | None:
        """The committed entry, or None: *absent*, proven. Any doubt raises (lock timeout, deadlock, lost connection).

        Proof of absence: a row under the key could be inserted (and is taken back), so no twin had one in flight. It
        holds for attempts that begin later only if they are fenced: ``fence`` and commit before calling this. Call it
        in a (writing) transaction of its own that is rolled back afterwards.
        """
        savepoint = connection.begin_nested()
        entry = self.insert_first(connection, tenant, key, "", _PROBE, "")
        # Not in a finally: a deadlock has already undone the savepoint, and its error must get out.
        savepoint.rollback()
        return entry

    def fence(self, connection: Connection, op_id: str, claim_seq: int) -> None:
        """Bar claims of ``op_id`` up to and including ``claim_seq`` from committing; a fence never goes down.

        ``claim_seq`` is the row's ``iSeq`` as of the claim: unlike the number of attempts, a retry never sets it back.

        Takes effect with the caller's commit. Needed where queue and ERP are separate databases, so that no attempt can
        commit after ``lookup`` answered *absent*.
        """
        connection.execute(_FENCE[_family(connection)], {"sOpId": op_id, "iClaimSeq": claim_seq})

    def is_fenced(self, connection: Connection, op_id: str, claim_seq: int) -> bool:
        """True if the claim of that seq must not commit. Ask after ``insert_first``, in the same transaction.

        In that order there is no gap: either the lookup waits for our ledger row, or we see the fence set before it.
        """
        statement = _FENCED_MYSQL if is_mysql(connection.dialect) else _FENCED
        fenced_to = connection.execute(statement, {"op": op_id}).scalar()
        return fenced_to is not None and int(fenced_to) >= claim_seq

    @staticmethod
    def _inserted(connection: Connection, row: Mapping[str, str]) -> bool:
        statement = _INSERT[_family(connection)]
        if not is_mysql(connection.dialect):
            return connection.execute(statement, row).rowcount == 1
        try:
            connection.execute(statement, row)
        except IntegrityError as error:
            # InnoDB undoes the statement alone; the transaction goes on.
            if not _is_duplicate(error):
                raise
            return False
        return True


def _family(connection: Connection) -> str:
    return "mysql" if is_mysql(connection.dialect) else connection.dialect.name


def _of(tenant: Tenant) -> dict[str, str]:
    return {"b": tenant.brands_id, "s": tenant.subsidiary_id}


def _is_duplicate(error: IntegrityError) -> bool:
    return error.orig is not None and bool(error.orig.args) and error.orig.args[0] == _DUPLICATE_KEY


def _values(tenant: Tenant, row: LedgerRow) -> dict[str, str]:
    return {
        "sIdempotencyKey": row.key,
        "sBrandsId": tenant.brands_id,
        "sSubsidiaryId": tenant.subsidiary_id,
        "sOpId": row.op_id,
        "sCommandType": row.command_type,
        "sPayloadHash": row.payload_hash,
    }


def _text(result: Mapping[str, Any]) -> str:
    return json.dumps(dict(result), ensure_ascii=False, allow_nan=False, default=_exact)


def _exact(value: object) -> str:
    if isinstance(value, Decimal):
        return decimal_text(value)
    raise TypeError(f"{type(value).__name__} is not JSON-ready")
