"""The demo ERP: a small Chinese printing and packaging ERP with its data, forms and commands.

``build_adapter`` is what ``OPSTAGE_ERP_ADAPTER`` names by default.
"""

from __future__ import annotations

from datetime import timedelta, timezone
from pathlib import Path

from sqlalchemy import Engine

from staging.settings import Settings
from workers.erp.demo.native import DemoAdapter
from workers.erp.forms import load_catalogue

FORMS = Path(__file__).with_name("forms.yaml")
CHINA = timezone(timedelta(hours=8))
"""Whose "today" document numbers and default dates mean."""


def build_adapter(settings: Settings, engine: Engine) -> DemoAdapter:
    """The generic SQL adapter on ``engine`` (the ERP's), with ``settings.forms`` or the demo's own catalogue.

    Connects to nothing yet. Raises ``CatalogueInvalid`` or ``HandlerInvalid``.
    """
    return DemoAdapter(load_catalogue(settings.forms or FORMS), engine, time_zone=CHINA)
