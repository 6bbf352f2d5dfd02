"""A catalogue against a live database, and a catalogue drafted from one."""

from __future__ import annotations

import pytest
from sqlalchemy import Engine, text

from staging.contracts.form import Catalogue
from tests.support.shop_erp import load, schema
from workers.erp.forms import check_catalogue, parse_catalogue
from workers.erp.introspect import introspect
from workers.erp.tables import erp_metadata


@pytest.fixture(scope="module")
def catalogue() -> Catalogue:
    return load()


@pytest.fixture
def shop(engine: Engine) -> Engine:
    schema.create_all(engine)
    erp_metadata.create_all(engine)
    return engine


def _found(catalogue: Catalogue, engine: Engine) -> dict[str, str]:
    problems = check_catalogue(catalogue, engine)
    assert all(p.message("zh") and p.message("en") for p in problems)
    return {p.where: p.severity for p in problems}


def _alter(engine: Engine, *statements: str) -> None:
    with engine.begin() as connection:
        for statement in statements:
            connection.execute(text(statement))


def test_a_database_that_fits_has_only_the_missing_number_indexes_to_tell(
    catalogue: Catalogue, shop: Engine
) -> None:
    found = _found(catalogue, shop)
    assert found == {f"forms[{form}].number": "warning" for form in ("customer", "quote", "request", "order")}
    q = '"' if shop.dialect.name != "mariadb" else "`"
    columns = ", ".join(f"{q}{c}{q}" for c in ("sBrandsId", "sSubsidiaryId", "sBillNo"))
    _alter(shop, f"CREATE UNIQUE INDEX uq_quote_no ON g_quote ({columns})")
    assert "forms[quote].number" not in _found(catalogue, shop)


def test_an_empty_database_lacks_every_table(catalogue: Catalogue, engine: Engine) -> None:
    found = _found(catalogue, engine)
    assert found["permissions"] == "error"
    assert found["number_table"] == "error"
    assert found["forms[quote].children[parts].children[tiers].table"] == "error"


def test_what_does_not_fit_is_found(catalogue: Catalogue, shop: Engine) -> None:
    q = '"' if shop.dialect.name != "mariadb" else "`"
    text_type = "VARCHAR(10)"
    money = {"sqlite": "REAL", "postgresql": "double precision", "mariadb": "DOUBLE"}[shop.dialect.name]
    days = "VARCHAR(10)"
    must = "VARCHAR(5) " + ("DEFAULT NULL" if shop.dialect.name == "sqlite" else "NOT NULL")

    def column(name: str, kind: str) -> list[str]:
        drop = f"ALTER TABLE g_quote DROP COLUMN {q}{name}{q}"
        return [drop, f"ALTER TABLE g_quote ADD COLUMN {q}{name}{q} {kind}"] if kind else [drop]

    _alter(
        shop,
        *column("sTitle", text_type),
        *column("dTotal", money),
        *column("iDays", days),
        *column("sMemo", ""),
        *column("sSubsidiaryId", ""),
        f"ALTER TABLE g_quote ADD COLUMN {q}sMustHave{q} {must}",
    )
    found = _found(catalogue, shop)
    for path in (
        "forms[quote].fields[title].length",
        "forms[quote].fields[total].type",
        "forms[quote].fields[days].type",
        "forms[quote].fields[memo].column",
        "forms[quote] (tenant)",
    ):
        assert found[path] == "error", path
    if shop.dialect.name != "sqlite":  # cannot add such a column to a table that may have rows
        assert found["forms[quote].table"] == "error"


def test_a_column_that_must_be_filled_is_told_if_nothing_fills_it(
    catalogue: Catalogue, engine: Engine
) -> None:
    columns = "sId VARCHAR(64) PRIMARY KEY, sBrandsId VARCHAR(64), sSubsidiaryId VARCHAR(64), sNo VARCHAR(20)"
    states = (
        "bInvalid SMALLINT, sInvalidPerson VARCHAR(64), tInvalidDate TIMESTAMP NULL, sRegionId VARCHAR(64)"
    )
    body = (
        f"{columns}, sName VARCHAR(50), sAddress VARCHAR(100) NOT NULL, sExtra VARCHAR(5) NOT NULL, {states}"
    )
    if engine.dialect.name == "postgresql":
        body = ", ".join(f'"{part.split()[0]}" {" ".join(part.split()[1:])}' for part in body.split(", "))
    _alter(engine, f"CREATE TABLE g_customer ({body})")
    found = _found(catalogue, engine)
    assert found["forms[customer].fields[address].required"] == "error"
    assert found["forms[customer].table"] == "error"
    assert "forms[customer].fields[name].required" not in found


def test_tables_without_transactions_are_told(catalogue: Catalogue, shop: Engine) -> None:
    if shop.dialect.name != "mariadb":
        pytest.skip("only the MySQL family has such tables")
    _alter(shop, "ALTER TABLE g_quote ENGINE=MyISAM")
    problems = [p for p in check_catalogue(catalogue, shop) if p.where == "forms[quote].table"]
    assert "InnoDB" in problems[0].message("en")


