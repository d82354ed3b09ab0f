"""CENSUS, the data of two of the papers, is not to be had: what stands in for it.

OCC is CENSUS with Occupation as the sensitive attribute, EDU with Education. For what depends on the counts
alone there are histograms with the stated number of values, largest and smallest frequency; for what depends
on records there is KDD Census-Income, with those seven columns that come closest to CENSUS's.

Figures 2 (bucketization) and 6 (perturbation) and table 5 show how its values are distributed.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.csv

from dalenius.arrays import Floats, Int32s
from dalenius.evaluate.original import Original
from dalenius.reproduce.experiment import Axis, Experiment, Line, Reproduction, Row
from dalenius.reproduce.microdata import data_file

Source = Literal["OCC", "EDU"]

SHAPES = (
    "histograms of the stated shape (OCC: 50 values from 7.5 % to 0.18 %, EDU: 14 values from 27.3 % to "
    "0.44 %, stretched geometric sequences between), because CENSUS is not to be had"
)
KDD = (
    "KDD Census-Income, standing in for CENSUS: occupation_code (148,318 rows, 46 values) for OCC, education "
    "(219,751 rows, 16 values) for EDU, each with seven quasi-identifiers"
)

_SHARED = ("age", "sex", "marital", "race", "class_of_worker", "self_birth")
_KDD_FILES: dict[Source, tuple[str, str, tuple[str, ...]]] = {
    "OCC": ("kdd_workers.csv.gz", "occupation_code", (*_SHARED, "education")),
    "EDU": ("kdd_education.csv.gz", "education", (*_SHARED, "income")),
}

_CENSUS_DOMAINS = {
    "age": ("Age", 76, 77),
    "sex": ("Gender", 2, 2),
    "education": ("Education", 14, 14),
    "marital": ("Marital", 6, 6),
    "race": ("Race", 9, 9),
    "class_of_worker": ("Work-Class", 10, 7),
    "self_birth": ("Country", 83, 70),
    "occupation_code": ("Occupation", 50, 50),
}
"""CENSUS's attributes, with their numbers of values in the bucketization and in the perturbation paper."""

Fall = Callable[[float, float, Floats], Floats]
FALLS: dict[str, Fall] = {
    "geometric": lambda most, least, step: most * (least / most) ** step,
    "hyperbolic": lambda most, least, step: most / (1 + (most / least - 1) * step),
    "straight": lambda most, least, step: most - (most - least) * step,
}
"""Ways from the largest to the smallest share, `step` going from 0 to 1: the papers state the ends only."""


def stated_shape(n_rows: int, n_values: int, most: float, least: float, fall: str = "geometric") -> list[int]:
    """Counts that fall from the share `most` to the share `least`, stretched until they add up."""
    steps = np.arange(n_values) / (n_values - 1)

    def shares(stretch: float) -> Floats:
        return np.asarray(FALLS[fall](most, least, steps**stretch))

    from scipy.optimize import brentq  # takes half a second to load

    stretch = float(brentq(lambda s: shares(s).sum() - 1, 0.05, 20))
    counts = np.floor(shares(stretch) * n_rows).astype(int)
    counts[5 : 5 + n_rows - counts.sum()] += 1
    return [int(count) for count in counts]


def occ_like(n_rows: int, fall: str = "geometric") -> list[int]:
    """Counts with CENSUS OCC's stated shape: 50 values from 7.5 % down to 0.18 %.

    >>> sum(occ_like(300_000)), len(occ_like(300_000)), max(occ_like(300_000))
    (300000, 50, 22500)
    """
    return stated_shape(n_rows, 50, 0.075, 0.0018, fall)


def edu_like(n_rows: int, fall: str = "geometric") -> list[int]:
    """Counts with CENSUS EDU's stated shape: 14 values from 27.3 % down to 0.44 %.

    >>> sum(edu_like(300_000)), len(edu_like(300_000)), max(edu_like(300_000)), min(edu_like(300_000))
    (300000, 14, 81900, 1320)
    """
    return stated_shape(n_rows, 14, 0.273, 0.0044, fall)


STATED = {"OCC": occ_like, "EDU": edu_like}


@cache
def kdd(source: Source) -> Original:
    """The KDD table that stands in for OCC or EDU."""
    file, sensitive, quasi = _KDD_FILES[source]
    table = pyarrow.csv.read_csv(data_file(file)).select([*quasi, sensitive])
    return Original.of(table, [sensitive])


def draw_rows(original: Original, n_rows: int, stream: np.random.Generator) -> Original:
    """As many records as are asked for, drawn with replacement."""
    return original.take(stream.integers(original.n_rows, size=n_rows))


