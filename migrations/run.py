"""Bring a database to a version of one of the two trees, or ask where it is. No alembic.ini is needed.

Safe to run from several processes at once (one works, the others wait and find nothing to do), and to run again after
one was killed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from itertools import takewhile
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from alembic.util import CommandError
from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError

from migrations.errors import DatabaseUnreachable, MigrationFailed, MigrationRefused, Note, refuse
from migrations.locks import BUSY, lock_migrations
from migrations.steps import drop_table
from staging.settings import normalize_database_url
from staging.storage.dberrors import DbFailure, classify_db_error
from staging.storage.engine import make_engine, read_connection
from staging.storage.probe import OLDEST, product_and_version

_STATEMENT_TIMEOUT_S = 3600.0  # an index on a large adopted table takes its time
LOCK_WAIT_S = 60.0  # for another migration, and for sessions that hold a lock on the table


class Tree(StrEnum):
    """The two histories. Both may live in one database: each has a version table of its own."""

    QUEUE = "queue"
    ERP = "erp"

    @property
    def version_table(self) -> str:
        return f"ai_op_alembic_{self.value}"

    @property
    def scripts(self) -> ScriptDirectory:
        return ScriptDirectory.from_config(self.config())

    @property
    def head(self) -> str:
        """The newest revision this release knows."""
        head = self.scripts.get_current_head()
        if head is None:
            raise RuntimeError(f"the tree {self.value} has no revisions: the package is incomplete")
        return head

    def config(self) -> Config:
        """Alembic's configuration, from where this package is installed."""
        config = Config()
        folder = str(Path(__file__).resolve().parent / self.value)
        config.set_main_option("script_location", folder.replace("%", "%%"))
        return config


@dataclass(frozen=True)
class Result:
    """Revisions before and after (None: nothing of this tree is there), and what the operator should know."""

    tree: Tree
    before: str | None
    after: str | None
    notes: tuple[Note, ...] = ()


def upgrade(
    database_url: str, tree: Tree | str, revision: str = "head", *, lock_wait_s: float = LOCK_WAIT_S
) -> Result:
    """Bring the database up to ``revision``. Raises a ``MigrationError``, which says what to do, in both languages."""
    return _move(database_url, Tree(tree), revision, command.upgrade, lock_wait_s)


def downgrade(
    database_url: str, tree: Tree | str, revision: str, *, lock_wait_s: float = LOCK_WAIT_S
) -> Result:
    """Bring the database down to ``revision``; ``base`` takes the tree out, and what it created goes with its rows."""
    return _move(database_url, Tree(tree), revision, command.downgrade, lock_wait_s)


def current(database_url: str, tree: Tree | str) -> str | None:
    """The revision the database is at; None where nothing of this tree is there. Changes nothing."""
    tree = Tree(tree)
    with (
        _engine(database_url, lock_wait_s=5.0) as engine,
        _translated(),
        read_connection(engine) as connection,
    ):
        return _current(connection, tree)


def _move(
    database_url: str,
    tree: Tree,
    revision: str,
    change: Callable[[Config, str], None],
    lock_wait_s: float,
) -> Result:
    with _engine(database_url, lock_wait_s) as engine, _translated(), engine.connect() as connection:
        if connection.dialect.name == "sqlite":
            # Has to be off before the transaction begins; see adoption.sqlite. The connection ends with this call.
            _driver_execute(connection, "PRAGMA foreign_keys=OFF")
        lock_migrations(connection, lock_wait_s)
        _require_supported(connection)
        before = _current(connection, tree)
        notes: list[Note] = []
        config = tree.config()
        config.attributes.update(connection=connection, version_table=tree.version_table, notes=notes)
        try:
            if change is not command.downgrade:
                change(config, revision)
            elif before is not None:  # nothing to take down: Alembic would start anew
                _refuse_downgrade(connection, tree, before, revision)
                change(config, revision)
        except CommandError as error:
            connection.rollback()
            _tidy(connection, tree)
            raise _unknown_revision(tree, revision, error) from error
        except MigrationRefused:
            connection.rollback()
            _tidy(connection, tree)
            raise
        after = _tidy(connection, tree)
        return Result(tree, before, after, tuple(notes))


