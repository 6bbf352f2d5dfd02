"""For processes under libfaketime alone: its 0.9.10 leaves the monotonic clock in peace when told to, and then makes
``time.sleep`` (which sleeps by that clock) fail with EINVAL. ``select`` waits as long, and it does not touch that one.
"""

import select
import time


def _sleep(seconds: float) -> None:
    select.select([], [], [], seconds)


time.sleep = _sleep  # type: ignore[assignment]
