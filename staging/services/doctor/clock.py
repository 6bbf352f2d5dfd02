"""How far a server's clock may be off this host's."""

from __future__ import annotations

from staging.services.doctor.finding import Level, Section, t

_LIMIT_S = 1.0


def judge_clock(section: Section, offset_s: float | None) -> None:
    """Warn above a second. Leases and due times go by the database's clock; ETAs and tokens by this host's."""
    if offset_s is None:
        return
    section.expect(
        abs(offset_s) <= _LIMIT_S,
        "clock_offset",
        t("与本机的时钟偏差", "clock against this host's"),
        t(f"{offset_s:+.3f} 秒", f"{offset_s:+.3f} s"),
        t("在两台机器上启用 NTP（chrony）", "Run NTP (chrony) on both machines"),
        Level.WARNING,
    )
