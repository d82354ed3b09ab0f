"""How useful the release is: a few marginals asked of it and of the original, and how far they are apart."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

import numpy as np

from dalenius.ask import ask
from dalenius.errors import QueryError
from dalenius.evaluate.metrics import SMALL_SHARE, median_relative_error
from dalenius.evaluate.workload import Cells
from dalenius.pages import document as doc
from dalenius.pages.words import key_of, write_number
from dalenius.question.answer import AnswerRow
from dalenius.release.folder import StoredRelease
from dalenius.reporting.distribution import Truth
from dalenius.sql import identifier, one_row


class Keys(NamedTuple):
    """One column of a marginal, as SQL groups it."""

    sql: str
    title: str
    n_values: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How far off one marginal is."""

    title: str
    n_cells: int
    median_error: float
    off_by: float
    """In records; 19 of 20 counts are nearer to the truth."""
    n_covered: int
    n_intervals: int
    assumption: str | None
    """What the intervals rest on."""


def describe_utility(release: StoredRelease, truth: Truth) -> doc.Section:
    """The section on errors and intervals."""
    outcomes = [o for keys in _marginals(release, truth) if (o := _measure(release, truth, keys)) is not None]
    title = "How useful the release is"
    if not outcomes:
        text = "No table of counts of these columns is small enough to be compared here."
        return doc.Section(id="utility", title=title, blocks=(doc.Paragraph(text=text),))
    n_covered, n_intervals = (
        sum(getattr(o, name) for o in outcomes) for name in ("n_covered", "n_intervals")
    )
    return doc.Section(
        id="utility",
        title=title,
        blocks=(
            doc.Paragraph(
                text="Each line is a table of counts, asked of the release and of the original. The relative "
                "error of a count is how far the answer is from the truth, as a part of the truth; counts "
                f"below {write_number(SMALL_SHARE, 'share')} of the records are measured against that."
            ),
            doc.Facts(
                items=(
                    ("Counts compared", doc.Number(value=sum(o.n_cells for o in outcomes))),
                    ("95 % intervals that hold the truth", _coverage(n_covered, n_intervals)),
                )
            ),
            _tabulate(outcomes),
        ),
    )


def _coverage(n_covered: int, n_intervals: int) -> doc.Cell:
    return doc.share(n_covered / n_intervals) if n_intervals else "every answer is exact"


_MOST_QUESTIONS = 6
"""Marginals that a report shows."""
_MOST_VALUES = 40
"""A column with more values is grouped into steps, or left out if it holds no numbers."""
_MOST_CELLS = 5_000
_N_STEPS = 8
"""About as many as a column of numbers is grouped into."""


def _marginals(release: StoredRelease, truth: Truth) -> list[tuple[Keys, ...]]:
    """Each quasi column with the sensitive ones; where none is sensitive, pairs of columns."""
    quasi = [keys for name in release.columns("quasi") if (keys := _keys(truth, name)) is not None]
    sensitive = [_plain(truth, name) for name in release.columns("sensitive")]
    sets = [(keys, *sensitive) for keys in quasi] if sensitive else list(combinations(quasi, 2))
    return [keys for keys in sets if math.prod(k.n_values for k in keys) <= _MOST_CELLS][:_MOST_QUESTIONS]


def _plain(truth: Truth, name: str) -> Keys:
    column = identifier(name)
    n_values = one_row(truth.connection, f"SELECT count(*) FROM (SELECT DISTINCT {column} FROM t)")[0]
    return Keys(sql=column, title=name, n_values=int(n_values))


