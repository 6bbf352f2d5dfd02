"""``make audit-deps`` fails for a known vulnerability and a lock that does not pin, and never for want of a network."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from typing import Any

import pytest

from tests.support.processes import ROOT

SCRIPT = ROOT / "scripts" / "audit-deps"
DIGEST = "sha256:" + "0" * 64
LOCK = f"""# a lock
kombu[redis]==5.7.0 \\
    --hash={DIGEST} \\
    --hash={DIGEST}
vine==5.1.0 ; python_version < '3.15' \\
    --hash={DIGEST}
    # via kombu
"""


def script() -> Any:
    loader = SourceFileLoader("audit_deps", str(SCRIPT))
    module = module_from_spec(spec_from_loader("audit_deps", loader) or pytest.fail("no such script"))
    loader.exec_module(module)
    return module


class Advisories(BaseHTTPRequestHandler):
    """Speaks as osv.dev does, about jinja2 2.4.1 (as everybody knows) and about ``bad``."""

    bad: set[str] = set()

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        name = asked["package"]["name"]
        known = name in self.bad or (name, asked["version"]) == ("jinja2", "2.4.1")
        affected = {"package": asked["package"], "ranges": []}
        one = {"id": f"TEST-{name}", "summary": "bad", "affected": [affected]}
        body = json.dumps({"vulns": [one]} if known else {}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name http.server has
        """Quiet."""


@pytest.fixture
def database() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Advisories)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/v1/query"
    server.shutdown()
    server.server_close()
    Advisories.bad = set()


def run(folder: Path, osv_url: str, lock: str = LOCK) -> tuple[int, str]:
    path = folder / "runtime.txt"
    path.write_text(lock)
    command = [sys.executable, str(SCRIPT), "--lock", str(path), "--osv-url", osv_url]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    return done.returncode, done.stdout + done.stderr


def test_a_known_vulnerability_fails_and_is_named(database: str, tmp_path: Path) -> None:
    Advisories.bad = {"vine"}
    code, said = run(tmp_path, database)
    assert code == 1
    assert "VULNERABLE: vine 5.1.0: TEST-vine" in said


def test_where_nothing_is_known_it_passes_and_says_that_it_was_audited(database: str, tmp_path: Path) -> None:
    code, said = run(tmp_path, database)
    assert code == 0
    assert "2 requirements" in said
    assert "audited by osv: 2 releases" in said


def test_without_a_network_it_passes_and_says_that_nothing_was_audited(tmp_path: Path) -> None:
    code, said = run(tmp_path, "http://127.0.0.1:9/v1/query")
    assert code == 0
    assert "NOT audited" in said
    assert "2 requirements" in said


@pytest.mark.parametrize(
    "entry",
    [
        "vine==5.1.0",
        f"vine>=5.1.0 \\\n    --hash={DIGEST}",
        f"vine==5.1.* \\\n    --hash={DIGEST}",
        "vine==5.1.0 \\\n    --hash=md5:0",
        f"vine @ https://example.org/vine.whl \\\n    --hash={DIGEST}",
        "-e .",
    ],
)
def test_a_lock_that_does_not_pin_fails(entry: str, tmp_path: Path) -> None:
    code, said = run(tmp_path, "http://127.0.0.1:9/v1/query", LOCK + entry + "\n")
    assert code == 1
    assert entry.split("\n")[0].removesuffix(" \\") in said


def test_the_locks_of_this_project_pin_everything() -> None:
    for name in ("runtime.txt", "dev.txt"):
        assert script().unpinned((ROOT / "locks" / name).read_text()) == []


def test_an_advisory_is_accepted_only_with_a_reason() -> None:
    entry = '[[tool.opstage.accepted-advisory]]\nid = "GHSA-1"\n'
    assert script().accepted(entry + 'reason = "not used"') == {"GHSA-1": "not used"}
    with pytest.raises(SystemExit, match="reason"):
        script().accepted(entry)
    script().accepted((ROOT / "pyproject.toml").read_text())
