"""``python -m workers.erp.demo.setup``: create and fill the demo ERP in the ERP's database; may be repeated."""

from __future__ import annotations

import sys
from dataclasses import dataclass

from sqlalchemy import Engine, inspect

from staging.settings import get_settings
from staging.storage.engine import make_engine
from workers.erp.demo.schema import create_demo, demo_metadata
from workers.erp.demo.seed import DEFAULT_SEED, seed_demo
from workers.erp.demo.seed.people import COMPANIES, USERS


@dataclass(frozen=True, slots=True)
class Done:
    """``rows`` by table as inserted now: empty where the demo was there before."""

    rows: dict[str, int]

    def text(self, locale: str) -> str:
        """One line for a person."""
        users = ", ".join(f"{company} ({', '.join(USERS[brands])})" for brands, company in COMPANIES.items())
        total = sum(self.rows.values())
        if not total:
            return (
                f"演示ERP已就绪，未改动：{users}"
                if locale == "zh"
                else f"The demo ERP is there already: {users}"
            )
        if locale == "zh":
            return f"演示ERP已建立，{len(self.rows)}张表共{total}行：{users}"
        return f"Demo ERP created, {total} rows in {len(self.rows)} tables: {users}"


def set_up(engine: Engine, seed: int = DEFAULT_SEED) -> Done:
    """Create missing tables and fill them, unless they were filled before."""
    create_demo(engine)
    return Done(seed_demo(engine, seed))


def other_tables(engine: Engine) -> list[str]:
    """Tables that are neither the demo's nor Opstage's own: somebody's ERP lives here."""
    there = inspect(engine).get_table_names()
    return sorted(t for t in there if t not in demo_metadata.tables and not t.lower().startswith("ai_"))


def main() -> int:
    """Exit code 1, nothing written, for a database that holds an ERP of somebody's own."""
    settings = get_settings()
    engine = make_engine(settings.erp_url)
    try:
        others = other_tables(engine)
        if others:
            zh = f"数据库里已有其他表（{others[0]} 等 {len(others)} 张），演示ERP不写入；请设置 OPSTAGE_FORMS"
            en = f"The database holds tables of its own ({others[0]}, {len(others)} in all); the demo ERP stays out."
            print(
                zh if settings.locale == "zh" else f"{en} Set OPSTAGE_FORMS for your own ERP", file=sys.stderr
            )
            return 1
        print(set_up(engine).text(settings.locale))
    finally:
        engine.dispose()
    return 0


if __name__ == "__main__":
    sys.exit(main())