def _keys(truth: Truth, name: str) -> Keys | None:
    """A quasi column as it is, in steps of a round number, or not at all."""
    plain = _plain(truth, name)
    if plain.n_values <= _MOST_VALUES:
        return plain
    column = identifier(name)
    low, high = one_row(truth.connection, f"SELECT min({column}), max({column}) FROM t")
    if not isinstance(low, int) or isinstance(low, bool):
        return None
    step = _round_step((high - low) / _N_STEPS)
    n_steps = int(high // step - low // step) + 1
    return Keys(sql=f"{column} // {step} * {step}", title=f"{name} in steps of {step:,}", n_values=n_steps)


def _round_step(least: float) -> int:
    """The least of 1, 2, 5, 10, 20, … that is not below.

    >>> [_round_step(x) for x in (0.3, 9.1, 12)]
    [1, 10, 20]
    """
    power = 10 ** max(0, math.floor(math.log10(max(least, 1))))
    return next(int(factor * power) for factor in (1, 2, 5, 10) if factor * power >= least)


def _measure(release: StoredRelease, truth: Truth, keys: tuple[Keys, ...]) -> Outcome | None:
    groups = ", ".join(f"{key.sql} AS k{i}" for i, key in enumerate(keys))
    sql = f"SELECT {groups}, COUNT(*) AS n FROM t GROUP BY {', '.join(f'k{i}' for i in range(len(keys)))}"
    try:
        answer = ask(release, sql)
    except QueryError:
        return None
    true = truth.count(sql)
    if all(row.estimate is None for row in answer.rows):
        return None
    found = {key_of(cell for _, cell in row.group): row for row in answer.rows}
    everything = sorted(true.keys() | found.keys())
    cells = Cells(
        truth=np.array([true.get(key, 0.0) for key in everything]),
        estimate=np.array([_estimate(found.get(key)) for key in everything]),
        scale=np.full(len(everything), sum(true.values())),
    )
    n_covered, n_intervals = _count_covered(found, true)
    return Outcome(
        title=" × ".join(f"“{key.title}”" for key in keys),
        n_cells=len(everything),
        median_error=median_relative_error(cells),
        off_by=float(np.quantile(np.abs(cells.answered.estimate - cells.answered.truth), 0.95)),
        n_covered=n_covered,
        n_intervals=n_intervals,
        assumption=answer.assumption,
    )


def _estimate(row: AnswerRow | None) -> float:
    """0 where the release has no such group, NaN where it does not tell."""
    if row is None:
        return 0.0
    return np.nan if row.estimate is None else row.estimate


def _count_covered(
    found: dict[tuple[str, ...], AnswerRow], true: dict[tuple[str, ...], float]
) -> tuple[int, int]:
    """How many intervals hold the truth, of how many that are not exact."""
    checked = [
        row.low - 1e-6 <= true.get(key, 0.0) <= row.high + 1e-6
        for key, row in found.items()
        if row.status != "exact" and row.low is not None and row.high is not None
    ]
    return sum(checked), len(checked)


def _tabulate(outcomes: list[Outcome]) -> doc.Table:
    legend = doc.Legend(bar="half of the counts have a smaller error")
    return doc.Table(
        caption="Errors of tables of counts",
        columns=doc.head(
            "counts by",
            doc.Column(title="relative error", legend=legend),
            "counts",
            "median error",
            "19 of 20 are off by at most",
            "95 % intervals that hold the truth",
        ),
        rows=tuple(_rows(outcomes)),
        note=_note(outcomes),
    )


def _note(outcomes: list[Outcome]) -> str | None:
    """What the intervals rest on, which explains where too few of them hold the truth."""
    assumptions = dict.fromkeys(o.assumption for o in outcomes if o.assumption)
    if not assumptions:
        return None
    return (
        f"The intervals rest on this: {'; '.join(assumptions)}. Where that is not so, as when a value occurs "
        "only with certain quasi-identifiers, fewer of them hold the truth."
    )


def _rows(outcomes: list[Outcome]) -> Iterator[tuple[doc.Cell, ...]]:
    for outcome in outcomes:
        yield (
            outcome.title,
            doc.Picture(bar=outcome.median_error),
            doc.Number(value=outcome.n_cells),
            doc.share(outcome.median_error),
            doc.Number(value=outcome.off_by),
            _coverage(outcome.n_covered, outcome.n_intervals),
        )
