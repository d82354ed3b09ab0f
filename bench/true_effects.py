"""What no release tells: the main effects of its published people, fitted to their true values.

With them a release's people are matched with its buckets' values as `matching` does it with the effects that
buckets tell. Its error is what the hidden matching and everything that is no main effect leave: an estimator
that sees main effects alone cannot be expected to have less.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from bench.coverage_subjects import Questions
from dalenius.arrays import Floats, Ints
from dalenius.ask import answer_asked
from dalenius.mechanisms.bucketize.answer import BucketEstimator, BucketizedRows
from dalenius.mechanisms.bucketize.estimate.buckets import Buckets
from dalenius.mechanisms.bucketize.estimate.effects import Everybody
from dalenius.mechanisms.bucketize.estimate.posterior import Posterior
from dalenius.mechanisms.rows.effects import Quasi
from dalenius.question.answer import Answer
from dalenius.question.database import Request
from dalenius.question.model import Estimators
from dalenius.release.folder import StoredRelease
from dalenius.tables.columns import CodedTable

ORACLE = "oracle"


def ask_oracle(
    release: StoredRelease, people: pa.Table, sensitive: str, texts: Sequence[str]
) -> Sequence[Answer]:
    """Answers by the true effects among the people who were published."""
    made = BucketizedRows.load(release)
    makers = {ORACLE: lambda: _oracle(made, people, sensitive)}
    model = replace(made.model(), estimators=Estimators(makers=makers))
    asked = Questions.of(model, texts, people.column_names)
    return answer_asked(model, asked.queries, asked.asked, Request(estimator=ORACLE), asked.workspace)


def _oracle(made: BucketizedRows, people: pa.Table, sensitive: str) -> BucketEstimator:
    ranked = [column.ranked() for column in made.rows.columns.values()]
    columns = [Quasi(codes=codes, is_number=is_number) for codes, is_number in ranked]
    effects = true_effects(columns, true_values(made, people, sensitive))
    posterior = Posterior.of(made.buckets, columns, made.region_of_bucket, made.numbers)
    everybody = Everybody.of(posterior.features, posterior.contents, made.buckets)
    known = replace(posterior.with_effects(made.buckets, everybody, effects), others=())
    return BucketEstimator(
        buckets=made.buckets, made=known, has_fakes=made.has_fakes, alike=made.alike, places=made.places
    )


def true_effects(columns: Sequence[Quasi], values: Ints) -> Floats:
    """Features × values: of a table in which everybody is alone in a bucket, which hides nothing."""
    alone = np.arange(len(values))
    buckets = Buckets.of(alone, alone, values, np.ones(len(values)))
    return Posterior.of(buckets, columns, None).effects


def true_values(made: BucketizedRows, people: pa.Table, sensitive: str) -> Ints:
    """Of each published row the value of a person with the same cells, each person once."""
    names = list(made.rows.columns)
    published = pa.table({name: column.decode() for name, column in made.rows.columns.items()})
    order, own = _by_cells(published, names), _by_cells(people, names)
    if not published.take(order).equals(people.select(names).take(own).combine_chunks()):
        raise ValueError("these are not the people who were published")
    code = {cell: k for k, cell in enumerate(made.sensitive.columns[sensitive].decode().to_pylist())}
    values = np.empty(people.num_rows, dtype=np.int64)
    values[order] = [code[cell] for cell in people[sensitive].take(own).to_pylist()]
    return values


def _by_cells(table: pa.Table, names: Sequence[str]) -> np.ndarray:
    """The rows in the order of their cells."""
    codes = [CodedTable.of(table.select([name])).columns[name] for name in names]
    ranks = []
    for column in codes:
        cells = column.cells.to_pylist()
        order = sorted(
            range(len(cells)), key=lambda k: (cells[k] is None, cells[k] if cells[k] is not None else 0)
        )
        rank = np.empty(len(cells), dtype=np.int64)
        rank[order] = np.arange(len(cells))
        ranks.append(rank[column.codes])
    return np.lexsort(ranks)
