"""Why a migration did not run, in both languages. Nothing else is raised on purpose in this package."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from staging.contracts.error import ErrorCode
from staging.domain.errors import OpstageError


@dataclass(frozen=True)
class Note:
    """One sentence for the operator, ``zh`` and ``en``."""

    zh: str
    en: str

    def text(self, locale: str) -> str:
        return self.zh if locale == "zh" else self.en


class MigrationError(OpstageError):
    """What is wrong and what to do, as ``problems``; ``str()`` gives both languages."""

    error_code = ErrorCode.STATE_CONFLICT

    def __init__(self, problems: Sequence[Note]) -> None:
        self.problems = tuple(problems)
        texts = {locale: "\n".join(note.text(locale) for note in self.problems) for locale in ("zh", "en")}
        super().__init__(self.error_code, text=texts)

    def hint(self, locale: str) -> str:
        return "处理后再次运行 opstage db upgrade" if locale == "zh" else "Put it right, then run it again"

    def __str__(self) -> str:
        return f"{self.message('zh')}\n{self.message('en')}"

    def __reduce__(self) -> tuple[type[MigrationError], tuple[tuple[Note, ...]]]:
        return type(self), (self.problems,)


class MigrationRefused(MigrationError):
    """The database is not fit for this step; nothing was changed."""


class MigrationFailed(MigrationError):
    """A statement failed. What had been done stays done where the database cannot roll DDL back; run again."""


class DatabaseUnreachable(MigrationError):
    """The database did not answer, or broke off."""

    error_code = ErrorCode.UNAVAILABLE

    def hint(self, locale: str) -> str:
        return (
            "请确认数据库已启动，地址、用户、密码正确，库已建好；opstage doctor 会逐项检查"
            if locale == "zh"
            else "Check that it runs, that address, user and password are right and that the database is there;"
            " opstage doctor looks at each"
        )


def refuse(zh: str, en: str) -> MigrationRefused:
    """A refusal for one reason."""
    return MigrationRefused([Note(zh, en)])
