"""The probes: which questions are put to which server, in which order. Findings are added as answers come in."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from migrations.errors import MigrationError
from migrations.run import Tree, current
from staging.domain.errors import Refused
from staging.domain.ports import CatalogueProblem
from staging.messaging import probe as redis_probe
from staging.messaging.celery_dispatcher import answering_workers, queue_depths
from staging.services.doctor import local
from staging.services.doctor.backlog import judge_backlog
from staging.services.doctor.database import judge_database
from staging.services.doctor.failures import REACHABLE, EmbeddedNotRunning
from staging.services.doctor.finding import Level, Section, t
from staging.services.doctor.messaging import judge_depths, judge_embedded, judge_redis, judge_workers
from staging.settings import EMBEDDED_POSTGRES, Settings
from staging.storage import probe as database_probe
from staging.storage.backlog import look_at_rows
from staging.storage.probe import ERP_IDS, QUEUE_IDS, DatabaseFacts

CheckForms = Callable[[], Sequence[CatalogueProblem]]
Seen = dict[str, DatabaseFacts]  # by service, filled as servers answer


@dataclass(frozen=True)
class Probe:
    """``run`` adds what it finds to a section on ``service`` and returns whether ``then`` has a point."""

    service: str
    run: Callable[[Section], bool | None]
    then: tuple[Probe, ...] = ()


def all_probes(
    settings: Settings, environment: Mapping[str, str], check_forms: CheckForms | None, seen: Seen
) -> list[Probe]:
    """Each may run beside the others. ``check_forms``: loads the adapter and checks its catalogue; None: not asked."""
    shared = settings.shared_database
    redis_url = settings.redis_url.get_secret_value()

    def database(url: str, ids: Mapping[str, Sequence[str]]) -> Callable[[Section], bool]:
        return lambda section: _database(section, url, ids, settings, seen)

    def schema(url: str, tree: Tree) -> Callable[[Section], bool]:
        return lambda section: _schema(section, url, tree)

    forms = (Probe("forms", lambda section: _forms(section, check_forms)),) if check_forms else ()
    rows = Probe("operations", lambda section: _rows(section, settings))
    queue_schema = Probe("queue", schema(settings.database_url, Tree.QUEUE), (rows,))
    erp_schema = Probe("erp", schema(settings.erp_url, Tree.ERP), forms)
    if shared:
        ids = {**QUEUE_IDS, **ERP_IDS}
        databases = [Probe("queue", database(settings.database_url, ids), (queue_schema, erp_schema))]
    else:
        databases = [
            Probe("queue", database(settings.database_url, QUEUE_IDS), (queue_schema,)),
            Probe("erp", database(settings.erp_url, ERP_IDS), (erp_schema,)),
        ]
    workers = Probe("workers", lambda section: _workers(section, settings))
    queues = Probe("broker", lambda section: _queues(section, settings), (workers,))
    if redis_probe.same_server(redis_url, settings.broker):
        messaging = [Probe("redis", lambda section: _redis(section, redis_url, settings), (queues,))]
    else:
        broker_url = redis_probe.redis_url_of_broker(settings.broker)
        broker = Probe("broker", lambda section: _redis(section, broker_url, settings), (queues,))
        messaging = [
            Probe("redis", lambda section: _redis(section, redis_url, settings)),
            broker if broker_url else queues,
        ]
    return [
        Probe("software", local.judge_software),
        Probe("settings", lambda section: local.judge_settings(section, settings, environment)),
        *databases,
        *messaging,
        Probe("flower", lambda section: local.judge_flower(section, settings)),
        Probe("extras", lambda section: local.judge_extras(section, settings)),
    ]


def secrets_of(settings: Settings) -> set[str]:
    """What must not show; none for a URL that cannot be read, since such a URL is never quoted."""
    kept: set[str] = {settings.seal_key.get_secret_value(), settings.flower_basic_auth.get_secret_value()}
    for url, passwords in (
        *((url, database_probe.passwords_of) for url in (settings.database_url, settings.erp_url)),
        *(
            (url, redis_probe.passwords_of)
            for url in (settings.redis_url.get_secret_value(), settings.broker)
        ),
    ):
        try:
            kept |= passwords(url)
        except ValueError:
            continue  # said by the probe itself
    return kept - {""}


def judge_identity(section: Section, seen: Seen) -> None:
    """Queue and ERP set up as two databases that are one."""
    queue, erp = seen.get("queue"), seen.get("erp")
    if queue is not None and erp is not None and queue.identity == erp.identity:
        section.note(
            "same_database",
            t("两个连接串是否同一数据库", "two URLs, one database"),
            t("是", "yes"),
            Level.WARNING,
            t(
                "去掉 OPSTAGE_ERP_DATABASE_URL（或写成与 OPSTAGE_DATABASE_URL 完全相同），写回即可与业务变更一次提交",
                "Drop OPSTAGE_ERP_DATABASE_URL, or spell it like OPSTAGE_DATABASE_URL: the write-back then shares"
                " the commit",
            ),
        )


def _database(
    section: Section, url: str, ids: Mapping[str, Sequence[str]], settings: Settings, seen: Seen
) -> bool:
    if url == EMBEDDED_POSTGRES:  # a running `opstage up` would have put its address here
        raise EmbeddedNotRunning
    facts = database_probe.database_facts(url, ids)
    seen[section.service] = facts
    section.note("reachable", REACHABLE, database_probe.address(url))
    judge_database(section, facts, settings)
    folder = facts.variables.get("data_directory", "")
    if folder and Path(folder).is_relative_to(settings.data_dir.resolve()):
        judge_embedded(section)
    return True


def _schema(section: Section, url: str, tree: Tree) -> bool:
    """True where the tree's tables are there in this release's form."""
    what = t(f"表结构（{tree.value}）", f"schema ({tree.value})")
    try:
        at = current(url, tree)
    except MigrationError as error:
        section.note("schema", what, t(error.message("zh"), error.message("en")), Level.PROBLEM)
        return False
    section.expect(
        at == tree.head,
        "schema",
        what,
        at or t("尚未创建", "not there yet"),
        t(f"执行 opstage db upgrade（至 {tree.head}）", f"Run opstage db upgrade (to {tree.head})"),
    )
    return at == tree.head


def _rows(section: Section, settings: Settings) -> bool:
    judge_backlog(section, look_at_rows(settings.database_url), settings)
    return True


def _forms(section: Section, check_forms: CheckForms) -> bool:
    try:
        problems = check_forms()
    except Refused as error:  # it cannot even be loaded
        section.note(
            "adapter",
            t("ERP 适配器", "ERP adapter"),
            t(error.message("zh"), error.message("en")),
            Level.PROBLEM,
            t("检查 OPSTAGE_ERP_ADAPTER 与 OPSTAGE_FORMS", "Check OPSTAGE_ERP_ADAPTER and OPSTAGE_FORMS"),
        )
        return False
    errors = sum(problem.severity == "error" for problem in problems)
    warnings = len(problems) - errors
    section.expect(
        not problems,
        "catalogue",
        t("表单目录与 ERP 数据库", "form catalogue against the ERP's database"),
        t(f"{errors} 个问题，{warnings} 个警告", f"{errors} problem(s), {warnings} warning(s)")
        if problems
        else t("一致", "fits"),
        t("执行 opstage forms check 查看", "See opstage forms check"),
        Level.PROBLEM if errors else Level.WARNING,
    )
    return True


def _redis(section: Section, url: str, settings: Settings) -> bool:
    facts = redis_probe.redis_facts(url)
    section.note("reachable", REACHABLE, redis_probe.address(url))
    judge_redis(section, facts, url, settings)
    return True


def _queues(section: Section, settings: Settings) -> bool:
    depths = queue_depths(settings)
    section.note("reachable", REACHABLE, redis_probe.address(settings.broker))
    judge_depths(section, depths)
    return True


def _workers(section: Section, settings: Settings) -> bool:
    judge_workers(section, answering_workers(settings), settings)
    return True
