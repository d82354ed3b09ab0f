"""How far an experiment is: whoever runs it may watch, and need not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

from dalenius.engines.base import Progress, silent

Item = TypeVar("Item")

_watcher: ContextVar[Progress] = ContextVar("watcher", default=silent)


@contextmanager
def watched(show: Progress) -> Iterator[None]:
    """Show the steps of the experiments that run inside."""
    token = _watcher.set(show)
    try:
        yield
    finally:
        _watcher.reset(token)


def track(items: Sequence[Item], step: str) -> Iterator[Item]:
    """The items one by one, shown as done when the next is asked for.

    >>> with watched(lambda step, done, total: print(step, done, total)):
    ...     list(track("ab", "letters"))
    letters 0 2
    letters 1 2
    letters 2 2
    ['a', 'b']
    """
    show = _watcher.get()
    show(step, 0, len(items))
    for done, item in enumerate(items, start=1):
        yield item
        show(step, done, len(items))
