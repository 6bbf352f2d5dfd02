"""Real errors, provoked on real databases, and what they are taken for."""

from __future__ import annotations

import threading
from collections.abc import Callable
from decimal import Decimal

import pytest
from sqlalchemy import (
    CheckConstraint,
    Column,
    Connection,
    Engine,
    ForeignKey,
    Integer,
    MetaData,
    String,
    Table,
    text,
)
from sqlalchemy.exc import DBAPIError

from staging.storage.dberrors import DbFailure, classify_db_error, needs_upgrade, refused_by
from staging.storage.dialect import ExactDecimal
from staging.storage.engine import make_engine

metadata = MetaData()
row = Table(
    "row_",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("word", String(5), nullable=False, server_default="x"),
    Column("n", Integer),
    Column("amount", ExactDecimal(18, 2)),
    Column("upper", Integer, ForeignKey("row_.id")),
    CheckConstraint("n >= 0", name="ck_row_n"),
    mysql_engine="InnoDB",
)


@pytest.fixture
def rows(engine: Engine) -> Engine:
    metadata.create_all(engine)
    with engine.begin() as connection:
        connection.execute(row.insert(), [{"id": 1, "n": 1}, {"id": 2, "n": 2}])
    return engine


def _failure(engine: Engine, work: Callable[[Connection], object]) -> DbFailure:
    with pytest.raises(Exception) as caught, engine.begin() as connection:
        work(connection)
    return classify_db_error(caught.value)


def _insert(**values: object) -> Callable[[Connection], object]:
    return lambda connection: connection.execute(row.insert(), values)


def test_a_second_row_under_a_unique_key_is_unique(rows: Engine) -> None:
    assert _failure(rows, _insert(id=1)) is DbFailure.UNIQUE


def test_broken_constraints_are_integrity(rows: Engine) -> None:
    assert _failure(rows, _insert(id=3, word=None)) is DbFailure.INTEGRITY
    assert _failure(rows, _insert(id=3, n=-1)) is DbFailure.INTEGRITY
    assert _failure(rows, _insert(id=3, upper=99)) is DbFailure.INTEGRITY


def test_values_that_do_not_fit_are_data(rows: Engine) -> None:
    assert _failure(rows, _insert(id=3, n=2**70)) is DbFailure.DATA
    assert _failure(rows, _insert(id=3, amount=Decimal("0.001"))) is DbFailure.DATA
    assert _failure(rows, _insert(id=3, word="\ud800")) is DbFailure.DATA
    if rows.dialect.name != "sqlite":  # which takes any text into any column
        assert _failure(rows, _insert(id=3, word="too long")) is DbFailure.DATA
    if rows.dialect.name == "postgresql":
        assert _failure(rows, _insert(id=3, word="\0")) is DbFailure.DATA


def test_the_column_or_rule_that_refused_is_named_and_no_value_is(rows: Engine) -> None:
    def named(**values: object) -> str:
        with pytest.raises(Exception) as caught, rows.begin() as connection:
            _insert(**values)(connection)
        return refused_by(caught.value)

    assert named(id=3, word=None).removeprefix("row_.") == "word"
    assert named(id=3, n=-1) == "ck_row_n"
    if rows.dialect.name != "sqlite":
        assert "secret" not in named(id=3, word="secret 'column'")
    if rows.dialect.name == "mariadb":  # PostgreSQL does not say which
        assert (named(id=3, n=2**40), named(id=3, word="too long")) == ("n", "word")
    assert refused_by(KeyError("x")) == ""


def test_a_mistake_of_ours_is_other(rows: Engine) -> None:
    assert _failure(rows, lambda c: c.execute(text("SELECT FROM WHERE"))) is DbFailure.OTHER


@pytest.mark.parametrize(
    ("statement", "ours"),
    [
        ("SELECT missing FROM nowhere", False),
        ("SELECT x FROM ai_op_queue", True),
        ("SELECT t.missing FROM (SELECT 1 AS x) t", False),
        ("DELETE FROM ai_audit_log", True),
    ],
)
def test_a_missing_table_or_column_is_schema_and_told_from_an_erps(
    rows: Engine, statement: str, ours: bool
) -> None:
    errors: list[BaseException] = []

    def run(connection: Connection) -> None:
        try:
            connection.execute(text(statement))
        except DBAPIError as error:
            errors.append(error)
            raise

    assert _failure(rows, run) is DbFailure.SCHEMA
    assert [needs_upgrade(error) for error in errors] == [ours]
    assert not DbFailure.OTHER.is_transient
    assert classify_db_error(KeyError("x")) is DbFailure.OTHER


