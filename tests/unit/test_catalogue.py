"""Catalogues: what they may say, and that every mistake is told with its place in both languages."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import yaml

from workers.erp.demo import FORMS
from workers.erp.forms import CatalogueInvalid, load_catalogue, parse_catalogue

SHOP = Path(__file__).parent.parent / "support" / "shop.yaml"


def _problems(text: str) -> dict[str, str]:
    with pytest.raises(CatalogueInvalid) as caught:
        parse_catalogue(text)
    for problem in caught.value.problems:
        assert problem.zh
        assert problem.en
    return {problem.path: problem.en for problem in caught.value.problems}


def _broken(change: Any) -> dict[str, str]:
    """Problems of the shop's catalogue after ``change(data)``."""
    data = yaml.safe_load(SHOP.read_text(encoding="utf-8").replace("value: 0.13", 'value: "0.13"'))
    forms = {form["id"]: form for form in data["forms"]}
    change(data, forms)
    return _problems(yaml.safe_dump(data, allow_unicode=True))


@pytest.mark.parametrize("path", [FORMS, SHOP])
def test_our_own_catalogues_load(path: Path) -> None:
    assert load_catalogue(path).forms


def test_numbers_are_exact_and_words_stay_words() -> None:
    catalogue = load_catalogue(SHOP)
    rate = catalogue.forms[3].field("taxRate")
    assert rate
    assert rate.default
    assert rate.default.value == Decimal("0.13")
    assert not isinstance(rate.default.value, float)
    text = """
version: 1
permissions: {allow_all: true}
forms:
  - id: f
    module: m
    label: {zh: 否, en: no}
    table: t
    fields:
      - name: a
        column: a
        label: {zh: off, en: 2026-01-01}
        type: choice
        choices: [{value: no, label: {zh: y, en: 0123}}]
"""
    field = parse_catalogue(text).forms[0].fields[0]
    assert (field.label.zh, field.label.en) == ("off", "2026-01-01")
    assert (field.choices[0].value, field.choices[0].label.en) == ("no", "0123")


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("forms: [", "1:9"),
        ("version: 1\nversion: 2", "2:1"),
        ("a: !!python/object:os.system {}", "1:4"),
        ("a: &x [*x]", "(root)"),
        ("", "(root)"),
        ("[]", "(root)"),
    ],
)
def test_text_that_is_no_catalogue_is_told_by_line_and_column(text: str, where: str) -> None:
    assert any(path.startswith(where) or where == "(root)" for path in _problems(text))


def test_mistakes_of_shape_are_told_by_path() -> None:
    def change(data: Any, forms: Any) -> None:
        forms["quote"]["fields"][2]["lenght"] = 5
        del forms["quote"]["table"]
        forms["customer"]["number"]["rule"] = "KH{yyy}{seq:4}"
        forms["region"]["fields"][0]["column"] = "a; DROP TABLE x"
        forms["product"]["fields"][1]["type"] = "money"

    problems = _broken(change)
    assert problems["forms[quote].fields[title].lenght"] == "there is no such key"
    assert problems["forms[quote].table"] == "is missing"
    assert "forms[customer].number" in problems
    assert "forms[region].fields[name].column" in problems
    assert "forms[product].fields[cost].type" in problems


Q, G = "forms[quote]", "forms[order].generate[request]"


def _set(*keys: Any, to: Any) -> Any:
    """A change that sets ``forms[keys[0]][keys[1]]… = to``."""

    def change(_data: Any, forms: Any) -> None:
        at = forms
        for key in keys[:-1]:
            at = at[key]
        at[keys[-1]] = to

    return change


def _quote(*keys: Any, to: Any) -> Any:
    return _set("quote", *keys, to=to)


