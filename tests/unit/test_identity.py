"""Ids: what may stand for an operation."""

from __future__ import annotations

from staging.domain.identity import is_valid_id, new_id


def test_no_id_of_ours_looks_like_an_option_of_a_command() -> None:
    """One in 64 did: ``ops show -XIXl6W7kBcus_aN4cOuR4oV`` was told that there is no option -X."""
    made = [new_id() for _ in range(2000)]
    assert not [one for one in made if one.startswith("-")]
    assert all(is_valid_id(one) and len(one) == 24 for one in made)
    assert len(set(made)) == len(made)
