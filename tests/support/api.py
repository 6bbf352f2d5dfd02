"""The HTTP API as its users meet it: uvicorn in a process of its own over real databases, and callers with tokens."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import httpx

from migrations.run import upgrade
from staging.api.auth.static import issue_token
from staging.bootstrap import Services, open_engine, open_services
from staging.domain.identity import ActorKind, Tenant
from staging.embedded.spawn import free_port
from tests.databases import fresh_database
from tests.support.processes import LoggedProcess, settings_from
from tests.support.sse import Listener
from workers.erp.demo.setup import set_up
from workers.executor import Executor
from workers.reconciler import Reconciler

B001, B002 = Tenant("B001", "S01"), Tenant("B002", "S01")
AGENT, PERSON, SERVICE, OPERATOR = (
    ActorKind.AGENT,
    ActorKind.PERSON,
    ActorKind.SERVICE,
    ActorKind.OPERATOR,
)
KINDS = (AGENT, PERSON, SERVICE, OPERATOR)


class ApiProcess(LoggedProcess):
    """``python -m staging.api.serve`` on a port of its own; ``start`` again after ``stop`` keeps the port."""

    ready_text = "Uvicorn running on"
    ready_timeout_s = 60.0

    def __init__(self, env: Mapping[str, str], folder: Path, *, name: str = "api") -> None:
        self.port = free_port()
        command = [sys.executable, "-m", "staging.api.serve"]
        super().__init__(command, {**env, "OPSTAGE_API_PORT": str(self.port)}, folder, name)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


class Caller:
    """Somebody with a token. Answers are checked against ``expect`` and given as JSON."""

    def __init__(self, url: str, token: str, locale: str = "en") -> None:
        headers = {"Authorization": f"Bearer {token}", "Accept-Language": locale}
        self.token = token
        self.http = httpx.Client(base_url=url, headers=headers, timeout=30)

    def get(self, path: str, expect: int = 200, **kw: Any) -> Any:
        return _checked(self.http.get(path, **kw), expect)

    def post(self, path: str, body: Any = None, expect: int = 200, **kw: Any) -> Any:
        """``body`` None: none is sent."""
        if body is not None:
            kw |= {"content": json.dumps(body), "headers": {"Content-Type": "application/json"}}
        return _checked(self.http.post(path, **kw), expect)

    def delete(self, path: str, expect: int = 204) -> Any:
        return _checked(self.http.delete(path), expect)

    def close(self) -> None:
        self.http.close()


def _checked(response: httpx.Response, expect: int) -> Any:
    assert response.status_code == expect, (
        f"{response.status_code} {response.request.url}: {response.text[:1500]}"
    )
    return response.json() if response.content else None


@dataclass
class Door:
    """The demo ERP behind the API; nothing executes unless ``execute`` is called or a worker is started beside it."""

    env: dict[str, str]
    api: ApiProcess
    services: Services
    executor: Executor
    folder: Path
    callers: dict[tuple[str, ...], Caller] = field(default_factory=dict)

    @property
    def url(self) -> str:
        return self.api.url

    def token(self, user: str, kind: ActorKind = PERSON, tenant: Tenant = B001, ttl_s: float = 3600) -> str:
        return issue_token(
            self.folder / "tokens.json",
            user=user,
            brands=tenant.brands_id,
            subsidiary=tenant.subsidiary_id,
            kind=kind,
            ttl_s=ttl_s,
        )

    def as_(self, user: str, kind: ActorKind = PERSON, tenant: Tenant = B001) -> Caller:
        """The same caller each time."""
        key = (user, kind.value, tenant.brands_id)
        if key not in self.callers:
            self.callers[key] = Caller(self.url, self.token(user, kind, tenant))
        return self.callers[key]

    def prepare(self, user: str, tenant: Tenant = B001, **request: Any) -> dict[str, Any]:
        """As the user's agent."""
        prepared: dict[str, Any] = self.as_(user, AGENT, tenant).post("/v1/preparations", request)
        return prepared

    def stage(self, user: str, tenant: Tenant = B001, **request: Any) -> dict[str, Any]:
        """An agent prepares, the person confirms; the operation as answered."""
        prepared = self.prepare(user, tenant, **request)
        path = f"/v1/preparations/{prepared['preparationId']}/confirm"
        (operation,) = self.as_(user, PERSON, tenant).post(path, {}, expect=202)["operations"]
        return dict(operation)

    def execute(self, *op_ids: str) -> None:
        """As a worker would, in this process."""
        self.executor.run_batch(op_ids)

    def run(self, user: str, **request: Any) -> dict[str, Any]:
        """``stage`` and ``execute``; the operation as it has ended."""
        op_id = self.stage(user, **request)["id"]
        self.execute(op_id)
        done: dict[str, Any] = self.as_(user).get(f"/v1/operations/{op_id}")
        return done

    def close(self) -> None:
        for caller in self.callers.values():
            caller.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def listening(door: Door, path: str = "/v1/events", user: str = "u-lin", last: str = "") -> Listener:
    """A listener of a person's, not started; ``last`` is the event id to resume after."""
    return Listener(door.url + path, door.as_(user).token, last)


@contextmanager
def open_door(kind: str, redis_url: str, folder: Path, **settings: str) -> Iterator[Door]:
    """A seeded demo ERP, its queue and an API on a database of engine ``kind``; ``settings`` without their prefix."""
    with ExitStack() as stack:
        url = stack.enter_context(fresh_database(kind, folder))
        env = {
            "OPSTAGE_DATABASE_URL": url,
            "OPSTAGE_REDIS_URL": redis_url,
            "OPSTAGE_DATA_DIR": str(folder),
            "OPSTAGE_QUEUE_NAME": f"{folder.name}.execute",
            "OPSTAGE_SWEEP_QUEUE_NAME": f"{folder.name}.sweep",
            "OPSTAGE_SEAL_KEY": "a key of tests",
            "OPSTAGE_RATE_LIMIT": "1000000/minute",
            "OPSTAGE_FAILED_CREDENTIAL_LIMIT": "1000000/minute",
            **{f"OPSTAGE_{name.upper()}": value for name, value in settings.items()},
        }
        loaded = settings_from(env)
        for tree in ("queue", "erp"):
            upgrade(loaded.database_url, tree)
        engine = open_engine(loaded, loaded.database_url)
        set_up(engine)
        engine.dispose()
        services = stack.enter_context(open_services(loaded))
        api = stack.enter_context(ApiProcess(env, folder))
        executor = _executor(services)
        yield stack.enter_context(Door(env, api, services, executor, folder))


def _executor(services: Services) -> Executor:
    from staging.bootstrap import open_dispatcher, open_teller

    settings, databases = services.settings, services.databases
    teller = open_teller(settings, open_dispatcher(settings))
    reconciler = Reconciler(databases.store, databases.adapter, teller, settings)
    return Executor(databases.store, databases.adapter, teller, settings, reconciler)
