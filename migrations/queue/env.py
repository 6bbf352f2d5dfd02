"""Alembic's way in; see ``migrations.environment``."""

from migrations.environment import run_on_given_connection

run_on_given_connection()
