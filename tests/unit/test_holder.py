"""Who holds a lease is told from its token, and that it is dead only when it is."""

from __future__ import annotations

import subprocess
import sys

import pytest

from workers import holder

pytestmark = pytest.mark.skipif(not holder.place(), reason="this kernel does not say who lives")
_PRINT_TOKEN = "from workers import holder; print(holder.new_token())"


def test_a_token_fits_its_column_and_is_never_given_twice() -> None:
    tokens = {holder.new_token() for _ in range(100)}
    assert len(tokens) == 100
    assert max(map(len, tokens)) <= 64
    assert all(token.startswith(holder.place() + ".") for token in tokens)


def test_who_lives_is_not_dead() -> None:
    assert not holder.is_dead(holder.new_token())


def test_who_has_ended_is_dead_and_so_is_one_whose_number_was_given_to_another() -> None:
    command = [sys.executable, "-c", _PRINT_TOKEN]
    ended = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    assert ended.startswith(holder.place() + ".")
    assert holder.is_dead(ended)
    where, pid, started, secret = holder.new_token().split(".")
    assert holder.is_dead(f"{where}.{pid}.{int(started) - 1}.{secret}")


def test_a_zombie_is_dead() -> None:
    with subprocess.Popen([sys.executable, "-c", _PRINT_TOKEN], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        token = child.stdout.readline().strip()
        child.stdout.read()  # to its end; not waited for yet
        while not holder.is_dead(token):
            assert child.returncode is None
    assert holder.is_dead(token)


@pytest.mark.parametrize("token", ["", "x", "x.y.z", "AAAAAAAAAAAAAAAAAAAAAAAA", "..", "0123456789.1.1.abc"])
def test_of_a_foreign_token_nothing_is_known(token: str) -> None:
    assert not holder.is_dead(token)


def test_a_broken_token_of_this_place_is_not_taken_for_a_dead_one() -> None:
    assert not holder.is_dead(f"{holder.place()}.abc.1.x")
