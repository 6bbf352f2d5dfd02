"""``python -m workers.story``: the narrated demo behind ``opstage demo``. Exit 0 only if every step was verified."""

from __future__ import annotations

import os
import sys
import time

from workers.story.stage import SHORT

for _name, _value in SHORT.items():  # before anything reads the settings; child processes inherit them
    os.environ.setdefault(_name, _value)

from migrations.run import upgrade  # noqa: E402 - see above
from staging.bootstrap import open_engine, open_services  # noqa: E402
from staging.domain.errors import OpstageError  # noqa: E402
from staging.settings import get_settings  # noqa: E402
from workers.erp.demo.schema import create_demo  # noqa: E402
from workers.erp.demo.seed import seed_demo  # noqa: E402
from workers.story.narrator import Narrator, StoryFailed  # noqa: E402
from workers.story.stage import Stage  # noqa: E402
from workers.story.steps import Story  # noqa: E402


def main() -> int:
    settings = get_settings()
    narrator = Narrator(settings.locale)
    started = time.monotonic()
    upgrade(settings.database_url, "queue")
    upgrade(settings.erp_url, "erp")
    with open_services(settings) as services:
        stage = Stage(settings, services, narrator)
        engine = open_engine(settings, settings.erp_url, "opstage-story")
        story = Story(stage, engine)
        create_demo(story.engine)
        seed_demo(story.engine)
        try:
            stage.beat()
            story.worker = stage.worker("first")
            preparation_id = story.main_job()
            story.http_door(preparation_id)
            story.duplicate_confirm(preparation_id)
            story.stale_update()
            story.over_issue()
            story.other_tenant(preparation_id)
            story.plain_sql()
            story.killed_worker()
        except (StoryFailed, OpstageError, RuntimeError) as error:
            print(f"✘ {error}", file=sys.stderr)
            return 1
        finally:
            stage.close()
            engine.dispose()
    seconds = time.monotonic() - started
    narrator.step(
        f"完成：{narrator.checks} 项全部在数据库里核实，用时 {seconds:.0f} 秒",
        f"Done: all {narrator.checks} checks verified in the database, {seconds:.0f} s",
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
