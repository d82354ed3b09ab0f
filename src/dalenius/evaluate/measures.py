"""Numbers that a release has without being asked anything.

What a comparison can measure, by name.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

import numpy as np

from dalenius.arrays import Floats
from dalenius.errors import InputError, did_you_mean
from dalenius.evaluate import metrics
from dalenius.evaluate.accuracy import accuracy_of
from dalenius.evaluate.questions import Cells, Questions
from dalenius.evaluate.sample import Sample
from dalenius.evaluate.workload import joint_counts
from dalenius.mechanisms import registry
from dalenius.mechanisms.frapp.published import PublishedFrapp
from dalenius.mechanisms.perturb.published import PublicParts
from dalenius.release.folder import StoredRelease
from dalenius.sql import one_row


def bucket_loss(sample: Sample) -> float | None:
    """Σ (size − 1)² over the buckets; None for other mechanisms."""
    release = sample.release
    if release is None or release.mechanism != "bucketize":
        return None
    with release.connect() as connection:
        sizes = "SELECT count(*) AS size FROM qit GROUP BY bucket"
        return float(one_row(connection, f"SELECT sum((size - 1) * (size - 1)) FROM ({sizes})")[0])


def suppressed_share(sample: Sample) -> float | None:
    """The withheld records by all records; None where it is not known."""
    if sample.contender.kind == "nothing":
        return 1.0
    if sample.release is None:
        return None
    withheld = sample.release.manifest["rows"]["suppressed"]
    return None if withheld is None else withheld / sample.original.n_rows


def retention(sample: Sample) -> float | None:
    """The expected share of the records that the release shows with their own value.

    In a bucket everybody has each of its values with the same probability; a perturbed record keeps its value
    with γ/(m−1+γ); of a view it is the share of the rows that it keeps (α+β, or γ_f).
    """
    release = sample.release
    if sample.contender.kind == "nothing":
        return 0.0
    if release is None or release.manifest["parameters"].get("fakes"):
        return None
    if release.mechanism == "alpha-beta":
        view = registry.room(release.mechanism, release.method, "published").read(release.manifest)
        return float(view.law.gamma_f if isinstance(view, PublishedFrapp) else view.law.retention)
    kept_records = _kept_in_buckets(release) if release.mechanism == "bucketize" else _kept_in_parts(release)
    return kept_records / sample.original.n_rows


def _kept_in_buckets(release: StoredRelease) -> float:
    with release.connect() as connection:
        sizes = 'SELECT bucket, sum("count") AS size FROM st GROUP BY bucket'
        query = f'SELECT sum("count" * "count" / size) FROM st JOIN ({sizes}) USING (bucket)'
        return float(one_row(connection, query)[0])


def _kept_in_parts(release: StoredRelease) -> float:
    with release.connect() as connection:
        channels = PublicParts.read(connection, release.manifest).channels
        sizes = dict(connection.execute("SELECT part, count(*) FROM data GROUP BY part").fetchall())
    diagonals = [float(channel.gamma / (channel.n_values - 1 + channel.gamma)) for channel in channels]
    return float(sum(sizes.get(number, 0) * kept for number, kept in enumerate(diagonals, start=1)))


Measured = float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """A number of each draw; None where it does not apply."""

    name: str
    heading: str
    """For a narrow column."""
    title: str
    """With its unit, for the axis of a picture."""
    better: Literal["lower", "higher"]
    measure: Callable[[Sample, Cells], Measured]


def _of_cells(formula: Callable[[Cells], float]) -> Callable[[Sample, Cells], Measured]:
    return lambda _sample, cells: formula(cells)


def _of_release(formula: Callable[[Sample], Measured]) -> Callable[[Sample, Cells], Measured]:
    return lambda sample, _cells: formula(sample)


def _distance(formula: Callable[[Floats, Floats], float]) -> Callable[[Sample, Cells], Measured]:
    """The mean distance between true and estimated joint distributions of a column and the sensitive ones."""

    def measure(sample: Sample, _cells: Cells) -> Measured:
        found = [_joint(sample, columns) for columns in joint_columns(sample)]
        distances = [formula(cells.truth, cells.estimate) for cells in found if cells is not None]
        return float(np.mean(distances)) if distances else None

    return measure


def joint_columns(sample: Sample) -> list[tuple[str, ...]]:
    """Every other column with the sensitive ones; without any, all pairs of columns."""
    original = sample.original
    if original.sensitive:
        return [(column, *original.sensitive) for column in original.quasi] or [original.sensitive]
    return list(combinations(original.quasi, 2)) or [original.quasi]


def _joint(sample: Sample, columns: tuple[str, ...]) -> Cells | None:
    questions: Questions = joint_counts(sample.original, [columns])
    return sample.ask(questions)


MEASURES: dict[str, Measure] = {
    measure.name: measure
    for measure in (
        Measure(
            name="relative-error",
            heading="rel. error",
            title="mean relative error (counts below 0.1 % of the records measured against that)",
            better="lower",
            measure=_of_cells(metrics.mean_relative_error),
        ),
        Measure(
            name="median-relative-error",
            heading="median",
            title="median relative error (counts below 0.1 % of the records measured against that)",
            better="lower",
            measure=_of_cells(metrics.median_relative_error),
        ),
        Measure(
            name="rmse",
            heading="rmse",
            title="root mean squared error of an answer, in records",
            better="lower",
            measure=_of_cells(metrics.root_mean_squared_error),
        ),
        Measure(
            name="mse",
            heading="mse",
            title="mean squared error of an answer",
            better="lower",
            measure=_of_cells(metrics.mean_squared_error),
        ),
        Measure(
            name="total-variation",
            heading="tot. var.",
            title="total variation between true and estimated joint distributions",
            better="lower",
            measure=_distance(metrics.total_variation),
        ),
        Measure(
            name="hellinger",
            heading="Hellinger",
            title="Hellinger distance between true and estimated joint distributions",
            better="lower",
            measure=_distance(metrics.hellinger),
        ),
        Measure(
            name="loss",
            heading="loss",
            title="loss of the buckets, Σ (size − 1)²",
            better="lower",
            measure=_of_release(bucket_loss),
        ),
        Measure(
            name="retention",
            heading="retained",
            title="share of the records that are published with their own value",
            better="higher",
            measure=_of_release(retention),
        ),
        Measure(
            name="suppressed",
            heading="withheld",
            title="share of the records that are withheld",
            better="lower",
            measure=_of_release(suppressed_share),
        ),
        Measure(
            name="accuracy",
            heading="accuracy",
            title="accuracy of a classifier trained on the release, on people who are not in it",
            better="higher",
            measure=_of_release(accuracy_of),
        ),
    )
}
USUAL = ("relative-error", "median-relative-error", "rmse", "suppressed")
"""What is measured unless something else is asked for; the first one ranks."""


def measures_named(names: tuple[str, ...]) -> tuple[Measure, ...]:
    """The measures of these names; the usual ones if there are none."""
    for name in names:
        if name not in MEASURES:
            raise InputError(f"metric {name!r} is unknown; {did_you_mean(name, MEASURES)}")
    return tuple(MEASURES[name] for name in dict.fromkeys(names or USUAL))
