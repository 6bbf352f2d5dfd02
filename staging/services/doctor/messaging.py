"""What the facts about Redis, the broker and the workers mean for Opstage, and what to do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import urlsplit

from staging.messaging.celery_dispatcher import AnsweringWorker
from staging.messaging.probe import RedisFacts
from staging.services.doctor.clock import judge_clock
from staging.services.doctor.finding import Level, Section, t
from staging.settings import Settings

OLDEST_REDIS = (6, 2)  # the oldest tried with this Celery
_FULL = 0.8
_MANY = 10_000


def judge_redis(section: Section, facts: RedisFacts, url: str, settings: Settings) -> None:
    """Everything about the server itself."""
    section.expect(
        facts.version >= OLDEST_REDIS,
        "version",
        t("版本", "version"),
        f"{facts.product} {facts.version_text}",
        t("升级到 Redis 6.2 或更高，或 Valkey", "Upgrade to Redis 6.2 or newer, or to Valkey"),
        Level.PROBLEM if facts.version else Level.WARNING,
    )
    if facts.info:
        _memory(section, facts)
        _durability(section, facts)
        _role(section, facts)
    else:
        section.note(
            "info",
            t("INFO", "INFO"),
            t("无权查看", "not permitted"),
            Level.WARNING,
            t(
                "允许该用户执行 INFO；在此之前请自行确认 maxmemory-policy 为 noeviction",
                "Allow this user to run INFO; until then make sure yourself that maxmemory-policy is noeviction",
            ),
        )
    _access(section, facts, url)
    judge_clock(section, facts.clock_offset_s)
    folder = facts.config.get("dir", "")
    if folder and Path(folder) == settings.data_dir.resolve() / "redis":
        judge_embedded(section)


def judge_embedded(section: Section) -> None:
    """The server is one that ``opstage up`` started."""
    section.note(
        "production",
        t("用于生产", "fit for production"),
        t("否：内嵌服务，随 opstage up 启停", "no: an embedded server that lives as long as opstage up"),
        Level.WARNING,
        t("生产环境请使用独立部署的服务", "For production run a server of its own"),
    )


def _memory(section: Section, facts: RedisFacts) -> None:
    policy = str(facts.info.get("maxmemory_policy", ""))
    section.expect(
        policy == "noeviction",
        "maxmemory_policy",
        t("内存淘汰策略", "eviction policy"),
        policy,
        t(
            "改为 noeviction（CONFIG SET maxmemory-policy noeviction 并写入配置文件），否则整个队列会被悄悄删除",
            "Set noeviction (CONFIG SET maxmemory-policy noeviction, and in the configuration file), else whole"
            " queues are dropped without a word",
        ),
    )
    limit, used = int(facts.info.get("maxmemory", 0)), int(facts.info.get("used_memory", 0))
    full = bool(limit) and used > _FULL * limit
    shown = f"{_mb(used)} / {_mb(limit)}" if limit else f"{_mb(used)} / -"
    section.note(
        "maxmemory",
        t("内存：已用 / 上限", "memory used / allowed"),
        shown,
        Level.WARNING if full else Level.OK if limit else Level.INFO,
        t(
            "快满了：调大 maxmemory，并确认 worker 在消费",
            "Nearly full: raise maxmemory and see that workers consume",
        )
        if full
        else None,
    )


def _durability(section: Section, facts: RedisFacts) -> None:
    info = facts.info
    aof, snapshots = bool(int(info.get("aof_enabled", 0))), bool(facts.config.get("save"))
    section.expect(
        aof or snapshots,
        "persistence",
        t("持久化", "persistence"),
        "AOF" if aof else "RDB" if snapshots else t("无", "none"),
        t(
            "重启会丢失未确认的预览（已确认的操作不受影响）：设置 appendonly yes",
            "A restart loses previews not yet confirmed (confirmed operations are safe): set appendonly yes",
        ),
        Level.WARNING,
    )
    failing = [n for n in ("rdb_last_bgsave_status", "aof_last_write_status") if info.get(n, "ok") != "ok"]
    if failing:
        section.note(
            "last_save",
            t("最近一次落盘", "last save"),
            ", ".join(f"{name} {info[name]}" for name in failing),
            Level.PROBLEM,
            t(
                "检查磁盘空间和目录权限，写入可能已被拒绝",
                "Check disk space and permissions; writes may be refused by now",
            ),
        )


def _role(section: Section, facts: RedisFacts) -> None:
    role, mode = str(facts.info.get("role", "")), str(facts.info.get("redis_mode", "standalone"))
    section.expect(
        role == "master" and mode != "cluster",
        "role",
        t("角色", "role"),
        f"{role}, {mode}",
        t(
            "使用可写的主节点；Celery 不支持 Redis Cluster",
            "Use the writable master; Celery does not run on Redis Cluster",
        ),
    )


def _access(section: Section, facts: RedisFacts, url: str) -> None:
    bind = facts.config.get("bind", "")
    local = bool(bind) and all(part.lstrip("-").startswith(("127.", "::1")) for part in bind.split())
    todo = t(
        "设置 requirepass 或 ACL，并关闭 default 用户的 nopass：能连上 Redis 的人都能投递任务、读取消息",
        "Set requirepass or an ACL, without nopass for the user default: whoever connects can send tasks and read"
        " messages",
    )
    section.expect(
        not facts.open_to_all,
        "password",
        t("无密码可连接", "open without a password"),
        t("是", "yes") if facts.open_to_all else t("否", "no"),
        todo,
        Level.WARNING if local or urlsplit(url).scheme == "unix" else Level.PROBLEM,
    )
    if bind or facts.config:
        section.expect(
            local or not facts.open_to_all,
            "bind",
            t("监听地址 / 保护模式", "bound to / protected mode"),
            f"{bind or '*'} / {facts.config.get('protected-mode', '?')}",
            t(
                "绑定内网或回环地址，并设置密码",
                "Bind it to loopback or an inner network, and set a password",
            ),
            Level.WARNING,
        )


def judge_depths(section: Section, depths: Mapping[str, int]) -> None:
    """Messages waiting. They are hints: many of them are no loss, but nobody seems to take them."""
    for name, depth in depths.items():
        section.expect(
            depth < _MANY,
            "queue_depth",
            t(f"队列 {name} 中的消息", f"messages in {name}"),
            str(depth),
            t(
                "没有 worker 在消费？用 opstage worker 启动",
                "Does no worker consume? Start one: opstage worker",
            ),
            Level.WARNING,
        )


def judge_workers(section: Section, workers: Sequence[AnsweringWorker], settings: Settings) -> None:
    """Who answered, as information, and whose settings differ from ours in what all must share."""
    ours = [worker.name for worker in workers if worker.queue == settings.queue_name]
    section.note(
        "answering",
        t("1 秒内应答的 worker", "workers that answered within 1 s"),
        ", ".join(ours)
        or t(
            "无（忙碌的 worker 也可能不应答）", "none (a busy worker may not answer, so this proves nothing)"
        ),
        Level.OK if ours else Level.INFO,
    )
    for worker in workers:
        seen = worker.visibility_timeout_s
        if settings.broker_is_redis and seen != settings.visibility_timeout_s:
            section.note(
                "visibility_timeout",
                t(f"{worker.name} 的 visibility_timeout", f"visibility_timeout of {worker.name}"),
                f"{seen if seen is not None else 3600} != {settings.visibility_timeout_s}",
                Level.WARNING,
                t(
                    "同一 Redis 上所有进程须一致，最短的生效：统一 OPSTAGE_VISIBILITY_TIMEOUT_S，或换用独立的库编号",
                    "All processes on one Redis need the same, the shortest wins: set OPSTAGE_VISIBILITY_TIMEOUT_S"
                    " alike, or use a database number of your own",
                ),
            )
        if worker.name in ours and worker.hard_time_limit_s not in (None, settings.hard_time_limit_s):
            section.note(
                "hard_time_limit",
                t(f"{worker.name} 的硬时限", f"hard time limit of {worker.name}"),
                f"{worker.hard_time_limit_s:g} != {settings.hard_time_limit_s:g}",
                Level.WARNING,
                t(
                    "各进程使用同一套 OPSTAGE_* 配置后重启",
                    "Give all processes the same OPSTAGE_* settings and restart",
                ),
            )


def _mb(size: int) -> str:
    return f"{size / 1_048_576:.1f} MB"
