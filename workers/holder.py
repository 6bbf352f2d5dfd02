"""Whose lease a fencing token is. A token names the process it was given to, so that another one of this host can tell
at once that its holder is dead, instead of waiting for the lease to lapse.

Only a shortcut: taking over is safe whenever it happens (the token is replaced, the attempt fenced), merely rude to a
holder that lives. Where the kernel does not say who lives (no ``/proc``), leases lapse.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import socket
from functools import lru_cache
from pathlib import Path

_DEAD = {"Z", "X", "x"}


@lru_cache(maxsize=1)
def place() -> str:
    """Boot, pid namespace and host name in short: processes of one place see each other's pids. "" where unknown."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        pids = str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        return ""
    return hashlib.sha256(f"{boot}|{pids}|{socket.gethostname()}".encode()).hexdigest()[:10]


def new_token() -> str:
    """A fresh fencing token (at most 64 characters of ``[A-Za-z0-9_.-]``) that names this process."""
    return f"{place()}.{os.getpid()}.{_started(os.getpid())}.{secrets.token_urlsafe(16)}"


def is_dead(token: str) -> bool:
    """True only if ``token`` was given to a process of this place that is no more."""
    where, _, rest = token.partition(".")
    pid, _, rest = rest.partition(".")
    started, _, _ = rest.partition(".")
    if not place() or where != place() or not pid.isdigit():
        return False
    return _started(int(pid)) != started


def _started(pid: int) -> str:
    """When the process began, in clock ticks since boot; "" for one that has ended (a zombie has)."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    fields = stat.rpartition(")")[2].split()  # the command name before it may hold anything
    return "" if fields[0] in _DEAD else fields[19]