def in_stated_shape(
    source: Source, n_rows: int, stream: np.random.Generator, *, linked: float = 1.0
) -> Original:
    """KDD's records with the stated number of rows and the stated histogram of the sensitive attribute.

    Records are drawn with replacement and ordered by how common their KDD value is; the stated values, from
    the commonest to the rarest, are dealt along that order. So a record has a value of about the rank that it
    had, and quasi-identifiers tell nearly as much about it. `linked` is the share of the records that keep
    this value; the values of the others are shuffled among them, which changes neither the histogram nor any
    quasi-identifier: with 0, they tell nothing.
    """
    original = draw_rows(kdd(source), n_rows, stream)
    (column,) = original.sensitive
    commonest_first = np.argsort(np.argsort(-np.array(value_counts(original))))
    order = np.lexsort((stream.random(n_rows), commonest_first[sensitive_codes(original)]))
    counts = STATED[source](n_rows)
    values = np.empty(n_rows, dtype=np.int64)
    values[order] = np.repeat(np.arange(len(counts)), counts)
    loose = np.flatnonzero(stream.random(n_rows) >= linked)
    values[loose] = values[stream.permutation(loose)]
    return original.with_column(column, pa.array(values))


def sensitive_codes(original: Original) -> Int32s:
    """The code of each record's sensitive value."""
    (column,) = original.sensitive
    return original.codes(column).astype(np.int32)


def value_counts(original: Original) -> tuple[int, ...]:
    """How often each sensitive value occurs, by code."""
    return tuple(int(count) for count in np.bincount(sensitive_codes(original)))


def _frequencies() -> Reproduction:
    rows: list[Row] = []
    for source, stated in STATED.items():
        of_data = {"stated shape": stated(300_000), "KDD": sorted(value_counts(kdd(source)), reverse=True)}
        for name, counts in of_data.items():
            shares = [100 * count / sum(counts) for count in counts]
            rows += [(source, name, rank, share) for rank, share in enumerate(shares, start=1)]
    occ, edu = (sorted(value_counts(kdd(source))) for source in STATED)
    return Reproduction(
        columns=("table", "data", "rank", "share, %"),
        rows=tuple(rows),
        stated="OCC has 50 values from 7.5 % to 0.18 % and is balanced, EDU 14 from 27.3 % to 0.44 %, 9 of "
        "them below 3.33 %, and is skewed",
        differs=f"KDD's occupations run from {_percent(occ, -1)} to {_percent(occ, 0)}, its educations from "
        f"{_percent(edu, -1)} to {_percent(edu, 0)} with {_rare(edu)} below 3.33 %: alike, with rarer "
        f"occupations and a commoner top education; the histogram of EDU's stated shape has "
        f"{_rare(STATED['EDU'](300_000))} below 3.33 %",
        data=f"{KDD}; and {SHAPES}",
    )


def _percent(counts: list[int], at: int) -> str:
    return f"{100 * counts[at] / sum(counts):.3g} %"


def _rare(counts: list[int]) -> int:
    return sum(30 * count < sum(counts) for count in counts)


def _domains() -> Reproduction:
    occ, edu = kdd("OCC"), kdd("EDU")
    rows: list[Row] = [
        (name, buckets, perturbed, column, len(occ.cells[column]))
        for column, (name, buckets, perturbed) in _CENSUS_DOMAINS.items()
    ]
    rows.append(("-", "-", "-", "income (for EDU, instead of Occupation)", len(edu.cells["income"])))
    return Reproduction(
        columns=("CENSUS", "values", "values, perturbation paper", "KDD column", "its values"),
        rows=tuple(rows),
        stated="500,000 American adults, eight attributes",
        differs="KDD has all eight under other names; EDU's KDD table has no occupation and takes income. "
        "The two papers give three of the domains different sizes",
        data=KDD,
    )


_SHARES = Line(
    x=Axis("rank", "rank of the value"),
    y=Axis("share, %", "share of the records, %"),
    series="data",
    panel="table",
    own_axes=("x", "y"),
)
TABLE_5 = Experiment("bucketization-table5", "The attributes of the data", _domains)
BUCKETIZATION_FIGURE_2 = Experiment(
    "bucketization-fig2", "Frequencies of the sensitive values", _frequencies, _SHARES
)
PERTURBATION_FIGURE_6 = Experiment(
    "perturbation-fig6", "Frequencies: OCC is balanced, EDU is skewed", _frequencies, _SHARES
)
