"""The command ``opstage``: what it offers, and how it ends (0 done, 1 refused, 2 wrong usage, 3 unreachable)."""

from __future__ import annotations

import os
import sys
from importlib.metadata import version
from typing import Annotated

import typer
from dotenv import dotenv_values

from staging.cli import audit, database, doctor, forms, mcp, ops, processes, token
from staging.cli.console import report, warn
from staging.embedded.runtime import running_env
from staging.settings import EMBEDDED_POSTGRES, get_settings, misspelt_variables

app = typer.Typer(
    name="opstage",
    help="Staged, confirmed, exactly-once ERP operations · 先暂存、经确认、只执行一次的 ERP 操作",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)
for command in (
    processes.demo,
    processes.up,
    processes.api,
    processes.worker,
    processes.beat,
    processes.flower,
    processes.env,
    doctor.doctor,
    mcp.mcp,
    ops.todos,
):
    app.command()(command)
for group in (database.app, forms.app, audit.app, token.app, ops.app):
    app.add_typer(group)

_OWN_SERVERS = ("demo", "up")


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"opstage {version('opstage')}")
        raise typer.Exit


@app.callback()
def before_each(
    context: typer.Context,
    _version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_show_version, help="show it · 显示版本")
    ] = False,
) -> None:
    """Use the servers of an ``opstage up`` that runs on the same data directory, where nothing else is set."""
    for name, meant in misspelt_variables([*os.environ, *dotenv_values(".env")]).items():
        warn(
            f"没有设置项 {name}，已忽略；是否指 {meant}？",
            f"{name} is no setting and ignored; is {meant} meant?",
        )
    if context.invoked_subcommand in _OWN_SERVERS:
        return
    settings = get_settings()
    for name, value in running_env(settings.data_dir).items():
        field = name.removeprefix("OPSTAGE_").lower()
        if field not in settings.model_fields_set or getattr(settings, field) == EMBEDDED_POSTGRES:
            os.environ[name] = value
    get_settings.cache_clear()


def main() -> None:
    """Entry point: run the command line and end the process with the fitting code."""
    try:
        app()
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - the outermost place: report() tells all of it
        sys.exit(report(error))


if __name__ == "__main__":
    main()
