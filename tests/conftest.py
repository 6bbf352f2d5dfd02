"""Loads the harness: fresh databases, private servers and real processes as fixtures; spreads tests over the cores."""

from __future__ import annotations

from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling

pytest_plugins = ["tests.support.fixtures", "tests.support.world_fixtures"]

# Conformance files share whole products; these of e2e run whole sets of processes on the usual ports.
_TOGETHER = {
    "tests/conformance/": "conformance",
    **dict.fromkeys(
        [
            f"tests/e2e/{name}"
            for name in ("pages/", "test_api_up", "test_demo", "test_flower", "test_mcp_", "test_up")
        ],
        "whole sets",
    ),
}


class ByRoom(LoadScopeScheduling):  # type: ignore[misc]
    """Tests of a file share module fixtures and stay on one worker; so do the rooms of ``_TOGETHER``."""

    def _split_scope(self, nodeid: str) -> str:
        path = nodeid.partition("::")[0]
        return next((room for start, room in _TOGETHER.items() if path.startswith(start)), path)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> ByRoom:
    """With ``-n``: a worker gets whole rooms or files."""
    return ByRoom(config, log)