def _refuse_downgrade(connection: Connection, tree: Tree, before: str, revision: str) -> None:
    """Ask those on the way down to ``revision`` that may refuse (``refuse_downgrade`` in their file), before the first
    is undone: on the MySQL family what was undone until then would stay so."""
    on_the_way = list(tree.scripts.walk_revisions(head=before))
    if revision.startswith("-"):
        on_the_way = on_the_way[: int(revision[1:])] if revision[1:].isdecimal() else []
    elif revision != "base":
        on_the_way = list(takewhile(lambda script: script.revision != revision, on_the_way))
    for script in on_the_way:
        if refuse_downgrade := getattr(script.module, "refuse_downgrade", None):
            refuse_downgrade(connection)


def _tidy(connection: Connection, tree: Tree) -> str | None:
    """Leave no version table where nothing of the tree is there, and commit. Returns the revision."""
    revision = _current(connection, tree)
    if revision is None:
        drop_table(connection, tree.version_table)
    connection.commit()
    return revision


def _current(connection: Connection, tree: Tree) -> str | None:
    context = MigrationContext.configure(connection, opts={"version_table": tree.version_table})
    return context.get_current_revision()


def _driver_execute(connection: Connection, statement: str) -> None:
    driver = connection.connection.driver_connection
    if driver is None:
        raise RuntimeError("the connection is closed")
    driver.execute(statement)


@contextmanager
def _engine(database_url: str, lock_wait_s: float) -> Iterator[Engine]:
    try:
        engine = make_engine(
            normalize_database_url(database_url),
            pool_size=1,
            statement_timeout_s=_STATEMENT_TIMEOUT_S,
            lock_timeout_s=lock_wait_s,
            idle_in_transaction_s=_STATEMENT_TIMEOUT_S,
            application_name="opstage-migrations",
        )
    except OSError as error:
        raise DatabaseUnreachable([_unreachable(error)]) from error
    try:
        yield engine
    finally:
        engine.dispose()


@contextmanager
def _translated() -> Iterator[None]:
    """Database errors come out as ``MigrationError``s, with the database's own words in them."""
    try:
        yield
    except DBAPIError as error:
        failure = classify_db_error(error)
        if failure is DbFailure.CONNECTION_LOST or error.statement is None:  # None: not even connected
            raise DatabaseUnreachable([_unreachable(error.orig)]) from error
        if failure in (DbFailure.LOCK_TIMEOUT, DbFailure.BUSY):
            raise MigrationFailed([BUSY]) from error
        statement = " ".join((error.statement or "").split())[:300]
        raise MigrationFailed(
            [
                Note(
                    f"数据库拒绝了一个步骤：{error.orig}（{statement}）。处理后请重新运行。",
                    f"The database refused a step: {error.orig} ({statement}). Put it right, then run again.",
                )
            ]
        ) from error


def _unreachable(error: object) -> Note:
    return Note(f"无法连接数据库：{error}", f"The database cannot be reached: {error}")


def _unknown_revision(tree: Tree, revision: str, error: CommandError) -> Exception:
    known = ", ".join(reversed([script.revision for script in tree.scripts.walk_revisions()]))
    return refuse(
        f"版本 {revision} 不适用于 {tree.value}（{error}）。本程序的版本：{known}。",
        f"Revision {revision} does not fit the tree {tree.value} ({error}). This release knows: {known}.",
    )


def _require_supported(connection: Connection) -> None:
    """Refuse servers too old for what we rely on (defaults that are expressions, SKIP LOCKED, atomic DDL)."""
    product, version = product_and_version(connection)
    oldest = OLDEST[product]
    if version < oldest:
        found, needed = ".".join(map(str, version)), ".".join(map(str, oldest))
        raise refuse(
            f"{product.value} {found} 版本过低，需要 {needed} 或更高。",
            f"{product.value} {found} is too old: {needed} or newer is needed.",
        )
