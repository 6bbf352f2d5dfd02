"""``opstage ops`` and ``opstage todos``: through HTTP like anybody else (OPSTAGE_API_URL, OPSTAGE_TOKEN), but for
``ops archive``."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.live import Live
from rich.markup import escape
from rich.table import Table

from staging.cli.archive import archive
from staging.cli.console import locale, pick
from staging.client.api_client import ApiClient, ApiRefused
from staging.contracts.error import ErrorCode
from staging.domain.errors import Refused
from staging.settings import get_settings

app = typer.Typer(name="ops", help="operations · 操作", no_args_is_help=True)
app.command()(archive)
Json = Annotated[bool, typer.Option("--json", help="for programs · 供程序读取")]
OpId = Annotated[str, typer.Argument(help="operation id · 操作编号")]
_STYLE = {"success": "green", "fail": "red"}
_WATCHED = 30


class NoToken(Refused):
    """Nobody to act for; the hint says how one becomes somebody."""

    def __init__(self, text: dict[str, str]) -> None:
        super().__init__(ErrorCode.UNAUTHENTICATED, text=text)

    def hint(self, locale: str) -> str:
        issue = "opstage token issue --user u-lin --brands B001 --subsidiary S01 --kind person"
        if locale == "zh":
            return f"设置一个有效凭证；演示环境：export OPSTAGE_TOKEN=$({issue})"
        return f"Set one that is valid; for the demo: export OPSTAGE_TOKEN=$({issue})"


@contextmanager
def _api() -> Iterator[ApiClient]:
    settings = get_settings()
    token = settings.token.get_secret_value()
    if not token:
        raise NoToken({"zh": "未设置 OPSTAGE_TOKEN", "en": "OPSTAGE_TOKEN is not set"})
    try:
        with ApiClient(settings.client_url, token, locale()) as client:
            yield client
    except ApiRefused as refusal:
        if refusal.code is not ErrorCode.UNAUTHENTICATED:
            raise
        raise NoToken(
            {"zh": "OPSTAGE_TOKEN 无效或已过期", "en": "OPSTAGE_TOKEN is not valid (any more)"}
        ) from refusal


def _show(value: Any, as_json: bool, render: Any) -> None:
    if as_json:
        print(json.dumps(value, ensure_ascii=False))
    else:
        Console().print(render(value))


def _title(operation: dict[str, Any]) -> str:
    preview = operation.get("preview") or {}
    return preview.get("title") or f"{operation['formId']} {operation['opType']}"


def _table(operations: list[dict[str, Any]]) -> Table:
    table = Table()
    heads = (
        ("操作", "代码", "内容", "提交人", "次数", "说明"),
        ("id", "code", "what", "by", "attempts", "message"),
    )
    for position, head in enumerate(heads[0] if locale() == "zh" else heads[1]):
        table.add_column(head, no_wrap=position < 2)  # an id is there to be copied
    for o in operations:
        style = _STYLE.get(o["status"], "yellow")
        code = f"[{style}]{o['code'] or o['status']}[/{style}]"
        attempts = f"{o['attempt']}/{o['maxAttempts']}"
        table.add_row(o["id"], code, escape(_title(o)), escape(o["maker"]), attempts, escape(o["message"]))
    return table


def _query(client: ApiClient, filters: dict[str, Any], size: int) -> dict[str, Any]:
    found: dict[str, Any] = client.post(
        "operations", "query", body={"filter": filters, "page": {"size": size}}
    )
    return found


@app.command("list")
def list_(
    status: Annotated[str, typer.Option(help="pending, success or fail · 状态")] = "",
    code: Annotated[int | None, typer.Option(help="numeric code · 数字代码")] = None,
    form: Annotated[str, typer.Option(help="form id · 表单")] = "",
    user: Annotated[str, typer.Option(help="maker, for operators · 提交人（运维可用）")] = "",
    size: Annotated[int, typer.Option(min=1, max=200)] = 20,
    as_json: Json = False,
) -> None:
    """Operations, newest first · 列出操作"""
    given = {"status": status, "code": code, "formId": form, "user": user}
    filters = {name: [value] for name, value in given.items() if value}
    with _api() as client:
        _show(_query(client, filters, size), as_json, lambda result: _table(result["items"]))


@app.command()
def show(op_id: OpId, as_json: Json = False) -> None:
    """One operation with its events · 查看操作与过程"""
    with _api() as client:
        operation = client.get("operations", op_id)
        events = client.get("operations", op_id, "journal")
    if as_json:
        print(json.dumps({**operation, "events": events}, ensure_ascii=False))
        return
    console = Console()
    console.print(_table([operation]))
    for e in events:
        who = f"  {e['actor']}" if e["actor"] else ""
        console.print(
            escape(f"{e['seq']:>3}  {e['at']}  {e['verb']} → {e['code']} {e['meaning']}{who}  {e['message']}")
        )


@app.command()
def watch(as_json: Json = False) -> None:
    """The queue, live, until Ctrl-C · 实时查看队列"""
    with _api() as client:
        if as_json:
            for event in client.events("events"):
                print(json.dumps(event, ensure_ascii=False), flush=True)
            return
        with Live(_table(_query(client, {}, _WATCHED)["items"]), refresh_per_second=4) as live:
            for _ in client.events("events"):
                live.update(_table(_query(client, {}, _WATCHED)["items"]))


@app.command()
def cancel(
    op_id: OpId,
    reason: Annotated[str, typer.Option(help="shown to the maker · 原因")] = "",
    as_json: Json = False,
) -> None:
    """Stop what no worker has yet · 取消"""
    with _api() as client:
        done = client.post("operations", op_id, "cancel", body={"reason": reason})
    _show(done, as_json, lambda operation: _table([operation]))


@app.command()
def retry(op_id: OpId, as_json: Json = False) -> None:
    """423, 500 or 504 once more · 重试"""
    with _api() as client:
        done = client.post("operations", op_id, "retry")
    _show(done, as_json, lambda operation: _table([operation]))


def todos(as_json: Json = False) -> None:
    """My AI todos: what waits for me, what runs, what ended · 我的AI待办"""
    with _api() as client:
        found = client.get("todos")
    if as_json:
        print(json.dumps(found, ensure_ascii=False))
        return
    console = Console()
    for name, zh, en in (
        ("waiting", "等我处理", "Waits for me"),
        ("running", "进行中", "Under way"),
        ("recent", "最近结束", "Ended lately"),
    ):
        console.print(f"[bold]{pick(zh, en)}[/bold]", _table(found[name]))
