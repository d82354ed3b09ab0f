"""Make the next item while the last one is used: two steps of a stream take as long as the longer one."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from itertools import chain, islice
from queue import Full, Queue
from threading import Event, Thread
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")

_ITEMS = 2
_SECONDS_BETWEEN_LOOKS = 0.05


def prefetch(items: Iterable[T]) -> Iterator[T]:
    """The same items, made by a thread that is at most two of them ahead.

    What making them raises is raised here, and nothing is made any more once nobody takes them.

    >>> list(prefetch(range(3)))
    [0, 1, 2]
    """
    made: Queue[tuple[T] | BaseException | None] = Queue(_ITEMS)
    stopped = Event()

    def offer(what: tuple[T] | BaseException | None) -> None:
        while not stopped.is_set():
            with suppress(Full):
                made.put(what, timeout=_SECONDS_BETWEEN_LOOKS)
                return

    def make() -> None:
        try:
            for item in items:
                offer((item,))
                if stopped.is_set():
                    return
            offer(None)
        except BaseException as error:
            offer(error)

    maker = Thread(target=make, daemon=True)
    maker.start()
    try:
        while (found := made.get()) is not None:
            if isinstance(found, BaseException):
                raise found
            yield found[0]
    finally:
        stopped.set()
        maker.join()


@contextmanager
def meanwhile(work: Callable[[], object]) -> Iterator[None]:
    """Do this while the block runs; the block's own error comes first.

    >>> with meanwhile(lambda: print("one")):
    ...     pass
    one
    """
    with ThreadPoolExecutor(1) as worker:
        done = worker.submit(work)
        yield
    done.result()


def map_parallel(function: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
    """The function's results in order, two of them made at a time; it must not depend on earlier items.

    A single one, as a small table has, is made here: starting threads takes longer than most of them.

    >>> list(map_parallel(abs, [1, -2, -3]))
    [1, 2, 3]
    """
    rest = iter(items)
    first = list(islice(rest, 2))
    if len(first) < 2:
        yield from map(function, first)
        return
    waiting: deque[Future[R]] = deque()
    with ThreadPoolExecutor(_ITEMS) as workers:
        for item in chain(first, rest):
            waiting.append(workers.submit(function, item))
            if len(waiting) > _ITEMS:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
