"""One small ERP per database engine for all tests of this folder, emptied before each of them."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import Engine

from staging.storage.engine import make_engine
from tests.databases import KINDS, fresh_database
from tests.support.small_erp import SmallErp


@pytest.fixture(scope="session", params=KINDS)
def shared_engine(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Engine]:
    """Room for ten writers at once, and waits that outlast their queue."""
    with fresh_database(request.param, tmp_path_factory.mktemp("erp")) as url:
        engine = make_engine(url, pool_size=12, lock_timeout_s=15, statement_timeout_s=20)
        yield engine
        engine.dispose()


@pytest.fixture(scope="session")
def shared_erp(shared_engine: Engine) -> SmallErp:
    return SmallErp(shared_engine)


@pytest.fixture
def erp(shared_erp: SmallErp) -> SmallErp:
    shared_erp.empty()
    return shared_erp


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(max_workers=10) as pool:
        yield pool
