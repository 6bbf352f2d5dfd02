"""The demo ERP as a user gets it: one command that may be repeated, and an adapter that takes another catalogue."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from sqlalchemy import inspect

from staging.settings import Settings
from staging.storage.engine import make_engine
from tests.support.processes import clean_environment
from workers.erp.demo import FORMS, build_adapter, oracle
from workers.erp.forms import CatalogueInvalid


def set_up(url: str, folder: Path) -> str:
    environment = clean_environment({"OPSTAGE_ERP_DATABASE_URL": url, "OPSTAGE_LOCALE": "en"})
    command = [sys.executable, "-m", "workers.erp.demo.setup"]
    done = subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_command_sets_up_once_and_says_what_it_did(database_url: str, tmp_path: Path) -> None:
    assert set_up(database_url, tmp_path).startswith("Demo ERP created, 2")
    engine = make_engine(database_url)
    with engine.connect() as connection:
        first = oracle.counts(connection)
    assert "there already" in set_up(database_url, tmp_path)
    with engine.connect() as connection:
        assert oracle.counts(connection) == first
        assert oracle.inconsistencies(connection) == []
    engine.dispose()


def test_a_database_with_an_erp_of_its_own_is_left_alone(database_url: str, tmp_path: Path) -> None:
    engine = make_engine(database_url)
    with engine.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE sal_salesorder (sid VARCHAR(32))")
    environment = clean_environment({"OPSTAGE_ERP_DATABASE_URL": database_url, "OPSTAGE_LOCALE": "en"})
    command = [sys.executable, "-m", "workers.erp.demo.setup"]
    done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (1, "")
    assert "sal_salesorder" in done.stderr
    assert inspect(engine).get_table_names() == ["sal_salesorder"]
    engine.dispose()


def test_settings_may_name_another_catalogue(sqlite_database: str, tmp_path: Path) -> None:
    engine = make_engine(sqlite_database)
    fewer = tmp_path / "forms.yaml"
    text = FORMS.read_text(encoding="utf-8").replace("number_table: ai_op_number", "number_table: my_numbers")
    fewer.write_text(text, encoding="utf-8")
    own = build_adapter(Settings(_env_file=None, forms=fewer), engine)
    assert own.catalogue.number_table == "my_numbers"
    fewer.write_text(text.replace("AdjustStock", "NoSuchHandler"), encoding="utf-8")
    with pytest.raises(ValueError, match="NoSuchHandler"):
        build_adapter(Settings(_env_file=None, forms=fewer), engine)
    fewer.write_text("forms: []", encoding="utf-8")
    with pytest.raises(CatalogueInvalid):
        build_adapter(Settings(_env_file=None, forms=fewer), engine)
    engine.dispose()
