"""A fresh database of its own for a test, on each of the three engines; dropped afterwards.

``OPSTAGE_TEST_POSTGRES_URL`` / ``OPSTAGE_TEST_MARIADB_URL`` name the servers. A server that cannot be reached skips its
tests with a line that says so; with ``OPSTAGE_REQUIRE_SERVICES=1`` (CI) they fail instead.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from sqlalchemy import URL, create_engine, make_url
from sqlalchemy.exc import SQLAlchemyError

from tests.support.services import missing

KINDS = ("sqlite", "postgresql", "mariadb")
_SERVERS = {
    "postgresql": ("OPSTAGE_TEST_POSTGRES_URL", "postgresql+psycopg://postgres@127.0.0.1:5432/test"),
    "mariadb": ("OPSTAGE_TEST_MARIADB_URL", "mariadb+pymysql://root@127.0.0.1:3306/test"),
}


def server_url(kind: str) -> URL:
    """The server's maintenance database; skips (or fails) the calling test where it cannot be reached."""
    variable, default = _SERVERS[kind]
    url = make_url(os.environ.get(variable, default))
    problem = _problem(url)
    if problem:
        missing(
            f"{kind} is not reachable at {url.render_as_string()}", f"start it, or set {variable}", problem
        )
    return url


@cache
def _problem(url: URL) -> str:
    engine = create_engine(url, connect_args={"connect_timeout": 3})
    try:
        with engine.connect():
            return ""
    except SQLAlchemyError as error:
        return str(error).splitlines()[0]
    finally:
        engine.dispose()


@contextmanager
def fresh_database(kind: str, directory: Path) -> Iterator[str]:
    """Yield the URL (password included) of a new, empty database; ``directory`` is where SQLite's file goes."""
    name = f"opstage_t_{secrets.token_hex(5)}"
    if kind == "sqlite":
        yield f"sqlite:///{directory / name}.db"
        return
    server = server_url(kind)
    suffix = " CHARACTER SET utf8mb4" if kind == "mariadb" else ""
    force = " WITH (FORCE)" if kind == "postgresql" else ""
    _run(server, f"CREATE DATABASE {name}{suffix}")
    try:
        yield server.set(database=name).render_as_string(hide_password=False)
    finally:
        _run(server, f"DROP DATABASE {name}{force}")


def _run(server: URL, statement: str) -> None:
    engine = create_engine(server, isolation_level="AUTOCOMMIT")
    try:
        with engine.connect() as connection:
            connection.exec_driver_sql(statement)
    finally:
        engine.dispose()
