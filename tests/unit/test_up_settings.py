"""What ``opstage up`` decides before it starts anything."""

from __future__ import annotations

from pathlib import Path

from staging.cli.processes import wants_demo
from staging.settings import Settings


def test_the_demo_erp_stays_out_of_the_database_of_an_erp_of_ones_own() -> None:
    own = "mariadb://u:p@h/erp"
    assert wants_demo(Settings(forms=None))
    assert not wants_demo(Settings(database_url=own, forms=Path("forms.yaml")))
    assert not wants_demo(Settings(database_url=own, forms=None, erp_adapter="acme.erp:build"))
