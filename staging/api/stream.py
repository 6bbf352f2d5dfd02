"""Live status: long poll and server-sent events, resumed from the journal by ``Last-Event-ID``."""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from typing import Annotated, Any

from fastapi import APIRouter, Header, Query, Request
from sse_starlette import EventSourceResponse, ServerSentEvent
from starlette.concurrency import run_in_threadpool

from staging.api.context import ActorDep, CredentialDep, GuardedRoute, ServicesDep, limits_of
from staging.api.errors import RESPONSES, outage
from staging.api.hub import Bell, Hub, channel_of
from staging.contracts.operation import OperationEntry
from staging.contracts.preparation import OperationStatus
from staging.domain.credential import Authenticator
from staging.domain.errors import OpstageError
from staging.domain.operation import Told
from staging.messaging.redis_notifier import operation_channel
from staging.services.inspect import status_of
from staging.services.view import entry_of

log = logging.getLogger(__name__)
router = APIRouter(prefix="/v1", tags=["live status"], route_class=GuardedRoute, responses=RESPONSES)
_MAX_WAIT_S = 60.0
_LOOK_S = 30.0  # a stream looks by itself and its credential is verified anew, whatever rang or did not
_OUTAGE_S = (1.0, 4.0)  # not all streams at the same moment
_SSE: dict[int | str, dict[str, Any]] = {
    200: {
        "content": {
            "text/event-stream": {
                "schema": {
                    "type": "object",
                    "required": ["id", "event", "data"],
                    "properties": {
                        "id": {"type": "string", "description": "for Last-Event-ID"},
                        "event": {"const": "operation"},
                        "data": {"type": "string", "contentMediaType": "application/json"},
                    },
                },
                "example": 'id: Tn8rW0c2:3\nevent: operation\ndata: {"opId":"Tn8rW0c2","seq":3,"status":"success",'
                '"code":200,"message":"Customer KH0061 created","resultBillId":"01a2",'
                '"link":"/form/customer?bill=01a2","conversationId":null,"at":"2026-11-30T08:00:00Z"}\n\n',
            }
        },
        "description": "events named operation; a comment now and then while nothing happens",
    }
}
_LastEventId = Annotated[str | None, Header(max_length=16_000, description="resume after this event")]


@router.get("/operations/{op_id}/status", operation_id="getOperationStatus")
async def status(
    op_id: str,
    request: Request,
    actor: ActorDep,
    services: ServicesDep,
    wait: Annotated[float, Query(ge=0, le=_MAX_WAIT_S, description="seconds", allow_inf_nan=False)] = 0.0,
    after: Annotated[int, Query(ge=0, le=2**53)] = 0,
) -> OperationStatus:
    """The short status; with ``wait``, answers as soon as its seq is above ``after``, or when the time is up."""
    deadline = time.monotonic() + wait
    hub: Hub = request.app.state.hub
    async with hub.subscribed(operation_channel(op_id)) as bell:
        while True:
            bell.take()
            operation = await run_in_threadpool(services.inspect.get, actor, op_id)
            left_s = deadline - time.monotonic()
            if operation.seq > after or left_s <= 0 or hub.closing:
                return status_of(operation, actor.locale)
            await bell.wait(min(left_s, _LOOK_S))


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
    last_event_id: _LastEventId = None,
) -> EventSourceResponse:
    """Events of one operation from its first, or after ``Last-Event-ID`` (``{opId}:{seq}``)."""
    actor = credential.actor
    archived = (await run_in_threadpool(services.inspect.get, actor, op_id)).archived_at is not None
    seen = _seq_after(op_id, last_event_id)

    def read(_: list[str] | None) -> list[Told]:
        return services.feed.of_operation(actor, op_id, seen, archived=archived)

    def count(told: Told) -> None:
        nonlocal seen
        seen = told.event.seq

    return _stream(request, operation_channel(op_id), read, count, lambda: f"{op_id}:{seen}")


