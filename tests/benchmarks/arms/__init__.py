"""The arms of the comparison, by name."""

from __future__ import annotations

from tests.benchmarks.arms.base import Arm
from tests.benchmarks.arms.by_hand import ByHand
from tests.benchmarks.arms.opstage import Duplicates, Opstage
from tests.benchmarks.arms.peers import PEERS

_EACH = {"OPSTAGE_GROUP_COMMIT_S": "0"}
ARMS: dict[str, Arm] = {
    arm.name: arm
    for arm in (
        ByHand("bare", "by hand, a commit each", "tests.benchmarks.loops.bare"),
        ByHand("group", "by hand, group commit", "tests.benchmarks.loops.group", commit="group"),
        ByHand(
            "bare-mariadb", "by hand, a commit each", "tests.benchmarks.loops.bare_mariadb", engine="mariadb"
        ),
        ByHand(
            "bare-sqlite", "by hand, a commit each", "tests.benchmarks.loops.bare_sqlite", engine="sqlite"
        ),
        *PEERS,
        Opstage("opstage-form", "Opstage, catalogue form", commit="group"),
        Opstage("opstage-handler", "Opstage, Python handler", "erp.po.place", commit="group"),
        Opstage("opstage-set", "Opstage, set-based handler", "erp.po.placeAll", commit="group"),
        Opstage("opstage-form-each", "Opstage, catalogue form", **_EACH),
        Opstage("opstage-handler-each", "Opstage, Python handler", "erp.po.place", **_EACH),
        Duplicates("opstage-again", "Opstage, executed before", commit="group"),
    )
}
REFERENCE = {"postgresql": "bare", "mariadb": "bare-mariadb", "sqlite": "bare-sqlite"}


def chosen(only: str, engine: str) -> list[Arm]:
    """Arms for a comma-separated list of names or beginnings of names; all of ``engine``'s for an empty one.

    Raises ValueError for one that is not there. The reference comes along in any case.
    """
    here = {name: arm for name, arm in ARMS.items() if engine in arm.engines}
    reference = REFERENCE[engine]
    if not only:
        return list(here.values())
    names = [reference]
    for wanted in only.split(","):
        found = [name for name in here if name == wanted] or [
            name for name in here if name.startswith(wanted)
        ]
        if not found:
            raise ValueError(f"no arm {wanted!r}; there are {', '.join(here)}")
        names += found
    return [here[name] for name in dict.fromkeys(names)]
