"""Run a command that must not outlive its parent.

Started by path: ``python -I guard.py MODE SIGNAL UID GID PARENT COMMAND...``

MODE ``kernel`` (Linux): the kernel sends SIGNAL to the command when the parent dies (PR_SET_PDEATHSIG), and this
process becomes the command. MODE ``watch`` (elsewhere): this process stays and watches its standard input, a pipe
only the parent holds open; its end means the parent is gone, however it died.

UID and GID are numbers to become first, or ``-`` for no change; PARENT is the pid that started us. Imports nothing
of ours, so it starts fast and works for a user who may not read the project.
"""

import ctypes
import os
import select
import signal
import subprocess
import sys

_PR_SET_PDEATHSIG = 1


def main(arguments: list[str]) -> None:
    mode, signal_name, uid, gid, parent, *command = arguments
    death_signal = signal.Signals[signal_name]
    if uid != "-":
        os.setgroups([])
        os.setgid(int(gid))
        os.setuid(int(uid))  # before prctl: a change of user clears the death signal
    if mode == "watch":
        raise SystemExit(watch(command, death_signal))
    if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, death_signal, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG) failed")
    if os.getppid() != int(parent):  # it died before the kernel knew
        raise SystemExit(1)
    os.execv(command[0], command)


def watch(command: list[str], death_signal: signal.Signals) -> int:
    """Run ``command``; send ``death_signal`` once standard input ends. Return its exit code, as a shell would."""
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, close_fds=False)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT):
        signal.signal(number, lambda received, _frame: child.send_signal(received))
    while child.poll() is None:
        readable, _, _ = select.select([0], [], [], 0.2)
        if readable and not os.read(0, 1):
            child.send_signal(death_signal)
            break
    code = child.wait()
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    main(sys.argv[1:])
