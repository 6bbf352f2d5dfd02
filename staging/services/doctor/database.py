"""What the facts about a database server mean for Opstage, and what to do."""

from __future__ import annotations

from collections.abc import Mapping

from staging.services.doctor.clock import judge_clock
from staging.services.doctor.finding import Level, Section, t
from staging.settings import Settings
from staging.storage.probe import OLDEST, DatabaseFacts, Product

_FEW = 5


def judge_database(section: Section, facts: DatabaseFacts, settings: Settings) -> None:
    """Add what there is to say about the server; migrations and rows are looked at elsewhere."""
    _version(section, facts)
    section.expect(
        not facts.read_only,
        "writable",
        t("可写", "writable"),
        t("可写", "yes") if not facts.read_only else t("只读或从库", "read-only or a replica"),
        t(
            "改用主库地址；SQLite 请检查文件权限",
            "Use the address of the writing server (primary); for SQLite check the file's permissions",
        ),
    )
    if facts.product is Product.SQLITE:
        _sqlite(section, facts)
        return
    section.expect(
        facts.isolation == "READ COMMITTED",
        "isolation_level",
        t("会话隔离级别", "isolation level of our sessions"),
        facts.isolation,
        t(
            "去掉连接串、代理或用户级别对隔离级别的改动，应为 READ COMMITTED",
            "Remove what changes it in the URL, a proxy or the user's settings; it has to be READ COMMITTED",
        ),
    )
    judge_clock(section, facts.clock_offset_s)
    _connections(section, facts, settings)
    if facts.product is Product.POSTGRESQL:
        _postgresql(section, facts.variables)
    else:
        _mysql(section, facts.variables)
    _columns(section, facts)


def _version(section: Section, facts: DatabaseFacts) -> None:
    oldest = OLDEST[facts.product]
    needed = ".".join(map(str, oldest))
    section.expect(
        facts.version >= oldest,
        "version",
        t("版本", "version"),
        f"{facts.product.value} {facts.version_text}",
        t(
            f"升级到 {facts.product.value} {needed} 或更高",
            f"Upgrade to {facts.product.value} {needed} or newer",
        ),
    )


def _sqlite(section: Section, facts: DatabaseFacts) -> None:
    mode = facts.variables["journal_mode"]
    section.expect(
        mode == "wal",
        "journal_mode",
        t("日志模式", "journal mode"),
        mode,
        t(
            "首次写入时会自动切换为 WAL；若一直不是 wal，请把文件放到本地磁盘（网络盘不支持）",
            "It becomes wal with the first write; where it does not, move the file to a local disk, not a network one",
        ),
        Level.WARNING,
    )
    section.note(
        "production",
        t("用于生产", "fit for production"),
        t("否：SQLite 同一时刻只能有一个写入者", "no: SQLite lets one writer in at a time"),
        Level.WARNING,
        t(
            "生产环境请将 OPSTAGE_DATABASE_URL 指向 PostgreSQL 或 MariaDB",
            "For production set OPSTAGE_DATABASE_URL to PostgreSQL or MariaDB",
        ),
    )


def _connections(section: Section, facts: DatabaseFacts, settings: Settings) -> None:
    """Pools are per process: each worker child holds what it needs, at most its pool with its overflow."""
    limit, in_use = int(facts.variables["max_connections"]), int(facts.variables["connections_in_use"])
    # A worker child executes one operation at a time: one connection, two at most. API and beat use a pool each.
    needed = 2 * settings.worker_concurrency + 2 * settings.pool_size
    section.expect(
        needed < limit,
        "max_connections",
        t("连接数：已用 / 上限", "connections in use / allowed"),
        f"{in_use} / {limit}",
        t(
            f"本机可能需要 {needed} 个：调大 max_connections，"
            "或调小 OPSTAGE_WORKER_CONCURRENCY、OPSTAGE_POOL_SIZE",
            f"This host may want {needed}: raise max_connections, or lower OPSTAGE_WORKER_CONCURRENCY or"
            " OPSTAGE_POOL_SIZE",
        ),
        Level.WARNING,
    )


def _postgresql(section: Section, variables: Mapping[str, str]) -> None:
    _utc(section, variables.get("timezone", ""))
    encodings = {name: variables.get(f"{name}_encoding", "") for name in ("server", "client")}
    section.expect(
        set(encodings.values()) == {"UTF8"},
        "encoding",
        t("编码", "encoding"),
        ", ".join(f"{name} {value}" for name, value in encodings.items()),
        t(
            "用 ENCODING 'UTF8' 新建数据库并迁移数据",
            "Create the database anew with ENCODING 'UTF8' and move the data",
        ),
    )
    risky = {
        "fsync": t("断电会损坏数据库：设为 on", "A power cut ruins the database: set it on"),
        "full_page_writes": t("断电会损坏数据库：设为 on", "A power cut ruins the database: set it on"),
        "synchronous_commit": t(
            "断电会丢失已提交的操作，账本也一样：设为 on",
            "A power cut loses committed operations and their ledger rows: set it on",
        ),
    }
    for name, todo in risky.items():
        value = variables.get(name, "")
        section.expect(value not in ("off", ""), name, t(name, name), value, todo, Level.WARNING)


