"""A command of the shop whose handler takes several at once; titles make it misbehave."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from staging.domain.errors import rule
from staging.domain.ports import Outcome
from tests.support.shop_erp import Rename
from workers.erp.command import CommandContext, CommandPlan

NEVER, FORGOTTEN = "never", "forgotten"


class RenameAll(Rename):
    """``sizes``: how many came together, each time."""

    sizes: ClassVar[list[int]] = []

    def execute_all(self, planned: Sequence[tuple[CommandContext, CommandPlan]]) -> list[Outcome]:
        self.sizes.append(len(planned))
        done = [super(RenameAll, self).execute(context, plan) for context, plan in planned]
        return [o for o, (_, plan) in zip(done, planned, strict=True) if plan.payload["title"] != FORGOTTEN]

    def execute(self, context: CommandContext, plan: CommandPlan) -> Outcome:
        self.sizes.append(1)
        if plan.payload["title"] == NEVER:
            raise rule("不可", "never")
        return super().execute(context, plan)
