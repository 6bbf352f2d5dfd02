"""Loads the harness: fresh databases, private servers and real processes as fixtures."""

from __future__ import annotations

pytest_plugins = ["tests.support.fixtures", "tests.support.world_fixtures"]
