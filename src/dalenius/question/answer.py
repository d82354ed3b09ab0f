"""An answer: one entry per group and aggregate, with its error."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Literal

import pyarrow as pa

from dalenius.display import View, draw_intervals, polars_frame
from dalenius.plain import Plain, plain, plain_fields

Status = Literal["exact", "estimate", "undetermined", "consistent"]
Group = tuple[tuple[str, Any], ...]
"""Names and values of a group's keys."""


def plain_group(group: Group) -> dict[str, Any]:
    """A group as JSON has it."""
    return {name: plain(value) for name, value in group}


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimated:
    """The estimate of an aggregate, with its error."""

    column: str
    estimate: float | None
    """None: SQL's NULL, as in a division by zero."""
    std_error: float | None
    """None: the release does not determine it."""
    low: float | None
    high: float | None

    def plain_numbers(self) -> dict[str, Any]:
        """As JSON has them."""
        return plain_fields(self, "column", "estimate", "std_error", "low", "high")


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerRow(Estimated):
    """The estimate of one aggregate in one group."""

    group: Group
    status: Status
    """exact: known without error; undetermined: the estimator finds nothing about it in the release;
    consistent: moved to what is possible."""

    @property
    def numbers(self) -> tuple[float | None, ...]:
        """The estimate, its standard error and its interval."""
        return self.estimate, self.std_error, self.low, self.high

    def to_dict(self) -> dict[str, Any]:
        """As `ask --json` prints it."""
        return {"group": plain_group(self.group), **self.plain_numbers()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference(Estimated):
    """One group less another, with an interval of its own: groups of one release err together."""

    first: Group
    second: Group
    covariance: float | None
    """Of the two groups' estimates."""

    def to_dict(self) -> dict[str, Any]:
        """As `ask --differences --json` prints it."""
        groups = {"first": plain_group(self.first), "second": plain_group(self.second)}
        return {**groups, **self.plain_numbers(), "covariance": plain(self.covariance)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Rank:
    """Where a group may stand among all, 1 being the largest."""

    column: str
    group: Group
    low: int
    high: int

    def to_dict(self) -> dict[str, Any]:
        """As `ask --differences --json` prints it."""
        return {"group": plain_group(self.group), **plain_fields(self, "column", "low", "high")}


@dataclass(frozen=True, slots=True, kw_only=True)
class Independence(Plain):
    """A test of whether two columns are independent, which knows the release's noise."""

    columns: tuple[str, str]
    statistic: float
    """Pearson's, by how much larger the noise makes it (Rao and Scott)."""
    freedom: float
    """Degrees of freedom; fewer than usual where noise is uneven."""
    p_value: float
    pearson: float
    """Of the estimates, as if they were counts."""
    larger: float
    """How many times larger noise makes Pearson's statistic if the columns are independent."""
    cramers_v: float
    """The strength of the association, from 0 to 1, what noise adds taken off."""
    n_left_out: int = field(metadata={"json": "left_out"})
    """Values of the two columns that too few people have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a release says about a question."""

    rows: tuple[AnswerRow, ...]
    confidence: float
    assumption: str | None
    """What the intervals rest on; None where every row is exact, or the publisher's coins are all."""
    explain: str
    """The formula, the weights and what was read, in words."""
    notes: tuple[str, ...] = ()
    """What to know of the question, e.g. that no published row has a value that it names."""
    differences: tuple[Difference, ...] = ()
    """Of every pair of groups, where they were asked for."""
    ranks: tuple[Rank, ...] = ()
    independence: Independence | None = None
    """Of the two columns that a question groups by, where it was asked for."""

    @property
    def sentence(self) -> str:
        """What the intervals mean, in one sentence."""
        per_cent, found = f"{self.confidence * 100:g} %", {row.status for row in self.rows}
        if not found:
            return "no group is left: HAVING, LIMIT or the conditions take all of them"
        if found == {"exact"}:
            return "exact: the release tells it for certain"
        possible = "the range is all that is possible, whatever the secret"
        if "undetermined" in found and found <= {"exact", "undetermined"}:
            return f"where there is no estimate, the release does not settle it: {possible}"
        besides = f"; where there is no estimate, {possible}" if "undetermined" in found else ""
        if self.assumption is None:
            return f"{per_cent} of such intervals hold the truth, whatever the data{besides}"
        return f"about {per_cent} of such intervals hold the truth; --explain says what that assumes{besides}"

    def to_dict(self) -> dict[str, Any]:
        """As `ask --json` prints it."""
        asked = plain_fields(self, "rows", "confidence", "assumption", "notes")
        if self.differences:
            asked |= plain_fields(self, "differences", "ranks")
        if self.independence is not None:
            asked["independence"] = self.independence.to_dict()
        return asked

    def to_arrow(self) -> pa.Table:
        """One row per group and aggregate: the group's columns, then the estimate's."""
        names = [name for name, _ in self.rows[0].group] if self.rows else []
        columns: dict[str, list[Any]] = {
            f"group_{name}" if name in _FIELDS else name: [row.group[i][1] for row in self.rows]
            for i, name in enumerate(names)
        }
        columns.update({field: [getattr(row, field) for row in self.rows] for field in _FIELDS})
        numbers = dict.fromkeys(("estimate", "std_error", "low", "high"), pa.float64())
        return pa.table({name: _array(cells, numbers.get(name)) for name, cells in columns.items()})

    def to_pandas(self) -> Any:
        """The same as a pandas data frame."""
        return self.to_arrow().to_pandas()

    def to_polars(self) -> Any:
        """The same as a polars data frame, if polars is installed."""
        return polars_frame(self.to_arrow())

    def show(self) -> View:
        """The answer as a table."""
        names = [name for name, _ in self.rows[0].group] if self.rows else []
        rows = tuple(
            (*(str(plain(cell)) for _, cell in row.group), row.column, *map(short, row.numbers))
            for row in self.rows
        )
        rests = () if self.assumption is None else (f"assumes: {self.assumption}",)
        return View(
            title="Answer",
            headings=(*names, "aggregate", "estimate", "std error", "low", "high"),
            rows=rows,
            sentences=(f"intervals of {self.confidence * 100:g} %", *self.notes, *rests),
        )

    def plot(self) -> Any:
        """The estimates with their intervals, as an Altair chart (extra `plots`)."""
        rows = [
            {
                "name": ", ".join([*(str(plain(cell)) for _, cell in row.group), row.column]),
                "estimate": row.estimate,
                "low": row.low,
                "high": row.high,
            }
            for row in self.rows
        ]
        return draw_intervals(rows, f"estimate, {self.confidence * 100:g} % interval")

    def _repr_html_(self) -> str:
        return self.show()._repr_html_()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Let every library that reads Arrow take an answer as a table, e.g. `polars.DataFrame(answer)`."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)


def short(number: float | None) -> str:
    """A number as people read it."""
    if number is None:
        return "–"
    return f"{number:,.1f}" if abs(number) >= 10 else f"{number:.4g}"


_FIELDS = ("column", "estimate", "std_error", "low", "high", "status")


def finite(number: float) -> float | None:
    """The number, or None for NaN and infinities, which JSON does not have.

    >>> finite(2.0), finite(float("inf"))
    (2.0, None)
    """
    return float(number) if math.isfinite(number) else None


def _array(cells: list[Any], kind: pa.DataType | None) -> pa.Array:
    try:
        return pa.array(cells, kind)
    except OverflowError:  # whole numbers without a sign, beyond those with one
        return pa.array(cells, pa.uint64())
