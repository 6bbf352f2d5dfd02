"""What intake accepts is stored and read back exactly on SQLite, PostgreSQL and MariaDB; what it refuses, none lets in.

Each test runs on every engine against the same expectation, which is what makes the decision the same everywhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from sqlalchemy import Column, Engine, Integer, MetaData, Table, Text, create_engine, insert, select, text
from sqlalchemy.dialects import mysql
from sqlalchemy.exc import DBAPIError, StatementError

from staging.domain.canonical import payload_hash
from staging.domain.errors import ValidationFailed
from staging.domain.intake import dump_json, load_json, parse_json, sanitize_text
from staging.storage.dialect import ExactDecimal, JsonText, UtcDateTime
from tests.support.hostile_json import ACCEPTED, REFUSED, text_literal
from tests.support.json_values import json_values

SCRATCH = Table(
    "intake_scratch",
    MetaData(),
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("payload", JsonText),
    Column("note", Text().with_variant(mysql.LONGTEXT(), "mysql", "mariadb")),
    Column("amount", ExactDecimal(18, 4)),
    Column("huge", ExactDecimal(38, 10)),
    Column("at", UtcDateTime),
)
# What a JSON column of an adopted table may be; SQLite has no such type.
ADOPTED = {"sqlite": ["TEXT"], "postgresql": ["text", "json", "jsonb"], "mariadb": ["longtext", "json"]}

on_one_database = settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@pytest.fixture
def database(engine: Engine) -> Iterator[Engine]:
    SCRATCH.create(engine)
    yield engine
    SCRATCH.drop(engine)


@pytest.fixture
def foreign(database_url: str) -> Iterator[Engine]:
    """Another program's connection: the driver's defaults, none of our types and settings."""
    made = create_engine(database_url)
    yield made
    made.dispose()


def parse(source: str | None) -> Any:
    return parse_json(source, max_bytes=1_000_000, max_depth=12)


def stored(database: Engine, column: str, values: list[Any]) -> list[Any]:
    """Write ``values`` into ``column`` through our types and return what is read back, in order."""
    with database.begin() as connection:
        connection.execute(SCRATCH.delete())
        connection.execute(insert(SCRATCH), [{"id": n, column: value} for n, value in enumerate(values)])
    with database.begin() as connection:
        return list(connection.scalars(select(SCRATCH.c[column]).order_by(SCRATCH.c.id)))


def strings_in(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from strings_in(item)
    elif isinstance(value, list):
        for item in value:
            yield from strings_in(item)


# ---------------------------------------------------------------------------------------------------- payloads


def test_every_accepted_payload_comes_back_to_the_character(database: Engine) -> None:
    values = [parse(source) for source, _ in ACCEPTED.values()]
    texts = [dump_json(value) for value in values]
    back = stored(database, "payload", texts)
    assert back == texts
    for value, read in zip(values, back, strict=True):
        assert dump_json(parse(read)) == dump_json(value)
        assert payload_hash(load_json(read)) == payload_hash(load_json(dump_json(value)))


def test_what_another_program_wrote_is_decided_by_us_and_read_exactly(
    database: Engine, foreign: Engine
) -> None:
    for n, (source, value) in enumerate(ACCEPTED.values()):
        with foreign.begin() as other:
            other.execute(
                text("INSERT INTO intake_scratch (id, payload) VALUES (:n, :p)"), {"n": n, "p": source}
            )
        with database.begin() as connection:
            read = connection.scalar(select(SCRATCH.c.payload).where(SCRATCH.c.id == n))
        assert read == source
        assert repr(parse(read)) == repr(value)


def test_no_database_lets_in_what_intake_refuses(database: Engine, foreign: Engine) -> None:
    """We refuse whatever text another program could store; broken characters have the next test."""
    unstorable = set()
    for n, (name, (source, _)) in enumerate(REFUSED.items()):
        if isinstance(source, bytes) or name == "raw surrogate":
            continue
        try:
            with foreign.begin() as other:
                other.execute(
                    text("INSERT INTO intake_scratch (id, payload) VALUES (:n, :p)"), {"n": n, "p": source}
                )
        except DBAPIError:
            unstorable.add(name)
            continue
        with database.begin() as connection:
            read = connection.scalar(select(SCRATCH.c.payload).where(SCRATCH.c.id == n))
        with pytest.raises(ValidationFailed):
            parse(read)
    assert unstorable == ({"raw nul"} if database.dialect.name == "postgresql" else set())


# Which bytes that are no UTF-8 a database takes for text all the same.
TAKEN = {"sqlite": {"surrogate", "gbk"}, "postgresql": set(), "mariadb": {"surrogate"}}


def test_a_row_of_broken_bytes_is_refused_alone_and_stops_no_other(database: Engine) -> None:
    kind = database.dialect.name
    with database.begin() as connection:
        connection.execute(insert(SCRATCH), [{"id": 0, "payload": "{}"}, {"id": 9, "payload": "[]"}])
    taken = {}
    for n, (name, source) in enumerate(
        {"surrogate": b'["\xed\xa0\x80"]', "gbk": '["中"]'.encode("gbk")}.items(), 1
    ):
        literal = text_literal(kind, source)
        try:
            with database.begin() as connection:
                connection.exec_driver_sql(
                    f"INSERT INTO intake_scratch (id, payload) VALUES ({n}, {literal})"
                )
            taken[n] = name
        except DBAPIError:
            continue
    assert set(taken.values()) == TAKEN[kind]
    with database.begin() as connection:
        back = {row.id: row.payload for row in connection.execute(select(SCRATCH.c.id, SCRATCH.c.payload))}
    assert (back.pop(0), back.pop(9)) == ("{}", "[]")
    assert back.keys() == taken.keys()
    for read in back.values():
        with pytest.raises(ValidationFailed):
            parse(read)


def test_adopted_json_columns_keep_the_meaning(database: Engine) -> None:
    values = [parse(source) for source, _ in ACCEPTED.values()]
    for kind in ADOPTED[database.dialect.name]:
        with database.begin() as connection:
            connection.exec_driver_sql("DROP TABLE IF EXISTS adopted")
            connection.exec_driver_sql(f"CREATE TABLE adopted (id INTEGER PRIMARY KEY, payload {kind})")
        adopted = Table("adopted", MetaData(), Column("id", Integer), Column("payload", JsonText))
        with database.begin() as connection:
            rows = [{"id": n, "payload": dump_json(value)} for n, value in enumerate(values)]
            connection.execute(insert(adopted), rows)
            back = list(connection.scalars(select(adopted.c.payload).order_by(adopted.c.id)))
        for value, read in zip(values, back, strict=True):
            assert payload_hash(parse(read)) == payload_hash(parse(dump_json(value))), kind


@on_one_database
@given(st.lists(json_values, min_size=1, max_size=10))
def test_any_payload_comes_back(database: Engine, values: list[Any]) -> None:
    texts = [dump_json(value) for value in values]
    assert stored(database, "payload", texts) == texts


# ------------------------------------------------------------------------------------------------------- texts


def test_every_accepted_string_fits_a_text_column(database: Engine) -> None:
    strings = [string for source, _ in ACCEPTED.values() for string in strings_in(parse(source))]
    assert len(strings) > 30
    assert stored(database, "note", strings) == strings


@on_one_database
@given(st.lists(st.text(st.characters(), max_size=200), min_size=1, max_size=10))
def test_any_error_text_can_be_stored_once_sanitized(database: Engine, texts: list[str]) -> None:
    clean = [sanitize_text(raw, 100) for raw in texts]
    assert stored(database, "note", clean) == clean


# ----------------------------------------------------------------------------------------------------- amounts


def test_amounts_come_back_to_the_last_digit(database: Engine) -> None:
    source = (
        "[0.1, 0.2, 0.3, 12345678901234.5678, -12345678901234.5678, 99999999999999.9999, 0.0001, 0, 1e2, 7]"
    )
    amounts = parse(source)
    back = stored(database, "amount", amounts)
    assert back == amounts
    assert all(isinstance(amount, Decimal) for amount in back)
    assert back[0] + back[1] == back[2]  # 0.1 + 0.2
    huge = [Decimal("9" * 28 + "." + "9" * 10), Decimal("-0.0000000001"), Decimal(2**53 + 1), Decimal(2**63)]
    assert stored(database, "huge", huge) == huge


def test_amounts_another_program_wrote_are_read_exactly(database: Engine, foreign: Engine) -> None:
    with foreign.begin() as other:
        other.execute(text("INSERT INTO intake_scratch (id, amount) VALUES (1, '12345678901234.5678')"))
    with database.begin() as connection:
        assert connection.scalar(select(SCRATCH.c.amount)) == Decimal("12345678901234.5678")


def test_an_amount_that_would_be_rounded_or_cut_is_refused_everywhere(database: Engine) -> None:
    unfit = [
        0.1 + 0.2,
        True,
        "1.5",
        Decimal("0.00001"),
        Decimal("1E+14"),
        Decimal("NaN"),
        Decimal("Infinity"),
    ]
    for amount in unfit:
        with pytest.raises(StatementError):
            stored(database, "amount", [amount])
    with database.begin() as connection:
        assert connection.scalar(select(SCRATCH.c.id)) is None


# ------------------------------------------------------------------------------------------------------- times


def test_times_come_back_as_the_same_moment_in_utc_and_in_order(database: Engine) -> None:
    west = timezone(timedelta(hours=-8))
    berlin = ZoneInfo("Europe/Berlin")
    moments = [
        datetime(2026, 3, 29, 2, 30, tzinfo=berlin),  # does not exist on the wall clock
        datetime(2026, 10, 25, 2, 30, tzinfo=berlin),  # twice on the wall clock: the first
        datetime(2026, 10, 25, 2, 30, fold=1, tzinfo=berlin),  # and the second
        datetime(2026, 11, 30, 13, 30, tzinfo=west),
        datetime(2026, 11, 30, 21, 30, 0, 1, tzinfo=UTC),  # a microsecond later
        datetime(2026, 11, 30, 21, 30, 0, 100_000, tzinfo=UTC),
    ]
    back = stored(database, "at", moments)
    assert back == [moment.astimezone(UTC) for moment in moments]
    assert {moment.utcoffset() for moment in back} == {timedelta(0)}
    with database.begin() as connection:
        ordered = list(connection.scalars(select(SCRATCH.c.at).order_by(SCRATCH.c.at)))
    assert ordered == sorted(back)


def test_a_time_without_a_zone_is_refused_everywhere(database: Engine) -> None:
    with pytest.raises(StatementError, match="naive"):
        stored(database, "at", [datetime(2026, 11, 30, 13, 30)])  # noqa: DTZ001 - the naive one is the point
