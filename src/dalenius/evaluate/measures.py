"""What a comparison can measure, by name: errors of answers, numbers of the release itself, and accuracy.

Accuracy is how well a classifier that was trained on a release predicts the sensitive value from the other
columns: a fifth of the records is held out, the rest is published, a naive Bayes classifier is trained on the
rows that the mechanism makes of what was published, and the records that were held out are predicted.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa

from dalenius.arrays import Floats, Ints
from dalenius.errors import InputError, did_you_mean
from dalenius.evaluate import metrics
from dalenius.evaluate.contender import NOISE, NOTHING, Sample, publish_aside
from dalenius.evaluate.original import Original
from dalenius.evaluate.workload import Cells, joint_counts
from dalenius.policy import Policy
from dalenius.release.folder import StoredRelease
from dalenius.tables.codes import find_codes
from dalenius.tables.source import open_source, scanning

HELD_OUT = 0.2
_MOST_ROWS = 20_000
"""How many published records a classifier is trained on."""
Examples = tuple[Ints, Ints, Floats]
"""Records as codes: a column per quasi column, the sensitive value as one number, and what each counts."""


def accuracy_of(sample: Sample) -> float | None:
    """The share of the held-out records that are predicted right; None where there is nothing to predict."""
    original = sample.original
    if not original.sensitive or not original.quasi or sample.contender.kind == NOISE:
        return None
    held_out, kept = _split(sample)
    test = encode(original, original.table.take(pa.array(held_out)))
    if sample.contender.policy is None:
        return float(np.bincount(test[1]).max() / len(test[1]))
    with tempfile.TemporaryDirectory(prefix="dalenius-compare-") as folder:
        policy = _on_rows(sample.contender.policy, kept)
        release = publish_aside(policy, Path(folder), sample.randomness)
        train = _draw_published(sample, release)
    return None if train is None else predict(train, test, original)


def predict(train: Examples, test: Examples, original: Original) -> float:
    """The accuracy of naive Bayes over categories."""
    try:
        from sklearn.naive_bayes import CategoricalNB
    except ImportError as error:
        raise InputError("accuracy needs scikit-learn", hint='pip install "dalenius[evaluate]"') from error
    # One category more than the table has: a view may show values of the domain that do not occur.
    sizes = [len(original.cells[column]) + 1 for column in original.quasi]
    model: Any = CategoricalNB(min_categories=sizes)
    features, label, weight = train
    model.fit(features, label, sample_weight=weight)
    features, label, _ = test
    return float((model.predict(features) == label).mean())


def encode(original: Original, table: pa.Table, weight: Floats | None = None) -> Examples:
    """A table's rows in the codes of the original; what does not occur there gets a code of its own."""
    codes = {column: _codes(original, table, column) for column in original.cells}
    label = np.zeros(table.num_rows, dtype=np.int64)
    for column in original.sensitive:
        label = label * (len(original.cells[column]) + 1) + codes[column]
    features = np.stack([codes[column] for column in original.quasi], axis=1)
    return features, label, np.ones(table.num_rows) if weight is None else weight


def _codes(original: Original, table: pa.Table, column: str) -> Ints:
    known = original.coded.columns[column].cells
    found = find_codes(table.column(column).cast(known.type), known)
    return np.asarray(found.fill_null(len(known)).to_numpy(), dtype=np.int64)


def _split(sample: Sample) -> tuple[Ints, Ints]:
    """Which records are held out and which are published."""
    n_rows = sample.original.n_rows
    order = sample.randomness.stream("accuracy", "split").permutation(n_rows)
    n_held_out = max(1, round(HELD_OUT * n_rows))
    return np.sort(order[:n_held_out]), order[n_held_out:]


def _on_rows(policy: Policy, rows: Ints) -> Policy:
    """The policy for some records of its source, which a scan gives in the order of the original."""
    with scanning(policy.source) as (connection, scan):
        table = connection.sql(f"FROM {scan}").to_arrow_table()
    return replace(policy, source=open_source(table.take(pa.array(np.sort(rows)))))


def _draw_published(sample: Sample, release: StoredRelease) -> Examples | None:
    original, stream = sample.original, sample.randomness.stream("accuracy", "rows")
    chosen = f"USING SAMPLE reservoir({_MOST_ROWS} ROWS) REPEATABLE ({int(stream.integers(2**31))})"
    table = sample.mechanism.training_rows(release, original.quasi, original.sensitive, chosen)
    if table is None:
        return None
    weight = table.column("weight").to_numpy().astype(np.float64) if "weight" in table.column_names else None
    return encode(original, table, weight)


