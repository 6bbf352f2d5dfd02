"""Status and numeric codes of an operation (CONTRACT section 2): number, words, and who moves it on.

This is the only list of codes; tables, guards, pages and the README derive from it.
"""

from __future__ import annotations

from enum import IntEnum, StrEnum


class Status(StrEnum):
    """What ``sStatus`` holds for rows this product writes. Other words in an adopted table are legacy: shown,
    never touched."""

    PENDING = "pending"
    SUCCESS = "success"
    FAIL = "fail"


LEGACY_STATUSES = frozenset({"draft", "confirmed", "executing", "executed", "failed", "cancelled", "expired"})


class StatusCode(IntEnum):
    """``iStatusCode``. Each member explains itself: ``zh``/``en`` meaning and ``mover``, who takes it onward."""

    zh: str
    en: str
    mover: str

    def __new__(cls, number: int, en: str, zh: str, mover: str) -> StatusCode:
        member = int.__new__(cls, number)
        member._value_ = number
        member.en, member.zh, member.mover = en, zh, mover
        return member

    SUBMITTED = 100, "submitted, waiting for a worker", "已提交，等待执行", "worker"
    RUNNING = 101, "a worker is on it", "正在执行", "worker"
    UNKNOWN = 102, "outcome not known yet, being looked up", "结果待核实，请勿重复提交", "reconciler"
    WAITING_USER = 103, "waits for you in the ERP's own form", "待您在ERP表单中完成", "person"
    WAITING_APPROVAL = 104, "waits for a second person's approval", "待他人审批", "approver"
    WAITING_OTHER = 105, "waits for another operation or for its time", "等待前置操作或预定时间", "sweeper"

    EXECUTED = 200, "executed", "执行成功", "nobody"
    EXECUTED_BEFORE = (
        201,
        "had been executed before; first result returned",
        "此前已执行，返回首次结果",
        "nobody",
    )

    PAYLOAD_INVALID = 400, "payload not valid for the form", "数据不符合表单要求", "nobody"
    FORBIDDEN = 401, "not permitted", "没有权限", "nobody"
    NOT_FOUND = 404, "form, command or record not found", "表单、命令或单据不存在", "nobody"
    CONFLICT = 409, "the record is not what was shown any more", "单据已变化，与确认时不一致", "nobody"
    EXPIRED = 410, "expired before it ran", "执行前已过期", "nobody"
    RULE_REFUSED = 422, "a business rule refused it", "业务规则不允许", "nobody"
    LOCKED = 423, "record locked by somebody else for too long", "单据被他人长时间锁定", "person"
    DEPENDENCY_FAILED = 424, "an operation it depends on failed", "前置操作失败", "nobody"
    CANCELLED = 450, "cancelled or rejected by a person", "已被取消或驳回", "nobody"
    UNEXPECTED = 500, "unexpected error; rolled back", "意外错误，已回滚", "person"
    TIMED_OUT = 504, "timed out and proven rolled back", "执行超时，已确认回滚", "person"

    @property
    def status(self) -> Status:
        """The word that goes with the number: 1xx pending, 2xx success, the rest fail."""
        if self < 200:
            return Status.PENDING
        return Status.SUCCESS if self < 300 else Status.FAIL

    @classmethod
    def of(cls, number: int | None) -> StatusCode | None:
        """The code with this number, or None for one we do not know."""
        return _BY_NUMBER.get(number)

    @property
    def is_terminal(self) -> bool:
        return self.status is not Status.PENDING

    @property
    def may_be_retried(self) -> bool:
        """The only terminal codes a person may send back to 100."""
        return self in RETRYABLE

    def meaning(self, locale: str) -> str:
        return self.zh if locale == "zh" else self.en


_BY_NUMBER: dict[int | None, StatusCode] = {int(code): code for code in StatusCode}
RETRYABLE = frozenset({StatusCode.LOCKED, StatusCode.UNEXPECTED, StatusCode.TIMED_OUT})
