"""A probe that failed, told as a finding: did the service not answer, or did it refuse us?"""

from __future__ import annotations

from collections.abc import Iterable

from redis.exceptions import (
    AuthenticationError,
    ConnectionError as RedisConnectionError,
    NoPermissionError,
    TimeoutError as RedisTimeoutError,
)

from staging.services.doctor.finding import Level, Section, t
from staging.storage.dberrors import DbFailure, classify_db_error, is_db_error
from staging.storage.probe import NoDatabaseFile

# The server answered, and said no: access denied, unknown database, host not allowed.
_MYSQL_REFUSED = {1044, 1045, 1049, 1130, 1698}
REACHABLE = t("可连接", "reachable")
_START_IT = t(
    "确认服务已启动，地址、端口与防火墙正确",
    "See that the server runs and that address, port and firewall are right",
)
_LOGIN = t(
    "检查连接串中的用户、密码和数据库名，以及服务器上的授权",
    "Check user, password and database name in the URL, and what the server grants",
)


class EmbeddedNotRunning(Exception):
    """The embedded PostgreSQL is asked for, and no ``opstage up`` runs it."""


def explain(section: Section, error: BaseException, secrets: Iterable[str]) -> None:
    """Add what ``error`` means. ``secrets`` never show, whatever a driver wrote into its message."""
    text = _first_line(error, secrets)
    if isinstance(error, NoDatabaseFile):
        section.note(
            "reachable",
            REACHABLE,
            t(f"文件不存在：{text}", f"no such file: {text}"),
            Level.PROBLEM,
            t("执行 opstage db upgrade 创建", "Create it: opstage db upgrade"),
        )
    elif isinstance(error, EmbeddedNotRunning):
        section.unreachable(
            REACHABLE,
            t("内嵌 PostgreSQL 未运行", "the embedded PostgreSQL does not run"),
            t("先运行 opstage up：它随 up 启停", "Run opstage up: it lives as long as that does"),
        )
    elif _is_bad_url(error):
        section.note(
            "reachable",
            REACHABLE,
            t("连接串无法解析", "the URL cannot be read"),
            Level.PROBLEM,
            t(
                "密码中的特殊字符（@ / : # ?）须做百分号编码",
                "Percent-encode special characters of the password (@ / : # ?)",
            ),
        )
    elif _was_refused(error):
        section.note("login", t("登录", "login"), text, Level.PROBLEM, _LOGIN)
    elif _did_not_answer(error):
        section.unreachable(REACHABLE, text, _START_IT)
    else:
        section.note(
            "probe",
            t("检查时出错", "looking at it failed"),
            f"{type(error).__name__}: {text}",
            Level.PROBLEM,
            t("按错误信息处理后重新运行", "Act on the message, then run doctor again"),
        )


def no_answer(section: Section, limit_s: float) -> None:
    """The probe did not come back at all."""
    section.unreachable(REACHABLE, t(f"{limit_s:g} 秒内无应答", f"no answer within {limit_s:g} s"), _START_IT)


def _is_bad_url(error: BaseException) -> bool:
    return isinstance(error, ValueError) or type(error).__name__ in ("ArgumentError", "NoSuchModuleError")


def _was_refused(error: BaseException) -> bool:
    if isinstance(error, AuthenticationError | NoPermissionError):
        return True
    cause = getattr(error, "orig", None)
    if cause is None:
        return type(error).__name__ == "AccessRefused"  # AMQP
    if cause.args and cause.args[0] in _MYSQL_REFUSED:
        return True
    said = str(cause)
    passing = ("starting up", "shutting down", "too many", "recovery mode")
    return "FATAL:" in said and not any(words in said for words in passing)


def _did_not_answer(error: BaseException) -> bool:
    if is_db_error(error):
        never_connected = getattr(error, "statement", "") is None
        return never_connected or classify_db_error(error) is DbFailure.CONNECTION_LOST
    cause = error.__cause__ or error  # kombu wraps what the client raised
    return isinstance(cause, RedisConnectionError | RedisTimeoutError | OSError)


def _first_line(error: BaseException, secrets: Iterable[str]) -> str:
    cause = getattr(error, "orig", None) or error
    text = next((line.strip() for line in str(cause).splitlines() if line.strip()), type(error).__name__)
    for secret in secrets:
        text = text.replace(secret, "***")
    return text[:300]
