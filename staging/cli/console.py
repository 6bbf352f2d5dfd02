"""What every command shares: both languages, where output goes, and how an error becomes an exit code."""

from __future__ import annotations

import os
import sys
import traceback
from enum import IntEnum

from pydantic import ValidationError

from staging.contracts.error import ErrorBody, ErrorCode, ErrorResponse
from staging.domain.errors import OpstageError
from staging.settings import Settings, get_settings


class Exit(IntEnum):
    """Exit codes of the command line (CONTRACT section 7, and one for our own mistakes)."""

    OK = 0
    REFUSED = 1
    USAGE = 2
    UNREACHABLE = 3
    BUG = 70
    INTERRUPTED = 130


def locale() -> str:
    """The language to speak, "zh" or "en"; from the environment alone where the settings do not load."""
    try:
        return get_settings().locale
    except ValidationError:
        return "en" if os.environ.get("OPSTAGE_LOCALE") == "en" else "zh"


def pick(zh: str, en: str) -> str:
    """The text in the user's language."""
    return zh if locale() == "zh" else en


def say(zh: str, en: str) -> None:
    """Print a line for people, at once."""
    print(pick(zh, en), flush=True)


def warn(zh: str, en: str) -> None:
    """Tell people, beside the output, what did not stop the command."""
    print(pick("注意：", "Note: ") + pick(zh, en), file=sys.stderr, flush=True)


def report(error: BaseException) -> Exit:
    """Tell the user what went wrong (on stderr, or as JSON on stdout with --json) and return the exit code."""
    if isinstance(error, OpstageError):
        unreachable = error.code is ErrorCode.UNAVAILABLE
        return _tell(error.body(locale()), Exit.UNREACHABLE if unreachable else Exit.REFUSED)
    if isinstance(error, ValidationError) and error.title == Settings.__name__:
        return _tell(_body(ErrorCode.PAYLOAD_INVALID, *_settings_problem(error)), Exit.USAGE)
    service = _unreachable_service(error)
    if service:
        message = pick(f"无法连接 {service}", f"{service} cannot be reached") + f": {_first_line(error)}"
        hint = pick(
            "请确认服务已启动，地址、用户、密码与库名正确；opstage doctor 会逐项检查",
            "Check that it runs, and address, user, password and database; opstage doctor looks at each",
        )
        return _tell(_body(ErrorCode.UNAVAILABLE, message, hint), Exit.UNREACHABLE)
    if isinstance(error, OSError) and error.filename:
        message = pick("无法读写", "Cannot read or write") + f" {error.filename}: {error.strerror}"
        hint = pick(
            "请检查路径、权限与磁盘空间；OPSTAGE_DATA_DIR 指定数据目录",
            "Check path, permissions and disk space; OPSTAGE_DATA_DIR names the data directory",
        )
        return _tell(_body(ErrorCode.UNAVAILABLE, message, hint), Exit.UNREACHABLE)
    if isinstance(error, KeyboardInterrupt):
        return Exit.INTERRUPTED
    traceback.print_exception(error)
    return Exit.BUG


def _tell(body: ErrorResponse, code: Exit) -> Exit:
    if "--json" in sys.argv:
        print(body.model_dump_json(by_alias=True, exclude_none=True))
        return code
    print(pick("错误：", "Error: ") + body.error.message, file=sys.stderr)
    if body.error.hint:
        print(pick("提示：", "Hint: ") + body.error.hint, file=sys.stderr)
    return code


def _body(code: ErrorCode, message: str, hint: str) -> ErrorResponse:
    return ErrorResponse(error=ErrorBody(code=code, message=message, hint=hint))


def _settings_problem(error: ValidationError) -> tuple[str, str]:
    """Message and hint for settings that do not load; values are left out, they may be secrets."""
    lines = [
        f"{'OPSTAGE_' + '_'.join(map(str, e['loc'])).upper() if e['loc'] else 'OPSTAGE_*'}: "
        f"{e['msg'].removeprefix('Value error, ')}"
        for e in error.errors(include_input=False, include_url=False)
    ]
    return pick("配置无效：", "The settings are not valid: ") + "; ".join(lines), pick(
        "请修正环境变量或 .env", "Correct the environment variable or .env"
    )


def _unreachable_service(error: BaseException) -> str:
    """The service whose connection failed, or "" where ``error`` is something else. Drivers are loaded only now."""
    import redis.exceptions

    from staging.storage.dberrors import DbFailure, classify_db_error

    if isinstance(error, redis.exceptions.ConnectionError | redis.exceptions.TimeoutError):
        return "Redis"
    if type(error).__module__.split(".")[0] in ("sqlalchemy", "psycopg", "pymysql", "sqlite3"):
        return pick("数据库", "The database") if classify_db_error(error) is DbFailure.CONNECTION_LOST else ""
    return ""


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
