"""Loads the harness: fresh databases, private servers and real processes as fixtures."""

from __future__ import annotations

import pytest

pytest_plugins = ["tests.support.fixtures", "tests.support.world_fixtures"]


@pytest.hookimpl(tryfirst=True)  # before xdist reads the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests of a file share module fixtures, so they stay together; the conformance files share whole products."""
    for item in items:
        folder = item.path.parent
        together = folder if folder.name == "conformance" else item.path
        item.add_marker(pytest.mark.xdist_group(str(together)))
