"""``opstage forms`` over the demo ERP's catalogue and a live database."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from sqlalchemy import text

from migrations.run import Tree, upgrade
from staging.contracts.form import Catalogue
from staging.storage.engine import make_engine
from tests.support.cli import Ran, opstage_here
from workers.erp.demo.schema import create_demo

_FORMS = Path(__file__).resolve().parents[2] / "workers" / "erp" / "demo" / "forms.yaml"


class Erp:
    """A database with the demo ERP's tables, and the command line on it."""

    def __init__(self, url: str, folder: Path) -> None:
        self._env = {"OPSTAGE_DATABASE_URL": url}
        self.folder = folder
        upgrade(url, Tree.ERP)
        self.engine = make_engine(url)
        create_demo(self.engine)

    def run(self, *arguments: str, **env: str) -> Ran:
        return opstage_here(self.folder, {**self._env, **env}, "forms", *arguments)

    def execute(self, statement: str) -> None:
        with self.engine.begin() as connection:
            connection.execute(text(statement))


@pytest.fixture
def erp(database_url: str, tmp_path: Path) -> Iterator[Erp]:
    one = Erp(database_url, tmp_path)
    yield one
    one.engine.dispose()


@pytest.fixture
def sqlite_erp(sqlite_database: str, tmp_path: Path) -> Iterator[Erp]:
    """What does not depend on the engine is tried on one."""
    one = Erp(sqlite_database, tmp_path)
    yield one
    one.engine.dispose()


def test_the_list_has_every_form_of_the_catalogue_with_its_operations(sqlite_erp: Erp) -> None:
    wanted = yaml.safe_load(_FORMS.read_text(encoding="utf-8"))
    ran = sqlite_erp.run("list", "--json")
    assert ran.code == 0, ran.err
    forms = {form["id"]: form for form in ran.json()["forms"]}
    assert list(forms) == [form["id"] for form in wanted["forms"]]
    assert forms["supplier"]["operations"]["create"] == {"execution": "auto", "approval": True}
    assert forms["customer"]["operations"]["create"] == {"execution": "auto", "approval": False}
    assert {c["commandType"] for c in ran.json()["commands"]} == {
        c["command_type"] for c in wanted.get("commands", [])
    }

    chinese = sqlite_erp.run("list", OPSTAGE_LOCALE="zh")
    assert "客户" in chinese.out
    assert "create (需审批)" in chinese.out


def test_a_form_is_shown_with_its_fields_and_lines(sqlite_erp: Erp) -> None:
    ran = sqlite_erp.run("show", "quotation")
    assert ran.code == 0, ran.err
    assert "Quotation" in ran.out
    assert "parts[].tiers[]" in ran.out
    assert "→ customer" in ran.out

    form = sqlite_erp.run("show", "quotation", "--json").json()
    assert form["id"] == "quotation"
    assert {child["name"] for child in form["children"]} >= {"parts"}


def test_a_form_that_is_not_there_is_refused(sqlite_erp: Erp) -> None:
    ran = sqlite_erp.run("show", "nonesuch", "--json")
    assert ran.code == 1
    assert ran.json()["error"]["code"] == "form_not_found"


def test_the_catalogue_fits_the_demo_database_and_a_missing_column_is_found(erp: Erp) -> None:
    ran = erp.run("check", "--json")
    assert ran.code == 0, ran.out
    assert [row for row in ran.json() if row["severity"] == "error"] == []

    quote = erp.engine.dialect.identifier_preparer.quote
    erp.execute(f"ALTER TABLE elecustomer DROP COLUMN {quote('sCity')}")
    broken = erp.run("check", "--json")
    assert broken.code == 1
    errors = [row for row in broken.json() if row["severity"] == "error"]
    assert len(errors) == 1
    assert errors[0]["where"].startswith("forms[customer].fields[city]")
    assert "sCity" in errors[0]["message"]
    assert "sCity" in erp.run("check", OPSTAGE_LOCALE="zh").out


def test_a_draft_from_the_database_is_a_loadable_catalogue(erp: Erp) -> None:
    ran = erp.run("introspect", "elecustomer", "elesupplier")
    assert ran.code == 0, ran.err
    drafted = yaml.safe_load(ran.out)
    assert {form["table"] for form in drafted["forms"]} == {"elecustomer", "elesupplier"}
    Catalogue.model_validate(drafted)
    assert erp.run("introspect", "elecustomer", "elesupplier", "--json").json()["yaml"] == ran.out


def test_a_table_that_is_not_there_is_refused(sqlite_erp: Erp) -> None:
    ran = sqlite_erp.run("introspect", "no_such_table", "--json")
    assert ran.code == 1, ran.out
    assert "no_such_table" in ran.json()["error"]["message"]


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("OPSTAGE_ERP_ADAPTER", "no.such.module:build", "no.such.module:build"),
        ("OPSTAGE_FORMS", "/no/such/forms.yaml", "/no/such/forms.yaml"),
    ],
)
def test_an_adapter_that_cannot_be_loaded_is_told(sqlite_erp: Erp, name: str, value: str, words: str) -> None:
    ran = sqlite_erp.run("list", "--json", **{name: value})
    assert ran.code == 1, ran.err
    assert words in ran.json()["error"]["message"]


def test_a_catalogue_with_mistakes_is_told_in_the_users_language(sqlite_erp: Erp) -> None:
    path = sqlite_erp.folder / "forms.yaml"
    path.write_text("version: 1\npermissions: {allow_all: true}\nforms: [{id: x}]\n", encoding="utf-8")
    ran = sqlite_erp.run("list", OPSTAGE_FORMS=str(path), OPSTAGE_LOCALE="zh")
    assert ran.code == 1
    assert "forms[x].label: 缺少该项" in ran.err


def test_a_draft_may_go_into_the_file_that_opstage_forms_names(sqlite_erp: Erp) -> None:
    """The shell has emptied that file before the command reads it."""
    forms = sqlite_erp.folder / "forms.yaml"
    forms.write_text("")
    ran = sqlite_erp.run("introspect", "elecustomer", OPSTAGE_FORMS=str(forms))
    assert ran.code == 0, ran.err
    assert yaml.safe_load(ran.out)["forms"][0]["table"] == "elecustomer"


def test_a_misspelt_variable_is_not_passed_over_in_silence(sqlite_erp: Erp) -> None:
    ran = sqlite_erp.run("list", "--json", OPSTAGE_FORM="my.yaml", OPSTAGE_LOCALE="en")
    assert ran.code == 0, ran.err
    assert ran.json()["forms"]
    assert "OPSTAGE_FORM is no setting and ignored; is OPSTAGE_FORMS meant?" in ran.err


@pytest.mark.parametrize("command", ["worker", "api"])
@pytest.mark.parametrize(
    ("text_of_file", "said"),
    [("", "the file is empty"), ("version: 1\n", "permissions"), (None, "cannot read")],
)
def test_no_process_starts_on_a_catalogue_that_does_not_load(
    sqlite_erp: Erp, command: str, text_of_file: str | None, said: str
) -> None:
    forms = sqlite_erp.folder / "broken.yaml"
    if text_of_file is not None:
        forms.write_text(text_of_file)
    ran = opstage_here(sqlite_erp.folder, {"OPSTAGE_FORMS": str(forms)}, command)
    assert ran.code == 1, ran.err
    assert "broken.yaml" in ran.err
    assert said in ran.err
