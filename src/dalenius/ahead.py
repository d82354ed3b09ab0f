"""Make the next item while the last one is used: two steps of a stream take as long as the longer one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from queue import Full, Queue
from threading import Event, Thread
from typing import TypeVar

T = TypeVar("T")

_ITEMS = 2
_SECONDS_BETWEEN_LOOKS = 0.05


def ahead(items: Iterable[T]) -> Iterator[T]:
    """The same items, made by a thread that is at most two of them ahead.

    What making them raises is raised here, and nothing is made any more once nobody takes them.

    >>> list(ahead(range(3)))
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
