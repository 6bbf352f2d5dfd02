"""``opstage audit``: is the audit log whole (invariant I12)? And its heads, for keeping where nobody here can write."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from staging.cli.console import Exit, pick, say
from staging.domain.identity import Tenant
from staging.settings import get_settings

app = typer.Typer(name="audit", help="the audit log · 审计日志", no_args_is_help=True)

_Json = Annotated[bool, typer.Option("--json", help="machine-readable · 以 JSON 输出")]
_REASONS = {
    "changed": ("内容被改动", "was changed"),
    "missing": ("缺失", "is missing"),
    "reordered": ("与前一条不衔接", "does not follow the one before it"),
    "head": (
        "日志末尾与链头不符",
        "is where the log and its head part: entries were cut off, or the head changed",
    ),
    "rewritten": (
        "与保存的链头不符：此前的日志被改写或删除",
        "is not what was kept: the log up to here was rewritten or cut",
    ),
}


@app.command()
def verify(
    tenant: Annotated[
        str, typer.Option(metavar="BRANDS/SUBSIDIARY", help="this tenant only · 仅该租户")
    ] = "",
    against: Annotated[
        Path | None,
        typer.Option(
            exists=True, dir_okay=False, help="heads kept earlier by 'audit head --json' · 此前保存的链头文件"
        ),
    ] = None,
    as_json: _Json = False,
) -> None:
    """Check every entry against the one before it; exit 0 if the log is whole, 1 if not · 校验审计日志."""
    from staging.storage import audit

    only = _tenant(tenant)
    kept = _kept(against)
    with _log() as connection:
        breaks = audit.verify(connection, only)
        heads = audit.heads(connection)
        if only is not None:
            chain = audit.chain_of(only)
            heads, kept = ({k: v for k, v in some.items() if k == chain} for some in (heads, kept))
        breaks += audit.compare(connection, kept)
    entries = sum(seq for seq, _ in heads.values())
    if as_json:
        result = {
            "whole": not breaks,
            "chains": len(heads),
            "entries": entries,
            "compared": len(kept),
            "breaks": [asdict(one) for one in breaks],
        }
        print(json.dumps(result, ensure_ascii=False))
    else:
        for one in breaks:
            zh, en = _REASONS[one.reason]
            say(f"{one.chain} 第 {one.seq} 条：{zh}", f"{one.chain} entry {one.seq} {en}")
        if breaks:
            say(f"审计日志不完整：{len(breaks)} 处", f"The audit log is not whole: {len(breaks)} break(s)")
        else:
            say(
                f"审计日志完整：{len(heads)} 条链，{entries} 条记录",
                f"The audit log is whole: {len(heads)} chain(s), {entries} entries",
            )
    raise typer.Exit(Exit.REFUSED if breaks else Exit.OK)


@app.command()
def head(as_json: _Json = False) -> None:
    """Print the newest entry's number and hash of each chain, to be kept elsewhere · 输出链头，供异地保存."""
    from staging.storage import audit

    with _log() as connection:
        heads = sorted(audit.heads(connection).items())
    if as_json:
        rows = [{"chain": chain, "seq": seq, "hash": digest} for chain, (seq, digest) in heads]
        print(json.dumps(rows, ensure_ascii=False))
        return
    for chain, (seq, digest) in heads:
        print(f"{chain} {seq} {digest}")


@contextmanager
def _log() -> Iterator[Any]:
    """A read-only connection on the queue's database, as one snapshot."""
    from staging.bootstrap import open_engine
    from staging.storage.unit_of_work import QueueStore

    settings = get_settings()
    store = QueueStore(open_engine(settings, settings.database_url, "opstage-audit"))
    try:
        with store.read() as connection:
            yield connection
    finally:
        store.close()


def _tenant(text: str) -> Tenant | None:
    if not text:
        return None
    brands, _, subsidiary = text.partition("/")
    if not brands or not subsidiary or "/" in subsidiary:
        raise typer.BadParameter(
            pick("格式为 公司/子公司", "write it as BRANDS/SUBSIDIARY"), param_hint="--tenant"
        )
    return Tenant(brands, subsidiary)


def _kept(path: Path | None) -> dict[str, tuple[int, str]]:
    """Heads as ``head --json`` printed them; usage error for anything else."""
    if path is None:
        return {}
    try:
        rows = json.loads(path.read_text(encoding="utf-8"))
        return {str(row["chain"]): (int(row["seq"]), str(row["hash"])) for row in rows}
    except (ValueError, TypeError, KeyError) as error:
        raise typer.BadParameter(
            pick("不是 audit head --json 的输出", "not what audit head --json prints"), param_hint="--against"
        ) from error
