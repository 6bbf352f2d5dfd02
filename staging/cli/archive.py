"""``opstage ops archive``: for whoever runs the database. Unlike the other ``ops`` it goes to the database itself."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated

import typer

from staging.cli.console import Exit, say
from staging.settings import get_settings


def archive(
    older_than: Annotated[
        int, typer.Option("--older-than", min=1, metavar="DAYS", help="ended longer ago · 天数")
    ],
    batch: Annotated[int, typer.Option(min=1, max=5000, help="rows in one transaction · 每批行数")] = 500,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="only count · 只统计")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="for programs · 供程序读取")] = False,
) -> None:
    """Move what ended long ago to the archive, while workers run · 归档早已结束的操作"""
    from staging.bootstrap import open_engine
    from staging.services.archive import Archived, ArchiveService
    from staging.storage.unit_of_work import QueueStore

    settings = get_settings()
    store = QueueStore(open_engine(settings, settings.database_url, "opstage-archive"))

    def tell(done: Archived) -> None:
        if not as_json and done.batches % 20 == 0:
            say(f"… 已归档 {done.rows} 个操作", f"… {done.rows} operations archived")

    try:
        done = ArchiveService(store).run(older_than, batch, dry_run=dry_run, progress=tell)
    finally:
        store.close()
    if as_json:
        print(json.dumps({**asdict(done), "dryRun": dry_run}, ensure_ascii=False))
    elif dry_run:
        say(f"将归档 {done.rows} 个操作", f"{done.rows} operations would be archived")
    else:
        say(
            f"已归档 {done.rows} 个操作、{done.events} 条事件",
            f"{done.rows} operations with {done.events} events archived",
        )
    if done.left:
        say(
            f"{len(done.left)} 个操作无法归档，仍在队列中：{'、'.join(done.left)}",
            f"{len(done.left)} operations could not be archived and stay in the queue: {', '.join(done.left)}",
        )
        raise typer.Exit(Exit.REFUSED)