@pytest.mark.parametrize(
    ("change", "path"),
    [
        (_quote("fields", 1, "reference", "form", to="nix"), f"{Q}.fields[customer].reference.form"),
        (_quote("fields", 1, "reference", "names", to=["nix"]), f"{Q}.fields[customer].reference.names"),
        (_quote("fields", 1, "reference", "display", to=["nix"]), f"{Q}.fields[customer].reference.display"),
        (_quote("natural_key", to=["nix"]), f"{Q}.natural_key"),
        (_quote("title", to=["nix"]), f"{Q}.title"),
        (_quote("number", "field", to="nix"), f"{Q}.number.field"),
        (_quote("fields", 0, "writable", to=True), f"{Q}.number.field"),
        (_quote("fields", 2, "column", to="sBillNo"), f"{Q}.fields[title].column"),
        (_quote("fields", 2, "column", to="sId"), f"{Q}.fields[title].column"),
        (_quote("fields", 2, "column", to="sBrandsId"), f"{Q}.fields[title].column"),
        (_quote("fields", 2, "column", to="tCreateDate"), f"{Q}.fields[title].column"),
        (_quote("fields", 2, "column", to="bInvalid"), f"{Q}.fields[title].column"),
        (_quote("children", 0, "fields", 0, "column", to="iOrder"), f"{Q}.children[parts].fields[name].column"),
        (_quote("children", 0, "fields", 0, "column", to="sParentId"), f"{Q}.children[parts].fields[name].column"),
        (_quote("children", 0, "fields", 0, "name", to="id"), f"{Q}.children[parts].id"),
        (_quote("children", 0, "name", to="title"), f"{Q}.title"),
        (_quote("children", 0, "unique", to=["nix"]), f"{Q}.children[parts].unique"),
        (_quote("fields", 3, "default", to={"copy": "customer.nix"}), f"{Q}.fields[address].default.copy"),
        (_quote("fields", 3, "default", to={"copy": "title.name"}), f"{Q}.fields[address].default.copy"),
        (_quote("fields", 3, "default", to={"copy": "customer.region"}), f"{Q}.fields[address].default.copy"),
        (_quote("fields", 3, "default", to={"now": True}), f"{Q}.fields[address].default.now"),
        (_quote("fields", 3, "default", to={"now": True, "today": True}), f"{Q}.fields[address].default"),
        (_quote("fields", 12, "default", "value", to="many"), f"{Q}.fields[days].default.value"),
        (_quote("fields", 14, "computed", to={"sum": "parts.nix"}), f"{Q}.fields[total].computed.sum"),
        (_quote("fields", 14, "computed", to={"product": ["title"]}), f"{Q}.fields[total].computed.product"),
        (_quote("fields", 14, "computed", to={"product": ["gross"]}), f"{Q}.fields[total].computed"),
        (_quote("operations", to={"generate": {}}), f"{Q}.operations.generate"),
        (_set("region", "operations", to={"examine": {}}), "forms[region].operations.examine"),
        (_set("region", "operations", to={"delete": {}}), "forms[region].operations.delete"),
        (_quote("operations", "create", "approval", "field", to="title"), f"{Q}.operations.create.approval"),
        (_set("order", "generate", 0, "source", to="nix"), "forms[order].generate[nix].source"),
        (_set("order", "generate", 0, "lines", to={"nix": "product"}), f"{G}.lines.nix"),
        (_set("order", "generate", 0, "lines", to={"product": "nix"}), f"{G}.lines.product"),
        (_set("order", "generate", 0, "write_back", "limit", to="product"), f"{G}.write_back.limit"),
        (_set("order", "generate", 0, "quantity", to="nix"), f"{G}.quantity"),
        (_set("request", "lock_when_referenced_by", to=["order.nix"]), "forms[request].lock_when_referenced_by"),
        (_set("request", "lock_when_referenced_by", to=["quote.customer"]), "forms[request].lock_when_referenced_by"),
        (_set("region", "fields", 0, "writable", to=False), "forms[region].fields[name].required"),
    ],
)  # fmt: skip
def test_mistakes_of_sense_are_told_by_path(change: Any, path: str) -> None:
    assert path in _broken(change)


def test_a_command_may_not_hide_a_forms_own_operation() -> None:
    def change(data: Any, _forms: Any) -> None:
        data["commands"][0]["command_type"] = "crm.quote.create"
        data["commands"].append(
            {**data["commands"][0], "command_type": "crm.rename", "form": "nix", "handler": "x"}
        )

    problems = _broken(change)
    assert {
        "commands[crm.quote.create]",
        "commands[crm.rename]",
        "commands[crm.rename].form",
    } <= problems.keys()


def test_all_problems_come_at_once_in_the_readers_language() -> None:
    def change(_data: Any, forms: Any) -> None:
        forms["quote"]["natural_key"] = ["nix"]
        forms["order"]["title"] = ["nix"]

    data = yaml.safe_load(SHOP.read_text(encoding="utf-8"))
    data["forms"][3]["fields"][13]["default"]["value"] = "0.13"
    change(data, {form["id"]: form for form in data["forms"]})
    with pytest.raises(CatalogueInvalid) as caught:
        parse_catalogue(yaml.safe_dump(data, allow_unicode=True), "x.yaml")
    assert len(caught.value.problems) == 2
    assert "没有字段 nix" in caught.value.text("zh")
    assert caught.value.text("en").startswith("x.yaml")
