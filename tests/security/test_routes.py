"""D7: the matrix of routes × credentials × foreign ids (tests/integration/api/test_matrix.py) misses no route."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from starlette.routing import BaseRoute, Mount

from staging.api.app import create_app
from staging.settings import Settings
from tests.integration.api.test_matrix import ROUTES

# What needs no credential or takes it from the cookie: pages and their session (test_session.py, tests/e2e/pages; the
# demo ERP's own form is put in where that ERP is), health (test_answers.py), and the description of it all.
OPEN = {
    ("GET", "/"),
    ("GET", "/queue"),
    ("GET", "/favicon.ico"),
    ("GET", "/locale/{locale}"),
    ("POST", "/session"),
    ("DELETE", "/session"),
    ("GET", "/healthz"),
    ("GET", "/readyz"),
    ("GET", "/metrics"),
    ("GET", "/openapi.json"),
    ("GET", "/static"),
}


def served(routes: Sequence[BaseRoute]) -> Iterator[tuple[str, str]]:
    """Method and path of everything the app answers, whether documented or not."""
    for route in routes:
        path: Any = getattr(route, "path", None)
        if isinstance(route, Mount):
            yield "GET", path
        elif path is not None:
            plain = path.replace(":path}", "}")
            yield from ((method, plain) for method in sorted(getattr(route, "methods", None) or {"?"}))
        else:  # a router put in as a whole
            yield from served(route.original_router.routes)  # type: ignore[attr-defined]


def test_every_route_there_is_stands_in_the_matrix_or_in_the_list_of_open_ones() -> None:
    """D7: none is hidden from the OpenAPI document."""
    app = create_app(Settings(_env_file=None))
    everything = {(m, p) for m, p in served(app.routes) if m != "HEAD"}
    tested = {(route.method, route.path) for route in ROUTES}
    assert len(tested) > 20
    assert everything == tested | OPEN


def test_nothing_changes_state_by_get() -> None:
    """D12: whatever does something is a POST or a DELETE."""
    app = create_app(Settings(_env_file=None))
    verbs = ("cancel", "retry", "approve", "reject", "complete", "revert", "restage", "confirm", "session")
    changing = {(m, p) for m, p in served(app.routes) if p.rpartition("/")[2] in verbs}
    assert {method for method, _ in changing} == {"POST", "DELETE"}
