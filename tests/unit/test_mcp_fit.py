"""Answers for a model's context: within the budget, never silently."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import Any

from hypothesis import given, strategies as st

from staging.mcp.fit import fit

NAMES = st.text("abc", min_size=1, max_size=3)
VALUES = st.recursive(
    st.text(max_size=300) | st.integers() | st.booleans(),
    lambda below: st.lists(below, max_size=12) | st.dictionaries(NAMES, below, max_size=5),
    max_leaves=60,
)


def size(value: Any) -> int:
    return len(json.dumps(value, ensure_ascii=False))


def test_what_fits_is_not_touched() -> None:
    answer = {"items": [{"id": "1"}] * 50, "page": {"total": 50}}
    assert fit(deepcopy(answer), "en") == answer


def test_a_long_list_is_cut_and_says_how_much_of_it_there_is() -> None:
    answer = {"items": [{"id": str(n), "text": "x" * 100} for n in range(200)], "page": {"total": 4711}}
    fitted = fit(answer, "en", 5_000)
    assert size(fitted) <= 5_500
    kept = len(fitted["items"])
    assert 20 < kept < 200
    assert fitted["items"][-1]["id"] == str(kept - 1)
    assert fitted["page"] == {"total": 4711}
    assert fitted["notes"] == [
        f"items: the first {kept} of 200 entries; narrow it down, or page through with a smaller page.size"
    ]


def test_the_longest_of_several_lists_gives_way() -> None:
    answer = {"short": ["a"] * 5, "lines": [{"tiers": ["t" * 50] * 100}, {"tiers": ["t" * 50] * 3}]}
    fitted = fit(answer, "zh", 1_500)
    assert fitted["short"] == ["a"] * 5
    assert len(fitted["lines"][0]["tiers"]) < 100
    assert any("100" in note for note in fitted["notes"])


def test_a_long_text_is_cut_and_named() -> None:
    fitted = fit({"memo": "很长" * 2_000, "total": "12.50"}, "zh")
    assert fitted["total"] == "12.50"
    assert len(fitted["memo"]) == 1_001
    assert fitted["notes"] == ["memo：文本过长，已截断"]


def test_many_notes_are_counted_instead_of_told() -> None:
    fitted = fit({f"f{n}": "x" * 2_000 for n in range(15)}, "en", 100_000)
    assert len(fitted["notes"]) == 11
    assert fitted["notes"][-1] == "5 more places are shortened"


@given(st.dictionaries(NAMES, VALUES, max_size=8), st.integers(200, 3_000))
def test_it_always_ends_and_whatever_is_missing_is_noted(answer: dict[str, Any], budget: int) -> None:
    before = deepcopy(answer)
    fitted = fit(answer, "en", budget)
    if fitted != before:
        assert fitted["notes"]
    else:
        assert size(fitted) <= budget or "notes" not in fitted
    shorter = {name: value for name, value in fitted.items() if name != "notes"}
    assert size(shorter) <= size(before) + 1
