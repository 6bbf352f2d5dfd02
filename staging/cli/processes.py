"""``opstage api | worker | beat | flower | demo | up``: the long-running processes and the two ways to run them all."""

from __future__ import annotations

import os
import secrets
import shlex
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Annotated, NoReturn

import typer

from staging.cli.adapter import open_adapter
from staging.cli.command_lines import api_command, beat_command, flower_command, worker_command
from staging.cli.console import Exit, say
from staging.cli.supervisor import Part, Supervisor
from staging.embedded.errors import embedded_error
from staging.embedded.runtime import announced, running_env, runtime_env
from staging.embedded.spawn import free_port, guarded, stop_group
from staging.settings import Settings, get_settings

_FLOWER_USER = "opstage"
_DEMO_STORY = (sys.executable, "-m", "workers.story")
_DEMO_SEED = (sys.executable, "-m", "workers.erp.demo.setup")
_DEMO_ADAPTER = "workers.erp.demo:"
_DB_UPGRADE = (sys.executable, "-m", "staging.cli.main", "db", "upgrade")


def api() -> None:
    """Serve the HTTP API and the page "my AI todos" · 启动 HTTP 接口与待办页面"""
    settings = get_settings()
    _require_adapter(settings)
    _require_free("api_port", settings)
    say(f"接口与待办页面  {settings.served_url}", f"API and page  {settings.served_url}")
    _become(api_command())


def worker(
    concurrency: Annotated[int | None, typer.Option(min=1, help="processes · 进程数")] = None,
    name: Annotated[str, typer.Option(help="unique on this host · 本机内唯一的名称")] = "opstage",
) -> None:
    """Execute operations (Celery worker) · 启动执行进程"""
    settings = get_settings()
    _require_adapter(settings)
    _become(worker_command(settings, concurrency=concurrency, name=name))


def beat() -> None:
    """Trigger the sweeper at its interval (Celery beat; any number may run) · 启动定时清扫"""
    data_dir = get_settings().data_dir
    data_dir.mkdir(parents=True, exist_ok=True)
    _become(beat_command(data_dir / "beat-schedule"))


def flower() -> None:
    """Watch workers and executions in the browser, always with a login, loopback only · 启动 Flower 监控"""
    settings = get_settings()
    login = flower_login(settings)
    _require_free("flower_port", settings)
    _tell_flower(settings.flower_port, login, secret="flower_basic_auth" in settings.model_fields_set)
    _become(flower_command(settings), flower_env(login))


def demo() -> None:
    """The main job, end to end, narrated; exit 0 only if each step was verified · 演示主流程"""
    settings = get_settings()
    mark = secrets.token_hex(4)  # on a Redis that others use too, their workers must not take our messages
    folder = settings.data_dir.resolve() / "demo" / mark  # always from an empty database and an empty queue
    queues = {
        "OPSTAGE_QUEUE_NAME": f"opstage.demo.{mark}.execute",
        "OPSTAGE_SWEEP_QUEUE_NAME": f"opstage.demo.{mark}.sweep",
    }
    with _stoppable(), runtime_env(settings.model_copy(update={"data_dir": folder})) as env:
        code = _run(_DEMO_STORY, {**os.environ, **env, **queues})
    if code:
        say(f"演示数据保留在 {folder}", f"What the demo left is in {folder}")
        raise typer.Exit(code)
    shutil.rmtree(folder)


def up() -> None:
    """Everything on embedded defaults until Ctrl-C: API, worker, beat, Flower, demo ERP · 启动全套服务"""
    settings = get_settings()
    ports = {name: _port(name, settings) for name in ("api_port", "flower_port")}
    settings = settings.model_copy(update=ports)
    with (
        _stoppable(),
        runtime_env(settings) as env,
        announced({**env, "OPSTAGE_API_URL": settings.served_url, **_own_erp(settings)}),
    ):
        databases = {
            "database_url": env["OPSTAGE_DATABASE_URL"],
            "erp_database_url": env.get("OPSTAGE_ERP_DATABASE_URL", ""),
        }
        _require_adapter(settings.model_copy(update=databases))
        everything = {**os.environ, "PYTHONUNBUFFERED": "1", **env}
        everything |= {f"OPSTAGE_{name.upper()}": str(port) for name, port in ports.items()}
        demo_erp = wants_demo(settings)
        steps = [_DB_UPGRADE, *([_DEMO_SEED] if demo_erp else [])]
        for step in steps:
            code = _run(step, everything)
            if code:
                raise typer.Exit(code)
        login = flower_login(settings)
        data_dir = Path(env["OPSTAGE_DATA_DIR"])
        parts = [
            Part("api", api_command()),
            Part("worker", worker_command(settings)),
            Part("beat", beat_command(data_dir / "beat-schedule")),
            Part("flower", flower_command(settings), flower_env(login)),
        ]
        _tell_servers(settings, env)
        _tell_api(settings, demo_erp=demo_erp)
        _tell_flower(settings.flower_port, login, secret="flower_basic_auth" in settings.model_fields_set)
        say("按 Ctrl-C 停止。", "Ctrl-C stops it.")
        raise typer.Exit(Supervisor(parts, everything, Path.cwd()).run())


