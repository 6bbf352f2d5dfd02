"""Live status: long poll and server-sent events, resumed from the journal by ``Last-Event-ID``."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Annotated, Any

from fastapi import APIRouter, Header, Query, Request
from sse_starlette import EventSourceResponse, ServerSentEvent
from starlette.concurrency import run_in_threadpool

from staging.api.body import StrictRoute
from staging.api.context import ActorDep, CredentialDep, ServicesDep
from staging.api.errors import RESPONSES
from staging.api.hub import Hub, channels_of
from staging.contracts.operation import OperationEntry
from staging.contracts.preparation import OperationStatus
from staging.domain.operation import Told
from staging.services.inspect import status_of
from staging.services.view import entry_of

router = APIRouter(prefix="/v1", tags=["live status"], route_class=StrictRoute, responses=RESPONSES)
_MAX_WAIT_S = 60.0
_SSE: dict[int | str, dict[str, Any]] = {
    200: {"content": {"text/event-stream": {}}, "description": "events named operation"}
}


@router.get("/operations/{op_id}/status", operation_id="getOperationStatus")
async def status(
    op_id: str,
    request: Request,
    actor: ActorDep,
    services: ServicesDep,
    wait: Annotated[float, Query(ge=0, le=_MAX_WAIT_S, description="seconds")] = 0.0,
    after: Annotated[int, Query(ge=0, le=2**53)] = 0,
) -> OperationStatus:
    """The short status; with ``wait``, answers as soon as its seq is above ``after``, or when the time is up."""
    deadline = time.monotonic() + wait
    hub: Hub = request.app.state.hub
    async with hub.subscribed(*channels_of(actor.tenant, actor.user_id, op_id)) as bell:
        while True:
            bell.clear()
            operation = await run_in_threadpool(services.inspect.get, actor, op_id)
            left = deadline - time.monotonic()
            if operation.seq > after or left <= 0:
                return status_of(operation)
            await _wait(bell, min(left, hub.poll_s))


@router.get("/operations/{op_id}/journal", operation_id="getOperationJournal")
def journal(op_id: str, actor: ActorDep, services: ServicesDep) -> list[OperationEntry]:
    """All events of an operation at once, for a timeline."""
    return [entry_of(e, actor.locale) for e in services.inspect.events(actor, op_id)]


@router.get(
    "/operations/{op_id}/events",
    operation_id="streamOperationEvents",
    response_class=EventSourceResponse,
    responses=_SSE,
)
async def operation_events(
    op_id: str,
    request: Request,
    credential: CredentialDep,
    services: ServicesDep,
    last_event_id: Annotated[str | None, Header()] = None,
) -> EventSourceResponse:
    """Events of one operation from its first, or after ``Last-Event-ID`` (``{opId}:{seq}``)."""
    actor = credential.actor
    await run_in_threadpool(services.inspect.get, actor, op_id)
    prefix, _, number = (last_event_id or "").rpartition(":")
    after = (
        int(number) if prefix == op_id and number.isascii() and number.isdigit() and len(number) < 16 else 0
    )

    async def events() -> AsyncIterator[ServerSentEvent]:
        seen = after
        async for _ in _ticks(
            request, credential.expires_at, channels_of(actor.tenant, actor.user_id, op_id)
        ):
            for told in await run_in_threadpool(services.feed.of_operation, actor, op_id, seen):
                seen = told.event.seq
                yield _event(told, f"{op_id}:{seen}")

    return _response(request, events())


@router.get("/events", operation_id="streamEvents", response_class=EventSourceResponse, responses=_SSE)
async def user_events(
    request: Request,
    credential: CredentialDep,
    services: ServicesDep,
    last_event_id: Annotated[str | None, Header()] = None,
) -> EventSourceResponse:
    """Events of all of the caller's operations (an operator: the tenant's) from now on, or after ``Last-Event-ID``."""
    actor = credential.actor
    cursor = await run_in_threadpool(services.feed.cursor, actor, last_event_id)

    async def events() -> AsyncIterator[ServerSentEvent]:
        async for _ in _ticks(request, credential.expires_at, channels_of(actor.tenant, actor.user_id)):
            while page := await run_in_threadpool(services.feed.since, actor, cursor):
                for told in page:
                    services.feed.advance(cursor, told)
                    yield _event(told, cursor.dump())

    return _response(request, events())


def _event(told: Told, identifier: str) -> ServerSentEvent:
    return ServerSentEvent(data=told.event.model_dump_json(by_alias=True), event="operation", id=identifier)


def _response(request: Request, events: AsyncIterator[ServerSentEvent]) -> EventSourceResponse:
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return EventSourceResponse(events, headers=headers, ping=request.app.state.settings.stream_heartbeat_s)


async def _ticks(
    request: Request, expires_at: datetime | None, channels: tuple[str, ...]
) -> AsyncIterator[None]:
    """Yield whenever it is time to look: at once, at a wake-up, at a poll. Ends when the credential does."""
    hub: Hub = request.app.state.hub
    async with hub.subscribed(*channels) as bell:
        while expires_at is None or datetime.now(UTC) < expires_at:
            bell.clear()
            yield
            left = hub.poll_s
            if expires_at is not None:
                left = min(left, max(0.0, (expires_at - datetime.now(UTC)).total_seconds()) + 0.01)
            await _wait(bell, left)


async def _wait(bell: asyncio.Event, timeout_s: float) -> None:
    try:
        async with asyncio.timeout(timeout_s):
            await bell.wait()
    except TimeoutError:
        return
