"""How often pooled intervals from complete tables hold, over releases of people drawn anew.

    python -m bench.complete_coverage [--rows 3000] [--releases 20] [--copies 10] [--first 0] [--promise f]
        [--k 2]

The population is known: age, sex and region, and one of eight diseases by a logistic law of age and sex. Each
release has new people, so that a pooled interval should hold what is true of the population: the mean age of
those with a disease, the share of a disease among women, a coefficient of a linear and two of a logistic
regression, and the share of everybody in each cell of cross tables of a published column and the disease.
Counts of the same cells are asked of the table itself too, where nothing but the release adds to the error.
Views of tuples have a column of a hundred towns more, which goes with nothing, so that few people are alike.
"""

from __future__ import annotations

import argparse
import tempfile
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import ArrayLike

import dalenius
from dalenius.arrays import Bools, Floats, Ints
from dalenius.export.fitting import fit_copies

_BASE = np.array([0.6, 0.3, 0.2, 0.0, -0.2, -0.5, -0.8, -1.1])
_AGE = np.array([0.5, -0.4, 0.0, 0.8, 0.0, -0.6, 0.2, 0.0])
_SEX = np.array([0.0, 0.6, -0.5, 0.0, 0.9, 0.0, 0.0, -0.8])
_POPULATION = 400_000
_N_DISEASES = len(_BASE)
_N_TOWNS = 100
_KINDS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "rho": ({"kind": "rho-privacy", "rho1": "max", "rho2": "1/2"}, {"kind": "perturb"}),
    "f": ({"kind": "f-privacy", "default": {"times": 4, "plus": 0.02}}, {"kind": "bucketize"}),
    "fakes": ({"kind": "l-diversity", "l": 3}, {"kind": "bucketize", "fakes": 1}),
    "alpha-beta": (
        {"kind": "d-gamma-privacy", "gamma": "1/2"},
        {"kind": "alpha-beta", "domains": "active", "duplicates": "distinct"},
    ),
    "frapp": (
        {"kind": "d-gamma-privacy", "gamma": "1/2"},
        {"kind": "alpha-beta", "method": "frapp", "domains": "active"},
    ),
}
_CROSSED: dict[str, Callable[[pd.DataFrame], Ints]] = {
    "sex": lambda table: (table["sex"] == "M").to_numpy().astype(np.int64),
    "decade of age": lambda table: table["age"].to_numpy() // 10 - 2,
    "region": lambda table: table["region"].map("abcde".index).to_numpy(),
}
_N_CELLS = {"sex": 2 * _N_DISEASES, "decade of age": 6 * _N_DISEASES, "region": 5 * _N_DISEASES}
_Intervals = tuple[ArrayLike, ArrayLike, ArrayLike]
"""Estimates, and the ends of their intervals."""


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=3_000)
    parser.add_argument("--releases", type=int, default=20)
    parser.add_argument("--copies", type=int, default=10)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument(
        "--promise", default="rho", choices=_KINDS, help="perturb; bucketize; with fakes; views"
    )
    parser.add_argument(
        "--k", type=int, default=2, help="of views: noise rows for each of the table, at gamma 1/2"
    )
    options = parser.parse_args()
    population = _people(_POPULATION, 10**6)
    truth = {**_analyse([population]), **_shares([population])}
    found: dict[str, list[_Measured]] = defaultdict(list)
    for seed in range(options.first, options.first + options.releases):
        table = _people(options.rows, seed)
        if options.promise in ("alpha-beta", "frapp"):
            table["town"] = np.random.default_rng([seed, 7]).integers(_N_TOWNS, size=len(table))
        with tempfile.TemporaryDirectory() as folder:
            release = dalenius.publish(
                _policy(table, Path(folder) / "r", options.promise, options.k), seed=seed
            )
            copies = [pa.table(copy).to_pandas() for copy in release.complete(options.copies, seed=seed)]
        for name, interval in _analyse(copies).items():
            found[name].append(_Measured.of(interval, truth[name]))
        for name, interval in _shares(copies).items():
            found[name].append(_Measured.of(interval, truth[name]))
        own = _counts([table])
        for name, interval in _counts(copies).items():
            found[name].append(_Measured.of(interval, own[name]))
    print("| what | truth | 95 % intervals that hold | mean error | width, of ideal |\n|---|---|---|---|---|")
    for name, measured in found.items():
        print(_row(name, measured))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Measured:
    """The intervals of one release, of one number or of all cells of a table."""

    truth: Floats
    held: Bools
    error: Floats
    width: Floats

    @classmethod
    def of(cls, interval: _Intervals, truth: _Intervals) -> _Measured:
        estimate, low, high = (np.atleast_1d(part) for part in interval)
        real = np.atleast_1d(truth[0])
        return cls(truth=real, held=(low <= real) & (real <= high), error=estimate - real, width=high - low)


def _row(name: str, measured: list[_Measured]) -> str:
    """Of cells the mean over them, and of errors, which cancel, the mean size of each cell's mean."""
    truth, held, error, width = (
        np.array([getattr(one, part) for one in measured]) for part in ("truth", "held", "error", "width")
    )
    mean = error.mean(axis=0)
    ideal = 2 * 1.96 * error.std(axis=0)
    parts = [
        f"{truth.mean():.3f}",
        f"{held.mean():.2f}",
        f"{mean[0]:+.3f}",
        f"{(width.mean(axis=0) / ideal).mean():.2f}",
    ]
    if len(mean) > 1:
        parts[1] += f" (the worst cell {held.mean(axis=0).min():.2f})"
        parts[2] = f"±{np.abs(mean).mean():.2g}"
    return f"| {name} | {' | '.join(parts)} |"


