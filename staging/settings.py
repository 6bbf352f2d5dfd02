"""One validated set of settings for every Opstage process.

Sources, strongest first: keyword arguments, ``OPSTAGE_*`` environment variables, ``.env`` in the working
directory, the defaults below. All durations are seconds.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Literal, Self

from pydantic import Field, SecretStr, ValidationInfo, field_validator, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

Locale = Literal["zh", "en"]

EMBEDDED_POSTGRES = "embedded-postgres"
"""In place of a database URL: the PostgreSQL that ``opstage up`` starts."""

_DRIVERS = {
    "postgres": "postgresql+psycopg",
    "postgresql": "postgresql+psycopg",
    "mysql": "mysql+pymysql",
    "mariadb": "mariadb+pymysql",
}


def normalize_database_url(url: str) -> str:
    """Return ``url`` with the driver Opstage ships for that database, e.g. ``postgresql+psycopg://``.

    Another driver's name (``mysql+mysqldb``) is replaced: only ours is told timeouts and session settings.
    """
    scheme, sep, rest = url.partition("://")
    return f"{_DRIVERS.get(scheme.partition('+')[0], scheme)}{sep}{rest}"


def _require_database_url(url: str) -> None:
    """Raise ValueError, without the URL (it may hold a password), where it names no database Opstage runs on."""
    if url == EMBEDDED_POSTGRES:
        return
    scheme, sep, rest = url.partition("://")
    example = "mariadb://user:password@host:3306/erp"
    if not sep or not (scheme.startswith("sqlite") or scheme in _DRIVERS.values()):
        raise ValueError(f"a URL of sqlite, postgresql, mariadb or mysql is expected, such as {example}")
    if not rest.partition("?")[0].rpartition("@")[2].partition("/")[2]:
        raise ValueError(f"it names no database: {example}")


class Settings(BaseSettings):
    """What an operator may set. Cross-checks at the end: a set that could lose or double work does not load."""

    model_config = SettingsConfigDict(env_prefix="OPSTAGE_", env_file=".env", extra="ignore", frozen=True)

    database_url: str = Field(default="sqlite:///.opstage/opstage.db", repr=False)
    erp_database_url: str = Field(
        default="", repr=False, description="empty: the ERP lives in the queue's database"
    )
    redis_url: SecretStr = SecretStr("redis://127.0.0.1:6379/0")
    broker_url: SecretStr = Field(default=SecretStr(""), description="empty: same as redis_url")
    broker_sentinel_master: str = Field(
        default="", description="what the Sentinels of a sentinel:// broker_url call the Redis they watch"
    )
    broker_queue_type: Literal["classic", "quorum"] = Field(
        default="classic", description="of RabbitMQ's queues; quorum: replicated in its cluster"
    )
    erp_adapter: str = "workers.erp.demo:build_adapter"
    forms: Path | None = Field(default=None, description="form catalogue (YAML); empty: the adapter's own")
    locale: Locale = "zh"
    data_dir: Path = Path(".opstage")

    queue_name: str = "opstage.execute"
    sweep_queue_name: str = "opstage.sweep"
    claim_batch: int = Field(default=100, ge=1, le=500)
    drain_budget_s: float = Field(default=20.0, gt=0, description="a task takes no further rows after this")
    hand_back_after_s: float = Field(
        default=0.5, gt=0, description="while one operation runs longer, others of its batch go back"
    )
    group_commit_s: float = Field(
        default=0.2,
        ge=0,
        description="shared database: quick operations of a tenant share a commit for so long; 0: each its own",
    )
    max_attempts: int = Field(default=5, ge=1, le=100)
    backoff_base_s: float = Field(default=1.0, gt=0)
    backoff_max_s: float = Field(default=60.0, gt=0)

    statement_timeout_s: float = Field(default=10.0, gt=0)
    lock_timeout_s: float = Field(default=3.0, gt=0)
    soft_time_limit_s: float = Field(default=45.0, gt=0)
    hard_time_limit_s: float = Field(default=60.0, gt=0)
    grace_s: float = Field(
        default=10.0, ge=0, description="what a dying process may still need after the hard limit"
    )
    lease_s: float = Field(default=90.0, gt=0)
    visibility_timeout_s: int = Field(default=3600, gt=0)

    sweep_interval_s: float = Field(default=2.0, gt=0)
    announce_after_s: float = Field(default=5.0, ge=0, description="a due row this old is announced again")
    sweep_batch: int = Field(default=500, ge=1)

    seal_key: SecretStr = Field(
        default=SecretStr(""), description="same in API and workers; empty: workers validate every row anew"
    )
    preparation_ttl_s: int = Field(default=1800, gt=0)
    publish_timeout_s: float = Field(default=0.5, gt=0, le=1.0)
    pool_size: int = Field(default=5, ge=1)
    worker_concurrency: int = Field(default=2, ge=1)
    payload_max_bytes: int = Field(default=1_000_000, gt=0)
    payload_max_depth: int = Field(default=12, gt=0)

    api_host: str = "127.0.0.1"
    api_port: int = Field(default=8000, gt=0, le=65535)
    auth: Literal["static", "jwt", "introspect"] = "static"
    tokens_file: Path | None = Field(
        default=None, description="static: hashed tokens; empty: tokens.json in data_dir"
    )
    jwt_jwks_url: str = Field(default="", description="jwt: where the issuer publishes its keys")
    jwt_issuer: str = ""
    jwt_audience: str = ""
    introspect_url: str = Field(default="", description="introspect: the ERP's whoami; gets the bearer token")
    introspect_cache_s: float = Field(default=30.0, ge=0, le=30.0)
    rate_limit: str = Field(default="600/minute", description="requests per credential, e.g. 600/minute")
    failed_credential_limit: str = Field(
        default="30/minute", description="credentials that are none, per client address"
    )
    streams_per_credential: int = Field(default=50, ge=1, description="open at the same time")
    body_max_bytes: int = Field(default=2_000_000, gt=0)
    stream_heartbeat_s: float = Field(default=15.0, gt=0)

    api_url: str = Field(
        default="", description="clients: where the API is; empty: http on api_host and api_port"
    )
    token: SecretStr = Field(default=SecretStr(""), description="clients: the bearer token")
    person_token: SecretStr = Field(
        default=SecretStr(""), description="MCP over stdio: the user's own, with which their confirm is sent"
    )
    mcp_port: int = Field(default=8765, gt=0, le=65535)

    flower_port: int = 5555
    flower_basic_auth: SecretStr = SecretStr("")

    @field_validator("database_url", "erp_database_url")
    @classmethod
    def _known_driver(cls, value: str, info: ValidationInfo) -> str:
        url = normalize_database_url(value)
        if url or info.field_name == "database_url":
            _require_database_url(url)
        return url

    @property
    def served_url(self) -> str:
        """Where the API of this host is, without a slash at the end."""
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self.api_host, self.api_host)  # noqa: S104
        return f"http://[{host}]:{self.api_port}" if ":" in host else f"http://{host}:{self.api_port}"

    @property
    def client_url(self) -> str:
        """Where clients find the API, without a slash at the end."""
        return (self.api_url or self.served_url).rstrip("/")

    @property
    def erp_url(self) -> str:
        """Database of the ERP (the queue's own where none is set)."""
        return self.erp_database_url or self.database_url

    @property
    def tokens_path(self) -> Path:
        """File of hashed tokens for ``auth=static``."""
        return self.tokens_file or self.data_dir / "tokens.json"

    @property
    def payload_limits(self) -> dict[str, int]:
        """For ``domain.intake``, by its argument names."""
        return {"max_bytes": self.payload_max_bytes, "max_depth": self.payload_max_depth}

    @property
    def shared_database(self) -> bool:
        """True where queue and ERP live in one database, so that the write-back shares the business commit."""
        return self.erp_url == self.database_url

    @property
    def broker(self) -> str:
        """Celery's broker URL, password included: never log it."""
        return self.broker_url.get_secret_value() or self.redis_url.get_secret_value()

    @property
    def broker_is_redis(self) -> bool:
        """True for one Redis, and for one that Sentinels watch."""
        return self.broker.startswith(("redis", "sentinel"))

    @model_validator(mode="after")
    def _sentinels_watch_something(self) -> Self:
        if self.broker.startswith("sentinel") and not self.broker_sentinel_master:
            raise ValueError("broker_url names Sentinels: set broker_sentinel_master to what they watch")
        return self

    @model_validator(mode="after")
    def _limits_nest(self) -> Self:
        """database limits < soft < hard < hard + grace < lease < visibility timeout (RELIABILITY A1, A12, A13)."""
        chain = [
            ("lock_timeout_s", self.lock_timeout_s),
            ("statement_timeout_s", self.statement_timeout_s),
            ("soft_time_limit_s", self.soft_time_limit_s),
            ("hard_time_limit_s", self.hard_time_limit_s),
            ("lease_s", self.lease_s),
            ("visibility_timeout_s", self.visibility_timeout_s),
        ]
        for (low_name, low), (high_name, high) in pairwise(chain):
            if low >= high:
                raise ValueError(f"{low_name} ({low:g} s) must be below {high_name} ({high:g} s)")
        if self.hard_time_limit_s + self.grace_s > self.lease_s:
            raise ValueError(
                "hard_time_limit_s + grace_s must not exceed lease_s: a lease may not end under a live worker"
            )
        if self.drain_budget_s + self.statement_timeout_s >= self.soft_time_limit_s:
            raise ValueError("drain_budget_s + statement_timeout_s must stay below soft_time_limit_s")
        return self


def misspelt_variables(names: Iterable[str]) -> dict[str, str]:
    """Those of ``names`` that look like a setting and are none → the setting that was probably meant.

    They are ignored when settings load, since one Opstage may share its environment with a newer one: say so.
    """
    known = {f"OPSTAGE_{name.upper()}" for name in Settings.model_fields}
    found: dict[str, str] = {}
    for name in names:
        plain = name.upper()
        if not plain.startswith("OPSTAGE_TEST_") and plain not in known:
            near = get_close_matches(plain, sorted(known), n=1, cutoff=0.85)
            found.update((name, one) for one in near)
    return found


@lru_cache(maxsize=1)
def get_settings() -> Settings:
    """The process's settings, read once."""
    return Settings()
