"""Limits per value by perturbation: even and weighted replacements beside the best channel that is found.

    python -m bench.limit_channels [--data FOLDER] [--steps 40] [--releases 2]

Predicted root mean square error of a count, limits min(1/2, 8f + 0.02), of: even replacement; weighted
replacement, as `publish` uses it; and any channel, by a sequence of linear programmes that starts there. The
constraints are linear: for every published y, t_y ≤ P(y|x) ≤ g_x·t_y for every x (every prior within the
limits); or f_x·P(y|x) ≤ f′_x·Σ_z f_z·P(y|z) (the histogram as the one prior, a weaker promise).
"others" is what another belief within the same bounds becomes, at worst, by the channel for that one prior,
and the limit that it passes. The variance of the unbiased estimates is not linear; each programme minimises
its gradient within a region in which it fell before. So the last two are the best found, not proven optima.
With --releases the weighted law is published, and counts of every value, of all and of women, are asked.
"""

from __future__ import annotations

import argparse
import tempfile
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import scipy.sparse as sp
from scipy.optimize import linprog

import dalenius
from dalenius.arrays import Floats
from dalenius.mechanisms.perturb.plan.thresholds import find_limits, plan_thresholds
from dalenius.promises.f_privacy import FPrivacy, LinearLimit
from dalenius.reproduce.microdata import data_folder
from dalenius.tables.histogram import Histogram

TABLES = {
    "Adult, occupation": ("adult.csv", "occupation"),
    "Adult, education": ("adult.csv", "education"),
    "KDD, occupation": ("kdd_workers.csv.gz", "occupation_code"),
}
RULE = {"times": "8", "plus": "0.02"}


def main() -> None:
    """Print a row per table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, default=data_folder())
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--releases", type=int, default=0)
    options = parser.parse_args()
    print(
        "| table | kept, even | kept, weighted | even | weighted | any channel | one prior | others | 95 % |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for name, (file, column) in TABLES.items():
        people = pd.read_csv(options.data / file)
        counts = people[column].astype(str).value_counts()
        histogram = Histogram.of((column,), {(str(v),): int(n) for v, n in counts.items()})
        promise = FPrivacy(default=LinearLimit(times=Fraction(RULE["times"]), plus=Fraction(RULE["plus"])))
        even = plan_thresholds(histogram, promise, "uniform")[0]
        ours = plan_thresholds(histogram, promise, "best")[0]
        limits = find_limits(histogram, promise)
        n = np.array(histogram.counts, dtype=np.float64)
        allowed = np.array([float(limit.amplification) for limit in limits])
        keep = float(ours.parts[0].retention) * np.eye(len(n))
        start = np.tile(ours.channels[0].replaced(), (len(n), 1)) + keep
        any_prior, _ = search(start, n, any_prior_rows(allowed), options.steps)
        after = np.array([float(limit.after) for limit in limits])
        one_prior, channel = search(start, n, one_prior_rows(n / n.sum(), after), options.steps)
        before = np.array([float(limit.before) for limit in limits])
        passed = worst_excess(channel, before, after)
        held = _coverage(people, column, options.releases) if options.releases else "-"
        print(
            f"| {name} | {float(even.parts[0].retention):.1%} | {float(ours.parts[0].retention):.1%} "
            f"| {even.value_rmse:.0f} | {ours.value_rmse:.0f} | {any_prior:.0f} | {one_prior:.0f} "
            f"| {passed[0]:.2f} where {passed[1]:.2f} | {held} |",
            flush=True,
        )


def error(channel: Floats, n: Floats) -> tuple[float, Floats]:
    """The mean variance of the values' counts, and its gradient; a column for each published value."""
    weights = np.linalg.inv(channel)  # of a record published as y towards x
    shown, own = n @ channel, (weights**2).sum(axis=1)
    value = (shown @ own - n.sum()) / len(n)
    gradient = np.outer(n, own) - 2 * (weights @ weights.T @ (shown[:, None] * weights)).T
    return float(value), gradient / len(n)


