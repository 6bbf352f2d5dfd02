"""Loads the harness: fresh databases, private servers and real processes as fixtures."""

from __future__ import annotations

import pytest

pytest_plugins = ["tests.support.fixtures", "tests.support.world_fixtures"]


@pytest.hookimpl(tryfirst=True)  # before xdist reads the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests of a file share module fixtures, so they stay together. The conformance files share whole products; those
    of e2e run whole sets of processes on the usual ports, one after the other."""
    for item in items:
        whole = [folder for folder in item.path.parents if folder.name in ("conformance", "e2e")]
        item.add_marker(pytest.mark.xdist_group(str(whole[0] if whole else item.path)))