def bucket_loss(sample: Sample) -> float | None:
    """Σ (size − 1)² over the buckets; None for other mechanisms."""
    return None if sample.release is None else sample.mechanism.loss(sample.release)


def suppressed_share(sample: Sample) -> float | None:
    """The withheld records by all records; None where it is not known."""
    if sample.contender.kind == NOTHING:
        return 1.0
    if sample.release is None:
        return None
    withheld = sample.release.manifest.rows.suppressed
    return None if withheld is None else withheld / sample.original.n_rows


def retention(sample: Sample) -> float | None:
    """The expected share of the records that the release shows with their own value."""
    if sample.contender.kind == NOTHING:
        return 0.0
    if sample.release is None:
        return None
    return sample.mechanism.retention(sample.release, sample.original.n_rows)


Measured = float | None


class Measure(NamedTuple):
    """A number of each draw; None where it does not apply."""

    name: str
    heading: str
    """For a narrow column."""
    title: str
    """With its unit, for the axis of a picture."""
    measure: Callable[[Sample, Cells], Measured]
    better: Literal["lower", "higher"] = "lower"


def _of_cells(formula: Callable[[Cells], float]) -> Callable[[Sample, Cells], Measured]:
    return lambda _sample, cells: formula(cells)


def _of_release(formula: Callable[[Sample], Measured]) -> Callable[[Sample, Cells], Measured]:
    return lambda sample, _cells: formula(sample)


def _distance(formula: Callable[[Floats, Floats], float]) -> Callable[[Sample, Cells], Measured]:
    """The mean distance between true and estimated joint distributions of a column and the sensitive ones."""

    def measure(sample: Sample, _cells: Cells) -> Measured:
        asked = [joint_counts(sample.original, [columns]) for columns in joint_columns(sample)]
        found = [sample.ask(questions) for questions in asked]
        distances = [formula(cells.truth, cells.estimate) for cells in found if cells is not None]
        return float(np.mean(distances)) if distances else None

    return measure


def joint_columns(sample: Sample) -> list[tuple[str, ...]]:
    """Every other column with the sensitive ones; without any, all pairs of columns."""
    original = sample.original
    if original.sensitive:
        return [(column, *original.sensitive) for column in original.quasi] or [original.sensitive]
    return list(combinations(original.quasi, 2)) or [original.quasi]


_SMALL = "(counts below 0.1 % of the records measured against that)"
_BETWEEN = "between true and estimated joint distributions"
_KNOWN = "share of the records that are published with their own value"
_LEARNED = "accuracy of a classifier trained on the release, on people who are not in it"
_MEAN, _MEDIAN = _of_cells(metrics.mean_relative_error), _of_cells(metrics.median_relative_error)
_RMSE, _MSE = _of_cells(metrics.root_mean_squared_error), _of_cells(metrics.mean_squared_error)
_ALL = (
    Measure("relative-error", "rel. error", f"mean relative error {_SMALL}", _MEAN),
    Measure("median-relative-error", "median", f"median relative error {_SMALL}", _MEDIAN),
    Measure("rmse", "rmse", "root mean squared error of an answer, in records", _RMSE),
    Measure("mse", "mse", "mean squared error of an answer", _MSE),
    Measure(
        "total-variation", "tot. var.", f"total variation {_BETWEEN}", _distance(metrics.total_variation)
    ),
    Measure("hellinger", "Hellinger", f"Hellinger distance {_BETWEEN}", _distance(metrics.hellinger)),
    Measure("loss", "loss", "loss of the buckets, Σ (size − 1)²", _of_release(bucket_loss)),
    Measure("retention", "retained", _KNOWN, _of_release(retention), "higher"),
    Measure(
        "suppressed", "withheld", "share of the records that are withheld", _of_release(suppressed_share)
    ),
    Measure("accuracy", "accuracy", _LEARNED, _of_release(accuracy_of), "higher"),
)
MEASURES = {measure.name: measure for measure in _ALL}
USUAL = ("relative-error", "median-relative-error", "rmse", "suppressed")
"""What is measured unless something else is asked for; the first one ranks."""


def measures_named(names: tuple[str, ...]) -> tuple[Measure, ...]:
    """The measures of these names; the usual ones if there are none."""
    for name in names:
        if name not in MEASURES:
            raise InputError(f"metric {name!r} is unknown; {did_you_mean(name, MEASURES)}")
    return tuple(MEASURES[name] for name in dict.fromkeys(names or USUAL))
