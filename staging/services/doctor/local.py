"""What can be said without a server: settings against each other, files, versions, optional parts; Flower's door."""

from __future__ import annotations

import http.client
import platform
import stat
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from staging.contracts.form import Label
from staging.embedded.errors import EmbeddedServerError
from staging.embedded.finder import Route, find_redis_server
from staging.embedded.postgres_server import find_postgres_bin
from staging.embedded.runtime import configured_redis
from staging.services.doctor.finding import Level, Section, t
from staging.settings import EMBEDDED_POSTGRES, Settings, misspelt_variables

_PACKAGES = ("opstage", "celery", "kombu", "redis", "sqlalchemy", "alembic", "psycopg", "pymysql", "flower")
_REPLY_S = 1.5


def judge_software(section: Section) -> None:
    """Versions of what runs here."""
    found = [f"Python {platform.python_version()}", *(f"{name} {_version(name)}" for name in _PACKAGES)]
    section.note("versions", t("版本", "versions"), ", ".join(found))


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "?"


def judge_settings(section: Section, settings: Settings, environment: Mapping[str, str]) -> None:
    """Settings that load but do not fit each other, secrets that are missing, files others may read."""
    section.note(
        "mode",
        t("队列与 ERP", "queue and ERP"),
        t("同一数据库：写回与业务变更一次提交", "one database: write-back and business change share a commit")
        if settings.shared_database
        else t(
            "两个数据库：由核对进程处理中间窗口", "two databases: the reconciler minds the window between"
        ),
    )
    section.expect(
        settings.pool_size >= settings.worker_concurrency,
        "pool_size",
        t("连接池大小 / worker 并发数", "pool size / worker concurrency"),
        f"{settings.pool_size} / {settings.worker_concurrency}",
        t(
            "将 OPSTAGE_POOL_SIZE 设为不小于 OPSTAGE_WORKER_CONCURRENCY，否则线程会互相等待连接",
            "Set OPSTAGE_POOL_SIZE to OPSTAGE_WORKER_CONCURRENCY or more, else threads wait for one another",
        ),
        Level.WARNING,
    )
    recovery = settings.lease_s + 2 * settings.sweep_interval_s
    section.expect(
        settings.sweep_interval_s < settings.lease_s,
        "recovery",
        t("worker 死亡后最迟多久恢复", "a dead worker's row is looked after within"),
        t(f"{recovery:g} 秒", f"{recovery:g} s"),
        t(
            "OPSTAGE_SWEEP_INTERVAL_S 应远小于 OPSTAGE_LEASE_S",
            "Set OPSTAGE_SWEEP_INTERVAL_S well below OPSTAGE_LEASE_S",
        ),
        Level.WARNING,
    )
    section.expect(
        bool(settings.seal_key.get_secret_value()),
        "seal_key",
        t("封签密钥", "seal key"),
        _set_or_not(bool(settings.seal_key.get_secret_value())),
        t(
            "为 API 与 worker 设置相同的 OPSTAGE_SEAL_KEY（如 openssl rand -hex 32）；缺失时 worker 会重新校验每一行",
            "Set the same OPSTAGE_SEAL_KEY for API and workers (say openssl rand -hex 32); without it workers"
            " validate every row anew",
        ),
        Level.WARNING,
    )
    section.note(
        "flower_basic_auth",
        t("Flower 登录", "login of Flower"),
        t("已设置", "set")
        if settings.flower_basic_auth.get_secret_value()
        else t("未设置：每次启动随机生成并显示", "not set: a random one is made and shown at each start"),
        Level.OK if settings.flower_basic_auth.get_secret_value() else Level.INFO,
    )
    open_api = environment.get("FLOWER_UNAUTHENTICATED_API", "")
    section.expect(
        open_api.lower() not in ("1", "true", "yes", "on"),
        "flower_unauthenticated_api",
        t("FLOWER_UNAUTHENTICATED_API", "FLOWER_UNAUTHENTICATED_API"),
        open_api or t("未设置", "not set"),
        t("取消该变量：它允许任何人投递任务", "Unset it: it lets anyone send tasks"),
    )
    misspelt = misspelt_variables(environment)
    section.expect(
        not misspelt,
        "misspelt",
        t("拼错的 OPSTAGE_* 变量", "misspelt OPSTAGE_* variables"),
        ", ".join(misspelt) or t("无", "none"),
        t(
            f"未被读取；是否指 {', '.join(misspelt.values())}",
            f"They are not read: {', '.join(misspelt.values())}?",
        ),
        Level.WARNING,
    )
    _env_file(section, Path(".env"))


def _set_or_not(value: bool) -> Label:
    return t("已设置", "set") if value else t("未设置", "not set")


def _env_file(section: Section, path: Path) -> None:
    if not path.exists():
        return
    mode = stat.S_IMODE(path.stat().st_mode)
    section.expect(
        not mode & 0o077,
        "env_file",
        t(".env 的权限", "permissions of .env"),
        f"{mode:04o}",
        t("执行 chmod 600 .env：其中可能有密码", "Run chmod 600 .env: it may hold passwords"),
        Level.WARNING,
    )


def judge_extras(section: Section, settings: Settings) -> None:
    """Servers that ``opstage demo`` and ``up`` could start by themselves where none is configured."""
    wanted = not configured_redis(settings)
    try:
        server = find_redis_server()
        section.note(
            "embedded_redis",
            t("内嵌 Redis", "embedded Redis"),
            f"{server.executable} ({Route(server.route).value})",
        )
    except EmbeddedServerError as error:
        section.note(
            "embedded_redis",
            t("内嵌 Redis", "embedded Redis"),
            t("无", "none"),
            Level.WARNING if wanted else Level.INFO,
            t(error.message("zh"), error.message("en")),
        )
    try:
        section.note(
            "embedded_postgres", t("内嵌 PostgreSQL", "embedded PostgreSQL"), str(find_postgres_bin())
        )
    except EmbeddedServerError as error:
        wanted = EMBEDDED_POSTGRES in (settings.database_url, settings.erp_database_url)
        section.note(
            "embedded_postgres",
            t("内嵌 PostgreSQL", "embedded PostgreSQL"),
            t("无", "none"),
            Level.PROBLEM if wanted else Level.INFO,
            t(error.message("zh"), error.message("en")) if wanted else None,
        )


def judge_flower(section: Section, settings: Settings) -> None:
    """Ask Flower for a page without a login, where one listens on this host."""
    what = t(f"Flower（端口 {settings.flower_port}）", f"Flower on port {settings.flower_port}")
    statuses = {path: _status(settings.flower_port, path) for path in ("/", "/metrics", "/api/workers")}
    if not any(statuses.values()):
        section.note("login", what, t("未运行", "does not run"), Level.INFO)
        return
    open_paths = [path for path, status in statuses.items() if status and status < 300]
    section.expect(
        not open_paths,
        "login",
        what,
        t(f"无需登录：{', '.join(open_paths)}", f"open to anyone: {', '.join(open_paths)}")
        if open_paths
        else t("需要登录", "wants a login"),
        t(
            "用 opstage flower 启动（总要求登录），不要直接运行 celery flower",
            "Start it with opstage flower, which always wants a login, instead of celery flower",
        ),
    )


def _status(port: int, path: str) -> int:
    """HTTP status without credentials; 0 where nothing (or no HTTP) answers in time."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_REPLY_S)
    try:
        connection.request("GET", path)
        return connection.getresponse().status
    except (OSError, http.client.HTTPException):
        return 0
    finally:
        connection.close()
