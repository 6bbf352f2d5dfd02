"""Every integration test that asks for ``database_url`` or ``engine`` runs on all three database engines."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine

from staging.storage.engine import make_engine
from tests.databases import KINDS, fresh_database


@pytest.fixture(params=KINDS)
def database_kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def database_url(database_kind: str, tmp_path: Path) -> Iterator[str]:
    """An empty database of this test's own."""
    with fresh_database(database_kind, tmp_path) as url:
        yield url


@pytest.fixture
def engine(database_url: str) -> Iterator[Engine]:
    """An engine of ``make_engine`` on ``database_url`` with limits fit for tests (2 s statement, 1 s lock)."""
    made = make_engine(database_url, statement_timeout_s=2, lock_timeout_s=1)
    yield made
    made.dispose()
