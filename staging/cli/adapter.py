"""The ERP adapter for commands that only ask it something."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from staging.contracts.error import ErrorCode
from staging.domain.errors import Refused
from staging.settings import Settings

if TYPE_CHECKING:  # the drivers come with it, so commands load it when they run
    from staging.domain.ports import ErpAdapter


@contextmanager
def open_adapter(settings: Settings) -> Iterator[ErpAdapter]:
    """The adapter on an engine of its own. Raises Refused, saying why, where it cannot be loaded."""
    from staging.bootstrap import open_engine

    engine = open_engine(settings, settings.erp_url)
    try:
        adapter = _load(settings, engine)
        try:
            yield adapter
        finally:
            adapter.close()
    finally:
        engine.dispose()


def _load(settings: Settings, engine: Any) -> ErpAdapter:
    from staging.bootstrap import load_adapter

    try:
        return load_adapter(settings, engine)
    except (ImportError, AttributeError, OSError, ValueError) as error:
        raise _unusable(settings, error) from error


def _unusable(settings: Settings, error: Exception) -> Refused:
    told = getattr(error, "text", None)  # an adapter's own errors may speak both languages
    if callable(told):
        zh, en = told("zh"), told("en")
    elif isinstance(error, OSError) and error.filename:
        zh, en = (
            f"无法读取 {error.filename}（{error.strerror}）",
            f"cannot read {error.filename} ({error.strerror})",
        )
    else:
        zh, en = (f"{type(error).__name__}: {error}",) * 2
    return Refused(
        ErrorCode.PAYLOAD_INVALID,
        text={
            "zh": f"无法加载 ERP 适配器 {settings.erp_adapter}（OPSTAGE_ERP_ADAPTER、OPSTAGE_FORMS）：{zh}",
            "en": f"The ERP adapter {settings.erp_adapter} (OPSTAGE_ERP_ADAPTER, OPSTAGE_FORMS) cannot be loaded: {en}",
        },
    )
