"""The adapter of the benchmark's ERP: what ``OPSTAGE_ERP_ADAPTER`` names in its runs."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import Engine

from staging.settings import Settings
from workers.erp.forms import load_catalogue
from workers.erp.sql.adapter import SqlAdapter


def build_adapter(_settings: Settings, engine: Engine) -> SqlAdapter:
    """The generic SQL adapter with the catalogue beside this file."""
    return SqlAdapter(load_catalogue(Path(__file__).with_name("forms.yaml")), engine)
