"""Message and hint of every error code, zh and en. ``{name}`` places come from the error's params."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from staging.contracts.error import ErrorCode as E

_ALL: dict[E, tuple[tuple[str, str], tuple[str, str]]] = {
    E.PREPARATION_NOT_FOUND_OR_EXPIRED: (
        ("找不到该待确认内容，或已过期", "请重新准备一次"),
        ("This preparation does not exist or has expired", "Prepare the change again"),
    ),
    E.PREPARATION_SUPERSEDED: (
        ("该内容已被更新的版本取代", "请确认最新的卡片"),
        ("A newer preparation has replaced this one", "Confirm the newest card"),
    ),
    E.FORM_NOT_FOUND: (
        ("没有名为“{form}”的表单或命令", "用表单目录查找可用的表单"),
        ('There is no form or command "{form}"', "Look it up in the form catalogue"),
    ),
    E.RECORD_NOT_FOUND: (
        ("找不到单据“{record}”", "请核对单号，或先查询"),
        ('Record "{record}" was not found', "Check the number or query for it first"),
    ),
    E.RECORD_AMBIGUOUS: (
        ("“{record}”对应多张单据", "请从候选中选择一个"),
        ('"{record}" matches several records', "Choose one of the candidates"),
    ),
    E.OPERATION_NOT_FOUND: (
        ("找不到该操作", "请核对操作编号"),
        ("This operation was not found", "Check the operation id"),
    ),
    E.FIELD_UNKNOWN: (
        ("没有字段“{field}”", "请使用表单中列出的字段名"),
        ('There is no field "{field}"', "Use the field names the form lists"),
    ),
    E.FIELD_NOT_WRITABLE: (
        ("字段“{field}”不可由操作填写", "请去掉该字段"),
        ('Field "{field}" cannot be set by an operation', "Leave this field out"),
    ),
    E.FIELD_INVALID: (
        ("字段“{field}”的值不合法", "请按字段类型填写"),
        ('Field "{field}" has a value that is not valid', "Give a value of the field's type"),
    ),
    E.FIELD_REQUIRED: (
        ("缺少必填字段“{field}”", "请补充该字段"),
        ('Field "{field}" is required', "Add this field"),
    ),
    E.REFERENCE_NOT_FOUND: (
        ("字段“{field}”引用的资料不存在", "请从可选项中选择"),
        ('Field "{field}" refers to something that does not exist', "Choose one of the field's options"),
    ),
    E.REFERENCE_AMBIGUOUS: (
        ("字段“{field}”的名称对应多条资料", "请用候选中的编号指明一个"),
        ('Field "{field}" matches several records by name', "Name one of the candidates by its id"),
    ),
    E.STATE_CONFLICT: (
        ("单据当前状态不允许此操作", "请刷新后按当前状态操作"),
        (
            "The record's present state does not allow this",
            "Look at the record again and act on its present state",
        ),
    ),
    E.VERSION_CONFLICT: (
        ("单据在您看到之后已被修改", "请核对变化后重新提交"),
        ("The record has changed since you saw it", "Compare the changes and stage it again"),
    ),
    E.IDEMPOTENCY_CONFLICT: (
        ("同一幂等键已用于其他内容", "如确需新的操作，请重新准备"),
        ("This idempotency key was used for other content", "Prepare again if a new operation is meant"),
    ),
    E.FORBIDDEN: (
        ("您没有执行此操作的权限", "请联系管理员授权"),
        ("You are not permitted to do this", "Ask an administrator for the grant"),
    ),
    E.UNAUTHENTICATED: (
        ("未登录或凭证无效", "请提供有效凭证"),
        ("No valid credential was given", "Send a valid bearer token"),
    ),
    E.BUSINESS_RULE: (
        ("业务规则不允许此操作", "请按提示调整后重新提交"),
        ("A business rule does not allow this", "Adjust the change and stage it again"),
    ),
    E.POSSIBLE_DUPLICATE: (
        ("可能与已有单据“{record}”重复", "如确非重复，请在卡片上勾选“仍然提交”"),
        ('This may duplicate "{record}"', 'If it does not, tick "submit anyway" on the card'),
    ),
    E.EXPIRED: (
        ("已过期", "请重新准备一次"),
        ("It has expired", "Prepare the change again"),
    ),
    E.QUERY_SORT_FIELD_NOT_ALLOWED: (
        ("不能按“{field}”排序", "可排序的字段：{allowed}"),
        ('Sorting by "{field}" is not possible', "Sortable fields: {allowed}"),
    ),
    E.QUERY_DIRECTION_INVALID: (
        ("排序方向“{direction}”不合法", "请使用 ASC 或 DESC"),
        ('Sort direction "{direction}" is not valid', "Use ASC or DESC"),
    ),
    E.QUERY_PAGE_INVALID: (
        ("分页参数不合法", "页码与每页条数须为正整数"),
        ("The page request is not valid", "Page number and size are positive integers"),
    ),
    E.PAYLOAD_TOO_LARGE: (
        ("内容超过上限（{limit}）", "请缩减或拆分"),
        ("The content is over the limit ({limit})", "Shorten or split it"),
    ),
    E.PAYLOAD_INVALID: (
        ("内容无法接受：{reason_zh}", "请修正后重试"),
        ("The content cannot be accepted: {reason}", "Correct it and try again"),
    ),
    E.RATE_LIMITED: (
        ("请求过于频繁", "请于{retry_after}秒后重试"),
        ("Too many requests", "Try again in {retry_after} seconds"),
    ),
    E.UNAVAILABLE: (
        ("服务暂不可用：{what}", "请稍后重试；已提交的操作不会丢失"),
        ("Service not available right now: {what}", "Try again later; nothing submitted is lost"),
    ),
}


class _Blank(dict[str, Any]):
    """A place whose parameter is missing is shown as an ellipsis instead of raising in an error path."""

    def __missing__(self, key: str) -> str:
        return "…"


def render(code: E, params: Mapping[str, Any], locale: str) -> tuple[str, str]:
    """Return (message, hint) of ``code`` in ``locale`` ("zh", anything else is English)."""
    message, hint = _ALL[code][0 if locale == "zh" else 1]
    values = _Blank(params)
    return message.format_map(values), hint.format_map(values)
