"""Broker URLs: what is shown of them, and which sets of settings do not load."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from staging.messaging.celery_dispatcher import make_celery, transport_options
from staging.messaging.probe import address, passwords_of
from staging.settings import Settings

_SENTINELS = "sentinel://default:geheim@one:26379;sentinel://default:auch%20geheim@two:26379/0"


def test_no_password_of_several_sentinels_is_shown() -> None:
    assert address(_SENTINELS) == "sentinel://one:26379;sentinel://two:26379/0"
    assert passwords_of(_SENTINELS) == {"geheim", "auch%20geheim"}


def test_sentinels_without_the_name_of_what_they_watch_do_not_load() -> None:
    with pytest.raises(ValidationError, match="broker_sentinel_master"):
        Settings.model_validate({"broker_url": _SENTINELS})


def test_celery_is_told_what_the_sentinels_watch_and_waits_for_them_as_long_as_for_a_redis() -> None:
    settings = Settings.model_validate({"broker_url": _SENTINELS, "broker_sentinel_master": "erp"})
    options = transport_options(settings, producer=True)
    assert options == transport_options(Settings(), producer=True) | {"master_name": "erp"}


@pytest.mark.parametrize("kind", ["classic", "quorum"])
def test_every_queue_is_of_the_type_that_is_set(kind: str) -> None:
    settings = Settings.model_validate({"broker_url": "amqp://guest@mq//", "broker_queue_type": kind})
    conf = make_celery(settings, producer=False).conf
    assert (conf.task_default_queue_type, conf.task_create_missing_queue_type) == (kind, kind)


def test_another_type_of_queue_does_not_load() -> None:
    with pytest.raises(ValidationError, match="broker_queue_type"):
        Settings.model_validate({"broker_queue_type": "stream"})
