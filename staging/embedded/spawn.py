"""Starting child processes that never outlive us, as root or not."""

from __future__ import annotations

import contextlib
import os
import pwd
import signal
import socket
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from staging.embedded.errors import embedded_error

_GUARD = Path(__file__).with_name("guard.py")
_MODE = "kernel" if sys.platform.startswith("linux") else "watch"


@dataclass(frozen=True, slots=True)
class Account:
    """A user of the operating system, by number."""

    uid: int
    gid: int
    name: str


def unprivileged_account() -> Account | None:
    """The account for servers that refuse root: ``nobody`` where we are root, else None (stay who we are)."""
    if os.geteuid() != 0:
        return None
    entry = pwd.getpwnam("nobody")
    return Account(entry.pw_uid, entry.pw_gid, entry.pw_name)


def require_reachable(path: Path, account: Account | None) -> None:
    """Raise EmbeddedServerError where ``account`` cannot pass through every folder above ``path``."""
    if account is None:
        return
    for folder in path.resolve().parents:
        status = folder.stat()
        owner_passes = status.st_uid == account.uid and status.st_mode & 0o100
        if not owner_passes and not status.st_mode & 0o001:
            raise embedded_error(
                f"以 root 运行时，数据库服务改用用户 {account.name}，但它无法进入 {folder}。"
                "请把 OPSTAGE_DATA_DIR 和虚拟环境放到其他用户可进入的目录（如 /srv），或不要用 root 运行。",
                f"Run by root, the database server becomes user {account.name}, who cannot enter {folder}. "
                "Move OPSTAGE_DATA_DIR and virtual environment where others may pass (say /srv), or do not be root.",
            )


def guarded(
    command: Sequence[str | Path],
    *,
    death_signal: signal.Signals,
    account: Account | None = None,
    output: IO[bytes] | int | None = None,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    pass_fds: Iterable[int] = (),
    mode: str = _MODE,
) -> subprocess.Popen[bytes]:
    """Start ``command`` (an absolute path first) in a session of its own; it gets ``death_signal`` when we die.

    ``output`` takes stdout and stderr. Start it from a thread that lives as long as the process should: on Linux
    the kernel counts the end of the starting *thread* as the parent's death.
    """
    uid, gid = (str(account.uid), str(account.gid)) if account else ("-", "-")
    return subprocess.Popen(
        [
            *(sys.executable, "-I", "-S", str(_GUARD), mode, death_signal.name, uid, gid, str(os.getpid())),
            *map(str, command),
        ],
        stdin=subprocess.PIPE if mode == "watch" else subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT if output is not None else None,
        env=dict(env) if env is not None else None,
        cwd=cwd,
        pass_fds=tuple(pass_fds),
        start_new_session=True,
    )


def run_as(
    account: Account | None, command: Sequence[str | Path], *, cwd: Path, timeout_s: float
) -> subprocess.CompletedProcess[str]:
    """Run ``command`` to its end as ``account`` (None: as we are), output captured; the caller looks at the code."""
    return subprocess.run(
        command,
        user=account.uid if account else None,
        group=account.gid if account else None,
        extra_groups=[] if account else None,
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=timeout_s,
    )


def free_port() -> int:
    """A loopback TCP port nobody listens on right now. Another program may take it first: be ready to ask again."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


def stop_group(process: subprocess.Popen[bytes], first: signal.Signals, grace_s: float) -> int:
    """End ``process`` and its session: ``first`` to it, SIGKILL to all after ``grace_s`` seconds. Return its code."""
    if process.poll() is None:
        process.send_signal(first)
        with contextlib.suppress(subprocess.TimeoutExpired):  # it had its chance; the group is killed below
            process.wait(grace_s)
    kill_group(process)
    return process.wait()


def kill_group(process: subprocess.Popen[bytes]) -> None:
    """SIGKILL whatever is left of the session ``process`` leads."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return  # nothing is left of it
