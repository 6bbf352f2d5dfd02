"""Run a migration in processes that are killed with SIGKILL right after one of their changes, until one gets through.

``python -m tests.support.migration_killer upgrade URL TREE [REVISION]`` prints how many died. It loads the code once
and forks a process for each attempt.
"""

from __future__ import annotations

import os
import subprocess
import sys
import traceback

from migrations import run
from migrations.failpoint import VARIABLE
from staging.settings import normalize_database_url
from tests.support.processes import ROOT, clean_environment

_MOST = 200
_STRIDE = 5


def killed_at_each_change(direction: str, *arguments: str) -> int:
    """Migrate; returns how many processes died on the way. AssertionError where the last one failed otherwise."""
    command = [sys.executable, "-m", __name__, direction, *arguments]
    done = subprocess.run(
        command, env=clean_environment({}), cwd=ROOT, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


def _main(direction: str, url: str, *rest: str) -> None:
    # Where DDL cannot be rolled back every process carries on after the last one's change. Elsewhere each begins anew
    # and gets a little further: what is left behind is nothing at all, whichever change was the last.
    carries_on = normalize_database_url(url).startswith(("mysql", "mariadb"))
    for deaths in range(_MOST):
        pid = os.fork()
        if pid == 0:
            _attempt(direction, url, *rest, kill_after=1 if carries_on else 1 + _STRIDE * deaths)
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        if status == 0:
            sys.stdout.write(f"{deaths}\n")
            return
        if status != -9:
            sys.exit(f"attempt {deaths} ended with {status}")
    sys.exit(f"{_MOST} died, none got through")


def _attempt(direction: str, url: str, *rest: str, kill_after: int) -> None:
    os.environ[VARIABLE] = str(kill_after)
    code = 1
    try:
        getattr(run, direction)(url, *rest)
        code = 0
    except Exception:  # noqa: BLE001 - the parent process only sees what is printed
        traceback.print_exc()
    finally:
        os._exit(code)


if __name__ == "__main__":
    _main(*sys.argv[1:])
