"""``confirm_operation``: the client's person is asked, by the client, with the server's own rendering of the preview.

Nothing a model says confirms anything: the tool takes an id only, the answer comes from the elicitation, and the
confirm carries the person's credential, which no other tool uses. How a question
reaches the person depends on the protocol: up to 2025-11-25 it is a request of ours within the call, from 2026-07-28 on
the call is answered with the question and comes again with the answer; what was shown is sealed into ``requestState``.
"""

from __future__ import annotations

import logging
from typing import Any

import anyio
from mcp import MCPError, types
from mcp.types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import BaseModel, ValidationError

from staging.contracts.error import ErrorCode
from staging.contracts.preparation import Preparation
from staging.domain.errors import Refused, Transient
from staging.mcp import texts
from staging.mcp.arguments import ConfirmOperation
from staging.mcp.card import MAX_CHARACTERS, card
from staging.mcp.directory import Directory
from staging.mcp.shapes import ConfirmAnswer
from staging.mcp.tools import CHANGES, Answered, Call, Tool, operation_info, pending
from staging.mcp.upstream import ToolRefused, refused

log = logging.getLogger(__name__)

_KEY = "confirm"
_RETRY_AFTER_S = (0.5, 2.0)
_DUPLICATE_KEY = "allowDuplicate"
_DUPLICATE = {
    "zh": ("仍然提交", "可能与已有单据重复；勾选表示确认不是重复"),
    "en": ("Submit anyway", "It may duplicate a record; tick it if it does not"),
}
_QUESTION = {
    "zh": ("确认执行", "勾选表示同意按以上内容执行"),
    "en": ("Execute it", "Tick it to have exactly the above executed"),
}


class _Yes(BaseModel):
    """What the person sends back."""

    confirm: bool
    allowDuplicate: bool = False  # noqa: N815 - the key on the wire


async def confirm_operation(call: Call, given: ConfirmOperation) -> Answered:
    try:
        found = await call.api_as_person.get("preparations", given.preparation_id)
    except ToolRefused as refusal:
        if refusal.error.code is not ErrorCode.PREPARATION_NOT_FOUND_OR_EXPIRED:
            raise
        earlier = await _operations_of(call, given.preparation_id)
        if not earlier:
            raise
        return await _confirmed(call, earlier)
    preparation = Preparation.model_validate(found)
    duplicate = any(
        warning.code == ErrorCode.POSSIBLE_DUPLICATE
        for item in preparation.items
        for warning in item.preview.warnings
    )
    shown = card(preparation, call.locale, unknown=(await pending(call)).unknown)
    if len(shown) > MAX_CHARACTERS:
        raise refused(_too_long(call, preparation.preparation_id), call.locale)
    if call.context.protocol_version in MODERN_PROTOCOL_VERSIONS:
        answer = _carried(call, preparation)
        if answer is None:
            return types.InputRequiredResult(
                input_requests={_KEY: types.ElicitRequest(params=_question(shown, call.locale, duplicate))},
                request_state=preparation.snapshot_hash,
            )
    else:
        answer = await _asked(call, _question(shown, call.locale, duplicate))
    said = _said(answer)
    if said is None or not said.confirm:
        return ConfirmAnswer(
            confirmed=False,
            next=texts.pick(texts.DECLINED, call.locale),
            pending=await pending(call),
        )
    return await _confirmed(
        call, await _confirm(call, given.preparation_id, duplicate and said.allowDuplicate)
    )


async def _asked(call: Call, question: types.ElicitRequestFormParams) -> types.ElicitResult:
    try:
        return await call.context.session.elicit_form(
            question.message, question.requested_schema, related_request_id=call.context.request_id
        )
    except MCPError as error:
        log.warning("the client could not ask its person: %s", error)
        text = {
            "zh": "客户端未能询问用户，没有任何改动",
            "en": "The client could not ask the person; nothing has been changed",
        }
        raise refused(
            Transient(ErrorCode.UNAVAILABLE, {"what": "elicitation"}, text=text), call.locale
        ) from error


