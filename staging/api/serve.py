"""``python -m staging.api.serve``: the HTTP door as a process of its own, with logs that never show a token."""

from __future__ import annotations

import logging
import logging.config
import re
from typing import Any

import uvicorn

from staging.api.app import create_app
from staging.settings import get_settings

# Our own tokens, JWTs, and whatever follows "Bearer": should one get into a line by mistake, it does not stay there.
_SECRET = re.compile(r"ops_[\w-]{16,}|eyJ[\w-]{8,}\.[\w-]+\.[\w-]*|(?<=[Bb]earer )\S+")
_STOP_S = 5  # what open requests may still take after a stop signal


class Discreet(logging.Formatter):
    """Formats as usual, then blots out tokens, in tracebacks too."""

    def format(self, record: logging.LogRecord) -> str:
        return _SECRET.sub("***", super().format(record))


def log_config(level: str = "INFO") -> dict[str, Any]:
    """For ``logging.config.dictConfig``: everything to stderr through ``Discreet``."""
    loggers: dict[str, Any] = {"": {"handlers": ["stderr"], "level": "WARNING"}}
    for name in ("staging", "opstage", "uvicorn"):
        loggers[name] = {"level": level}
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {
            "plain": {"()": Discreet, "format": "%(asctime)s %(levelname)s %(name)s: %(message)s"}
        },
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "plain"}},
        "loggers": loggers,
    }


def main() -> None:
    """Serve on ``OPSTAGE_API_HOST``:``OPSTAGE_API_PORT`` until a stop signal."""
    settings = get_settings()
    uvicorn.run(
        create_app(settings),
        host=settings.api_host,
        port=settings.api_port,
        log_config=log_config(),
        access_log=False,  # ours (door.py) leaves out queries
        server_header=False,
        timeout_graceful_shutdown=_STOP_S,
    )


if __name__ == "__main__":
    main()
