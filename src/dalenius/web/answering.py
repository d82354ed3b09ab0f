"""What a worker's process does with a request: questions in, answers or errors out, as JSON has them."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from dalenius.ask import Answer, Limits, ask_many, open_for_asking
from dalenius.errors import DaleniusError, QueryError
from dalenius.release.folder import StoredRelease
from dalenius.release.series import open_release


def answer_all(
    paths: Sequence[str], request: dict[str, Any], *, seconds: float, megabytes: int
) -> list[dict[str, Any]]:
    """One entry per question: its answer, or `{"error": …}`; a wrong question spoils no other one."""
    questions: list[str] = request["questions"]
    options = {key: request[key] for key in ("confidence", "estimator", "consistent")}
    limits = Limits(seconds=seconds, memory=f"{megabytes}MB")
    try:
        release = _open(paths[request["release"]])
        return [_to_dict(answer) for answer in ask_many(release, questions, limits=limits, **options)]
    except MemoryError:
        return [_out_of_memory(megabytes)] * len(questions)
    except DaleniusError as error:
        if len(questions) == 1:
            return [dict(error.to_dict())]
    return [
        entry
        for question in questions
        for entry in answer_all(
            paths, {**request, "questions": [question]}, seconds=seconds, megabytes=megabytes
        )
    ]


def answer_one(path: str, sql: str, *, seconds: float, megabytes: int) -> dict[str, Any]:
    """The answer to one question, as everybody gets it who asks for nothing special."""
    usual = {"confidence": 0.95, "estimator": None, "consistent": False}
    request = {"release": 0, "questions": [sql], **usual}
    return answer_all([path], request, seconds=seconds, megabytes=megabytes)[0]


def open_first(path: str) -> None:
    """Read a release before it is asked; what is wrong with it the first question will say."""
    with suppress(DaleniusError, MemoryError):
        open_for_asking(_open(path))


@functools.cache
def _open(path: str) -> StoredRelease:
    return open_release(path)


def _out_of_memory(megabytes: int) -> dict[str, Any]:
    return dict(QueryError(f"the question needs more than the {megabytes} MB that it is allowed").to_dict())


def _to_dict(answer: Answer) -> dict[str, Any]:
    """As `ask --json` prints it; JSON has no infinities."""
    found: dict[str, Any] = _finite(answer.to_dict())
    return found


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(part) for part in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, str | int | float | bool | None) else str(value)
