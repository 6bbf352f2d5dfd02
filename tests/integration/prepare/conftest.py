"""One shop per database engine for all tests of this folder, filled anew before each of them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sqlalchemy import Engine

from staging.contracts.form import Catalogue
from staging.storage.engine import make_engine
from tests.databases import KINDS, fresh_database
from tests.support.shop_erp import Shop, load


@pytest.fixture(scope="session")
def catalogue() -> Catalogue:
    return load()


@pytest.fixture(scope="session", params=KINDS)
def shop_engine(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    with fresh_database(request.param, tmp_path_factory.mktemp("shop")) as url:
        engine = make_engine(url, statement_timeout_s=5, lock_timeout_s=2)
        yield engine
        engine.dispose()


@pytest.fixture(scope="session")
def filled_shop(shop_engine: Engine, catalogue: Catalogue) -> Shop:
    return Shop(shop_engine, catalogue)


@pytest.fixture
def shop(filled_shop: Shop) -> Shop:
    filled_shop.reset()
    return filled_shop
