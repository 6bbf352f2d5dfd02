"""What a database server is and how it is set up, as facts. Reads only; ``services.doctor`` says what they mean."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path

from sqlalchemy import Connection, bindparam, make_url, select, text
from sqlalchemy.exc import ArgumentError

from staging.storage.dialect import IdString, db_now, is_mysql
from staging.storage.engine import make_engine, sqlite_path
from staging.storage.tables import metadata

CONNECT_S = 2.0
STATEMENT_S = 2.0
_LOCK_S = 1.0
_CLOCK_SAMPLES = 3

QUEUE_IDS: Mapping[str, Sequence[str]] = {
    table.name: [column.name for column in table.columns if isinstance(column.type, IdString)]
    for table in metadata.tables.values()
}
ERP_IDS: Mapping[str, Sequence[str]] = {
    "ai_op_ledger": ("sIdempotencyKey", "sBrandsId", "sSubsidiaryId", "sOpId"),
    "ai_op_fence": ("sOpId",),
    "ai_op_number": ("sBrandsId", "sSubsidiaryId", "sScope"),
}


class Product(StrEnum):
    SQLITE = "SQLite"
    POSTGRESQL = "PostgreSQL"
    MARIADB = "MariaDB"
    MYSQL = "MySQL"


OLDEST: Mapping[Product, tuple[int, ...]] = {
    Product.SQLITE: (3, 35),
    Product.POSTGRESQL: (15,),
    Product.MARIADB: (10, 6),
    Product.MYSQL: (8, 0, 13),
}


@dataclass(frozen=True, slots=True)
class DatabaseFacts:
    """``variables`` are the server's own, lower case (SQLite: pragmas), as an ordinary session of ours sees them.

    ``isolation`` in SQLAlchemy's words, e.g. "READ COMMITTED"; "" for SQLite. ``clock_offset_s``: how far the server's
    clock is ahead of this host's; None where it is this host's. ``loose_ids``: "table.column" of ours → collation that
    takes different ids for the same; ``narrow_text``: the same → character set without emoji; ``engines``: table →
    engine other than InnoDB. ``identity``: equal for two addresses of one and the same database.
    """

    product: Product
    version: tuple[int, ...]
    identity: str
    isolation: str = ""
    clock_offset_s: float | None = None
    read_only: bool = False
    variables: Mapping[str, str] = field(default_factory=dict)
    loose_ids: Mapping[str, str] = field(default_factory=dict)
    narrow_text: Mapping[str, str] = field(default_factory=dict)
    engines: Mapping[str, str] = field(default_factory=dict)

    @property
    def version_text(self) -> str:
        return ".".join(map(str, self.version))


class NoDatabaseFile(Exception):
    """The SQLite file does not exist; the argument is its path."""


def address(url: str) -> str:
    """``url`` fit for showing: product, user, host, port and name, no password and no query."""
    parsed = make_url(url)
    if parsed.get_backend_name() == "sqlite":
        return f"sqlite {sqlite_path(parsed)}"
    host = f"{parsed.username}@" if parsed.username else ""
    host += parsed.host or "localhost"
    port = f":{parsed.port}" if parsed.port else ""
    return f"{parsed.get_backend_name()} {host}{port}/{parsed.database or ''}"


def passwords_of(url: str) -> set[str]:
    """What in ``url`` must not be shown. Raises ValueError for a URL nobody can use."""
    try:
        parsed = make_url(url)
    except ArgumentError as error:
        raise ValueError("not a database URL") from error
    asked = [parsed.query.get(name, ()) for name in ("password", "passwd", "sslpassword")]
    found = {str(parsed.password or ""), *(v for a in asked for v in ([a] if isinstance(a, str) else a))}
    return found - {""}


def database_facts(url: str, ids: Mapping[str, Sequence[str]]) -> DatabaseFacts:
    """Connect and look; ``ids``: table → columns that must tell 'A' from 'a'. Takes a few seconds at most.

    Raises NoDatabaseFile, what the driver raised, or ValueError / ArgumentError for a URL nobody can use.
    """
    parsed = make_url(url)
    if parsed.get_backend_name() == "sqlite":
        return _sqlite(sqlite_path(parsed))
    engine = make_engine(
        parsed,
        pool_size=1,
        statement_timeout_s=STATEMENT_S,
        lock_timeout_s=_LOCK_S,
        connect_timeout_s=CONNECT_S,
        application_name="opstage-doctor",
    )
    try:
        with engine.connect() as connection:
            facts = _mysql if is_mysql(connection.dialect) else _postgresql
            return facts(connection, ids)
    finally:
        engine.dispose()


def _clock_offset_s(connection: Connection) -> float:
    """Server's clock minus ours, from the quickest of a few readings (off by half a round trip at most)."""
    best = (float("inf"), 0.0)
    for _ in range(_CLOCK_SAMPLES):
        sent, started = datetime.now(UTC), time.monotonic()
        server: datetime = connection.execute(select(db_now())).scalar_one()
        took = time.monotonic() - started
        best = min(best, (took, (server - sent).total_seconds() - took / 2))
    return best[1]


def product_and_version(connection: Connection) -> tuple[Product, tuple[int, ...]]:
    """What is at the other end; compare the version with ``OLDEST``."""
    dialect = connection.dialect
    version = tuple(part for part in dialect.server_version_info or () if isinstance(part, int))
    if is_mysql(dialect):
        return Product.MARIADB if getattr(dialect, "is_mariadb", False) else Product.MYSQL, version
    return Product.SQLITE if dialect.name == "sqlite" else Product.POSTGRESQL, version