def any_prior_rows(allowed: Floats) -> tuple[sp.csr_array, int]:
    """t_y − P(y|x) ≤ 0 and P(y|x) − g_x·t_y ≤ 0; the unknowns are P, row by row, then t."""
    m = len(allowed)
    cells, ones = sp.eye_array(m * m), np.ones(m)
    tops = sp.csr_array(np.tile(np.eye(m), (m, 1)))
    below = sp.hstack([-cells, tops])
    above = sp.hstack([cells, -sp.diags_array(np.outer(allowed, ones).ravel()) @ tops])
    return sp.csr_array(sp.vstack([below, above])), m


def one_prior_rows(share: Floats, after: Floats) -> tuple[sp.csr_array, int]:
    """f_x·P(y|x) − f′_x·Σ_z f_z·P(y|z) ≤ 0."""
    m = len(share)
    own = sp.diags_array(np.outer(share, np.ones(m)).ravel())
    evidence = sp.kron(sp.csr_array(np.outer(after, share)), sp.eye_array(m))
    return sp.csr_array(own - evidence), 0


def search(start: Floats, n: Floats, rows: tuple[sp.csr_array, int], steps: int) -> tuple[float, Floats]:
    """The root of the least mean variance that is found, and its channel."""
    (matrix, n_more), m = rows, len(n)
    sums = sp.csr_array(np.kron(np.eye(m), np.ones((1, m))))
    whole = sp.csr_array(sp.hstack([sums, sp.csr_array((m, n_more))])) if n_more else sums
    channel, radius = start, 0.2
    best, gradient = error(channel, n)
    for _ in range(steps):
        reach = radius * np.maximum(channel.ravel(), 1e-3)
        low, high = np.maximum(channel.ravel() - reach, 0.0), np.minimum(channel.ravel() + reach, 1.0)
        programme: Any = {
            "c": np.concatenate([gradient.ravel() / np.abs(gradient).max(), np.zeros(n_more)]),
            "A_ub": matrix,
            "b_ub": np.zeros(matrix.shape[0]),
            "A_eq": whole,
            "b_eq": np.ones(m),
            "bounds": [*zip(low, high, strict=True), *[(0.0, 1.0)] * n_more],
        }
        found = linprog(**programme)
        if found.x is None:
            radius /= 2
            continue
        tried = found.x[: m * m].reshape(m, m)
        value, slope = error(tried, n)
        if value < best:
            channel, best, gradient, radius = tried, value, slope, min(0.5, radius * 1.3)
        else:
            radius /= 2
        if radius < 1e-4:
            break
    return float(np.sqrt(best)), channel


def worst_excess(channel: Floats, before: Floats, after: Floats) -> tuple[float, float]:
    """The posterior that passes its limit farthest, and the limit, of who believes in two values."""
    least = np.array([np.delete(channel, x, axis=0).min(axis=0) for x in range(len(before))])  # x × y
    odds = (before / (1 - before))[:, None] * channel / np.maximum(least, 1e-300)
    posterior = (odds / (1 + odds)).max(axis=1)
    x = int((posterior - after).argmax())
    return float(posterior[x]), float(after[x])


def _coverage(people: pd.DataFrame, column: str, releases: int) -> str:
    """How many intervals of 95 % hold, of counts of every value among all and among women."""
    held = asked = 0
    sex = people["sex"].astype(str)
    women = next(cell for cell in sex.unique() if cell.strip().lower().startswith("f"))
    secret = people[column].astype(str)
    table = pa.table({"sex": sex, "secret": secret})
    truth = {
        f"SELECT COUNT(*) FROM t WHERE secret = '{value}'{more}": int(((secret == value) & mask).sum())
        for value in sorted(secret.unique())
        for more, mask in (("", sex != ""), (f" AND sex = '{women}'", sex == women))
    }
    for seed in range(releases):
        with tempfile.TemporaryDirectory() as folder:
            policy = dalenius.Policy.from_dict(
                {
                    "source": table,
                    "release": "r",
                    "columns": {"quasi": ["sex"], "sensitive": ["secret"]},
                    "promise": {"kind": "f-privacy", "default": RULE},
                    "mechanism": {"kind": "perturb"},
                    "ledger": {"path": "ledger"},
                },
                folder=folder,
            )
            release = dalenius.publish(policy, seed=seed)
            for answer, true in zip(release.ask_many(list(truth)), truth.values(), strict=True):
                (row,) = answer.rows
                asked += 1
                held += (row.low or 0) <= true <= (row.high or 0)
    return f"{held} of {asked}"


if __name__ == "__main__":
    main()
