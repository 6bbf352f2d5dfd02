"""How many requests in a moving window: counted per key, forgotten in time."""

from __future__ import annotations

from staging.api.limits import Window


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_a_window_moves() -> None:
    clock = Clock()
    window = Window("3/minute", clock)
    for _ in range(3):
        assert window.has_room("a")
        assert window.hit("a")
        clock.now += 10
    assert not window.has_room("a")
    assert not window.hit("a")
    assert window.room_in_s("a") == 30
    assert window.hit("b")
    clock.now += 30  # the first of the three is a minute old; what was refused did not count
    assert window.hit("a")
    assert not window.hit("a")
    assert window.room_in_s("a") == 10


def test_keys_nobody_uses_are_forgotten() -> None:
    clock = Clock()
    window = Window("3/minute", clock)
    for number in range(100):
        window.hit(f"once {number}")
    clock.now += 60
    window.hit("again")
    assert window.keys == 1
    assert window.room_in_s("nobody") == 0
