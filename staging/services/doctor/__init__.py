"""``opstage doctor``: look at everything Opstage stands on and say what is there, what is wrong and what to do.

Each probe runs in a thread of its own, all with one deadline, so that neither a server that hangs nor a name that does
not resolve keeps the others from being told. Nothing is
changed, but that SQLite's file becomes WAL as with every process of ours.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Mapping

from staging.services.doctor.failures import explain, no_answer
from staging.services.doctor.finding import Finding, Level, Section
from staging.services.doctor.probes import (
    CheckForms,
    Probe,
    Seen,
    all_probes,
    judge_identity,
    secrets_of,
)
from staging.settings import Settings

__all__ = ["LIMIT_S", "CheckForms", "Finding", "Level", "diagnose"]

LIMIT_S = 8.0


def diagnose(
    settings: Settings,
    check_forms: CheckForms | None = None,
    *,
    environment: Mapping[str, str] = os.environ,
    limit_s: float = LIMIT_S,
) -> list[Finding]:
    """All findings, service by service; returns within ``limit_s`` seconds whatever the servers do.

    ``check_forms`` loads the ERP adapter and checks its catalogue; it is called once the ERP's database answered.
    """
    seen: Seen = {}
    secrets = secrets_of(settings)
    deadline = time.monotonic() + limit_s
    running = [_Running(probe, secrets) for probe in all_probes(settings, environment, check_forms, seen)]
    findings = [finding for one in running for finding in one.wait(deadline, limit_s)]
    judge_identity(Section("settings", findings), seen)
    return sorted(findings, key=lambda finding: _ORDER.index(finding.service))


_ORDER = (
    *("software", "settings", "queue", "operations", "erp", "forms"),
    *("redis", "broker", "workers", "flower", "extras"),
)


class _Running:
    """A probe and what follows it, in a thread."""

    def __init__(self, probe: Probe, secrets: set[str]) -> None:
        self._probe, self._secrets = probe, secrets
        self._service = probe.service
        self._findings: list[Finding] = []
        # Daemon: one that hangs in a driver must not keep the command from ending.
        self._thread = threading.Thread(target=self._run, args=(probe,), name=probe.service, daemon=True)
        self._thread.start()

    def _run(self, probe: Probe) -> None:
        self._service = probe.service
        section = Section(probe.service, self._findings)
        try:
            goes_on = probe.run(section)
        except Exception as error:  # noqa: BLE001 - whatever it is, it becomes a finding
            explain(section, error, self._secrets)
            return
        if goes_on:
            for following in probe.then:
                self._run(following)

    def wait(self, deadline: float, limit_s: float) -> list[Finding]:
        """What was found by ``deadline`` (monotonic seconds)."""
        self._thread.join(max(0.0, deadline - time.monotonic()))
        found = list(self._findings)
        if self._thread.is_alive():
            no_answer(Section(self._service, found), limit_s)
        return found
