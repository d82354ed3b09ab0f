"""Whole tables for any statistics package: rows with a sensitive value each, drawn given the release alone.

A draw is a function of the release and of coins, so that everybody who has the release could have made it:
the promise stands as it is. Rows are draws, not people. An analysis is carried out on every copy, and the
results are pooled by Rubin's rules (`dalenius.pool`), which add what differs between copies to the error.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as arrow_csv
import pyarrow.parquet as pq
from numpy.typing import ArrayLike

from dalenius.arrays import Floats
from dalenius.engines.base import Progress, silent
from dalenius.errors import InputError, did_you_mean
from dalenius.export.staging import FORMULAS, refuse_damaged
from dalenius.export.stata import stata_names
from dalenius.export.targets import refuse_inside, safe_heading, unfinished, without_formulas
from dalenius.mechanisms.base import Completion
from dalenius.mechanisms.registry import find_room
from dalenius.plain import plain_fields
from dalenius.randomness import Randomness
from dalenius.release.folder import StoredRelease
from dalenius.sql import connect

_BACKQUOTE = "\\x60"
"""A backquote inside backquotes, as R reads it."""
COPIES = 20
MOST_COPIES = 1000
_README = """\
# Complete tables drawn from a release

Each file is a whole table with {rows} rows and the columns of the release {release}. **Rows are draws, not
people.** {drawn} They are a function of the release alone, so that its promise stands.

The draws assume that {assumes}.

{notes}Carry your analysis out on every file and pool the {copies} results by Rubin's rules: the estimate
is the mean, its variance the mean of the variances plus (1 + 1/{copies}) times the variance between
the files.

```python
import glob, dalenius, pandas as pd
tables = [pd.read_{reader}(name) for name in sorted(glob.glob("copy-*{suffix}"))]
means = [[t[{column}].eq("a value").mean()] for t in tables]
variances = [[[m[0] * (1 - m[0]) / len(tables[0])]] for m in means]
print(dalenius.pool(means, variances))
```

```r
library(mitools)  # imputationList(), with(), MIcombine()
tables <- lapply(list.files(pattern = "copy-.*{suffix}"), {r_reader})
MIcombine(with(imputationList(tables), glm(I({r_column} == "a value") ~ 1)))
```
"""

_VALUES_DRAWN = """\
Every sensitive value was drawn at random from what the release leaves possible; the other columns
are as it publishes them."""
_ROWS_DRAWN = """\
Every row was drawn at random, in all its columns, from what the release leaves possible:
a row that the release shows may be here or not, and most that are here may be nobody's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Completed:
    """What `complete` did."""

    release: Path
    target: Path
    files: tuple[str, ...]
    n_rows: int = field(metadata={"json": "rows"})
    """Of each table; where their numbers differ, the mean."""
    assumes: str

    def to_dict(self) -> dict[str, Any]:
        """As `complete --json` prints it."""
        return {**plain_fields(self), "release": str(self.release), "target": str(self.target)}


def draw_copies(
    release: StoredRelease, copies: int, *, seed: int | None = None, to_fit: bool = False
) -> Iterator[pa.Table]:
    """So many whole tables, one after the other; `to_fit`: for regressions, if they would be worth it."""
    _check_copies(copies)
    completion = _load(release)
    if to_fit and completion.too_many_values:
        raise InputError(
            "the release has too many sensitive values (more than 600) to learn what goes with each "
            "of them: in a regression on drawn tables every association would come out too weak",
            hint="publish fewer values (bins of a number, groups of codes: [recode] in the policy), or ask "
            "for counts and averages, which have honest errors: `dalenius ask`",
        )
    return _draw(completion, copies, seed)


def _draw(completion: Completion, copies: int, seed: int | None) -> Iterator[pa.Table]:
    randomness = Randomness.fresh() if seed is None else Randomness.seeded(seed)
    return (completion.draw(randomness.stream("complete", number)) for number in range(copies))


def _check_copies(copies: int) -> None:
    if not 1 <= copies <= MOST_COPIES:
        raise InputError(f"copies: {copies} must be from 1 to {MOST_COPIES:,}", hint=f"{COPIES} are usual")


