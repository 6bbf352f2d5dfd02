"""The demo ERP behind its real adapter, with one effect written beside each business change.

``OPSTAGE_ERP_ADAPTER=tests.support.demo_effects:build_adapter``. The table ``effects`` has no unique key: a change made
twice shows there, whatever the product's own tables say.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from sqlalchemy import Engine

from staging.domain.ports import ErpTransaction, Execution, Outcome
from staging.settings import Settings
from tests.support.effects_adapter import RecordingLedger, write_effect
from workers.batch import Costs
from workers.erp import demo
from workers.erp.demo.native import DemoAdapter
from workers.erp.forms import load_catalogue

# Set in its environment, a worker takes every operation for a quick one, without having seen any.
ALL_QUICK = "EFFECTS_ALL_QUICK"
_CATALOGUE = load_catalogue(demo.FORMS)  # once for all children of a worker


class RecordingDemo(DemoAdapter):
    """``apply`` and ``apply_all`` also append the effects, in the same transaction."""

    def apply(self, tx: ErpTransaction, execution: Execution) -> Outcome:
        outcome = super().apply(tx, execution)
        write_effect(tx.connection, execution, execution.route.command_type)
        return outcome

    def apply_all(self, tx: ErpTransaction, executions: Sequence[Execution]) -> list[Outcome]:
        outcomes = super().apply_all(tx, executions)
        for execution in executions:
            write_effect(tx.connection, execution, execution.route.command_type)
        return outcomes


def build_adapter(settings: Settings, engine: Engine) -> RecordingDemo:
    """What ``OPSTAGE_ERP_ADAPTER`` names."""
    if os.environ.get(ALL_QUICK):
        Costs.of = lambda self, operation: 0.0  # type: ignore[method-assign]
    made = RecordingDemo(_CATALOGUE, engine, time_zone=demo.CHINA)
    made.ledger = RecordingLedger()
    return made
