"""What the ``env.py`` of both trees does: run on the connection that ``migrations.run`` hands over."""

from __future__ import annotations

from alembic import context

from migrations.errors import refuse


def run_on_given_connection() -> None:
    """Called by Alembic. Needs ``connection`` and ``version_table`` in the configuration's attributes."""
    attributes = context.config.attributes
    if context.is_offline_mode() or "connection" not in attributes:
        raise refuse(
            "请使用 opstage db upgrade 或 migrations.run：升级需要先查看数据库，不能离线生成脚本。",
            "Use opstage db upgrade or migrations.run: a migration looks at the database first, it cannot be a script.",
        )
    context.configure(connection=attributes["connection"], version_table=attributes["version_table"])
    context.run_migrations()