def _people(n: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    age, sex = rng.integers(20, 80, n), rng.choice(["F", "M"], n)
    logits = _BASE + np.outer((age - 50) / 15, _AGE) + np.outer(sex == "M", _SEX)
    disease = (logits + rng.gumbel(size=logits.shape)).argmax(axis=1)
    return pd.DataFrame(
        {
            "age": age,
            "sex": sex,
            "region": rng.choice(list("abcde"), n),
            "disease": [f"d{k}" for k in disease],
        }
    )


def _policy(table: pd.DataFrame, release: Path, promise: str, k: int) -> dalenius.Policy:
    kept, mechanism = _KINDS[promise]
    is_view = kept["kind"] == "d-gamma-privacy"
    return dalenius.Policy.from_dict(
        {
            "source": pa.Table.from_pandas(table, preserve_index=False),
            "release": str(release),
            "columns": {
                "quasi": [name for name in table.columns if name != "disease"],
                "sensitive": ["disease"],
            },
            "promise": {**kept, "k": k} if is_view else kept,
            "mechanism": mechanism,
        }
    )


def _analyse(tables: list[pd.DataFrame]) -> dict[str, _Intervals]:
    """Estimates with pooled intervals; of one table alone, just estimates."""
    found: dict[str, _Intervals] = {}
    names = ("mean age with d3", "share of d4 among men", "share of d1 among women")
    means = [_means(table) for table in tables]
    for k, name in enumerate(names):
        found[name] = _pooled([own[k][0] for own in means], [own[k][1] for own in means])
    medians = [_median(table.loc[table["disease"] == "d5", "age"].to_numpy()) for table in tables]
    found["median age with d5"] = _pooled([m for m, _ in medians], [v for _, v in medians])
    copies = [pa.Table.from_pandas(table, preserve_index=False) for table in tables]
    copies = copies if len(copies) > 1 else copies * 2
    linear = fit_copies(copies, "age ~ sex + C(disease)")
    logistic = fit_copies(copies, "disease == 'd3' ~ age + sex", kind="logistic")
    for fitted, name in ((linear, "C(disease)[T.d3]"), (logistic, "age"), (logistic, "sex[T.M]")):
        ends = fitted.interval()[name]
        found[f"{fitted.kind} coefficient of {name}"] = (fitted.coefficients[name], *ends)
    return found


def _means(table: pd.DataFrame) -> list[tuple[float, float]]:
    ages = table.loc[table["disease"] == "d3", "age"].to_numpy()
    men, women = (table.loc[table["sex"] == sex, "disease"] for sex in "MF")
    shares = [((men == "d4").mean(), len(men)), ((women == "d1").mean(), len(women))]
    return [(ages.mean(), ages.var() / len(ages)), *((p, p * (1 - p) / n) for p, n in shares)]


def _median(ages: Floats) -> tuple[float, float]:
    """With the variance of the middle ranks' spread (Woodruff)."""
    half = np.sqrt(len(ages)) / 2
    low, high = np.quantile(ages, np.clip([0.5 - half / len(ages), 0.5 + half / len(ages)], 0, 1))
    return float(np.median(ages)), float(max((high - low) / 2, 0.5) ** 2)


def _shares(tables: list[pd.DataFrame]) -> dict[str, _Intervals]:
    """The share of everybody in each cell of a cross table, for the population."""
    found: dict[str, _Intervals] = {}
    for name in _CROSSED:
        shares = [_count_cells(table, name) / len(table) for table in tables]
        variances = [np.diag(p * (1 - p) / len(table)) for p, table in zip(shares, tables, strict=True)]
        found[f"shares of cells of {name} × disease"] = _pool_cells(shares, variances)
    return found


def _counts(tables: list[pd.DataFrame]) -> dict[str, _Intervals]:
    """The counts of the same cells, for the table itself: all of it was seen, but for its diseases."""
    found: dict[str, _Intervals] = {}
    for name in _CROSSED:
        counts = [_count_cells(table, name) for table in tables]
        found[f"the table's own counts of {name} × disease"] = _pool_cells(
            counts, [np.zeros((len(own), len(own))) for own in counts]
        )
    return found


def _count_cells(table: pd.DataFrame, name: str) -> Floats:
    codes = _CROSSED[name](table) * _N_DISEASES + table["disease"].str[1:].astype(int).to_numpy()
    return np.bincount(codes, minlength=_N_CELLS[name]).astype(float)


def _pool_cells(values: list[Floats], variances: list[Floats]) -> _Intervals:
    if len(values) < 2:
        return values[0], values[0], values[0]
    pooled = dalenius.pool(values, variances)
    low, high = np.array(pooled.interval()).T
    return pooled.estimate, low, high


def _pooled(values: list[float], variances: list[float]) -> tuple[float, float, float]:
    if len(values) < 2:
        return values[0], values[0], values[0]
    pooled = dalenius.pool(values, variances)
    ((low, high),) = pooled.interval()
    return pooled.estimate[0], low, high


if __name__ == "__main__":
    main()
