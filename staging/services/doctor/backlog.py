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
    _sweeper(section, rows.unswept_s, settings)
    section.expect(
        not rows.uncoded,
        "uncoded",
        t("状态为 pending 但没有数字代码的行", "rows 'pending' without a numeric code"),
        str(rows.uncoded),
        t(
            "这些行永远不会执行：写入方须同时写 iStatusCode = 100；请补上，或改为其他状态",
            "Nothing ever runs them: whoever writes them has to write iStatusCode = 100 too. Set it, or another status",
        ),
        Level.WARNING,
    )


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


def _sweeper(section: Section, unswept_s: float | None, settings: Settings) -> None:
    """Workers go on with due rows by themselves; what only the sweeper moves tells whether beat runs."""
    late_s = max(30.0, 10 * settings.sweep_interval_s)
    section.expect(
        unswept_s is None or unswept_s <= late_s,
        "sweeper",
        t("清扫器最早未处理的行已等待", "oldest row the sweeper has left waits for"),
        t("没有", "none") if unswept_s is None else _seconds(unswept_s),
        t(
            "清扫器似乎没有运行：请启动 opstage beat（以及 opstage worker），并确认连接同一数据库与消息代理",
            "The sweeper seems not to run: start opstage beat (and opstage worker) on this database and this broker",
        ),
        Level.PROBLEM if unswept_s is not None and unswept_s > _STUCK_S else Level.WARNING,
    )


def _seconds(seconds: float) -> str:
    return f"{seconds:.0f} s"
