"""``opstage doctor``: what is reachable, which versions, what is misconfigured and what to do."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from staging.cli.adapter import open_adapter
from staging.cli.console import Exit, locale, pick
from staging.cli.tables import console
from staging.settings import Settings, get_settings

if TYPE_CHECKING:  # drivers, Alembic and Celery are loaded by the command that needs them
    from staging.domain.ports import CatalogueProblem
    from staging.services.doctor import Finding

_PLAIN_WIDTH = 110  # where there is no terminal to ask
_WHAT_WIDTH = 34  # longer ones fold

_SERVICES = {
    "software": ("软件", "Software"),
    "settings": ("配置", "Settings"),
    "queue": ("队列数据库", "Queue database"),
    "operations": ("操作", "Operations"),
    "erp": ("ERP 数据库", "ERP database"),
    "forms": ("表单", "Forms"),
    "redis": ("Redis", "Redis"),
    "broker": ("消息代理", "Broker"),
    "workers": ("Worker", "Workers"),
    "flower": ("Flower", "Flower"),
    "extras": ("可选部件", "Optional parts"),
}
_LEVELS = {
    "ok": ("正常", "ok", "green"),
    "info": ("信息", "info", "cyan"),
    "warning": ("警告", "WARNING", "yellow"),
    "problem": ("问题", "PROBLEM", "bold red"),
}


def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="machine-readable · 以 JSON 输出")] = False,
) -> None:
    """What is reachable, what is misconfigured and what to do; changes nothing · 检查环境与配置"""
    from staging.services.doctor import diagnose

    settings = get_settings()
    findings = diagnose(settings, lambda: _check_forms(settings))
    if as_json:
        print(json.dumps([finding.to_wire(locale()) for finding in findings], ensure_ascii=False))
    else:
        _show(findings)
    raise typer.Exit(_exit_code(findings))


def _check_forms(settings: Settings) -> Sequence[CatalogueProblem]:
    with open_adapter(settings) as adapter:
        return adapter.check()


def _exit_code(findings: Sequence[Finding]) -> Exit:
    if any(finding.unreachable for finding in findings):
        return Exit.UNREACHABLE
    return Exit.REFUSED if any(finding.level.value == "problem" for finding in findings) else Exit.OK


def _show(findings: Sequence[Finding]) -> None:
    """A table per service; level words say without colour what colour says with it."""
    from rich.cells import cell_len
    from rich.markup import escape
    from rich.table import Table

    screen = console(_PLAIN_WIDTH)
    speak = locale()
    what_width = max((cell_len(finding.what.text(speak)) for finding in findings), default=0)
    for service in dict.fromkeys(finding.service for finding in findings):
        table = Table.grid(padding=(0, 2))
        table.add_column(width=max(cell_len(pick(zh, en)) for zh, en, _ in _LEVELS.values()), no_wrap=True)
        table.add_column(width=min(what_width, _WHAT_WIDTH))
        table.add_column(overflow="fold")
        for finding in findings:
            if finding.service != service:
                continue
            zh, en, style = _LEVELS[finding.level.value]
            told = escape(finding.found_text(speak))
            if finding.todo:
                told += f"\n[{style}]→ {escape(finding.todo.text(speak))}[/]"
            table.add_row(f"[{style}]{pick(zh, en)}[/]", escape(finding.what.text(speak)), told)
        screen.print(f"[bold]{pick(*_SERVICES[service])}[/]")
        screen.print(table)
        screen.print()
    count = Counter(finding.level.value for finding in findings)
    screen.print(
        pick(
            f"{count['problem']} 个问题，{count['warning']} 个警告",
            f"{count['problem']} problem(s), {count['warning']} warning(s)",
        )
    )
