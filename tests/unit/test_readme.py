"""The README's tables and diagram are what the code says."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_generated_parts_of_both_readmes_are_current() -> None:
    result = subprocess.run(
        [sys.executable, str(ROOT / "scripts/readme"), "--check"], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stdout + result.stderr
