"""Each kind of error ends the command line with the exit code CONTRACT promises, in the user's language."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator

import psycopg
import pytest
import redis.exceptions
from pydantic import ValidationError
from sqlalchemy.exc import OperationalError

from staging.cli.console import Exit, report
from staging.contracts.error import ErrorCode
from staging.domain.errors import Refused, Transient
from staging.embedded.errors import embedded_error
from staging.settings import Settings, get_settings


@pytest.fixture(autouse=True)
def english(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("OPSTAGE_LOCALE", "en")
    get_settings.cache_clear()
    yield
    get_settings.cache_clear()


def test_a_refusal_exits_1_with_message_and_hint(capsys: pytest.CaptureFixture[str]) -> None:
    assert report(Refused(ErrorCode.FORM_NOT_FOUND, {"form": "quotatoin"})) is Exit.REFUSED
    error = capsys.readouterr().err
    assert 'There is no form or command "quotatoin"' in error
    assert "Hint: Look it up in the form catalogue" in error


def test_messages_follow_the_users_language(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPSTAGE_LOCALE", "zh")
    get_settings.cache_clear()
    report(Refused(ErrorCode.FORM_NOT_FOUND, {"form": "报价"}))
    assert "错误：没有名为“报价”的表单或命令" in capsys.readouterr().err


def test_with_json_the_error_is_an_object_on_stdout(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["opstage", "forms", "show", "x", "--json"])
    assert report(Refused(ErrorCode.FORM_NOT_FOUND, {"form": "x"})) is Exit.REFUSED
    body = json.loads(capsys.readouterr().out)
    assert body["error"]["code"] == "form_not_found"
    assert body["error"]["hint"]


@pytest.mark.parametrize(
    "error",
    [
        Transient(ErrorCode.UNAVAILABLE, {"what": "the broker"}),
        embedded_error("端口被占用", "the port is taken"),
        redis.exceptions.ConnectionError("refused"),
        redis.exceptions.TimeoutError("slow"),
        psycopg.OperationalError("connection refused"),
        OperationalError("SELECT 1", {}, psycopg.OperationalError("connection refused")),
    ],
    ids=lambda error: f"{type(error).__module__}.{type(error).__name__}",
)
def test_a_service_that_cannot_be_reached_exits_3(error: Exception) -> None:
    assert report(error) is Exit.UNREACHABLE


def test_settings_that_do_not_fit_exit_2_and_show_no_value(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPSTAGE_POOL_SIZE", "not-a-number-but-a-secret")
    with pytest.raises(ValidationError) as caught:
        Settings()
    assert report(caught.value) is Exit.USAGE
    error = capsys.readouterr().err
    assert "OPSTAGE_POOL_SIZE" in error
    assert "not-a-number-but-a-secret" not in error


@pytest.mark.parametrize("error", [RuntimeError("bug"), sqlite3.OperationalError("no such table: nothing")])
def test_our_own_mistakes_show_their_trace_and_do_not_pass_for_a_refusal(
    error: Exception, capsys: pytest.CaptureFixture[str]
) -> None:
    assert report(error) is Exit.BUG
    assert str(error) in capsys.readouterr().err


def test_an_interrupted_command_says_so_by_its_code() -> None:
    assert report(KeyboardInterrupt()) is Exit.INTERRUPTED


def test_a_setting_that_does_not_load_is_named_without_the_validators_words(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(ValidationError) as caught:
        Settings(database_url="garbage")
    assert report(caught.value) is Exit.USAGE
    error = capsys.readouterr().err
    assert "OPSTAGE_DATABASE_URL: a URL of sqlite" in error
    assert "Value error" not in error


def test_a_folder_that_cannot_be_written_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    error = PermissionError(13, "Permission denied", "/srv/opstage")
    assert report(error) is Exit.UNREACHABLE
    said = capsys.readouterr().err
    assert "/srv/opstage: Permission denied" in said
    assert "OPSTAGE_DATA_DIR" in said
