"""The two doors clients use: the services in this process, and HTTP. Both answer alike, or say why not."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import httpx
import redis
from sqlalchemy.exc import SQLAlchemyError

from staging.bootstrap import Services
from staging.contracts.preparation import ConfirmRequest, PrepareRequest
from staging.domain.errors import OpstageError, Transient
from staging.domain.identity import Actor, ActorKind
from staging.storage.dberrors import classify_db_error
from tests.support.queue_rows import TENANT

USER, BOSS = "u-lin", "u-boss"
T = TypeVar("T")
_HTTP_TIMEOUT_S = 6.0


class Unsure(Exception):
    """No answer, or one that proves nothing: what was asked may have happened, or may not."""


class Said(Exception):
    """A refusal, by its stable ``code``."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


@dataclass(frozen=True, slots=True)
class Seen:
    """An operation as answered."""

    id: str
    code: int


class Door(Protocol):
    """Raises ``Said`` or ``Unsure``; anything else is a bug of the product."""

    def prepare(self, request: Mapping[str, Any]) -> str: ...

    def confirm(self, preparation_id: str, edits: Mapping[str, Any]) -> list[Seen]: ...

    def act(self, verb: str, op_id: str, user: str = USER) -> Seen:
        """``verb``: cancel, retry, approve, reject."""

    def look(self, op_id: str) -> Seen: ...


class ServiceDoor:
    """In this process, on a database connection and a Redis of its own."""

    def __init__(self, services: Services) -> None:
        self._services = services

    def prepare(self, request: Mapping[str, Any]) -> str:
        agent = Actor(TENANT, USER, ActorKind.AGENT)
        asked = PrepareRequest.model_validate(dict(request))
        return _plain(lambda: self._services.prepare.prepare(agent, asked)).preparation_id

    def confirm(self, preparation_id: str, edits: Mapping[str, Any]) -> list[Seen]:
        asked = ConfirmRequest(edits=dict(edits))
        found = _plain(lambda: self._services.confirm.confirm(_person(USER), preparation_id, asked))
        return [Seen(o.id, o.code or 0) for o in found]

    def act(self, verb: str, op_id: str, user: str = USER) -> Seen:
        call = getattr(self._services.control, verb)
        operation = _plain(lambda: call(_person(user), op_id))
        return Seen(operation.id, operation.code or 0)

    def look(self, op_id: str) -> Seen:
        operation = _plain(lambda: self._services.inspect.get(_person(USER), op_id))
        return Seen(operation.id, operation.code or 0)


def _person(user: str) -> Actor:
    return Actor(TENANT, user, ActorKind.PERSON)


def _plain(call: Callable[[], T]) -> T:
    try:
        return call()
    except Transient as error:
        raise Unsure(str(error)) from error
    except OpstageError as error:
        raise Said(error.code.value) from error
    except redis.RedisError as error:
        raise Unsure(str(error)) from error
    except SQLAlchemyError as error:
        if not classify_db_error(error).is_transient:
            raise
        raise Unsure(str(error)) from error


class HttpDoor:
    """Through the API process. ``tokens``: by (user, kind)."""

    def __init__(self, url: str, tokens: Mapping[tuple[str, ActorKind], str]) -> None:
        self._http = httpx.Client(base_url=url, timeout=_HTTP_TIMEOUT_S)
        self._tokens = tokens

    def prepare(self, request: Mapping[str, Any]) -> str:
        body = self._send("POST", "/v1/preparations", USER, dict(request), ActorKind.AGENT)
        return str(body["preparationId"])

    def confirm(self, preparation_id: str, edits: Mapping[str, Any]) -> list[Seen]:
        path = f"/v1/preparations/{preparation_id}/confirm"
        return _seen(self._send("POST", path, USER, {"edits": dict(edits)})["operations"])

    def act(self, verb: str, op_id: str, user: str = USER) -> Seen:
        return _seen([self._send("POST", f"/v1/operations/{op_id}/{verb}", user, {})])[0]

    def look(self, op_id: str) -> Seen:
        return _seen([self._send("GET", f"/v1/operations/{op_id}", USER)])[0]

    def close(self) -> None:
        self._http.close()

    def _send(
        self, method: str, path: str, user: str, body: Any = None, kind: ActorKind = ActorKind.PERSON
    ) -> Any:
        headers = {"Authorization": f"Bearer {self._tokens[user, kind]}"}
        try:
            answer = self._http.request(method, path, json=body, headers=headers)
        except httpx.TransportError as error:
            raise Unsure(str(error)) from error
        if answer.status_code in (503, 504):
            raise Unsure(answer.text)
        if answer.status_code >= 500:
            raise AssertionError(f"{method} {path}: HTTP {answer.status_code} {answer.text[:300]}")
        if answer.status_code >= 400:
            raise Said(str(answer.json()["error"]["code"]))
        return answer.json()


def _seen(operations: Sequence[Mapping[str, Any]]) -> list[Seen]:
    return [Seen(str(o["id"]), int(o["code"])) for o in operations]
