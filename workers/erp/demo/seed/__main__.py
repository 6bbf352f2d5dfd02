"""``python -m workers.erp.demo.seed``: the demo ERP's tables and data in the ERP database; nothing is done twice."""

from __future__ import annotations

from staging.settings import get_settings
from staging.storage.engine import make_engine
from workers.erp.demo.schema import create_demo
from workers.erp.demo.seed import seed_demo


def main() -> None:
    settings = get_settings()
    engine = make_engine(settings.erp_url)
    try:
        create_demo(engine)
        rows = sum(seed_demo(engine).values())
    finally:
        engine.dispose()
    zh = f"演示 ERP：写入 {rows} 行" if rows else "演示 ERP：数据已就绪"
    en = f"demo ERP: {rows} rows written" if rows else "demo ERP: already there"
    print(zh if settings.locale == "zh" else en)


if __name__ == "__main__":
    main()