async def _confirm(call: Call, preparation_id: str, anyway: bool) -> list[dict[str, Any]]:
    """Confirm as the person; repeated while the API is away, because a repeat returns the same operations.

    ``anyway``: the person has overridden the duplicate guard.
    """
    body = {_DUPLICATE_KEY: True} if anyway else None
    for delay_s in (*_RETRY_AFTER_S, None):
        try:
            done = await call.api_as_person.post("preparations", preparation_id, "confirm", body=body)
            return list(done["operations"])
        except ToolRefused as refusal:
            if refusal.error.code is not ErrorCode.UNAVAILABLE:
                raise
            if delay_s is None:
                raise refused(_not_known(), call.locale) from refusal
            await anyio.sleep(delay_s)
    raise AssertionError("the last round returns or raises")


async def _operations_of(call: Call, preparation_id: str) -> list[dict[str, Any]]:
    body = {"filter": {"preparationId": preparation_id}, "sort": [{"field": "createdAt"}]}
    return list((await call.api_as_person.post("operations", "query", body=body))["items"])


async def _confirmed(call: Call, views: list[dict[str, Any]]) -> ConfirmAnswer:
    operations = [operation_info(view, call.locale) for view in views]
    return ConfirmAnswer(
        confirmed=True,
        next=texts.after_confirm(call.locale, finished=all(operation.finished for operation in operations)),
        operations=operations,
        pending=await pending(call),
    )


def _question(shown: str, locale: str, duplicate: bool) -> types.ElicitRequestFormParams:
    properties = {_KEY: _box(_QUESTION, locale)}
    if duplicate:
        properties[_DUPLICATE_KEY] = _box(_DUPLICATE, locale)
    schema: dict[str, Any] = {"type": "object", "properties": properties, "required": [_KEY]}
    return types.ElicitRequestFormParams(message=shown, requested_schema=schema)


def _box(words: dict[str, tuple[str, str]], locale: str) -> dict[str, str]:
    title, description = words["zh" if locale == "zh" else "en"]
    return {"type": "boolean", "title": title, "description": description}


def _carried(call: Call, preparation: Preparation) -> types.ElicitResult | None:
    """The answer this call carries, if it is one to the card as it is now."""
    answer = (call.params.input_responses or {}).get(_KEY)
    asked = call.params.request_state == preparation.snapshot_hash
    return answer if asked and isinstance(answer, types.ElicitResult) else None


def _said(answer: types.ElicitResult) -> _Yes | None:
    """What an accepted form says; None for anything else. Only a ticked box is a yes."""
    if answer.action != "accept":
        return None
    try:
        return _Yes.model_validate(answer.content, strict=True)
    except ValidationError:
        return None


def _too_long(call: Call, preparation_id: str) -> Refused:
    where = f"{call.upstream.base_url}/?preparation={preparation_id}"
    text = {
        "zh": f"内容过多，无法在此完整展示；请用户在 {where} 核对并确认",
        "en": f"It is too long to be shown here in full; ask the user to check and confirm it at {where}",
    }
    return Refused(ErrorCode.BUSINESS_RULE, text=text)


def _not_known() -> Transient:
    text = {
        "zh": "用户已同意，但不知道确认是否送达。请不要重新准备；稍后用同一编号再次调用，或查看 my_todos",
        "en": "The person agreed, but whether that arrived is not known. Do not prepare it again; call this again with"
        " the same id later, or look at my_todos",
    }
    return Transient(ErrorCode.UNAVAILABLE, {"what": "Opstage API"}, text=text)


def can_elicit(capabilities: types.ClientCapabilities | None) -> bool:
    """True for a client that shows forms to its person; one that names no mode means forms."""
    asks = capabilities.elicitation if capabilities else None
    return asks is not None and (asks.form is not None or asks.url is None)


def confirming_tools(directory: Directory, capabilities: types.ClientCapabilities | None) -> list[Tool]:
    """The tool, where the client can ask and a person's credential of the same user is configured; else nothing."""
    return [_CONFIRM] if directory.may_confirm and can_elicit(capabilities) else []


_NAME = "confirm_operation"
_CONFIRM = Tool(
    _NAME,
    texts.TITLES[_NAME],
    texts.DESCRIPTIONS[_NAME],
    ConfirmOperation,
    ConfirmAnswer,
    CHANGES,
    confirm_operation,
)
