"""Tasks that fail on purpose. They live in a module of their own, which the workers can import."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

from pyspark import TaskContext

from dalenius.engines.spark.errors import guard
from dalenius.mechanisms.base import Batches

Task = Callable[[Batches], Batches]


def failing_first(run: Task) -> Task:
    """Every task fails when it has done its work, on its first attempt."""

    def task(batches: Batches) -> Batches:
        yield from run(batches)
        if TaskContext.get().attemptNumber() == 0:  # type: ignore[union-attr]
            raise OSError("the first attempt fails")

    return guard(task)


def blurting(run: Task) -> Task:
    """Every task fails with a cell of the table in its message."""

    def task(batches: Batches) -> Batches:
        yield from run(batches)
        raise ValueError("Bronchitis-of-somebody")

    return guard(task)


def killing(marker: Path) -> Callable[[Task], Task]:
    """The first task to get here kills the executor that runs it, and leaves a mark."""

    def wrap(run: Task) -> Task:
        def task(batches: Batches) -> Batches:
            yield from run(batches)
            try:
                marker.touch(exist_ok=False)
            except FileExistsError:
                return
            daemon = os.getppid()  # the worker's parent; the executor's JVM is its parent
            executor = int(Path(f"/proc/{daemon}/stat").read_text().rsplit(")", 1)[1].split()[1])
            os.kill(executor, signal.SIGKILL)

        return guard(task)

    return wrap
