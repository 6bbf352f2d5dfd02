"""``opstage demo`` as a newcomer runs it: no settings, an empty folder, exit 0 only when every step was verified."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.processes import clean_environment


@pytest.mark.timeout(240)
@pytest.mark.parametrize("locale", ["zh", "en"])
def test_the_main_job_is_told_and_verified(tmp_path: Path, locale: str) -> None:
    command = [sys.executable, "-m", "staging.cli.main", "demo"]
    result = subprocess.run(
        command,
        env=clean_environment({"OPSTAGE_LOCALE": locale, "COLUMNS": "120"}),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=220,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    for mark in (
        "BJD2",
        "409",
        "422",
        "404",
        "INSERT INTO ai_op_queue",
        "kill -9",
        "102",
        "http://127.0.0.1:",
    ):
        assert mark in result.stdout
    assert "✘" not in result.stdout
    assert result.stdout.count("✔") >= 20
    assert not list((tmp_path / ".opstage" / "demo").iterdir())
