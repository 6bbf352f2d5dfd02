"""``opstage db``: the schema of the queue and of what Opstage keeps in the ERP's database."""

from __future__ import annotations

import json
from collections.abc import Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from staging.cli.console import locale, pick, say
from staging.settings import get_settings

if TYPE_CHECKING:  # Alembic and the drivers are loaded by the commands that need them
    from migrations.run import Result, Tree

app = typer.Typer(name="db", help="database schema · 数据库结构", no_args_is_help=True)


class Trees(StrEnum):
    """Which history a command is about."""

    QUEUE = "queue"
    ERP = "erp"
    ALL = "all"


_Tree = Annotated[Trees, typer.Option("--tree", help="queue, erp (ledger) or all · 队列、账本或全部")]
_Json = Annotated[bool, typer.Option("--json", help="machine-readable · 以 JSON 输出")]


@app.command()
def upgrade(
    tree: _Tree = Trees.ALL,
    revision: Annotated[str, typer.Option(help="a revision of --tree · 目标版本")] = "head",
    as_json: _Json = False,
) -> None:
    """Create the tables, adopt an existing ai_op_queue, or bring them up to date · 建表、接管已有的表或升级."""
    from migrations import run

    if tree is Trees.ALL and revision != "head":
        raise typer.BadParameter(
            pick("请用 --tree 指明版本属于哪一个", "say with --tree whose revision it is")
        )
    _show([run.upgrade(url, which, revision) for which, url in _databases(tree)], as_json)


@app.command()
def downgrade(
    revision: Annotated[str, typer.Argument(help="a revision, -1, or base · 目标版本")],
    tree: Annotated[Trees, typer.Option("--tree", help="queue or erp · 队列或账本")],
    yes: Annotated[bool, typer.Option("--yes", help="do not ask · 不再询问")] = False,
    as_json: _Json = False,
) -> None:
    """Go back to an older revision; tables Opstage created go with their rows · 回退版本，自建的表连同数据删除."""
    from migrations import run

    if tree is Trees.ALL:
        raise typer.BadParameter(pick("一次只能回退一个", "one tree at a time"))
    if not yes:
        typer.confirm(
            pick(
                "Opstage 自建的表与列将连同数据删除，继续？",
                "Tables and columns of Opstage go with their data?",
            ),
            abort=True,
            err=True,
        )
    _show([run.downgrade(url, which, revision) for which, url in _databases(tree)], as_json)


@app.command()
def current(tree: _Tree = Trees.ALL, as_json: _Json = False) -> None:
    """Show where each database is and whether that is this release's newest · 显示当前版本."""
    from migrations import run

    rows: list[dict[str, Any]] = []
    for which, url in _databases(tree):
        at, head = run.current(url, which), which.head
        rows.append({"tree": which.value, "current": at, "head": head, "upToDate": at == head})
    if as_json:
        print(json.dumps(rows, ensure_ascii=False))
        return
    for row in rows:
        state = pick("已是最新", "up to date") if row["upToDate"] else pick("需要升级", "needs an upgrade")
        print(f"{row['tree']}: {row['current'] or pick('（无）', '(none)')} / {row['head']}  {state}")


def _databases(trees: Trees) -> list[tuple[Tree, str]]:
    from migrations.run import Tree

    settings = get_settings()
    urls = {Tree.QUEUE: settings.database_url, Tree.ERP: settings.erp_url}
    return [(tree, url) for tree, url in urls.items() if trees in (Trees.ALL, tree.value)]


def _show(results: Sequence[Result], as_json: bool) -> None:
    if as_json:
        rows = [
            {
                "tree": result.tree.value,
                "before": result.before,
                "after": result.after,
                "notes": [note.text(locale()) for note in result.notes],
            }
            for result in results
        ]
        print(json.dumps(rows, ensure_ascii=False))
        return
    for result in results:
        if result.before == result.after:
            say(f"{result.tree}：已是 {result.after}", f"{result.tree}: already at {result.after}")
        else:
            print(f"{result.tree}: {result.before or '-'} → {result.after or '-'}", flush=True)
        for note in result.notes:
            print("  ! " + note.text(locale()))
