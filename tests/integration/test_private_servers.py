"""The harness itself: private servers come back on the same data and port after each way of losing them."""

from __future__ import annotations

import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry
from sqlalchemy import create_engine, text
from sqlalchemy.exc import OperationalError
from sqlalchemy.pool import NullPool

from staging.embedded.server import EmbeddedServer
from tests.support.private import EmbeddedPostgres, EmbeddedRedis, PrivateMariaDB
from tests.support.waiting import wait_until


@pytest.fixture(params=["postgres", "mariadb"])
def private_database(request: pytest.FixtureRequest) -> EmbeddedServer:
    server: EmbeddedServer = request.getfixturevalue(f"private_{request.param}")
    return server


def test_a_killed_database_server_comes_back_with_what_was_committed(
    private_database: EmbeddedServer,
) -> None:
    url, port = private_database.url, private_database.port
    engine = create_engine(url, poolclass=NullPool)
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE kept (n INT)"))
        connection.execute(text("INSERT INTO kept VALUES (7)"))
    private_database.kill9()
    with pytest.raises(OperationalError), engine.connect():
        pass
    private_database.start()
    assert (private_database.url, private_database.port) == (url, port)
    with engine.connect() as connection:
        assert connection.execute(text("SELECT n FROM kept")).scalar_one() == 7
    private_database.restart()
    with engine.connect() as connection:
        assert connection.execute(text("SELECT n FROM kept")).scalar_one() == 7


def test_a_killed_redis_comes_back_with_what_reached_its_append_only_file(
    private_redis: EmbeddedRedis,
) -> None:
    client = private_redis.client()
    client.config_set("appendfsync", "always")
    client.set("kept", "7")
    private_redis.kill9()
    with pytest.raises(redis.exceptions.ConnectionError):
        client.ping()
    private_redis.start()
    assert client.get("kept") == b"7"
    client.close()


def test_a_paused_redis_keeps_connections_open_and_answers_nothing(private_redis: EmbeddedRedis) -> None:
    client = private_redis.client(timeout_s=0.3)
    assert client.ping()
    private_redis.pause()
    with pytest.raises(redis.exceptions.TimeoutError):
        client.get("anything")
    private_redis.resume()
    assert wait_until(client.ping, 5, "Redis answers again")
    client.close()


def test_private_servers_listen_on_loopback_and_refuse_strangers(
    private_postgres: EmbeddedPostgres, private_redis: EmbeddedRedis
) -> None:
    stranger = redis.Redis(host="127.0.0.1", port=private_redis.port, retry=Retry(NoBackoff(), 0))
    with pytest.raises(redis.exceptions.AuthenticationError):
        stranger.ping()
    stranger.close()
    with (
        pytest.raises(OperationalError, match="password authentication failed"),
        create_engine(private_postgres.url.replace("opstage:", "opstage:wrong")).connect(),
    ):
        pass


def test_two_private_servers_of_a_kind_do_not_meet(private_redis: EmbeddedRedis, redis_url: str) -> None:
    assert private_redis.url != redis_url
    mine, other = private_redis.client(), redis.Redis.from_url(redis_url)
    mine.set("whose", "mine")
    assert other.get("whose") is None
    mine.close()
    other.close()


def test_private_mariadb_speaks_utf8mb4(private_mariadb: PrivateMariaDB) -> None:
    engine = create_engine(private_mariadb.url)
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE words (w VARCHAR(20))"))
        connection.execute(text("INSERT INTO words VALUES (:w)"), {"w": "报价单🖨️"})
        assert connection.execute(text("SELECT w FROM words")).scalar_one() == "报价单🖨️"
    engine.dispose()
