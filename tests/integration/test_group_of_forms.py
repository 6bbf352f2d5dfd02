"""Creates of a real catalogue in one group: one refused in the middle, one without permission, and all the others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy import Engine, event, select

from staging import failpoints
from staging.contracts.status import StatusCode as C
from staging.domain.canonical import payload_hash
from staging.domain.identity import Actor
from staging.domain.intake import dump_json
from staging.settings import Settings
from staging.storage.tables import op_queue
from tests.support.shop_erp import BOSS, TENANT, Shop, load, product, request, request_line
from tests.support.world import World
from tests.support.world_fixtures import MakeWorld, only
from workers.erp.sql.adapter import SqlAdapter

pytestmark = only(lambda kind, shared: shared)
_CATALOGUE = load()
# "clerk" may create quotations only.
REFUSED, FORBIDDEN = "px", "clerk"


def build_adapter(_settings: Settings, engine: Engine) -> SqlAdapter:
    return SqlAdapter(_CATALOGUE, engine)


@pytest.fixture
def shop(make_world: MakeWorld) -> tuple[World, Shop]:
    """The executor has seen a request and knows that it is quick."""
    world = make_world(group_commit_s="30", erp_adapter=f"{__name__}:build_adapter")
    made = Shop(world.erp, _CATALOGUE)
    world.wipe()
    made.reset()
    world.run(_stage(world, made, "the first"))
    return world, made


def _stage(world: World, shop: Shop, department: str, thing: str = "p1", maker: str = "boss") -> str:
    payload = {"department": department, "lines": [{"product": thing, "quantity": 1}]}
    if thing == REFUSED:
        shop.add(product, sId=thing, sName="临时")
    prepared = shop.prepare("request", "create", payload=payload, actor=Actor(TENANT, BOSS.user_id))
    if thing == REFUSED:
        with shop.engine.begin() as connection:
            connection.execute(product.delete().where(product.c.sId == thing))
    route = prepared.route
    values: dict[str, Any] = {
        "tenant": TENANT,
        "maker": maker,
        "command_type": route.command_type,
        "form_id": route.form_id,
        "module_id": route.module_id,
        "target_table": route.target_table,
        "payload_json": dump_json(prepared.payload),
        "payload_hash": payload_hash(prepared.payload),
        "pins_json": dump_json(prepared.pins),
        "target_version": prepared.target_version,
    }
    return world.stage(**values)


def _written(shop: Shop) -> list[tuple[str, str]]:
    with shop.engine.connect() as connection:
        of_ours = select(request.c.sBillNo, request.c.sDepartment).where(request.c.sDepartment.like("d%"))
        return [(row[0], row[1]) for row in connection.execute(of_ours.order_by(request.c.sBillNo))]


@contextmanager
def _inserts(shop: Shop) -> Iterator[Counter[str]]:
    seen: Counter[str] = Counter()

    def note(_c: object, _cursor: object, statement: str, *_: object) -> None:
        if statement.startswith("INSERT INTO g_"):
            seen[statement.split()[2]] += 1

    event.listen(shop.engine, "before_cursor_execute", note)
    try:
        yield seen
    finally:
        event.remove(shop.engine, "before_cursor_execute", note)


def test_a_group_is_written_by_one_insert_a_table(shop: tuple[World, Shop]) -> None:
    world, erp = shop
    ids = [_stage(world, erp, f"d{n}") for n in range(6)]
    with _inserts(erp) as inserts:
        assert world.run(*ids) == 6
    assert [world.code(i) for i in ids] == [C.EXECUTED] * 6
    assert inserts == {"g_request": 1, "g_request_line": 1}
    assert _written(erp) == [(f"QGD000{n + 4}", f"d{n}") for n in range(6)]
    assert [world.read(i).result_message for i in ids] == [f"已创建申请单 QGD000{n + 4}" for n in range(6)]


def test_one_refused_and_one_forbidden_in_the_middle_fail_and_the_numbers_have_no_gap(
    shop: tuple[World, Shop],
) -> None:
    world, erp = shop
    ids = [
        _stage(world, erp, "d0"),
        _stage(world, erp, "gone", REFUSED),
        _stage(world, erp, "d1"),
        _stage(world, erp, "not allowed", maker=FORBIDDEN),
        _stage(world, erp, "d2"),
    ]
    assert world.run(*ids) == 5
    codes = [C.EXECUTED, C.PAYLOAD_INVALID, C.EXECUTED, C.FORBIDDEN, C.EXECUTED]
    assert [world.code(i) for i in ids] == codes
    assert _written(erp) == [("QGD0004", "d0"), ("QGD0005", "d1"), ("QGD0006", "d2")]


def test_what_the_database_refuses_undoes_the_group_and_only_that_one_fails(shop: tuple[World, Shop]) -> None:
    world, erp = shop
    ids = [_stage(world, erp, f"d{n}") for n in range(3)]
    with erp.engine.begin() as connection:
        connection.exec_driver_sql(
            f"CREATE UNIQUE INDEX uq_test ON g_request ({_quoted(erp, 'sDepartment')})"
        )
    try:
        erp.add(request, sId="there", sBillNo="X1", sDepartment="d1")
        assert world.run(*ids) == 3
    finally:
        with erp.engine.begin() as connection:
            on = " ON g_request" if erp.engine.dialect.name in ("mysql", "mariadb") else ""
            connection.exec_driver_sql("DROP INDEX uq_test" + on)
    assert [world.code(i) for i in ids] == [C.EXECUTED, C.RULE_REFUSED, C.EXECUTED]
    assert [d for _, d in _written(erp)] == ["d0", "d2", "d1"]


def _quoted(erp: Shop, name: str) -> str:
    return erp.engine.dialect.identifier_preparer.quote(name)


@pytest.mark.parametrize("window", ["W5", "W6"])
def test_a_process_that_ends_in_the_middle_leaves_nothing_and_they_are_executed_once(
    shop: tuple[World, Shop], monkeypatch: pytest.MonkeyPatch, window: str
) -> None:
    world, erp = shop
    ids = [_stage(world, erp, f"d{n}") for n in range(3)]

    def leave(name: str, *_ids: str) -> None:
        if name == window:
            raise SystemExit(1)

    with monkeypatch.context() as patch:
        patch.setattr(failpoints, "reached", leave)
        with pytest.raises(SystemExit):
            world.run(*ids)
    assert _written(erp) == []
    assert [(o.code, o.attempt) for o in map(world.read, ids)] == [(100, 1)] * 3
    with world.queue.begin() as connection:
        connection.execute(op_queue.update().values(tNotBefore=None))
    assert [o.status_code for o in world.settle(*ids)] == [C.EXECUTED] * 3
    assert sorted(_written(erp)) == [(f"QGD000{n + 4}", f"d{n}") for n in range(3)]
    with erp.engine.connect() as connection:
        assert len(connection.execute(select(request_line.c.sId)).all()) == 4 + 4
