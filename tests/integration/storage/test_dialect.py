"""Types and expressions that mean the same on every engine."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest
from sqlalchemy import (
    Column,
    Engine,
    Integer,
    MetaData,
    Table,
    Text,
    column,
    func,
    insert,
    select,
    table,
    text,
)
from sqlalchemy.exc import StatementError

from staging.storage.dialect import (
    ExactDecimal,
    Flag,
    IdString,
    JsonText,
    UtcDateTime,
    db_now,
    db_now_plus,
    flag_is,
    sortable,
)

metadata = MetaData()
thing = Table(
    "thing",
    metadata,
    Column("id", IdString(20), primary_key=True),
    Column("at", UtcDateTime, server_default=db_now()),
    Column("amount", ExactDecimal(38, 10)),
    Column("money", ExactDecimal(18, 2)),
    Column("raw", JsonText),
)


@pytest.fixture
def things(engine: Engine) -> Engine:
    metadata.create_all(engine)
    return engine


def _back(engine: Engine, name: str, *values: Any) -> list[Any]:
    """Each value written and read."""
    with engine.begin() as connection:
        for n, value in enumerate(values):
            connection.execute(insert(thing), {"id": str(n), name: value})
        return list(connection.execute(select(thing.c[name]).order_by(thing.c.id)).scalars())


def test_times_come_back_in_utc_with_their_microseconds(things: Engine) -> None:
    berlin = datetime(2026, 3, 29, 2, 30, 0, 1, tzinfo=timezone(timedelta(hours=2)))
    pacific = datetime(2026, 11, 30, 13, 30, tzinfo=timezone(timedelta(hours=-8)))
    old = datetime(1970, 1, 1, 0, 0, 0, 999999, tzinfo=UTC)
    assert _back(things, "at", berlin, pacific, old, None) == [
        datetime(2026, 3, 29, 0, 30, 0, 1, tzinfo=UTC),
        datetime(2026, 11, 30, 21, 30, tzinfo=UTC),
        old,
        None,
    ]


def test_a_naive_time_is_refused(things: Engine) -> None:
    with pytest.raises(StatementError, match="time zone"):
        _back(things, "at", datetime(2026, 1, 1))  # noqa: DTZ001 - on purpose


def test_times_of_other_programs_are_read(engine: Engine) -> None:
    written = {"sqlite": ["2026-11-30 08:00:00", "2026-11-30T08:00:00Z", "2026-11-30T16:00:00+08:00"]}
    values = written.get(engine.dialect.name, ["2026-11-30 08:00:00"])
    with engine.begin() as connection:
        kind = {"sqlite": "TEXT", "postgresql": "TIMESTAMP"}.get(engine.dialect.name, "DATETIME")
        connection.execute(text(f"CREATE TABLE foreign_times (t {kind})"))
        for value in values:
            connection.execute(text(f"INSERT INTO foreign_times VALUES ('{value}')"))
        read = connection.execute(
            select(column("t", UtcDateTime)).select_from(table("foreign_times"))
        ).scalars()
        assert set(read) == {datetime(2026, 11, 30, 8, tzinfo=UTC)}


def test_a_zero_date_of_the_mysql_family_is_no_date(engine: Engine) -> None:
    if engine.dialect.name != "mariadb":
        pytest.skip("only there")
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE old_times (t DATETIME NOT NULL)"))
        connection.execute(text("INSERT INTO old_times VALUES ('0000-00-00 00:00:00')"))
        read = connection.execute(select(column("t", UtcDateTime)).select_from(table("old_times"))).scalars()
        assert list(read.all()) == [None]


def test_amounts_come_back_exactly(things: Engine) -> None:
    amounts = [
        Decimal("12345678901234567890.0123456789"),
        Decimal("-0.0000000001"),
        Decimal("1E+5"),
        Decimal("0.30"),
        7,
        None,
    ]
    read = _back(things, "amount", *amounts)
    assert read == amounts
    assert all(value is None or isinstance(value, Decimal) for value in read)


@pytest.mark.parametrize("value", [0.1, True, "1", Decimal("NaN"), Decimal("0.001"), Decimal(10) ** 16])
def test_what_cannot_come_back_exactly_is_refused(things: Engine, value: Any) -> None:
    with pytest.raises(StatementError):
        _back(things, "money", value)


def test_amounts_sort_by_size(things: Engine) -> None:
    values = [Decimal("9.00"), Decimal("10.00"), Decimal("-2.00"), Decimal("100.50")]
    _back(things, "money", *values)
    with things.connect() as connection:
        read = connection.execute(select(thing.c.money).order_by(sortable(thing.c.money))).scalars().all()
    assert read == sorted(values)


@pytest.mark.parametrize(
    ("engine_name", "kind"),
    [
        ("postgresql", "BOOLEAN"),
        ("postgresql", "SMALLINT"),
        ("mariadb", "BIT(1)"),
        ("mariadb", "TINYINT(1)"),
        ("mariadb", "BOOLEAN"),
        ("sqlite", "INTEGER"),
        ("sqlite", "BOOLEAN"),
    ],
)
def test_a_flag_is_yes_or_no_in_whatever_column(engine: Engine, engine_name: str, kind: str) -> None:
    if engine.dialect.name != engine_name:
        pytest.skip(f"{kind} is of {engine_name}")
    flags = Table("flags", MetaData(), Column("id", Integer, primary_key=True), Column("on_", Flag))
    with engine.begin() as connection:
        connection.execute(text(f"CREATE TABLE flags (id INTEGER PRIMARY KEY, on_ {kind} NULL)"))
        connection.execute(
            insert(flags), [{"id": 1, "on_": 1}, {"id": 2, "on_": False}, {"id": 3, "on_": None}]
        )
        connection.execute(flags.update().where(flags.c.id == 1, flag_is(flags.c.on_, True)).values(on_=True))
        assert connection.execute(select(flags.c.on_).order_by(flags.c.id)).scalars().all() == [1, 0, None]
        off = select(flags.c.id).where(flag_is(flags.c.on_, False)).order_by(flags.c.id)
        assert connection.execute(off).scalars().all() == [2, 3]


def test_ids_that_differ_in_case_are_two(things: Engine) -> None:
    with things.begin() as connection:
        connection.execute(insert(thing), [{"id": "Ab"}, {"id": "aB"}])
        assert connection.execute(select(thing.c.id).where(thing.c.id == "ab")).all() == []


def test_json_is_text_in_and_out(things: Engine) -> None:
    raw = '{"a": 1.10, "b": "😀", "c": 12345678901234567890.123}'
    assert _back(things, "raw", raw, None) == [raw, None]


@pytest.mark.parametrize("kind", ["TEXT", "JSON", "JSONB"])
def test_json_works_on_adopted_columns(engine: Engine, kind: str) -> None:
    if engine.dialect.name != "postgresql" and kind == "JSONB":
        pytest.skip("PostgreSQL's")
    adopted = Table("adopted", MetaData(), Column("id", Integer, primary_key=True), Column("raw", JsonText))
    with engine.begin() as connection:
        connection.execute(text(f"CREATE TABLE adopted (id INTEGER PRIMARY KEY, raw {kind})"))
        connection.execute(insert(adopted), {"id": 1, "raw": '{"n": 1.10}'})
        read = connection.execute(select(adopted.c.raw)).scalar_one()
    assert json.loads(read, parse_float=Decimal) == {"n": Decimal("1.10")}
    assert isinstance(read, str)


def test_the_databases_clock_is_utc_moves_and_adds_up(things: Engine) -> None:
    with things.begin() as connection:
        now, later, before = connection.execute(select(db_now(), db_now_plus(90.5), db_now_plus(-3600))).one()
        assert abs(now - datetime.now(UTC)) < timedelta(seconds=5)
        assert timedelta(seconds=90) < later - now < timedelta(seconds=91)
        assert timedelta(seconds=3599) < now - before < timedelta(seconds=3601)
        first = connection.execute(select(db_now())).scalar_one()
        ticks = 0
        while connection.execute(select(db_now())).scalar_one() == first and ticks < 10_000:
            ticks += 1
        assert connection.execute(select(db_now())).scalar_one() > first


def test_the_databases_clock_compares_with_stored_times(things: Engine) -> None:
    with things.begin() as connection:
        connection.execute(insert(thing).values(id="past", at=db_now_plus(-60)))
        connection.execute(insert(thing).values(id="future", at=db_now_plus(60)))
        connection.execute(insert(thing), {"id": "default"})
        due = select(thing.c.id).where(thing.c.at <= db_now()).order_by(thing.c.at)
        assert connection.execute(due).scalars().all() == ["past", "default"]


def test_an_expression_of_seconds_may_be_a_column(engine: Engine) -> None:
    waits = Table("waits", MetaData(), Column("s", Integer), Column("note", Text))
    waits.metadata.create_all(engine)
    with engine.begin() as connection:
        connection.execute(insert(waits), {"s": 30})
        now, then = connection.execute(select(db_now(), db_now_plus(waits.c.s))).one()
    assert timedelta(seconds=29) < then - now < timedelta(seconds=31)


def test_an_index_serves_a_comparison_with_the_clock(engine: Engine) -> None:
    """PostgreSQL's clock is volatile; asked once per statement it does not force a full scan."""
    if engine.dialect.name != "postgresql":
        pytest.skip("PostgreSQL's")
    metadata.create_all(engine)
    with engine.begin() as connection:
        connection.execute(text("CREATE INDEX ix_at ON thing (at)"))
        connection.execute(text("SET LOCAL enable_seqscan = off"))
        query = select(func.count()).select_from(thing).where(thing.c.at <= db_now())
        sql = str(query.compile(connection))
        plan = "\n".join(connection.execute(text(f"EXPLAIN {sql}")).scalars())
    assert "ix_at" in plan
    assert "Index Cond" in plan
