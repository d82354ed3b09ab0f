"""What goes wrong in a task, told without a cell of the table: neither in Spark's logs nor to the user."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from dalenius import errors
from dalenius.errors import DaleniusError, EngineError
from dalenius.mechanisms.base import Batches

CHANGED = "the table changed between two passes over it"
_CHANGED_HINT = (
    "both passes must see the same partitions in the same order: write the data frame to Parquet and publish "
    "that; with dynamic allocation set spark.sql.files.minPartitionNum"
)
_MARK = "a Dalenius task failed: "


class TaskFailed(Exception):  # noqa: N818  (its name is seen in Spark's logs)
    """Raised by a task instead of what really happened, whose text may quote a cell."""


def guard(run: Callable[[Batches], Batches]) -> Callable[[Batches], Batches]:
    """The task with its errors made safe to log."""

    def task(batches: Batches) -> Batches:
        try:
            yield from run(batches)
        except Exception as error:
            raise TaskFailed(_MARK + _describe(error)) from None

    return task


def _describe(error: Exception) -> str:
    if isinstance(error, DaleniusError):  # these never quote a cell
        told = error.to_dict()["error"]
    else:
        frames = error.__traceback__
        while frames is not None and frames.tb_next is not None:
            frames = frames.tb_next
        place = f"{Path(frames.tb_frame.f_code.co_filename).name}:{frames.tb_lineno}" if frames else "?"
        told = {"kind": "EngineError", "message": f"{type(error).__name__} at {place}", "hint": None}
    return json.dumps(told)


@contextmanager
def spark_errors() -> Iterator[None]:
    """Says in plain words what Spark could not do."""
    try:
        yield
    except DaleniusError:
        raise
    except Exception as error:
        raise translate(str(error), type(error).__name__) from None  # Spark's text may quote a cell


def translate(text: str, kind: str) -> DaleniusError:
    """The error that a task raised, or that Spark failed."""
    _, mark, rest = text.partition(_MARK)
    if not mark:
        return EngineError(
            f"Spark could not do it ({kind}); nothing was published",
            hint="Spark's own log says more; `dalenius doctor` looks for Java and PySpark",
        )
    described, _ = json.JSONDecoder().raw_decode(rest)
    message, hint = described["message"], described["hint"]
    if message.startswith(CHANGED):
        return EngineError(f"{message}; nothing was published", hint=_CHANGED_HINT)
    raised: type[DaleniusError] = getattr(errors, described["kind"])
    if raised is EngineError:
        message = f"a task failed ({message}); nothing was published"
    return raised(message, hint=hint)
