"""How well a classifier that was trained on a release predicts the sensitive value from the other columns.

A fifth of the records is held out, the rest is published, a naive Bayes classifier is trained on what was
published, and the records that were held out are predicted. A bucket's person counts towards each value of
the bucket by its share; a perturbed record and a row of a view count as they are published.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dalenius.arrays import Floats, Ints
from dalenius.errors import InputError
from dalenius.evaluate.original import Original
from dalenius.evaluate.sample import Sample, publish_aside
from dalenius.policy import Policy
from dalenius.release.folder import StoredRelease
from dalenius.sql import connect, identifiers
from dalenius.tables.source import open_source

HELD_OUT = 0.2
_MOST_ROWS = 20_000
"""How many published records a classifier is trained on."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Examples:
    """Records as codes: one column of `features` per quasi column, the sensitive value as one number."""

    features: Ints
    label: Ints
    weight: Floats

    def take(self, rows: Ints) -> Examples:
        """Some of them."""
        return Examples(features=self.features[rows], label=self.label[rows], weight=self.weight[rows])


def accuracy_of(sample: Sample) -> float | None:
    """The share of the held-out records that are predicted right; None where there is nothing to predict."""
    original = sample.original
    if not original.sensitive or not original.quasi or sample.contender.kind == "laplace":
        return None
    held_out, kept = _split(sample)
    test = encode(original, original.table).take(held_out)
    if sample.contender.policy is None:
        return float(np.bincount(test.label).max() / len(test.label))
    with tempfile.TemporaryDirectory(prefix="dalenius-compare-") as folder:
        policy = _on_rows(sample.contender.policy, kept)
        release = publish_aside(policy, Path(folder), sample.randomness)
        train = _published(release, original, sample.randomness.stream("accuracy", "rows"))
    return predict(train, test, original)


def predict(train: Examples, test: Examples, original: Original) -> float:
    """The accuracy of naive Bayes over categories."""
    try:
        from sklearn.naive_bayes import CategoricalNB
    except ImportError as error:
        raise InputError("accuracy needs scikit-learn", hint='pip install "dalenius[evaluate]"') from error
    # One category more than the table has: a view may show values of the domain that do not occur.
    sizes = [len(original.cells[column]) + 1 for column in original.quasi]
    model: Any = CategoricalNB(min_categories=sizes)
    model.fit(train.features, train.label, sample_weight=train.weight)
    return float((model.predict(test.features) == test.label).mean())


def encode(original: Original, table: pa.Table, weight: Floats | None = None) -> Examples:
    """A table's rows in the codes of the original; what does not occur there gets a code of its own."""
    codes = {column: _codes(original, table, column) for column in original.cells}
    label = np.zeros(table.num_rows, dtype=np.int64)
    for column in original.sensitive:
        label = label * (len(original.cells[column]) + 1) + codes[column]
    return Examples(
        features=np.stack([codes[column] for column in original.quasi], axis=1),
        label=label,
        weight=np.ones(table.num_rows) if weight is None else weight,
    )


def _codes(original: Original, table: pa.Table, column: str) -> Ints:
    known = original.coded.columns[column].values[column]
    found = pc.index_in(table.column(column).cast(known.type), value_set=known)
    return np.asarray(found.fill_null(len(known)).to_numpy(), dtype=np.int64)


def _split(sample: Sample) -> tuple[Ints, Ints]:
    """Which records are held out and which are published."""
    n_rows = sample.original.n_rows
    order = sample.randomness.stream("accuracy", "split").permutation(n_rows)
    n_held_out = max(1, round(HELD_OUT * n_rows))
    return np.sort(order[:n_held_out]), order[n_held_out:]


def _on_rows(policy: Policy, rows: Ints) -> Policy:
    """The policy for some records of its source, which a scan gives in the order of the original."""
    with connect() as connection:
        table = connection.sql(f"FROM {policy.source.scan(connection)}").to_arrow_table()
    return replace(policy, source=open_source(table.take(pa.array(np.sort(rows)))))


def _published(release: StoredRelease, original: Original, stream: np.random.Generator) -> Examples:
    table = _READERS[release.mechanism](release, original, int(stream.integers(2**31)))
    weight = table.column("weight").to_numpy().astype(np.float64) if "weight" in table.column_names else None
    return encode(original, table, weight)


def _read_buckets(release: StoredRelease, original: Original, seed: int) -> pa.Table:
    """People with each value of their bucket, by its share."""
    quasi, sensitive = identifiers(original.quasi), identifiers(original.sensitive)
    people = f"SELECT {quasi}, bucket FROM qit USING SAMPLE reservoir({_MOST_ROWS} ROWS) REPEATABLE ({seed})"
    sizes = 'SELECT bucket, sum("count") AS weight FROM st GROUP BY bucket'
    with release.connect() as connection:
        return connection.sql(
            f'SELECT {quasi}, {sensitive}, "count" / weight AS weight '
            f"FROM ({people}) JOIN st USING (bucket) JOIN ({sizes}) USING (bucket)"
        ).to_arrow_table()


def _read_rows(release: StoredRelease, original: Original, seed: int) -> pa.Table:
    """The rows as they are published."""
    name = "data" if release.mechanism == "perturb" else "view"
    with release.connect() as connection:
        return connection.sql(
            f"SELECT {identifiers(original.cells)} FROM {name} "
            f"USING SAMPLE reservoir({_MOST_ROWS} ROWS) REPEATABLE ({seed})"
        ).to_arrow_table()


_READERS: Mapping[str, Any] = {"bucketize": _read_buckets, "perturb": _read_rows, "alpha-beta": _read_rows}
