"""Run a command that must not outlive its parent. Started by path: ``python -I guard.py SIGNAL UID GID COMMAND...``.

On Linux the kernel sends SIGNAL to the command when the parent dies (PR_SET_PDEATHSIG) and this process becomes
the command. Elsewhere this process stays and watches its standard input, a pipe only the parent holds open: its
end means the parent is gone, however it died.

UID and GID are numbers to become first, or ``-`` for no change. Imports nothing of ours, so it starts fast and
works for an unprivileged user who may not read the project.
"""

import ctypes
import os
import select
import signal
import subprocess
import sys

_PR_SET_PDEATHSIG = 1


def main(arguments: list[str]) -> None:
    """``arguments``: SIGNAL UID GID PARENT COMMAND...; PARENT is the pid that started us."""
    death_signal, uid, gid, parent = signal.Signals[arguments[0]], arguments[1], arguments[2], int(arguments[3])
    command = arguments[4:]
    if uid != "-":
        os.setgroups([])
        os.setgid(int(gid))
        os.setuid(int(uid))  # before prctl: a change of user clears the death signal
    if sys.platform.startswith("linux"):
        if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, death_signal, 0, 0, 0):
            raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG) failed")
        if os.getppid() != parent:  # it died before the kernel knew
            raise SystemExit(1)
        os.execv(command[0], command)
    raise SystemExit(watch(command, death_signal))


def watch(command: list[str], death_signal: signal.Signals) -> int:
    """Run ``command``; send ``death_signal`` once standard input ends. Return its exit code, as a shell would."""
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL)
    signal.signal(signal.SIGTERM, lambda *_: child.terminate())
    signal.signal(signal.SIGINT, lambda *_: child.send_signal(signal.SIGINT))
    signal.signal(signal.SIGQUIT, lambda *_: child.send_signal(signal.SIGQUIT))
    while child.poll() is None:
        readable, _, _ = select.select([0], [], [], 0.2)
        if readable and not os.read(0, 1):
            child.send_signal(death_signal)
            break
    code = child.wait()
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    main(sys.argv[1:])