def test_a_draft_loads_and_fits_the_database_it_was_drafted_from(shop: Engine) -> None:
    tables = ["g_customer", "g_quote", "g_request", "g_request_line", "nix"]
    drafted = introspect(shop, tables, "zh")
    catalogue = parse_catalogue(drafted)
    assert "# nix" in drafted
    forms = {form.id: form for form in catalogue.forms}
    quote = forms["g_quote"]
    assert quote.number
    assert quote.states.examined
    assert quote.states.examined.at == "tCheckDate"
    assert quote.operations == {}
    assert [child.table for child in forms["g_request"].children] == ["g_request_line"]
    fields = {field.name: field for field in quote.fields}
    assert fields["title"].length == 100
    assert fields["makePerson"].writable is False
    if shop.dialect.name != "sqlite":
        assert (fields["total"].type, fields["total"].decimals) == ("decimal", 2)
    errors = [
        p for p in check_catalogue(catalogue, shop) if p.severity == "error" and p.where != "permissions"
    ]
    assert errors == []


def test_comments_and_foreign_keys_become_labels_and_references(engine: Engine) -> None:
    if engine.dialect.name == "sqlite":
        pytest.skip("SQLite keeps no comments")
    _alter(
        engine,
        "CREATE TABLE maker (id VARCHAR(20) PRIMARY KEY, maker_name VARCHAR(50) NOT NULL, weight DOUBLE PRECISION)",
    )
    _alter(
        engine,
        "CREATE TABLE machine (id VARCHAR(20) PRIMARY KEY, maker_id VARCHAR(20), note VARCHAR(9), "
        "FOREIGN KEY (maker_id) REFERENCES maker (id))",
    )
    if engine.dialect.name == "postgresql":
        _alter(
            engine, "COMMENT ON COLUMN machine.note IS '备注: \"原文\"'", "COMMENT ON TABLE machine IS '机器'"
        )
    else:
        _alter(
            engine, "ALTER TABLE machine MODIFY note VARCHAR(9) COMMENT '备注: \"原文\"', COMMENT = '机器'"
        )
    drafted = introspect(engine, ["maker", "machine"], "en")
    maker, machine = parse_catalogue(drafted).forms
    note, maker_id = machine.field("note"), machine.field("makerId")
    assert machine.label.zh == "机器"
    assert note
    assert note.label.zh == '备注: "原文"'
    assert maker_id
    assert maker_id.reference
    assert maker_id.reference.form == "maker"
    name = maker.field("makerName")
    assert name
    assert name.required
    assert "binary float" in drafted


def test_a_table_without_foreign_keys_is_drafted_by_the_names_of_its_columns(engine: Engine) -> None:
    if engine.dialect.name == "sqlite":
        pytest.skip("the types that matter here are those of servers")
    mariadb = engine.dialect.name == "mariadb"
    number = "INT AUTO_INCREMENT PRIMARY KEY" if mariadb else "INT GENERATED ALWAYS AS IDENTITY PRIMARY KEY"
    flag = "TINYINT(1)" if mariadb else "SMALLINT"
    tenant = '"sBrandsId" VARCHAR(50), "sSubsidiaryId" VARCHAR(50)'
    for table in (
        (
            f'ele_customer ("iIncrement" {number}, "sId" VARCHAR(36) NOT NULL UNIQUE, {tenant},'
            ' "sCustomerNo" VARCHAR(50), "sCustomerName" VARCHAR(100), "dWeight" DOUBLE PRECISION, "sMemo" TEXT)'
        ),
        (
            f'sal_order ("sId" VARCHAR(36) PRIMARY KEY, {tenant}, "sBillNo" VARCHAR(50), "sCustomerId" VARCHAR(36),'
            f' "bGift" {flag}, "sPaid" VARCHAR(9))'
        ),
    ):
        _alter(engine, "CREATE TABLE " + (table.replace('"', "`") if mariadb else table))
    drafted = introspect(engine, ["ele_customer", "sal_order"], "zh")
    customer, order = parse_catalogue(drafted).forms
    assert (customer.key, customer.title, order.title) == ("sId", ["customerNo", "customerName"], ["billNo"])
    fields = {field.name: field for field in (*customer.fields, *order.fields)}
    assert fields["increment"].writable is False
    assert "weight" not in fields
    assert fields["memo"].length == (16_383 if mariadb else None)  # 65 535 bytes of up to four each
    assert fields["customerId"].reference
    assert fields["customerId"].reference.names == ["customerNo", "customerName"]
    assert (fields["gift"].type, fields["paid"].type) == ("boolean", "string")
    errors = [p for p in check_catalogue(parse_catalogue(drafted), engine) if p.severity == "error"]
    assert {p.where for p in errors} == {"permissions", "number_table"}


def test_drafting_from_nothing_is_an_error(engine: Engine) -> None:
    with pytest.raises(ValueError, match="nix"):
        introspect(engine, ["nix"], "zh")
