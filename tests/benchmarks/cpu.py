"""CPU time of process trees, sampled while a run goes on, so that start-up can be left out of it."""

from __future__ import annotations

import os
import threading
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

_TICK_S = 1 / os.sysconf("SC_CLK_TCK")
_STEP_S = 0.2


@dataclass(frozen=True, slots=True)
class Sample:
    """CPU seconds used so far, by group; ``machine``: busy seconds of all cores."""

    at: float
    cpu: Mapping[str, float]
    machine: float


class CpuSampler:
    """``groups``: name → pids whose trees are counted together. Use as a context manager around the run."""

    def __init__(self, groups: Mapping[str, Sequence[int]]) -> None:
        self._groups = {name: list(pids) for name, pids in groups.items()}
        self.samples: list[Sample] = []
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="cpu-sampler", daemon=True)

    def __enter__(self) -> CpuSampler:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def between(self, start: float, end: float) -> dict[str, float]:
        """CPU seconds of each group, and of the whole machine, between two moments (time.time())."""
        names = [*self._groups, "machine"]
        return {name: self._at(name, end) - self._at(name, start) for name in names}

    def _at(self, name: str, moment: float) -> float:
        """Interpolated between the two nearest samples."""
        before = [s for s in self.samples if s.at <= moment] or self.samples[:1]
        after = [s for s in self.samples if s.at > moment] or self.samples[-1:]
        one, two = before[-1], after[0]
        share = (moment - one.at) / (two.at - one.at) if two.at > one.at else 0.0
        share = min(1.0, max(0.0, share))
        return _value(one, name) + share * (_value(two, name) - _value(one, name))

    def _run(self) -> None:
        while not self._over.is_set():
            self.samples.append(self._sample())
            self._over.wait(_STEP_S)
        self.samples.append(self._sample())

    def _sample(self) -> Sample:
        at, used, children = time.time(), {}, defaultdict(list)
        for folder in Path("/proc").iterdir():
            if folder.name.isdigit() and (found := _stat(folder)):
                parent, used[int(folder.name)] = found
                children[parent].append(int(folder.name))
        cpu = {name: sum(_tree(pid, used, children) for pid in pids) for name, pids in self._groups.items()}
        return Sample(at, cpu, _machine())


def _value(sample: Sample, name: str) -> float:
    return sample.machine if name == "machine" else sample.cpu.get(name, 0.0)


def _tree(pid: int, used: Mapping[int, float], children: Mapping[int, Sequence[int]]) -> float:
    return used.get(pid, 0.0) + sum(_tree(child, used, children) for child in children.get(pid, ()))


def _stat(folder: Path) -> tuple[int, float] | None:
    """Parent and CPU seconds of a process, those of its children that have ended included; None where it is gone."""
    try:
        fields = (folder / "stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return int(fields[1]), sum(map(int, fields[11:15])) * _TICK_S  # utime stime cutime cstime


def _machine() -> float:
    with Path("/proc/stat").open() as stat:
        user, nice, system, _idle, _iowait, irq, softirq, *_ = map(int, stat.readline().split()[1:])
    return (user + nice + system + irq + softirq) * _TICK_S
