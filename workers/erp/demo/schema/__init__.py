"""The demo ERP's tables on SQLite, PostgreSQL and MariaDB/MySQL.

They are shaped like those of the Chinese ERPs it stands for: Hungarian prefixes (s string, d decimal, i integer,
b flag, t time), ``sBrandsId``/``sSubsidiaryId`` on every row, no foreign keys. Rules are stated as named CHECKs.
"""

from __future__ import annotations

from sqlalchemy import Engine

from workers.erp.demo.schema import masters, products, stock, system, trade
from workers.erp.demo.schema.columns import demo_metadata

__all__ = ["create_demo", "demo_metadata", "drop_demo", "masters", "products", "stock", "system", "trade"]


def create_demo(engine: Engine) -> None:
    """Create whatever tables are missing; existing ones and their rows stay as they are."""
    demo_metadata.create_all(engine)


def drop_demo(engine: Engine) -> None:
    """Drop the demo's tables with everything in them; does nothing where there are none."""
    demo_metadata.drop_all(engine)