@router.get("/events", operation_id="streamEvents", response_class=EventSourceResponse, responses=_SSE)
async def user_events(
    request: Request, credential: CredentialDep, services: ServicesDep, last_event_id: _LastEventId = None
) -> EventSourceResponse:
    """Events of all of the caller's operations (an operator: the tenant's) from now on, or after ``Last-Event-ID``."""
    actor = credential.actor
    cursor = await run_in_threadpool(services.feed.cursor, actor, last_event_id)

    def read(moved: list[str] | None) -> list[Told]:
        if moved is None:
            return services.feed.since(actor, cursor)
        return services.feed.of_operations(actor, cursor, moved)

    def count(told: Told) -> None:
        cursor.advance(told.event.op_id, told.event.seq, told.event.at)

    return _stream(request, channel_of(actor), read, count, cursor.dump)


def _seq_after(op_id: str, last_event_id: str | None) -> int:
    prefix, _, number = (last_event_id or "").rpartition(":")
    known = prefix == op_id and number.isascii() and number.isdigit() and len(number) < 16
    return int(number) if known else 0


def _stream(
    request: Request,
    channel: str,
    read: Callable[[list[str] | None], list[Told]],
    count: Callable[[Told], None],
    place: Callable[[], str],
) -> EventSourceResponse:
    """``read``: what has not been told yet, of the operations that moved (None: of all); ``count`` an event as told;
    ``place``: the id that stands for all that was told."""

    async def events() -> AsyncIterator[ServerSentEvent]:
        hub: Hub = request.app.state.hub
        async with hub.subscribed(channel) as bell:
            # A first sign of life. Its id alone is no event, but where the other side resumes, should it have to.
            yield ServerSentEvent(comment="open", id=place())
            async for moved in _looks(request, bell):
                while told := await run_in_threadpool(read, moved):
                    for one in told:
                        count(one)
                        yield _event(one, place())

    limits, token_id = limits_of(request), request.state.credential.token_id
    limits.require_stream(token_id)

    async def counted() -> AsyncIterator[ServerSentEvent]:
        with limits.stream(token_id):
            async for event in _patient(events):
                yield event

    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    heartbeat_s = request.app.state.settings.stream_heartbeat_s
    return EventSourceResponse(counted(), headers=headers, ping=heartbeat_s, send_timeout=30)


async def _patient(events: Callable[[], AsyncIterator[ServerSentEvent]]) -> AsyncIterator[ServerSentEvent]:
    """The same events; where a database is away for a while, the stream waits for it instead of breaking."""
    while True:
        try:
            async for event in events():
                yield event
            return
        except Exception as error:
            if outage(error) is None:
                raise
            log.warning("a stream waits for the database (%s)", type(error).__name__)
        await asyncio.sleep(random.uniform(*_OUTAGE_S))  # noqa: S311 - jitter, no secret


async def _looks(request: Request, bell: Bell) -> AsyncIterator[list[str] | None]:
    """Yield whenever it is time to look: None at first and now and then, what moved at a wake-up.

    Ends when the credential does: by its own time, or because it is no longer accepted.
    """
    expires_at: datetime | None = request.state.credential.expires_at
    verified_at = looked_at = float("-inf")
    while True:
        now = time.monotonic()
        if expires_at is not None and datetime.now(UTC) >= expires_at:
            return
        if now - verified_at >= _LOOK_S:
            if verified_at > 0 and not await _still_accepted(request):
                return
            verified_at = now
        moved = bell.take()
        if moved and now - looked_at < _LOOK_S:
            yield moved
        elif now - looked_at >= _LOOK_S:
            looked_at = now
            yield None
        left_s = min(looked_at, verified_at) + _LOOK_S - time.monotonic()
        if expires_at is not None:
            left_s = min(left_s, (expires_at - datetime.now(UTC)).total_seconds() + 0.01)
        await bell.wait(max(0.01, left_s))


async def _still_accepted(request: Request) -> bool:
    """Ask again, as for a new request. A credential that cannot be verified ends the stream like one refused: the other
    side comes back with ``Last-Event-ID`` and misses nothing."""
    authenticator: Authenticator = request.app.state.authenticator
    try:
        await run_in_threadpool(authenticator.authenticate, request.state.token)
    except OpstageError as error:
        log.info("a stream ends: %s", error.code.value)
        return False
    return True


def _event(told: Told, identifier: str) -> ServerSentEvent:
    return ServerSentEvent(data=told.event.model_dump_json(by_alias=True), event="operation", id=identifier)
