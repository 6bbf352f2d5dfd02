"""Words for models: there for everything, in both languages, and never "done" for what is not."""

from __future__ import annotations

import pytest
from mcp import types

from staging.contracts.status import StatusCode as C
from staging.mcp import texts
from staging.mcp.card import quoted
from staging.mcp.confirming import can_elicit
from staging.mcp.directory import _names
from staging.mcp.server import FIXED

PENDING = [code for code in C if not code.is_terminal]
FAILED = [code for code in C if code.is_terminal and code.status == "fail"]


@pytest.mark.parametrize("code", list(C))
@pytest.mark.parametrize("locale", ["zh", "en"])
def test_every_code_says_what_it_means_for_a_model(code: C, locale: str) -> None:
    assert texts.next_of(code.value, locale)
    assert texts.next_of(code.value, "zh") != texts.next_of(code.value, "en")


@pytest.mark.parametrize("code", PENDING)
def test_nothing_pending_is_called_done(code: C) -> None:
    zh, en = texts.next_of(code.value, "zh"), texts.next_of(code.value, "en")
    assert any(word in en for word in ("Not executed", "not done", "Not done", "Not known yet"))
    assert any(word in zh for word in ("尚未", "尚不明确"))


def test_an_unknown_outcome_is_neither_failed_nor_to_be_repeated() -> None:
    zh, en = texts.next_of(102, "zh"), texts.next_of(102, "en")
    assert "do not resubmit" in en
    assert "不要重新提交" in zh
    assert "fail" not in en.lower()
    assert "失败" not in zh


@pytest.mark.parametrize("code", FAILED)
def test_a_failure_says_that_nothing_was_done(code: C) -> None:
    assert "othing was done" in texts.next_of(code.value, "en")
    assert "未执行" in texts.next_of(code.value, "zh")


@pytest.mark.parametrize("code", [C.LOCKED, C.UNEXPECTED, C.TIMED_OUT])
def test_what_a_person_may_retry_is_not_prepared_anew(code: C) -> None:
    assert "do not prepare it" in texts.next_of(code.value, "en")


def test_every_tool_has_its_words() -> None:
    assert (
        {tool.name for tool in FIXED} | {"confirm_operation"} == set(texts.DESCRIPTIONS) == set(texts.TITLES)
    )
    for description in texts.DESCRIPTIONS.values():
        assert (
            "hoose it" in description
            or "Start here" in description
            or "Ask the user" in description
            or "Prepare" in description
        )


def test_tool_names_are_what_every_host_takes_and_told_apart() -> None:
    commands = [
        "erp.a_b.c",
        "erp.a.b_c",
        "erp.订单.create",
        "erp." + "x" * 80 + ".create",
        "erp.sales_order.create",
    ]
    names = _names(commands)
    assert names["erp.sales_order.create"] == "prepare_erp_sales_order_create"
    assert len(set(names.values())) == len(commands)
    for name in names.values():
        assert len(name) <= 64
        assert name.replace("_", "").replace("-", "").isascii()
        assert name.replace("_", "").replace("-", "").isalnum()


@pytest.mark.parametrize(
    ("capability", "asks"),
    [
        (None, False),
        (types.ElicitationCapability(), True),
        (types.ElicitationCapability(form=types.FormElicitationCapability()), True),
        (types.ElicitationCapability(url=types.UrlElicitationCapability()), False),
    ],
)
def test_only_a_client_that_shows_forms_can_ask(
    capability: types.ElicitationCapability | None, asks: bool
) -> None:
    assert can_elicit(types.ClientCapabilities(elicitation=capability)) is asks
    assert not can_elicit(None)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("云帆文化", '"云帆文化"'),
        ('a"b\\c', '"a\\"b\\\\c"'),
        ("一\n二\r\t三", '"一\\n二\\r\\t三"'),
        ("\N{RIGHT-TO-LEFT OVERRIDE}x\N{ZERO WIDTH SPACE}", '"\\u202ex\\u200b"'),
        ("\N{LINE SEPARATOR}", '"\\u2028"'),
        ("e\N{COMBINING ACUTE ACCENT} 😀", '"e\N{COMBINING ACUTE ACCENT} 😀"'),
        ("\N{TAG LATIN SMALL LETTER A}", '"\\U000e0061"'),
    ],
)
def test_a_value_is_one_line_in_quotes_with_nothing_hidden(text: str, shown: str) -> None:
    assert quoted(text) == shown