def _mysql(section: Section, variables: Mapping[str, str]) -> None:
    _utc(section, variables.get("time_zone", ""))
    charsets = {
        name: variables.get(f"character_set_{name}", "") for name in ("server", "database", "connection")
    }
    for name, value in charsets.items():
        # Our tables and connections say utf8mb4 themselves; tables of others made under these defaults would not.
        level = Level.WARNING if name == "server" else Level.PROBLEM
        section.expect(
            value == "utf8mb4",
            f"charset_{name}",
            t(f"字符集（{name}）", f"character set ({name})"),
            f"{value} / {variables.get(f'collation_{name}', '')}",
            t(
                "改为 utf8mb4：服务器 character-set-server，数据库 ALTER DATABASE … CHARACTER SET utf8mb4",
                "Make it utf8mb4: character-set-server for the server, ALTER DATABASE … CHARACTER SET utf8mb4",
            ),
            level,
        )
    flush = variables.get("innodb_flush_log_at_trx_commit", "")
    section.expect(
        flush == "1",
        "innodb_flush_log_at_trx_commit",
        t("innodb_flush_log_at_trx_commit", "innodb_flush_log_at_trx_commit"),
        flush,
        t(
            "断电会丢失已提交的操作，账本也一样：设为 1",
            "A power cut loses committed operations and their ledger rows: set it to 1",
        ),
        Level.WARNING,
    )
    snapshot = variables.get("innodb_snapshot_isolation")
    if snapshot is not None:
        section.note(
            "innodb_snapshot_isolation",
            t("innodb_snapshot_isolation", "innodb_snapshot_isolation"),
            t(
                f"{snapshot}（ON 时可能出现 1020 错误，Opstage 会自动重试）",
                f"{snapshot} (with ON there may be errors 1020; Opstage runs such a transaction again)",
            ),
            Level.INFO,
        )
    galera = variables.get("wsrep_on", "OFF")
    section.expect(
        galera != "ON",
        "galera",
        t("Galera 集群", "Galera cluster"),
        galera,
        t(
            "不支持 Galera（可能丢失更新）：请使用单写入节点的 MariaDB",
            "Galera is not supported, it may lose updates: use a MariaDB with a single writer",
        ),
    )


def _utc(section: Section, zone: str) -> None:
    section.expect(
        zone in ("UTC", "Etc/UTC", "+00:00"),
        "timezone",
        t("会话时区", "time zone of our sessions"),
        zone,
        t(
            "去掉连接串、代理或用户级别对时区的改动，应为 UTC",
            "Remove what changes it in the URL, a proxy or the user's settings; it has to be UTC",
        ),
    )


def _columns(section: Section, facts: DatabaseFacts) -> None:
    section.expect(
        not facts.loose_ids,
        "id_collation",
        t("编号列的排序规则", "collation of id columns"),
        _some(facts.loose_ids) or t("区分大小写", "tells 'A' from 'a'"),
        t(
            "改为 utf8mb4_bin（或确定性排序规则），否则不同编号会被当成同一个",
            "Make them utf8mb4_bin (or a deterministic collation), else different ids are taken for the same",
        ),
    )
    if facts.product is Product.POSTGRESQL:
        return  # one encoding and one engine for all
    section.expect(
        not facts.narrow_text,
        "text_charset",
        t("文本列的字符集", "character set of text columns"),
        _some(facts.narrow_text) or "utf8mb4",
        t(
            "改为 utf8mb4，否则生僻字和表情无法保存",
            "Make them utf8mb4, else rare characters and emoji cannot be stored",
        ),
    )
    section.expect(
        not facts.engines,
        "storage_engine",
        t("存储引擎", "storage engine"),
        _some(facts.engines) or "InnoDB",
        t("执行 ALTER TABLE … ENGINE=InnoDB", "Run ALTER TABLE … ENGINE=InnoDB"),
    )


def _some(values: Mapping[str, str]) -> str:
    shown = [f"{name} {value}" for name, value in sorted(values.items())]
    more = f" +{len(shown) - _FEW}" if len(shown) > _FEW else ""
    return ", ".join(shown[:_FEW]) + more