def write_copies(
    release: StoredRelease,
    target: Path,
    *,
    copies: int = COPIES,
    kind: str = "parquet",
    seed: int | None = None,
    progress: Progress = silent,
) -> Completed:
    """Write whole tables into a new folder, with a README that says what they are."""
    if kind not in WRITERS:
        raise InputError(f"format {kind!r} is unknown; {did_you_mean(kind, WRITERS)}")
    if target.exists():
        raise InputError(f"{target} exists already", hint="give a folder that is not there yet")
    refuse_inside(target, release.path)
    _check_copies(copies)
    suffix, write = WRITERS[kind]
    progress("learning from the release", 0, None)
    completion, sizes = _load(release), list[int]()
    progress("drawing", 0, copies)
    columns: list[str] = []
    names = tuple(f"copy-{number:03}{suffix}" for number in range(1, copies + 1))
    with unfinished(target) as hidden:
        hidden.mkdir()
        for name, table in zip(names, _draw(completion, copies, seed), strict=True):
            write(table, hidden / name)
            sizes.append(table.num_rows)
            progress("drawing", len(sizes), copies)
            columns = table.column_names
        told = _describe(release, sizes, kind, completion, columns)
        (hidden / "README.md").write_text(told, encoding="utf-8")
    return Completed(
        release=release.path,
        target=target,
        files=(*names, "README.md"),
        n_rows=round(sum(sizes) / copies),
        assumes=completion.assumes,
    )


def _load(release: StoredRelease) -> Completion:
    room = find_room(release.mechanism, release.method, "export")
    if room is None or not hasattr(room, "complete"):
        raise InputError(
            f"releases of {release.mechanism} cannot be completed: it says no law to draw tables by",
            hint="`dalenius ask` answers questions about them, with error bars",
        )
    if release.earlier:
        raise InputError("a series cannot be completed as a whole", hint="complete its releases one by one")
    refuse_damaged(release)
    completion: Completion = room.complete(release)
    return completion


def _describe(
    release: StoredRelease, sizes: Sequence[int], kind: str, completion: Completion, columns: Sequence[str]
) -> str:
    name = next(iter((*release.columns("sensitive"), *columns)))
    least, most = min(sizes), max(sizes)
    if kind == "stata":
        name = stata_names(columns)[name]
    column = json.dumps(safe_heading(name) if kind == "csv" else name)  # a stranger's name is no code
    reader, r_reader = {
        "parquet": ("parquet", "arrow::read_parquet"),
        "csv": ("csv", "function(file) read.csv(file, check.names = FALSE)"),
        "stata": ("stata", "haven::read_dta"),
    }[kind]
    return _README.format(
        rows=f"{least:,}" if least == most else f"{least:,} to {most:,}",
        drawn=_ROWS_DRAWN if completion.draws_rows else _VALUES_DRAWN,
        release=release.path.name,
        assumes=completion.assumes,
        notes="".join(f"{note}\n\n" for note in _notes(release, kind, columns)),
        copies=len(sizes),
        reader=reader,
        r_reader=r_reader,
        suffix=WRITERS[kind][0],
        column=column,
        r_column=f"`{column[1:-1].replace('`', _BACKQUOTE)}`",
    )


def _notes(release: StoredRelease, kind: str, columns: Sequence[str]) -> Iterator[str]:
    """What is not so of this release, or in this format."""
    outright, withheld = release.manifest.outright or 0, release.manifest.rows.suppressed or 0
    if outright:
        yield (
            f"Of {outright:,} rows the release leaves nothing open: the value is the person's own, and the "
            "same in every file."
        )
    if withheld:
        yield f"{withheld:,} more records were withheld by the publisher and are in no file."
    if kind == "csv":
        yield (
            f"A text or heading that begins with {FORMULAS} has an apostrophe "
            "before it, so that no spreadsheet runs it; `--format parquet` has it as it is."
        )
    if kind == "stata":
        changed = [f"{json.dumps(old)} is `{new}`" for old, new in stata_names(columns).items() if old != new]
        if changed:
            yield f"Not every name can be that of a variable of Stata: {', '.join(changed)}."


def _write_stata(table: pa.Table, path: Path) -> None:
    try:
        import pandas  # noqa: F401
    except ModuleNotFoundError as error:
        raise InputError("Stata files need pandas", hint="pip install pandas, or --format csv") from error
    names = list(stata_names(table.column_names).values())
    plain_table(table).rename_columns(names).to_pandas().to_stata(path, write_index=False, version=118)


def plain_table(table: pa.Table) -> pa.Table:
    """The same without dictionaries and bytes, for libraries that take them for something else."""
    return pa.table(
        {name: _plain_cells(column) for name, column in zip(table.column_names, table.columns, strict=True)}
    )


