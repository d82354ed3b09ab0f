"""Items made ahead by a thread are the same items, and the thread ends with them."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from dalenius.prefetch import map_parallel, meanwhile, prefetch


def test_items_come_in_order_and_the_thread_ends() -> None:
    before = threading.active_count()
    assert list(prefetch(iter(range(50)))) == list(range(50))
    assert list(prefetch([])) == []
    assert threading.active_count() == before


def test_an_error_comes_after_the_items_before_it() -> None:
    def items() -> Iterator[int]:
        yield 1
        raise KeyError("second")

    taken = prefetch(items())
    assert next(taken) == 1
    with pytest.raises(KeyError, match="second"):
        next(taken)


def test_who_stops_taking_stops_the_making() -> None:
    made = []

    def items() -> Iterator[int]:
        for i in range(1000):
            made.append(i)
            yield i

    before = threading.active_count()
    taken = prefetch(items())
    assert next(taken) == 0
    taken.close()  # type: ignore[attr-defined]
    assert threading.active_count() == before
    assert len(made) <= 5


def test_the_next_item_is_made_while_the_last_one_is_used() -> None:
    second_begun = threading.Event()

    def items() -> Iterator[int]:
        yield 1
        second_begun.set()
        yield 2

    taken = prefetch(items())
    assert next(taken) == 1
    assert second_begun.wait(timeout=60)
    assert list(taken) == [2]


def test_results_come_in_the_order_of_the_items() -> None:
    """Whichever is ready first."""
    first_may_end = threading.Event()

    def slow_first(item: int) -> int:
        if item == 0:
            assert first_may_end.wait(timeout=60)
        else:
            first_may_end.set()
        return -item

    assert list(map_parallel(slow_first, range(20))) == [-item for item in range(20)]


def test_an_error_of_the_function_is_raised() -> None:
    taken = map_parallel(lambda item: 1 // item, [1, 1, 0, 1])
    assert next(taken) == 1
    with pytest.raises(ZeroDivisionError):
        list(taken)


def test_a_single_item_needs_no_thread() -> None:
    made_by = list(map_parallel(lambda _: threading.current_thread(), [1]))
    assert made_by == [threading.current_thread()]
    assert threading.current_thread() not in map_parallel(lambda _: threading.current_thread(), [1, 2])
    assert list(map_parallel(abs, [])) == []


def test_side_work_is_done_while_the_block_runs_and_its_error_comes_out() -> None:
    begun, go_on = threading.Event(), threading.Event()

    def work() -> None:
        begun.set()
        assert go_on.wait(timeout=60)
        raise KeyError("side")

    def let_go_on() -> None:
        assert begun.wait(timeout=60)
        go_on.set()

    with pytest.raises(KeyError, match="side"), meanwhile(work):
        let_go_on()


def test_the_error_of_the_block_comes_before_that_of_side_work() -> None:
    def work() -> None:
        raise KeyError("side")

    before = threading.active_count()
    with pytest.raises(ValueError, match="block"), meanwhile(work):
        raise ValueError("block")
    assert threading.active_count() == before
