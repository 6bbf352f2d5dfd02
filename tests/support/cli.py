"""The command line as a user runs it, with just the given settings: in a process of its own, or quicker in this one."""

from __future__ import annotations

import contextlib
import io
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

from staging.cli.main import main
from staging.settings import get_settings
from tests.support.processes import clean_environment


@dataclass(frozen=True)
class Ran:
    """How it ended and what it printed."""

    code: int
    out: str
    err: str

    def json(self) -> Any:
        """Its output as JSON; fails with what it said instead."""
        assert self.out.strip(), f"exit code {self.code}, nothing printed: {self.err}"
        return json.loads(self.out)


def opstage(folder: Path, env: Mapping[str, str], *arguments: str, timeout_s: float = 60) -> Ran:
    """Run ``opstage ARGUMENTS`` in ``folder``, where no .env is; ``env``: OPSTAGE_* settings, English unless set."""
    done = subprocess.run(
        [sys.executable, "-m", "staging.cli.main", *arguments],
        env=clean_environment({"OPSTAGE_LOCALE": "en", **env}),
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=timeout_s,
    )
    return Ran(done.returncode, done.stdout, done.stderr)


def opstage_here(folder: Path, env: Mapping[str, str], *arguments: str) -> Ran:
    """Like ``opstage``, without the seconds a new interpreter takes. Not for commands that become another process."""
    out, err = io.StringIO(), io.StringIO()
    get_settings.cache_clear()
    try:
        with (
            patch.dict(os.environ, clean_environment({"OPSTAGE_LOCALE": "en", **env}), clear=True),
            patch.object(sys, "argv", ["opstage", *arguments]),
            contextlib.chdir(folder),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
        ):
            try:
                main()
            except SystemExit as ended:
                return Ran(int(ended.code or 0), out.getvalue(), err.getvalue())
    finally:
        get_settings.cache_clear()
    raise AssertionError("the command line always exits")
