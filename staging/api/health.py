"""Liveness, readiness and metrics. No credential: they say nothing about anybody's operations."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Gauge, generate_latest

from staging.api.context import ServicesDep
from staging.storage import statistics

router = APIRouter(tags=["health"])


@router.get("/healthz", operation_id="healthz")
def healthz() -> dict[str, str]:
    """The process answers."""
    return {"status": "ok"}


@router.get("/readyz", operation_id="readyz", responses={503: {"description": "something cannot be reached"}})
def readyz(request: Request, services: ServicesDep, response: Response) -> dict[str, bool]:
    """Queue database and Redis can be reached. Each is asked within its own time limit."""
    answers = {"database": services.health.database(), "redis": services.health.redis()}
    response.status_code = 200 if all(answers.values()) else 503
    return answers


@router.get("/metrics", operation_id="metrics", response_class=Response)
def metrics(services: ServicesDep) -> Response:
    """Prometheus text: operations pending by code, age of the oldest due row in seconds."""
    registry = CollectorRegistry()
    pending = Gauge("opstage_operations_pending", "Operations by pending code", ["code"], registry=registry)
    oldest = Gauge(
        "opstage_oldest_due_seconds", "Age of the oldest row a worker may claim", registry=registry
    )
    with services.databases.store.read() as connection:
        for code, count in statistics.pending_by_code(connection).items():
            pending.labels(str(code)).set(count)
        oldest.set(statistics.oldest_due_s(connection))
    return Response(generate_latest(registry), media_type=CONTENT_TYPE_LATEST)
