"""The life of an operation: every legal change of code, once.

SQL guards, events, tests and the README's diagram derive from ``TRANSITIONS``.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from staging.contracts.status import RETRYABLE, StatusCode as C


class Verb(StrEnum):
    """What happened; the word an event carries in ``sVerb``."""

    SUBMIT = "submit"  # a confirm inserted the row (from nothing)
    ADMIT = "admit"  # a row of foreign SQL was taken in: derived columns filled, first event written
    ROUTE = "route"  # 100 of a foreign row goes where policy or bAutoExecute sends it
    CLAIM = "claim"
    FINISH = "finish"
    BACK_OFF = "back_off"  # transient failure: again later
    LOSE = "lose"  # commit in doubt, or the lease lapsed
    RESOLVE = "resolve"  # the ledger answered
    RELEASE = "release"  # dependency or time satisfied
    EXPIRE = "expire"
    CANCEL = "cancel"
    APPROVE = "approve"
    REJECT = "reject"
    COMPLETE = "complete"
    RETRY = "retry"


@dataclass(frozen=True, slots=True)
class Transition:
    """``verb`` may move ``source`` (None: no row yet) to ``target``; ``leased``: only with the current fencing
    token."""

    verb: Verb
    source: C | None
    target: C
    leased: bool = False


_REFUSALS = (
    C.PAYLOAD_INVALID,
    C.FORBIDDEN,
    C.NOT_FOUND,
    C.CONFLICT,
    C.EXPIRED,
    C.RULE_REFUSED,
    C.DEPENDENCY_FAILED,
)
_EXHAUSTED = (C.LOCKED, C.UNEXPECTED, C.TIMED_OUT)
_WAITING = (C.WAITING_USER, C.WAITING_APPROVAL, C.WAITING_OTHER)


def _moves() -> tuple[Transition, ...]:
    t = Transition
    moves = [t(Verb.SUBMIT, None, target) for target in (C.SUBMITTED, *_WAITING)]
    moves.append(t(Verb.ADMIT, C.SUBMITTED, C.SUBMITTED))
    moves += [t(Verb.ROUTE, C.SUBMITTED, target) for target in (*_WAITING, *_REFUSALS)]
    moves.append(t(Verb.CLAIM, C.SUBMITTED, C.RUNNING))
    moves += [t(Verb.FINISH, C.RUNNING, target, leased=True) for target in (C.EXECUTED, C.EXECUTED_BEFORE)]
    moves += [t(Verb.FINISH, C.RUNNING, target, leased=True) for target in (*_REFUSALS, *_EXHAUSTED)]
    moves.append(t(Verb.BACK_OFF, C.RUNNING, C.SUBMITTED, leased=True))
    moves.append(t(Verb.LOSE, C.RUNNING, C.UNKNOWN, leased=True))
    # The reconciler takes the lease (a fresh token) with LOSE or a re-lease, so what follows is fenced as well.
    moves += [
        t(Verb.RESOLVE, C.UNKNOWN, target, leased=True)
        for target in (
            C.EXECUTED,
            C.EXECUTED_BEFORE,
            C.SUBMITTED,
            C.CONFLICT,
            C.LOCKED,
            C.UNEXPECTED,
            C.TIMED_OUT,
        )
    ]
    moves.append(t(Verb.RELEASE, C.WAITING_OTHER, C.SUBMITTED))
    moves += [t(Verb.RELEASE, C.WAITING_OTHER, target) for target in (C.WAITING_USER, C.WAITING_APPROVAL)]
    moves.append(t(Verb.RELEASE, C.WAITING_OTHER, C.DEPENDENCY_FAILED))
    moves += [t(Verb.EXPIRE, source, C.EXPIRED) for source in (C.SUBMITTED, *_WAITING)]
    moves += [t(Verb.CANCEL, source, C.CANCELLED) for source in (C.SUBMITTED, *_WAITING)]
    moves += [t(Verb.APPROVE, C.WAITING_APPROVAL, target) for target in (C.SUBMITTED, C.WAITING_USER)]
    moves.append(t(Verb.REJECT, C.WAITING_APPROVAL, C.CANCELLED))
    moves += [t(Verb.COMPLETE, C.WAITING_USER, target) for target in (C.EXECUTED, C.RULE_REFUSED)]
    moves += [t(Verb.RETRY, source, C.SUBMITTED) for source in sorted(RETRYABLE)]
    return tuple(moves)


TRANSITIONS: tuple[Transition, ...] = _moves()
_INDEX = {(m.verb, m.source, m.target): m for m in TRANSITIONS}


class IllegalTransition(ValueError):
    """A programming error: code asked for a change that ``TRANSITIONS`` does not list."""


def transition(verb: Verb, source: C | None, target: C) -> Transition:
    """Return the listed transition, or raise ``IllegalTransition``."""
    try:
        return _INDEX[verb, source, target]
    except KeyError:
        raise IllegalTransition(f"{verb}: {source!r} → {target!r} is not in TRANSITIONS") from None


def sources(verb: Verb) -> tuple[C, ...]:
    """Codes from which ``verb`` may start, ascending."""
    return tuple(sorted({m.source for m in TRANSITIONS if m.verb is verb and m.source is not None}))