def _plain_cells(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Bytes as the text that DuckDB makes of them in an export: what is no sign of ASCII is written out."""
    cells = column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
    if not (pa.types.is_binary(cells.type) or pa.types.is_large_binary(cells.type)):
        return cells
    with connect() as connection:
        connection.register("cells", pa.table({"v": cells}))
        return connection.sql("SELECT v::VARCHAR FROM cells").to_arrow_table().column(0)


def _write_csv(table: pa.Table, path: Path) -> None:
    """With an apostrophe before what a spreadsheet would run, as in an export."""
    arrow_csv.write_csv(without_formulas(plain_table(table)), path)


Writer = Callable[[pa.Table, Path], None]
WRITERS: dict[str, tuple[str, Writer]] = {
    "parquet": (".parquet", pq.write_table),
    "csv": (".csv", _write_csv),
    "stata": (".dta", _write_stata),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Pooled:
    """Estimates of several copies as one, by Rubin's rules (1987)."""

    estimate: tuple[float, ...]
    std_error: tuple[float, ...]
    degrees_of_freedom: tuple[float, ...]
    """Of the t distribution of the interval; infinite where copies do not differ."""
    covariance: tuple[tuple[float, ...], ...]

    def interval(self, confidence: float = 0.95) -> tuple[tuple[float, float], ...]:
        """Where each true number is, that often."""
        from scipy.special import stdtrit

        if not 0 < confidence < 1:
            raise InputError(f"confidence: {confidence} must be between 0 and 1", hint="0.95 is usual")
        half = (1 + confidence) / 2
        quantiles = [float(stdtrit(min(df, 1e9), half)) for df in self.degrees_of_freedom]
        found = zip(self.estimate, self.std_error, quantiles, strict=True)
        return tuple((value - q * error, value + q * error) for value, error, q in found)


def pool_copies(estimates: Sequence[ArrayLike], covariances: Sequence[ArrayLike]) -> Pooled:
    """Pool the results of the same analysis on several copies.

    Args:
        estimates: Of every copy, a number or several.
        covariances: Of every copy, the variance of the number, or the covariance matrix of several.

    >>> pooled = pool_copies([[1.0], [3.0]], [[[1.0]], [[1.0]]])
    >>> pooled.estimate, round(pooled.std_error[0], 3)
    ((2.0,), 2.0)
    """
    values, within = _read_numbers(estimates, "estimates", 1), _read_numbers(covariances, "covariances", 2)
    n_copies, n_values = values.shape if values.ndim == 2 else (len(values), 0)
    if n_copies < 2 or n_values == 0 or within.shape != (n_copies, n_values, n_values):
        raise InputError(
            f"pooling needs results of at least 2 copies, each with a covariance matrix: got {n_copies} "
            f"results and covariances of shape {within.shape}",
            hint="of one number from each copy: pool([3.1, 2.9], [0.2, 0.3]), with the variance of each",
        )
    if (np.diagonal(within, axis1=1, axis2=2) < 0).any():
        raise InputError("a variance is negative", hint="covariances are wanted, not coefficients")
    between = np.atleast_2d(np.cov(values, rowvar=False))
    total = within.mean(axis=0) + (1 + 1 / n_copies) * between
    return Pooled(
        estimate=tuple(values.mean(axis=0).tolist()),
        std_error=tuple(np.sqrt(np.diag(total)).tolist()),
        degrees_of_freedom=tuple(_freedom(np.diag(within.mean(axis=0)), np.diag(between), n_copies)),
        covariance=tuple(map(tuple, total.tolist())),
    )


def _read_numbers(given: Sequence[ArrayLike], what: str, dimensions: int) -> Floats:
    """Of every copy a number or several, all finite."""
    at_least = np.atleast_1d if dimensions == 1 else np.atleast_2d
    try:
        found = np.array([at_least(np.asarray(one, dtype=float)) for one in given], dtype=float)
    except (TypeError, ValueError) as error:
        raise InputError(f"{what}: of every copy as many numbers are wanted") from error
    if not np.isfinite(found).all():
        raise InputError(f"{what}: some are no finite numbers", hint="leave out what some copy cannot tell")
    return found


def _freedom(within: Floats, between: Floats, n_copies: int) -> Iterator[float]:
    for inner, outer in zip(within, between, strict=True):
        added = (1 + 1 / n_copies) * outer
        yield math.inf if added == 0 else float((n_copies - 1) * (1 + inner / added) ** 2)