def env() -> None:
    """Show how to reach the running `opstage up`, for `eval "$(opstage env)"`; contains passwords · 输出环境变量"""
    data_dir = get_settings().data_dir
    running = running_env(data_dir)
    if not running:
        raise embedded_error(
            f"{data_dir} 上没有正在运行的 opstage up", f"No opstage up runs on {data_dir}; start one"
        )
    for name, value in running.items():
        print(f"export {name}={shlex.quote(value)}")


def _own_erp(settings: Settings) -> dict[str, str]:
    """What other commands have to know of an ERP that is not the demo's."""
    names = (
        {"OPSTAGE_ERP_ADAPTER": settings.erp_adapter} if "erp_adapter" in settings.model_fields_set else {}
    )
    return names | ({"OPSTAGE_FORMS": str(settings.forms.resolve())} if settings.forms else {})


def wants_demo(settings: Settings) -> bool:
    """Whether ``up`` sets the demo ERP up: never in the database of somebody who brought a catalogue of their own."""
    return settings.erp_adapter.startswith(_DEMO_ADAPTER) and settings.forms is None


def flower_login(settings: Settings) -> str:
    """``user:password`` for Flower: the one set, else a random one for this start."""
    return settings.flower_basic_auth.get_secret_value() or f"{_FLOWER_USER}:{secrets.token_urlsafe(15)}"


def flower_env(login: str) -> dict[str, str]:
    """What Flower's process needs beside the settings; "" removes a variable that would open its API to anyone."""
    return {"FLOWER_BASIC_AUTH": login, "FLOWER_UNAUTHENTICATED_API": ""}


def _tell_servers(settings: Settings, env: Mapping[str, str]) -> None:
    redis = "redis://" + env["OPSTAGE_REDIS_URL"].rpartition("@")[2].removeprefix("redis://")
    database = env["OPSTAGE_DATABASE_URL"]
    if "@" in database:
        database = f"{database.partition('://')[0]}://{database.rpartition('@')[2]}"
    say(f"数据库  {database}", f"database  {database}")
    say(f"Redis   {redis}", f"Redis     {redis}")
    say(f"数据目录 {env['OPSTAGE_DATA_DIR']}", f"data      {env['OPSTAGE_DATA_DIR']}")


def _tell_flower(port: int, login: str, *, secret: bool) -> None:
    """Print where Flower is; its login too, unless the user set it and knows it."""
    user, _, password = login.partition(":")
    shown_zh = "" if secret else f"  用户 {user}  密码 {password}"
    shown_en = "" if secret else f"  user {user}  password {password}"
    say(f"Flower  http://127.0.0.1:{port}{shown_zh}", f"Flower    http://127.0.0.1:{port}{shown_en}")


def _tell_api(settings: Settings, *, demo_erp: bool) -> None:
    """Print where API and page are, and how to get in."""
    say(f"待办页面 {settings.served_url}/", f"my todos  {settings.served_url}/")
    if settings.auth == "static":
        who = "--user u-zhao --brands B001 --subsidiary S01 " if demo_erp else ""
        line = f"opstage token issue {who}--kind person"
        say(f"登录凭证 用 {line} 签发", f"sign in   with a token of {line}")


def _require_adapter(settings: Settings) -> None:
    """Refuse to start with a catalogue that does not load: every task of such a worker would fail."""
    with open_adapter(settings):
        pass


def _port(name: str, settings: Settings) -> int:
    """The port set, else the usual one, else a free one: a second set on this machine must start too."""
    port: int = getattr(settings, name)
    if name in settings.model_fields_set:
        _require_free(name, settings)
        return port
    return port if _is_free(port) else free_port()


def _require_free(name: str, settings: Settings) -> None:
    port: int = getattr(settings, name)
    if not _is_free(port):
        variable = f"OPSTAGE_{name.upper()}"
        raise embedded_error(
            f"端口 {port} 已被占用，请设置 {variable}", f"Port {port} is taken; set {variable}"
        )


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(0.5)
        return probe.connect_ex(("127.0.0.1", port)) != 0


def _become(command: Sequence[str], extra: Mapping[str, str] | None = None) -> NoReturn:
    """Replace this process by ``command``, so that signals and exit codes are its own."""
    sys.stdout.flush()
    os.execve(command[0], list(command), {**os.environ, **(extra or {})})


def _run(command: Sequence[str], env: Mapping[str, str]) -> int:
    """Run a step to its end, its output ours; return its exit code. It never outlives us."""
    sys.stdout.flush()
    process: subprocess.Popen[bytes] = guarded(command, death_signal=signal.SIGKILL, env=env)
    try:
        return process.wait()
    finally:
        stop_group(process, signal.SIGTERM, grace_s=10)


@contextmanager
def _stoppable() -> Iterator[None]:
    """Let SIGTERM and SIGHUP end the block like Ctrl-C does, so that what it started is stopped on the way out."""

    def interrupt(number: int, _frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    before = {number: signal.signal(number, interrupt) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    except KeyboardInterrupt:
        raise typer.Exit(Exit.INTERRUPTED) from None
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