# --- PostgreSQL ----------------------------------------------------------------------------------------------------

_PG_NAMES = (
    "client_encoding",
    "data_directory",  # absent unless we may see it
    "fsync",
    "full_page_writes",
    "max_connections",
    "server_encoding",
    "synchronous_commit",
    "timezone",
    "transaction_read_only",
)
_PG_VARIABLES = text("SELECT lower(name), setting FROM pg_settings WHERE lower(name) IN :names").bindparams(
    bindparam("names", expanding=True)
)
_PG_SERVER = text(
    "SELECT pg_is_in_recovery() AS replica, pg_postmaster_start_time() || ' ' || current_setting('port') || ' '"
    " || current_database() || ' ' || coalesce(current_schema(), '') AS identity,"
    " (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend') AS in_use"
)
_PG_LOOSE = text(
    "SELECT c.relname, a.attname, l.collname FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid"
    " JOIN pg_collation l ON l.oid = a.attcollation WHERE c.relname IN :tables AND pg_table_is_visible(c.oid)"
    " AND NOT l.collisdeterministic"
).bindparams(bindparam("tables", expanding=True))


def _postgresql(connection: Connection, ids: Mapping[str, Sequence[str]]) -> DatabaseFacts:
    variables = {row[0]: str(row[1]) for row in connection.execute(_PG_VARIABLES, {"names": list(_PG_NAMES)})}
    product, version = product_and_version(connection)
    server = connection.execute(_PG_SERVER).one()
    loose = connection.execute(_PG_LOOSE, {"tables": list(ids)})
    return DatabaseFacts(
        product=product,
        version=version,
        identity=str(server.identity),
        isolation=str(connection.get_isolation_level()),
        clock_offset_s=_clock_offset_s(connection),
        read_only=bool(server.replica) or variables.get("transaction_read_only") == "on",
        variables=variables | {"connections_in_use": str(server.in_use)},
        loose_ids={f"{row[0]}.{row[1]}": row[2] for row in loose if row[1] in ids.get(row[0], ())},
    )


# --- MariaDB, MySQL ------------------------------------------------------------------------------------------------

_MY_NAMES = (
    "character_set_connection",
    "character_set_database",
    "character_set_server",
    "collation_connection",
    "collation_database",
    "collation_server",
    "datadir",
    "hostname",
    "innodb_flush_log_at_trx_commit",
    "innodb_snapshot_isolation",  # MariaDB from 10.6.18
    "max_connections",
    "port",
    "read_only",
    "super_read_only",  # MySQL
    "time_zone",
    "wsrep_on",
)
_MY_VARIABLES = text("SHOW VARIABLES WHERE Variable_name IN :names").bindparams(
    bindparam("names", expanding=True)
)
_MY_COLUMNS = text(
    "SELECT table_name AS tab, column_name AS col, collation_name AS coll, character_set_name AS chars"
    " FROM information_schema.columns"
    " WHERE table_schema = DATABASE() AND table_name IN :tables AND collation_name IS NOT NULL"
).bindparams(bindparam("tables", expanding=True))
_MY_ENGINES = text(
    "SELECT table_name AS tab, engine AS eng FROM information_schema.tables"
    " WHERE table_schema = DATABASE() AND table_name IN :tables AND engine <> 'InnoDB'"
).bindparams(bindparam("tables", expanding=True))


def _mysql(connection: Connection, ids: Mapping[str, Sequence[str]]) -> DatabaseFacts:
    variables = {
        row[0].lower(): str(row[1]) for row in connection.execute(_MY_VARIABLES, {"names": list(_MY_NAMES)})
    }
    in_use = connection.execute(text("SHOW STATUS LIKE 'Threads_connected'")).one()[1]
    columns = connection.execute(_MY_COLUMNS, {"tables": list(ids)}).all()
    product, version = product_and_version(connection)
    where = [variables.get(name, "") for name in ("hostname", "port", "datadir")]
    return DatabaseFacts(
        product=product,
        version=version,
        identity=" ".join([*where, str(connection.execute(text("SELECT DATABASE()")).scalar())]),
        isolation=str(connection.get_isolation_level()),
        clock_offset_s=_clock_offset_s(connection),
        read_only="ON" in (variables.get("read_only"), variables.get("super_read_only")),
        variables=variables | {"connections_in_use": str(in_use)},
        loose_ids={
            f"{row.tab}.{row.col}": row.coll
            for row in columns
            if row.col in ids.get(row.tab, ()) and not row.coll.endswith("_bin")
        },
        narrow_text={f"{row.tab}.{row.col}": row.chars for row in columns if row.chars != "utf8mb4"},
        engines={row.tab: row.eng for row in connection.execute(_MY_ENGINES, {"tables": list(ids)})},
    )


# --- SQLite --------------------------------------------------------------------------------------------------------


def _sqlite(path: Path) -> DatabaseFacts:
    """Looks without ``make_engine``, which would create the file and switch it to WAL."""
    if not path.exists():
        raise NoDatabaseFile(path)
    connection = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True, timeout=_LOCK_S)
    try:
        journal_mode = str(connection.execute("PRAGMA journal_mode").fetchone()[0])
    finally:
        connection.close()
    return DatabaseFacts(
        product=Product.SQLITE,
        version=sqlite3.sqlite_version_info,
        identity=str(path.resolve()),
        read_only=not os.access(path, os.W_OK),
        variables={"journal_mode": journal_mode},
    )
