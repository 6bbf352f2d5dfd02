"""What embedded servers share: lock, start with a deadline, stop, kill, pause, restart on the same data and port."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import time
from abc import ABC, abstractmethod
from pathlib import Path
from typing import ClassVar, Self

from staging.embedded.errors import EmbeddedServerError, embedded_error
from staging.embedded.spawn import Account, free_port, guarded, kill_group, stop_group

_POLL_S = 0.02
_LOCK_WAIT_S = 5.0
_PORT_ATTEMPTS = 3


class EmbeddedServer(ABC):
    """One server process on loopback with a data directory of its own; a context manager.

    The directory is locked while the server lives (the lock is handed to it), so two servers never share data, not
    even when one of our processes was killed and its server takes a moment to follow. Start from the main thread.
    """

    name: ClassVar[str]
    ready_timeout_s: ClassVar[float] = 30.0
    stop_timeout_s: ClassVar[float] = 10.0
    stop_signal: ClassVar[signal.Signals] = signal.SIGTERM

    def __init__(self, data_dir: Path, *, port: int | None = None, account: Account | None = None) -> None:
        """``port`` None: a free one, kept for later restarts of this object. ``account``: who runs it."""
        self.data_dir = data_dir.resolve()
        self.account = account
        self.log_path = self.data_dir / f"{self.name}.log"
        self._wanted_port = port
        self._port: int | None = port
        self._process: subprocess.Popen[bytes] | None = None
        self._lock_fd: int | None = None

    @property
    def port(self) -> int:
        if self._port is None:
            raise RuntimeError(f"{self.name} has not been started")
        return self._port

    @property
    def pid(self) -> int:
        return self._running().pid

    @property
    @abstractmethod
    def url(self) -> str:
        """Address with password: never log it."""

    @abstractmethod
    def _prepare(self) -> None:
        """Write what the server needs before it starts; called before every start, with the port known."""

    @abstractmethod
    def _command(self) -> list[str | Path]: ...

    @abstractmethod
    def _answers(self) -> bool:
        """True once the server serves; False while it does not yet."""

    def start(self) -> Self:
        """Start and return once it answers. Raises EmbeddedServerError with the end of its log where it does not."""
        if self._process is not None and self._process.poll() is None:
            return self
        self._make_data_dir()
        self._lock()
        try:
            self._start_on_some_port()
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        """Stop in an orderly way, by force after ``stop_timeout_s``; nothing where it does not run."""
        if self._process is not None:
            self._let_go(stop_group(self._process, self.stop_signal, self.stop_timeout_s))
        self._unlock()

    def kill9(self) -> None:
        """End the server and its children at once, as a power cut would."""
        process = self._running()
        kill_group(process)
        self._let_go(process.wait())

    def restart(self) -> Self:
        """Start again on the same data and port, after ``stop`` or ``kill9`` or while it runs."""
        self.stop()
        return self.start()

    def pause(self) -> None:
        """Freeze the server: connections stay open, nothing answers (half-open for its clients)."""
        os.killpg(self._running().pid, signal.SIGSTOP)

    def resume(self) -> None:
        os.killpg(self._running().pid, signal.SIGCONT)

    def log_tail(self, lines: int = 15) -> str:
        if not self.log_path.exists():
            return ""
        return "\n".join(self.log_path.read_text(encoding="utf-8", errors="replace").splitlines()[-lines:])

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    # ------------------------------------------------------------------------------------------------ inside
    def _start_on_some_port(self) -> None:
        for attempt in range(1, _PORT_ATTEMPTS + 1):
            if self._port is None:
                self._port = free_port()
            self._prepare()
            with self.log_path.open("ab") as log:
                self._process = guarded(
                    self._command(),
                    death_signal=self.stop_signal,
                    account=self.account,
                    output=log,
                    cwd=self.data_dir,
                    pass_fds=[self._lock_fd] if self._lock_fd is not None else [],
                )
            if self._wait_until_ready():
                return
            self._let_go(self._process.wait())
            if self._wanted_port is not None or attempt == _PORT_ATTEMPTS:
                break
            self._port = None  # perhaps somebody was faster at taking the port
        raise self._failed("ended at once", "启动后立即退出")

    def _wait_until_ready(self) -> bool:
        """True once it answers, False where it ended instead; raises at the deadline."""
        deadline = time.monotonic() + self.ready_timeout_s
        while time.monotonic() < deadline:
            if self._running().poll() is not None:
                return False
            if self._answers():
                return True
            time.sleep(_POLL_S)
        raise self._failed(
            f"did not answer within {self.ready_timeout_s:g} s", f"在 {self.ready_timeout_s:g} 秒内没有就绪"
        )

    def _failed(self, en: str, zh: str) -> EmbeddedServerError:
        tail = self.log_tail()
        return embedded_error(
            f"内置的 {self.name} {zh}。日志 {self.log_path} 的末尾：\n{tail}",
            f"The embedded {self.name} {en}. The end of {self.log_path}:\n{tail}",
        )

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise RuntimeError(f"{self.name} is not running")
        return self._process

    def _let_go(self, _exit_code: int) -> None:
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()
        self._process = None

    def _make_data_dir(self) -> None:
        self.data_dir.mkdir(parents=True, exist_ok=True)
        self.data_dir.chmod(0o700)
        self._give(self.data_dir)

    def _give(self, path: Path) -> None:
        """Make ``path`` belong to the account that runs the server."""
        if self.account is not None:
            os.chown(path, self.account.uid, self.account.gid)

    def _write_private(self, path: Path, text: str) -> None:
        """Write a file only the server's account may read (it holds a password)."""
        path.touch(mode=0o600)
        path.chmod(0o600)
        path.write_text(text, encoding="utf-8")
        self._give(path)

    def _lock(self) -> None:
        if self._lock_fd is not None:
            return
        fd = os.open(self.data_dir / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        deadline = time.monotonic() + _LOCK_WAIT_S
        while True:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() < deadline:
                    time.sleep(_POLL_S)
                    continue
                os.close(fd)
                raise embedded_error(
                    f"{self.data_dir} 正被另一个 {self.name} 使用。请先停止它，或设置另一个 OPSTAGE_DATA_DIR。",
                    f"{self.data_dir} is used by another {self.name}. Stop that one, or set another OPSTAGE_DATA_DIR.",
                ) from None
            self._lock_fd = fd
            return

    def _unlock(self) -> None:
        if self._lock_fd is not None:
            os.close(self._lock_fd)
            self._lock_fd = None
