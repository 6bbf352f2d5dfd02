"""Liveness, readiness and metrics. No credential: they say nothing about anybody's operations."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Gauge, generate_latest

from staging.api.context import ServicesDep
from staging.api.hub import Hub

router = APIRouter(tags=["health"])


@router.get("/healthz", operation_id="healthz")
async def healthz() -> dict[str, str]:
    """The process answers, even while all its threads wait for something."""
    return {"status": "ok"}


@router.get("/readyz", operation_id="readyz", responses={503: {"description": "something cannot be reached"}})
def readyz(services: ServicesDep, response: Response) -> dict[str, bool]:
    """Queue database, Redis and broker can be reached. Each is asked within its own time limit."""
    answers = services.health.ready()
    response.status_code = 200 if all(answers.values()) else 503
    return answers


@router.get(
    "/metrics",
    operation_id="metrics",
    response_class=Response,
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
)
def metrics(request: Request, services: ServicesDep) -> Response:
    """Prometheus text: operations pending by code, ages in seconds of what should move on, open live streams."""
    registry = CollectorRegistry()

    def gauge(name: str, text: str, value: float | None) -> None:
        Gauge(f"opstage_{name}", text, registry=registry).set(value or 0)

    by_code = Gauge("opstage_operations_pending", "Operations by pending code", ["code"], registry=registry)
    for code, count in services.health.pending().items():
        by_code.labels(str(code)).set(count)
    ages = services.health.backlog()
    gauge("oldest_due_seconds", "Age of the oldest row a worker may claim", ages.oldest_due_s)
    gauge("oldest_unknown_seconds", "Age of the oldest row whose outcome is not known", ages.oldest_unknown_s)
    gauge("leases_lapsed", "Rows at 101 whose lease is over", ages.lapsed)
    hub: Hub = request.app.state.hub
    gauge("listeners", "Streams and long polls waiting on this process", hub.listeners)
    return Response(generate_latest(registry), media_type=CONTENT_TYPE_LATEST)
