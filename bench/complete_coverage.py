"""How often pooled intervals from complete tables hold, over releases of people drawn anew.

    python -m bench.complete_coverage [--rows 3000] [--releases 20] [--copies 10] [--promise f]

The population is known: age, sex and region, and one of eight diseases by a logistic law of age and sex. Each
release has new people, so that a pooled interval should hold what is true of the population: the mean age of
those with a disease, the share of a disease among women, a coefficient of a linear and two of a logistic
regression; and, of the table itself, cells of the cross table of disease and sex.
"""

from __future__ import annotations

import argparse
import tempfile
from collections import defaultdict
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa

import dalenius
from dalenius.arrays import Floats
from dalenius.export.fitting import fit_copies

_BASE = np.array([0.6, 0.3, 0.2, 0.0, -0.2, -0.5, -0.8, -1.1])
_AGE = np.array([0.5, -0.4, 0.0, 0.8, 0.0, -0.6, 0.2, 0.0])
_SEX = np.array([0.0, 0.6, -0.5, 0.0, 0.9, 0.0, 0.0, -0.8])
_POPULATION = 400_000


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=3_000)
    parser.add_argument("--releases", type=int, default=20)
    parser.add_argument("--copies", type=int, default=10)
    parser.add_argument("--promise", default="rho", choices=["rho", "f"], help="perturb, or bucketize")
    options = parser.parse_args()
    truth = _analyse([_people(_POPULATION, 10**6)])
    held: dict[str, list[float]] = defaultdict(list)
    errors: dict[str, list[float]] = defaultdict(list)
    widths: dict[str, list[float]] = defaultdict(list)
    for seed in range(options.releases):
        table = _people(options.rows, seed)
        with tempfile.TemporaryDirectory() as folder:
            release = dalenius.publish(_policy(table, Path(folder) / "r", options.promise), seed=seed)
            copies = [pa.table(copy).to_pandas() for copy in release.complete(options.copies, seed=seed)]
        for name, (estimate, low, high) in _analyse(copies).items():
            held[name].append(low <= truth[name][0] <= high)
            errors[name].append(estimate - truth[name][0])
            widths[name].append(high - low)
    print("| what | truth | 95 % intervals that hold | mean error | width, of ideal |\n|---|---|---|---|---|")
    for name, found in held.items():
        ideal = 2 * 1.96 * float(np.std(errors[name]))
        print(
            f"| {name} | {truth[name][0]:.3f} | {np.mean(found):.2f} | {np.mean(errors[name]):+.3f} | "
            f"{np.mean(widths[name]) / ideal:.2f} |"
        )


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


def _policy(table: pd.DataFrame, release: Path, promise: str) -> dalenius.Policy:
    kinds = {
        "rho": ({"kind": "rho-privacy", "rho1": "max", "rho2": "1/2"}, "perturb"),
        "f": ({"kind": "f-privacy", "default": {"times": 4, "plus": 0.02}}, "bucketize"),
    }
    kept, mechanism = kinds[promise]
    return dalenius.Policy.from_dict(
        {
            "source": pa.Table.from_pandas(table, preserve_index=False),
            "release": str(release),
            "columns": {"quasi": ["age", "sex", "region"], "sensitive": ["disease"]},
            "promise": kept,
            "mechanism": {"kind": mechanism},
        }
    )


def _analyse(tables: list[pd.DataFrame]) -> dict[str, tuple[float, float, float]]:
    """Estimates with pooled intervals; of one table alone, just estimates."""
    found: dict[str, tuple[float, float, float]] = {}
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


def _pooled(values: list[float], variances: list[float]) -> tuple[float, float, float]:
    if len(values) < 2:
        return values[0], values[0], values[0]
    pooled = dalenius.pool(values, variances)
    ((low, high),) = pooled.interval()
    return pooled.estimate[0], low, high


if __name__ == "__main__":
    main()
