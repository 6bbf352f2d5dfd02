"""``opstage token issue``: a token for ``OPSTAGE_AUTH=static`` (the demo, CI). Shown once, stored only as a hash."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from staging.api.auth.static import ISSUABLE, issue_token
from staging.cli.console import pick
from staging.domain.identity import ActorKind
from staging.settings import get_settings

app = typer.Typer(name="token", help="credentials · 凭证", no_args_is_help=True)


@app.callback()
def _group() -> None:
    """Credentials · 凭证"""


@app.command()
def issue(
    user: Annotated[str, typer.Option(help="user id of the ERP · ERP 用户编号")],
    brands: Annotated[str, typer.Option(help="company · 公司")],
    subsidiary: Annotated[str, typer.Option(help="subsidiary · 分公司")],
    kind: Annotated[ActorKind, typer.Option(help="agent, person, service or operator · 凭证种类")],
    ttl: Annotated[int, typer.Option(min=60, max=31_536_000, help="seconds it is valid · 有效秒数")] = 86_400,
    as_json: Annotated[bool, typer.Option("--json")] = False,
) -> None:
    """Issue a token; it is printed once and cannot be shown again · 签发凭证"""
    if kind not in ISSUABLE:
        raise typer.BadParameter(pick("不能签发这种凭证", "this kind cannot be issued"), param_hint="--kind")
    settings = get_settings()
    if settings.auth != "static":
        problem = pick(f"当前认证方式为 {settings.auth}", f"credentials are verified by {settings.auth}")
        raise typer.BadParameter(problem, param_hint="OPSTAGE_AUTH")
    token = issue_token(
        settings.tokens_path,
        user=user,
        brands=brands,
        subsidiary=subsidiary,
        kind=kind,
        ttl_s=ttl,
        locale=settings.locale,
    )
    print(json.dumps({"token": token, "expiresIn": ttl}) if as_json else token)
