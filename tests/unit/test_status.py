"""The codes are those of CONTRACT section 2, each with its words."""

from __future__ import annotations

import pytest

from staging.contracts.status import LEGACY_STATUSES, RETRYABLE, Status, StatusCode

CONTRACT = {
    Status.PENDING: {100, 101, 102, 103, 104, 105},
    Status.SUCCESS: {200, 201},
    Status.FAIL: {400, 401, 404, 409, 410, 422, 423, 424, 450, 500, 504},
}


def test_the_codes_are_the_contracts() -> None:
    assert {word: {int(code) for code in StatusCode if code.status is word} for word in Status} == CONTRACT


@pytest.mark.parametrize("code", StatusCode)
def test_a_code_explains_itself_in_both_languages_and_names_who_moves_it_on(code: StatusCode) -> None:
    assert code.meaning("en").isascii()
    assert not code.meaning("zh").isascii()
    assert code.mover in {"worker", "reconciler", "person", "approver", "sweeper", "nobody"}
    assert StatusCode.of(int(code)) is code


def test_meanings_are_told_apart() -> None:
    for locale in ("zh", "en"):
        assert len({code.meaning(locale) for code in StatusCode}) == len(StatusCode)


def test_an_unknown_number_of_an_adopted_row_is_none() -> None:
    assert StatusCode.of(999) is None
    assert StatusCode.of(None) is None


def test_pending_is_the_only_word_that_is_not_terminal() -> None:
    assert all(code.is_terminal is (code.status is not Status.PENDING) for code in StatusCode)


def test_a_person_may_send_back_423_500_and_504() -> None:
    assert {int(code) for code in StatusCode if code.may_be_retried} == {423, 500, 504} == RETRYABLE


def test_words_of_an_adopted_table_are_not_ours() -> None:
    assert not LEGACY_STATUSES & set(Status)
