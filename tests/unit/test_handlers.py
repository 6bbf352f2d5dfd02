"""Handlers are found by dotted path and looked over at start: a wrong one is named before it is needed."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest
from pydantic import BaseModel

from staging.contracts.error import ErrorCode
from staging.contracts.form import CommandPolicy
from staging.domain.errors import Refused
from staging.domain.ports import Outcome
from workers.erp.handlers import (
    CommandContext,
    CommandHandler,
    CommandPlan,
    HandlerInvalid,
    HandlerRegistry,
    load_handler,
)


class Good:
    class Input(BaseModel):
        title: str

    def prepare(self, context: CommandContext, data: Any) -> CommandPlan:
        return CommandPlan(payload=data.model_dump())

    def execute(self, context: CommandContext, plan: CommandPlan) -> Outcome:
        return Outcome("b1", {"zh": "好", "en": "good"})


class WithoutInput(Good):
    Input: ClassVar[Any] = dict


class WithoutExecute(Good):
    execute: ClassVar[Any] = None


class WithExecuteAll(Good):
    def execute_all(self, planned: Any) -> list[Outcome]:
        return []


class WithBrokenExecuteAll(Good):
    execute_all = "soon"


class Demanding(Good):
    def __init__(self, url: str) -> None:
        self.url = url


def policy(command_type: str, handler: str) -> CommandPolicy:
    label = {"zh": "命令", "en": "Command"}
    return CommandPolicy.model_validate(
        {"command_type": command_type, "form": "project", "label": label, "handler": f"{__name__}:{handler}"}
    )


def test_a_handler_is_made_once_and_found_by_its_command_type() -> None:
    registry = HandlerRegistry([policy("dh.project.retitle", "Good")])
    found = registry.get("dh.project.retitle")
    assert type(found.handler).__name__ == "Good"
    handler: CommandHandler = found.handler
    assert handler.Input.model_validate({"title": "x"}).model_dump() == {"title": "x"}
    assert registry.get("dh.project.retitle").handler is handler
    assert [one.policy.command_type for one in registry] == ["dh.project.retitle"]


def test_a_handler_says_whether_it_takes_several_at_once() -> None:
    registry = HandlerRegistry([policy("a.b.one", "Good"), policy("a.b.all", "WithExecuteAll")])
    assert registry.get("a.b.one").together is None
    several = registry.get("a.b.all")
    assert several.together is several.handler


def test_an_unknown_command_is_form_not_found() -> None:
    registry = HandlerRegistry([])
    assert registry.find("erp.quote.create") is None
    with pytest.raises(Refused) as refused:
        registry.get("erp.quote.create")
    assert refused.value.code is ErrorCode.FORM_NOT_FOUND
    assert refused.value.params == {"form": "erp.quote.create"}


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("no.such.module:Good", "No module named 'no'"),
        (f"{__name__}:Missing", "has no attribute 'Missing'"),
        (f"{__name__}", "has no attribute ''"),
        (":Good", "Empty module name"),
        (f"{__name__}:Demanding", "missing 1 required positional argument"),
        (f"{__name__}:WithoutInput", "has no pydantic model named Input"),
        (f"{__name__}:WithoutExecute", "has no method execute"),
        (f"{__name__}:WithBrokenExecuteAll", "execute_all is no method"),
    ],
)
def test_a_handler_that_cannot_be_used_is_named_with_the_reason(path: str, why: str) -> None:
    with pytest.raises(HandlerInvalid) as invalid:
        load_handler(path)
    assert repr(path) in str(invalid.value)
    assert why in str(invalid.value)
