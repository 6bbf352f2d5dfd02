"""What the rows of the queue say about whether anybody moves them on."""

from __future__ import annotations

from staging.contracts.status import StatusCode
from staging.services.doctor.finding import Level, Section, t
from staging.settings import Settings
from staging.storage.backlog import Backlog, CodeCount, Rows

_STUCK_S = 600.0


def judge_backlog(section: Section, rows: Rows, settings: Settings) -> None:
    """Add counts by code and the ages that matter (RELIABILITY A14: the oldest due row, not living processes)."""
    _counts(section, rows.counts)
    _ages(section, rows.backlog, settings)


def _counts(section: Section, counts: list[CodeCount] | None) -> None:
    what = t("各状态码的行数", "rows by code")
    if counts is None:
        section.note("counts", what, t("行太多，未在时限内数完", "too many to count in time"), Level.INFO)
        return
    shown = ", ".join(f"{one.code if one.code is not None else one.status}: {one.rows}" for one in counts)
    section.note("counts", what, shown or t("没有操作", "no operations"))


def _ages(section: Section, backlog: Backlog, settings: Settings) -> None:
    late_s = max(60.0, 4 * (settings.sweep_interval_s + settings.announce_after_s))
    due_s = backlog.oldest_due_s
    section.expect(
        due_s is None or due_s <= late_s,
        "oldest_due",
        t("最早的待执行操作已等待", "oldest due operation waits for"),
        t("没有待执行的操作", "nothing is due") if due_s is None else _seconds(due_s),
        t(
            "确认 opstage worker 和 opstage beat 在运行并连接同一数据库",
            "See that opstage worker and opstage beat run, on this very database",
        ),
        Level.PROBLEM if due_s is not None and due_s > _STUCK_S else Level.WARNING,
    )
    unknown_s = backlog.oldest_unknown_s
    section.expect(
        not backlog.unknown,
        "unknown",
        t(
            f"结果待核实的操作（{int(StatusCode.UNKNOWN)}）",
            f"operations with unknown outcome ({int(StatusCode.UNKNOWN)})",
        ),
        f"{backlog.unknown}" + (f", {unknown_s:.0f} s" if unknown_s is not None else ""),
        t(
            "会自动核对账本；若数量不降，请确认 opstage beat 在运行且 ERP 数据库可连接",
            "They are looked up in the ledger by themselves; where they stay, see that opstage beat runs and the ERP's"
            " database answers",
        ),
        Level.WARNING,
    )
    lapsed_s = backlog.oldest_lapsed_s
    section.expect(
        lapsed_s is None or lapsed_s <= 4 * settings.sweep_interval_s,
        "lapsed",
        t("租约已过期的执行中操作", "running operations whose lease is over"),
        f"{backlog.lapsed}",
        t("确认 opstage beat 在运行：由它触发清扫", "See that opstage beat runs: it triggers the sweeper"),
        Level.WARNING,
    )


def _seconds(seconds: float) -> str:
    return f"{seconds:.0f} s"
