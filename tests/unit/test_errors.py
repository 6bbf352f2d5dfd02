"""Every error code has a status, a message and a hint in both languages, and an error survives being pickled."""

from __future__ import annotations

import ast
import pickle
import traceback
from collections.abc import Iterator
from pathlib import Path

import pytest

from staging.contracts.error import ErrorCode, ErrorResponse
from staging.contracts.status import Status, StatusCode
from staging.domain.errors import (
    HTTP_STATUS,
    FieldProblem,
    OpstageError,
    Refused,
    Transient,
    ValidationFailed,
    invalid,
    rule,
)
from staging.domain.messages import render

ROOT = Path(__file__).parents[2]

# The parameters an error of this code has to be given: what its message and hint speak of. Not listed: none.
PARAMETERS = {
    ErrorCode.FORM_NOT_FOUND: {"form"},
    ErrorCode.RECORD_NOT_FOUND: {"record"},
    ErrorCode.RECORD_AMBIGUOUS: {"record"},
    ErrorCode.FIELD_UNKNOWN: {"field"},
    ErrorCode.FIELD_NOT_WRITABLE: {"field"},
    ErrorCode.FIELD_INVALID: {"field"},
    ErrorCode.FIELD_REQUIRED: {"field"},
    ErrorCode.REFERENCE_NOT_FOUND: {"field"},
    ErrorCode.REFERENCE_AMBIGUOUS: {"field"},
    ErrorCode.POSSIBLE_DUPLICATE: {"record"},
    ErrorCode.QUERY_SORT_FIELD_NOT_ALLOWED: {"field", "allowed"},
    ErrorCode.QUERY_DIRECTION_INVALID: {"direction"},
    ErrorCode.PAYLOAD_TOO_LARGE: {"limit"},
    ErrorCode.PAYLOAD_INVALID: {"reason", "reason_zh"},
    ErrorCode.RATE_LIMITED: {"retry_after"},
    ErrorCode.UNAVAILABLE: {"what"},
}


def asked_by(code: ErrorCode, locale: str) -> set[str]:
    """The names in the rendered texts that were given as ``<name>``."""
    given = {name: f"<{name}>" for name in set().union(*PARAMETERS.values())}
    text = " ".join(render(code, given, locale))
    assert "…" not in text, f"{code} asks for a parameter that PARAMETERS does not know"
    return {name for name in given if f"<{name}>" in text}


@pytest.mark.parametrize("code", ErrorCode)
def test_a_code_has_an_http_status_a_message_and_a_hint_in_both_languages(code: ErrorCode) -> None:
    assert 400 <= HTTP_STATUS[code] < 600
    for text in render(code, {}, "en"):
        assert text.replace("…", "").isascii()
        assert text
    for text in render(code, {}, "zh"):
        assert any("\u4e00" <= sign <= "\u9fff" for sign in text)
    assert OpstageError(code).status_code.status is Status.FAIL


@pytest.mark.parametrize("code", ErrorCode)
def test_a_message_asks_for_the_parameters_documented_here(code: ErrorCode) -> None:
    expected = PARAMETERS.get(code, set())
    assert asked_by(code, "en") | asked_by(code, "zh") == expected
    if code is not ErrorCode.PAYLOAD_INVALID:  # the one code with a reason per language
        assert asked_by(code, "en") == asked_by(code, "zh") == expected


def raised_errors() -> Iterator[tuple[str, ErrorCode, set[str]]]:
    """(where, code, names of its parameters) of every error that is built with literal code and parameters."""
    for path in sorted([*ROOT.glob("staging/**/*.py"), *ROOT.glob("workers/**/*.py")]):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            match node:
                case ast.Call(
                    func=ast.Name(id="Refused" | "ValidationFailed" | "Transient" | "OpstageError"),
                    args=[ast.Attribute(value=ast.Name(id="E" | "ErrorCode"), attr=name), *rest],
                    keywords=keywords,
                ) if not any(keyword.arg == "text" for keyword in keywords):
                    where = f"{path.relative_to(ROOT)}:{node.lineno}"
                    match rest:
                        case []:
                            yield where, ErrorCode[name], set()
                        case [ast.Dict(keys=keys)]:
                            given = {key.value for key in keys if isinstance(key, ast.Constant)}
                            yield where, ErrorCode[name], {str(key) for key in given}


