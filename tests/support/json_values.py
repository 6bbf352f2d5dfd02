"""Hypothesis strategies for what may stand in a payload."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

from staging.domain.canonical import nfc

# Short: text of many combining marks in a row is refused, and that has a test of its own.
texts = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=8)
keys = texts.map(nfc)
integers = st.integers(min_value=-(10**38) + 1, max_value=10**38 - 1)
decimals = st.builds(
    lambda digits, scale: Decimal(digits).scaleb(-scale),
    st.integers(min_value=-(10**18), max_value=10**18),
    st.integers(min_value=0, max_value=10),
)
scalars = st.none() | st.booleans() | integers | decimals | texts


def trees(leaves: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Lists and objects (distinct keys in NFC) over ``leaves``, not deeper than a payload may be."""
    return st.recursive(
        leaves,
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=4),
        max_leaves=10,
    )


json_values = trees(scalars)
