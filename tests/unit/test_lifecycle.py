"""The one table of transitions keeps the promises that CONTRACT section 2 and DESIGN's invariants make."""

from __future__ import annotations

from itertools import product

import pytest

from staging.contracts.status import RETRYABLE, StatusCode as C
from staging.domain.lifecycle import TRANSITIONS, IllegalTransition, Transition, Verb, sources, transition

LIVE = [code for code in C if not code.is_terminal]
TERMINAL = [code for code in C if code.is_terminal]


def reachable(start: C | None) -> set[C]:
    found: set[C] = set()
    border = {move.target for move in TRANSITIONS if move.source is start}
    while border:
        found |= border
        border = {move.target for move in TRANSITIONS if move.source in border} - found
    return found


def test_terminal_is_left_only_by_a_retry_of_423_500_504() -> None:
    leaving = {move for move in TRANSITIONS if move.source is not None and move.source.is_terminal}
    assert leaving == {
        Transition(Verb.RETRY, code, C.SUBMITTED) for code in (C.LOCKED, C.UNEXPECTED, C.TIMED_OUT)
    }
    assert {move.source for move in leaving} == RETRYABLE


def test_every_code_can_be_reached_from_nothing() -> None:
    assert reachable(None) == set(C)


@pytest.mark.parametrize("code", LIVE)
def test_a_pending_operation_can_always_end(code: C) -> None:
    assert reachable(code) & set(TERMINAL)


@pytest.mark.parametrize("code", LIVE)
def test_a_pending_code_has_a_way_in_and_a_way_out_to_another_code(code: C) -> None:
    assert any(move.target is code and move.source is not code for move in TRANSITIONS)
    assert any(move.source is code and move.target is not code for move in TRANSITIONS)


def test_exactly_the_moves_out_of_101_and_102_need_the_fencing_token() -> None:
    for move in TRANSITIONS:
        assert move.leased is (move.source in (C.RUNNING, C.UNKNOWN)), move


def test_no_transition_is_listed_twice() -> None:
    keys = [(move.verb, move.source, move.target) for move in TRANSITIONS]
    assert len(keys) == len(set(keys))


def test_every_verb_is_used_and_only_submit_starts_from_nothing() -> None:
    assert {move.verb for move in TRANSITIONS} == set(Verb)
    assert {move.verb for move in TRANSITIONS if move.source is None} == {Verb.SUBMIT}
    assert all(move.source is None for move in TRANSITIONS if move.verb is Verb.SUBMIT)


def test_nothing_begins_running_unknown_or_finished() -> None:
    begins = {move.target for move in TRANSITIONS if move.source is None}
    assert begins == {C.SUBMITTED, C.WAITING_USER, C.WAITING_APPROVAL, C.WAITING_OTHER}


def test_success_comes_from_a_worker_the_ledger_or_the_person_who_completed() -> None:
    wins = {
        (move.verb, move.source) for move in TRANSITIONS if move.target in (C.EXECUTED, C.EXECUTED_BEFORE)
    }
    assert wins == {(Verb.FINISH, C.RUNNING), (Verb.RESOLVE, C.UNKNOWN), (Verb.COMPLETE, C.WAITING_USER)}


def test_an_unknown_outcome_is_left_only_by_the_ledgers_answer() -> None:
    assert {move.verb for move in TRANSITIONS if move.source is C.UNKNOWN} == {Verb.RESOLVE}


def test_nobody_cancels_or_expires_what_a_worker_may_be_committing() -> None:
    for verb in (Verb.CANCEL, Verb.EXPIRE):
        assert not {C.RUNNING, C.UNKNOWN} & set(sources(verb))


def test_an_approval_is_not_skipped() -> None:
    """From 104 the way on to execution is an approval, and nothing else."""
    onward = {
        move.verb for move in TRANSITIONS if move.source is C.WAITING_APPROVAL and not move.target.is_terminal
    }
    assert onward == {Verb.APPROVE}


def test_lookup_returns_what_is_listed_and_refuses_the_rest() -> None:
    listed = {(move.verb, move.source, move.target): move for move in TRANSITIONS}
    for key in product(Verb, (None, *C), C):
        if key in listed:
            assert transition(*key) is listed[key]
        else:
            with pytest.raises(IllegalTransition, match="not in TRANSITIONS"):
                transition(*key)


def test_sources_are_the_codes_a_verb_starts_from_ascending() -> None:
    assert sources(Verb.SUBMIT) == ()
    assert sources(Verb.CLAIM) == (C.SUBMITTED,)
    assert sources(Verb.CANCEL) == (C.SUBMITTED, C.WAITING_USER, C.WAITING_APPROVAL, C.WAITING_OTHER)
    assert sources(Verb.RETRY) == (C.LOCKED, C.UNEXPECTED, C.TIMED_OUT)


def test_a_verb_that_has_a_mover_starts_where_that_mover_is_named() -> None:
    """The codes say who moves them on; the verbs of that party must exist there."""
    verbs_of = {
        "worker": {Verb.CLAIM, Verb.FINISH, Verb.LOSE, Verb.BACK_OFF},
        "reconciler": {Verb.RESOLVE},
        "person": {Verb.COMPLETE, Verb.RETRY},
        "approver": {Verb.APPROVE, Verb.REJECT},
        "sweeper": {Verb.RELEASE, Verb.EXPIRE},
        "nobody": set(),
    }
    for code in C:
        leaving = {move.verb for move in TRANSITIONS if move.source is code}
        assert bool(leaving & verbs_of[code.mover]) is (code.mover != "nobody"), code