def test_whoever_raises_an_error_gives_its_message_what_it_asks_for() -> None:
    found = list(raised_errors())
    assert len(found) > 20, "the search has gone blind"
    lacking = [(where, code, PARAMETERS[code] - given) for where, code, given in found if code in PARAMETERS]
    assert [entry for entry in lacking if entry[2]] == []


def test_a_parameter_that_is_missing_does_not_break_an_error_path() -> None:
    assert render(ErrorCode.FORM_NOT_FOUND, {}, "en")[0] == 'There is no form or command "…"'


def test_braces_in_a_parameter_are_text() -> None:
    assert "{0.__class__}" in Refused(ErrorCode.FORM_NOT_FOUND, {"form": "{0.__class__}"}).message("zh")


EXAMPLES = [
    Refused(ErrorCode.FORM_NOT_FOUND, {"form": "报价单"}),
    Transient(ErrorCode.UNAVAILABLE, {"what": "Redis"}),
    rule("库存不足", "Not enough stock", available="3"),
    OpstageError(ErrorCode.VERSION_CONFLICT, conflict=({"field": "price", "seen": "1", "now": "2"},)),
    invalid(
        [
            FieldProblem("parts[1].price", ErrorCode.FIELD_INVALID, {"zh": "不是数字", "en": "not a number"}),
            FieldProblem("customer", ErrorCode.REFERENCE_AMBIGUOUS, candidates=({"id": "c1"}, {"id": "c2"})),
        ]
    ),
]


@pytest.mark.parametrize("error", EXAMPLES, ids=lambda error: error.code.value)
def test_an_error_survives_pickling_and_can_be_printed_and_hashed(error: OpstageError) -> None:
    copy = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own bytes
    assert type(copy) is type(error)
    for locale in ("zh", "en"):
        assert copy.body(locale) == error.body(locale)
    assert str(copy) == str(error)
    assert error.code.value in "".join(traceback.format_exception(copy))
    assert len({error, copy}) == 2  # an exception is itself, not its contents


@pytest.mark.parametrize("error", EXAMPLES, ids=lambda error: error.code.value)
def test_the_wire_form_is_one_object_with_code_message_and_hint(error: OpstageError) -> None:
    wire = error.body("zh").to_wire()
    assert wire.keys() == {"error"}
    assert wire["error"]["code"] == error.code.value
    assert wire["error"]["message"]
    assert "hint" in wire["error"]
    assert ErrorResponse.model_validate(wire) == error.body("zh")


def test_a_validation_error_names_every_bad_field_in_the_readers_language() -> None:
    error = EXAMPLES[-1]
    assert isinstance(error, ValidationFailed)
    assert error.code is ErrorCode.FIELD_INVALID  # of the first bad field
    details = error.body("en").error.details
    assert details is not None
    assert [(d.field, d.message) for d in details] == [
        ("parts[1].price", "not a number"),
        ("customer", 'Field "customer" matches several records by name'),
    ]
    assert "parts[1].price: 不是数字" in error.message("zh")
    assert error.body("en").error.candidates == [{"id": "c1"}, {"id": "c2"}]


def test_a_rule_speaks_its_own_words_and_any_other_locale_is_english() -> None:
    error = rule("库存不足", "Not enough stock")
    assert error.message("zh") == "库存不足"
    assert error.message("en") == error.message("fr") == "Not enough stock"
    assert error.http_status == 422
    assert error.status_code is StatusCode.RULE_REFUSED


def test_what_ends_an_execution_gets_the_contracts_number() -> None:
    numbers = {
        ErrorCode.FIELD_INVALID: 400,
        ErrorCode.PAYLOAD_INVALID: 400,
        ErrorCode.PAYLOAD_TOO_LARGE: 400,
        ErrorCode.REFERENCE_NOT_FOUND: 400,
        ErrorCode.FORBIDDEN: 401,
        ErrorCode.FORM_NOT_FOUND: 404,
        ErrorCode.RECORD_NOT_FOUND: 404,
        ErrorCode.VERSION_CONFLICT: 409,
        ErrorCode.STATE_CONFLICT: 409,
        ErrorCode.IDEMPOTENCY_CONFLICT: 409,
        ErrorCode.EXPIRED: 410,
        ErrorCode.BUSINESS_RULE: 422,
        ErrorCode.UNAVAILABLE: 500,
    }
    assert {code: int(OpstageError(code).status_code) for code in numbers} == numbers
