"""What workers and sweepers ask again and again goes by the index made for it, however much history there is.

The statements are those the product really sends, explained with real statistics: nothing is forced on the planner.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, Engine, case, event, insert, select, update

from staging.contracts.status import StatusCode
from staging.domain.identity import Tenant
from staging.storage import claims, dependencies, operations
from staging.storage.dialect import db_now_plus
from staging.storage.due import due, due_among, in_turn, is_at_work
from staging.storage.engine import make_engine
from staging.storage.tables import metadata, op_dependency, op_queue
from tests.benchmarks.reference.history import analyze, fill_queue
from tests.databases import KINDS, fresh_database

_HISTORY, _DUE, _WAITING, _TENANTS = 12_000, 2000, 20, 20
_QUEUE = "ai_op_queue"
q = op_queue.c
_KEY = {
    "postgresql": {"pk_ai_op_queue"},
    "mariadb": {"PRIMARY"},
    "sqlite": {"sqlite_autoindex_ai_op_queue_1", "sqlite_autoindex_ai_op_queue_archive_1"},
}


@pytest.fixture(scope="module", params=KINDS)
def filled(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """Thousands of finished rows and a backlog, some of it running or waiting for others; statistics as usual."""
    folder: Path = tmp_path_factory.mktemp("plans")
    with fresh_database(request.param, folder) as url:
        engine = make_engine(url, statement_timeout_s=20, lock_timeout_s=5)
        metadata.create_all(engine)
        fill_queue(engine, _HISTORY + _DUE + _WAITING, _TENANTS)
        with engine.begin() as connection:
            reopened(connection, range(1, _DUE + 1), StatusCode.SUBMITTED)
            reopened(connection, range(_DUE + 1, _DUE + _WAITING + 1), StatusCode.WAITING_OTHER)
            links = [
                {"sOpId": f"seed-{_DUE + n}", "sDependsOnId": f"seed-{n}"} for n in range(1, _WAITING + 1)
            ]
            connection.execute(insert(op_dependency), links)
            claims.claim(connection, [f"seed-{n}" for n in range(1, 6)], "here.1", 60.0)
        analyze(engine)
        yield engine
        engine.dispose()


@pytest.fixture(scope="module", params=KINDS)
def young(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """Statistics of a quiet day, when nothing waited, and thousands of rows that wait now."""
    folder: Path = tmp_path_factory.mktemp("young")
    with fresh_database(request.param, folder) as url:
        engine = make_engine(url, statement_timeout_s=20, lock_timeout_s=5)
        metadata.create_all(engine)
        fill_queue(engine, _HISTORY + _DUE, _TENANTS)
        analyze(engine)
        with engine.begin() as connection:
            reopened(connection, range(1, _DUE + 1), StatusCode.SUBMITTED)
        yield engine
        engine.dispose()


def reopened(connection: Connection, numbers: range, code: StatusCode) -> None:
    """Rows of history as if nobody had run them yet; every tenth expires in an hour."""
    expiry = case((q.sId.like("%7"), db_now_plus(3600.0)), else_=None)
    values = {"sStatus": "pending", "iStatusCode": int(code), "iAttempt": 0, "tExpireAt": expiry}
    connection.execute(update(op_queue).where(q.sId.in_([f"seed-{n}" for n in numbers])).values(values))


def sent(engine: Engine, ask: Callable[[Connection], object]) -> list[tuple[str, Any]]:
    """Statements on the queue that ``ask`` sends, with their values; undone afterwards."""
    found: list[tuple[str, Any]] = []

    def note(_c: object, _cursor: object, statement: str, values: Any, _x: object, many: bool) -> None:
        if _QUEUE in statement and not statement.startswith("INSERT"):
            found.append((statement, values[0] if many else values))

    event.listen(engine, "before_cursor_execute", note)
    try:
        with engine.connect() as connection:
            ask(connection)
            connection.rollback()
    finally:
        event.remove(engine, "before_cursor_execute", note)
    return found


def access(engine: Engine, statement: str, values: Any) -> list[str]:
    """How the plan reaches ``ai_op_queue``: the name of an index each time, "" for a walk through the table."""
    explain = "EXPLAIN QUERY PLAN" if engine.dialect.name == "sqlite" else "EXPLAIN"
    explain += " (FORMAT JSON)" if engine.dialect.name == "postgresql" else ""
    with engine.connect() as connection:
        rows = connection.exec_driver_sql(f"{explain} {statement}", values).mappings().all()
        connection.rollback()
    match engine.dialect.name:
        case "postgresql":
            return list(_nodes(rows[0]["QUERY PLAN"][0]["Plan"]))
        case "sqlite":
            details = [row["detail"] for row in rows if f" {_QUEUE}" in row["detail"]]
            return [
                d.partition("INDEX ")[2].partition(" ")[0]
                for d in details
                if d.startswith(("SCAN", "SEARCH"))
            ]
        case _:
            return [row["key"] or "" for row in rows if str(row["table"]).startswith(_QUEUE)]


def _nodes(plan: dict[str, Any]) -> Iterator[str]:
    kind = plan["Node Type"]
    if "Index Name" in plan:
        yield plan["Index Name"]
    elif kind == "Seq Scan" and plan["Relation Name"] == _QUEUE:
        yield ""
    for below in plan.get("Plans", ()):
        yield from _nodes(below)


def _names(*words: str) -> set[str]:
    return {f"ix_ai_op_queue_{word}" for word in words}


def claim_and_end(connection: Connection, ids: list[str]) -> None:
    claimed, _ = claims.claim(connection, ids, "there.1", 60.0)
    said = dict.fromkeys(("sResultBillId", "sResultMsg", "sErrorMsg", "sErrorCode", "jErrorDetail"), "")
    assert claimed
    ends = [claims.End(o, StatusCode.EXECUTED, said | {"jErrorDetail": None}) for o in claimed]
    assert claims.finish(connection, ends).all_held


# Each holds open rows only, or is entered at them: which of them a planner prefers depends on the backlog.
OPEN = _names("next", "due", "turn", "open", "lease", "waiting", "expiry")
LEASED = _names("lease", "open")
ASKED: dict[str, tuple[Callable[[Connection], object], set[str]]] = {
    "whose turn it is": (lambda c: in_turn(c, Tenant("B0003", "S01"), 10), _names("turn")),
    "due among named ones": (lambda c: due_among(c, ["seed-104", "seed-106"]), set()),
    "who is at work": (lambda c: is_at_work(c, Tenant("B0003", "S01")), OPEN),
    "claim": (lambda c: claims.claim(c, ["seed-104", "seed-106"], "there.1", 60.0), set()),
    "end": (lambda c: claim_and_end(c, ["seed-104", "seed-106"]), set()),
    "lapsed leases": (lambda c: operations.lapsed(c, 500), LEASED),
    "leases of a place": (lambda c: operations.held_at(c, "here", 500), LEASED),
    "expired": (lambda c: operations.expired(c, 500), OPEN),
    "due, whoever's": (lambda c: due(c, 10), OPEN),
    "due and old": (lambda c: due(c, 500, 5.0), OPEN),
    "waiting for others": (lambda c: dependencies.waiting(c, 500), OPEN),
}


@pytest.mark.parametrize("question", ASKED)
def test_what_is_asked_again_and_again_goes_by_the_index_made_for_it(filled: Engine, question: str) -> None:
    _check(filled, question)


@pytest.mark.parametrize("question", ["whose turn it is", "due among named ones", "claim", "end"])
def test_rows_are_found_by_their_key_or_turn_where_statistics_know_of_no_backlog(
    young: Engine, question: str
) -> None:
    _check(young, question)


def _check(filled: Engine, question: str) -> None:
    ask, wanted = ASKED[question]
    kind = "mariadb" if filled.dialect.name in ("mysql", "mariadb") else filled.dialect.name
    allowed = _KEY[kind] | ({f"{name}_my" for name in wanted} if kind == "mariadb" else wanted)
    statements = sent(filled, ask)
    assert statements, "nothing was asked"
    for statement, values in statements:
        used = access(filled, statement, values)
        assert used, f"the plan of {statement} was not understood"
        assert set(used) <= allowed, f"{used} for {statement}"


def test_a_question_without_an_index_is_recognized(filled: Engine) -> None:
    asked = sent(filled, lambda c: c.execute(select(q.sId).where(q.sTraceId == "nobody's")))
    assert [access(filled, *one) for one in asked] == [[""]]