def test_a_row_locked_by_somebody_else_is_a_lock_timeout(rows: Engine) -> None:
    expected = DbFailure.BUSY if rows.dialect.name == "sqlite" else DbFailure.LOCK_TIMEOUT
    with rows.begin() as holder:
        holder.execute(row.update().where(row.c.id == 1).values(n=5))
        assert _failure(rows, lambda c: c.execute(row.update().where(row.c.id == 1).values(n=6))) is expected
    assert expected.is_transient


def test_a_deadlock_is_told_from_a_lock_timeout(database_url: str) -> None:
    engine = make_engine(database_url, lock_timeout_s=10, statement_timeout_s=15)
    if engine.dialect.name == "sqlite":
        pytest.skip("one write lock cannot deadlock")
    metadata.create_all(engine)
    with engine.begin() as connection:
        connection.execute(row.insert(), [{"id": 1, "n": 1}, {"id": 2, "n": 2}])
    both_hold_one = threading.Barrier(2)
    found: list[DbFailure] = []

    def cross(first: int, second: int) -> None:
        try:
            with engine.begin() as connection:
                connection.execute(row.update().where(row.c.id == first).values(n=7))
                both_hold_one.wait(timeout=10)
                connection.execute(row.update().where(row.c.id == second).values(n=8))
        except Exception as error:  # noqa: BLE001 - classified
            found.append(classify_db_error(error))

    threads = [threading.Thread(target=cross, args=pair) for pair in ((1, 2), (2, 1))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    engine.dispose()
    assert found == [DbFailure.DEADLOCK]


def test_a_lost_race_under_snapshot_isolation_is_serialization(rows: Engine) -> None:
    if rows.dialect.name == "sqlite":
        pytest.skip("writers take turns")
    level = "REPEATABLE READ"
    engine = rows.execution_options(isolation_level=level)
    with engine.connect() as late:
        if engine.dialect.name == "mariadb":
            late.exec_driver_sql("SET SESSION innodb_snapshot_isolation = ON")
            late.commit()
        late.execute(row.select()).all()
        with rows.begin() as early:
            early.execute(row.update().where(row.c.id == 1).values(n=5))
        with pytest.raises(Exception) as caught:
            late.execute(row.update().where(row.c.id == 1).values(n=6))
    assert classify_db_error(caught.value) is DbFailure.SERIALIZATION


def test_a_connection_the_server_ended_is_lost(rows: Engine) -> None:
    kill = {"postgresql": ("SELECT pg_backend_pid()", "SELECT pg_terminate_backend({})")}
    who, end = kill.get(rows.dialect.name, ("SELECT CONNECTION_ID()", "KILL {}"))
    if rows.dialect.name == "sqlite":
        pytest.skip("no server")

    def work(connection: Connection) -> None:
        me = connection.exec_driver_sql(who).scalar()
        with rows.connect() as other:
            other.exec_driver_sql(end.format(me))
        connection.execute(row.update().values(n=1))

    assert _failure(rows, work) is DbFailure.CONNECTION_LOST
    with rows.connect() as again:
        assert again.execute(row.select()).all()


@pytest.mark.parametrize("url", ["postgresql+psycopg://x@127.0.0.1:1/x", "mariadb+pymysql://x@127.0.0.1:1/x"])
def test_a_server_that_is_not_there_is_a_lost_connection(url: str) -> None:
    assert _failure(make_engine(url, connect_timeout_s=2), lambda c: c) is DbFailure.CONNECTION_LOST


def test_a_pool_without_a_free_connection_is_busy(database_url: str) -> None:
    engine = make_engine(database_url, pool_size=1, lock_timeout_s=1)
    setattr(engine.pool, "_timeout", 0.1)  # noqa: B010 - ten seconds would do, too, but slowly
    with engine.connect(), engine.connect():
        assert _failure(engine, lambda c: c) is DbFailure.BUSY
    engine.dispose()
