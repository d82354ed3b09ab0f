"""How sharp and how honest intervals from bucketized releases are, by kind of question and true size.

    python -m bench.coverage --part buckets [--only kdd-industry] [--rows 6000] [--releases 6] [--first 0]
    python -m bench.coverage --part buckets --fakes 1 [--estimator shrinkage]
    python -m bench.coverage --part buckets --contents varied
    python -m bench.coverage --part buckets --suppress 5

For each table and θ: the mean relative error, how often intervals of 90, 95 and 99 % hold, and how wide those
of 95 % are, as a multiple of the ideal width: that of a normal law with the standard deviation of the errors
over releases and questions of one kind and size. Every release is of other people (`--rows` of the table's,
at random) and asked other questions: errors of questions on one release go together, and only many releases
show a coverage to two points. With --fakes releases are ℓ-diverse, ℓ = 4, with so many fakes a bucket; with
--suppress ℓ they are ℓ-diverse after people were withheld safely, and the truth is that of the others. Tables
marked as judging ones were not looked at when anything about the estimators was settled.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

import dalenius
from bench.coverage_questions import people
from bench.coverage_subjects import Questions
from bench.real_coverage import LEVELS, Places
from dalenius.ask import answer_asked
from dalenius.demo_data import hospital
from dalenius.evaluate.original import Original
from dalenius.mechanisms.bucketize.answer import BucketizedRows
from dalenius.mechanisms.rows.estimation import RowModel
from dalenius.question.database import Request
from dalenius.question.model import Model
from dalenius.tables.columns import CodedTable

TABLES = {
    "adult-occupation": ("adult.csv", "occupation", "age", ("sex", "Female"), "tuning"),
    "adult-education": ("adult.csv", "education", "age", ("sex", "Female"), "tuning"),
    "kdd-education": ("kdd_education.csv.gz", "education", "age", ("sex", "Female"), "tuning"),
    "kdd-occupation": ("kdd_workers.csv.gz", "occupation_code", "age", ("sex", "Female"), "tuning"),
    "kdd-industry": ("kdd_workers.csv.gz", "industry_code", "age", ("sex", "Female"), "judging"),
    "workers-education": ("kdd_workers.csv.gz", "education", "age", ("sex", "Female"), "judging"),
    "adult-family": ("adult.csv", "marital-status + sex", "age", ("race", "White"), "judging"),
    "kdd-family": ("kdd_education.csv.gz", "marital + sex", "age", ("race", "White"), "judging"),
    "workers-class": ("kdd_workers.csv.gz", "class_of_worker + marital", "age", ("sex", "Female"), "judging"),
    "adult-work": ("adult.csv", "workclass + marital-status", "age", ("sex", "Female"), "judging"),
    "adult-earnings": ("adult.csv", "salary + education", "age", ("sex", "Female"), "judging"),
    "kdd-work": ("kdd_education.csv.gz", "class_of_worker + sex", "age", ("race", "White"), "judging"),
    "workers-school": ("kdd_workers.csv.gz", "education + income", "age", ("sex", "Female"), "judging"),
    "workers-trade": (
        "kdd_workers.csv.gz",
        "class_of_worker + education",
        "age",
        ("sex", "Female"),
        "judging",
    ),
    "hospital": ("", "disease", "age", ("sex", "F"), "tuning"),
    "synthetic": ("", "disease", "age", ("sex", "F"), "other seeds"),
}
_NUMBER = "number of the person"
_SYNTHETIC, _FIRST_SEED = 6_000, 100
"""How many people the table of `coverage_questions` has here, and which of its seeds is the first."""
THETAS = (2, 4, 8, 16)
ESTIMATOR = "matching"
SIZES = {"< 5": (-1, 4), "5 to 20": (5, 20), "21 to 200": (21, 200), "> 200": (201, 1e12), "> 20": (21, 1e12)}
KINDS = ("count", "sum", "average", "ratio")
HEAD = """| table | θ | kind | size | n | mean RE | 90 % | 95 % | 99 % | width |
|---|---|---|---|---|---|---|---|---|---|"""
Asked = tuple[np.ndarray, np.ndarray]
"""Questions × kinds × (estimate, then low and high of each level), and the truth: questions × kinds."""


def measure(
    data: Path,
    n_releases: int,
    n_questions: int,
    only: str,
    thetas: tuple[int, ...] = THETAS,
    n_rows: int = 0,
    n_fakes: int = 0,
    estimator: str = ESTIMATOR,
    first: int = 0,
    contents: str = "even",
    suppress: int = 0,
) -> None:
    """Print a table for each data set that is present and whose name has `only` in it.

    `n_rows` people of each, at random and others each time; 0: all of them. `first`: the first seed.
    """
    print(HEAD, flush=True)
    for name, (file, _, _, _, use) in TABLES.items():
        if only not in name:
            continue
        if file and not (data / file).exists():
            print(f"{name} is left out: no {data / file}", file=sys.stderr)
            continue
        whole = read_table(data, name) if file else None
        every: list[Asked] = []
        is_one = bool(n_fakes or suppress)
        for theta in (0,) if is_one else thetas:
            model = partial(_model, theta=theta, contents=contents)
            if is_one:
                model = partial(l_diverse, n_fakes=n_fakes, suppress=suppress)
            seeds = range(first, first + n_releases)
            found = [ask_release(name, whole, model, n_questions, n_rows, seed, estimator) for seed in seeds]
            every += found
            for line in _lines(found):
                print(f"| {name} ({use}) | {theta} | {line} |", flush=True)
        for line in () if is_one else _lines(every):
            print(f"| {name} ({use}) | all | {line} |", flush=True)


def ask_release(
    name: str,
    whole: pa.Table | None,
    model: Callable[..., tuple[Model, pa.Table]],
    n_questions: int,
    n_rows: int,
    seed: int,
    estimator: str,
) -> Asked:
    """One release, and what it is asked."""
    _, secret, number, share, _ = TABLES[name]
    table = _some_rows(_made_up(name, seed) if whole is None else whole, n_rows, seed)
    original = Original.of(table, [secret])
    rng = np.random.default_rng([len(name), seed])
    texts = [_text(original, secret, number, share, k, rng) for k in range(n_questions)]
    made, published = model(original, seed=seed)
    return _answers(made, texts, table.column_names, estimator), _truths(published, texts)


def read_table(data: Path, name: str) -> pa.Table:
    """A real table; with two columns as one, where the secret is both."""
    file, secret, *_ = TABLES[name]
    table, names = csv.read_csv(data / file), secret.split(" + ")
    if len(names) < 2:
        return table
    both = pc.binary_join_element_wise(*(table[own].cast(pa.string()) for own in names), ", ")
    return table.drop_columns(names).append_column(secret, both)


def _made_up(name: str, seed: int) -> pa.Table:
    if name == "synthetic":
        return people(_SYNTHETIC, seed=_FIRST_SEED + seed)
    return hospital(seed=_FIRST_SEED + seed).drop_columns(["patient_id", "name"])


def _some_rows(table: pa.Table, n_rows: int, seed: int) -> pa.Table:
    if not 0 < n_rows < table.num_rows:
        return table
    chosen = np.random.default_rng([_FIRST_SEED, seed]).permutation(table.num_rows)[:n_rows]
    return table.take(np.sort(chosen)).combine_chunks()


def _text(
    original: Original, secret: str, number: str, share: tuple[str, str], k: int, rng: np.random.Generator
) -> str:
    """A question: sets of values, one value of a quasi column, or one sensitive value, in turn."""
    n_columns = int(rng.integers(1, 5)) if k % 3 != 1 else 1
    columns = rng.choice(list(original.quasi), n_columns, replace=False).tolist()
    part = 0.01 ** (1 / (n_columns + 1))
    conditions = [_among(original, name, part if k % 3 != 1 else 0.0, rng) for name in columns]
    conditions.append(_among(original, secret, part if k % 3 != 2 else 0.0, rng))
    return (
        f"SELECT COUNT(*), SUM({number}), AVG({number}), COUNT(*) FILTER (WHERE {share[0]} = "
        f"'{share[1]}') / COUNT(*) FROM t WHERE {' AND '.join(conditions)}"
    )


def _among(original: Original, column: str, part: float, rng: np.random.Generator) -> str:
    """Some values of a column, at least one, likelier common ones."""
    codes, cells = original.codes(column), list(original.cells[column])
    counts = np.bincount(codes, minlength=len(cells)) / len(codes)
    n = max(1, int(np.ceil(part * len(cells))))
    chosen = rng.choice(len(cells), min(n, len(cells)), replace=False, p=(counts + 1 / len(cells)) / 2)
    listed = ", ".join(
        "'" + c.replace("'", "''") + "'" if isinstance(c, str) else str(c) for c in (cells[i] for i in chosen)
    )
    return f'"{column}" IN ({listed})'


def _truths(table: pa.Table, texts: list[str]) -> np.ndarray:
    """Questions × kinds."""
    with duckdb.connect() as connection:
        connection.register("t", table)
        rows = [connection.execute(text).fetchone() or () for text in texts]
    return np.array([[np.nan if cell is None else float(cell) for cell in row] for row in rows])


def _model(original: Original, *, theta: int, seed: int, contents: str) -> tuple[RowModel, pa.Table]:
    """As it is asked, and whom it is about."""
    secret = original.sensitive[0]
    places = Places.of(original, theta, contents, seed)
    made = BucketizedRows(
        rows=CodedTable.of(original.table.select(list(original.quasi))),
        sensitive=CodedTable.of(pa.table({secret: pa.array(list(original.cells[secret]))})),
        buckets=places.deal(original.codes(secret), np.random.default_rng([theta, seed])),
    )
    return made.model(), original.table


def l_diverse(original: Original, *, n_fakes: int, suppress: int, seed: int) -> tuple[RowModel, pa.Table]:
    """With fakes, or after suppression; a column that tells who is left is not kept."""
    table = original.table.append_column(_NUMBER, pa.array(np.arange(original.n_rows)))
    rules = {
        "source": table if suppress else original.table,
        "release": "r",
        "columns": {
            "quasi": [*original.quasi, *([_NUMBER] if suppress else [])],
            "sensitive": list(original.sensitive),
        },
        "promise": {"kind": "l-diversity", "l": suppress or 4},
        **({"suppress": {"method": "safe"}} if suppress else {}),
        "mechanism": {"kind": "bucketize", **({"fakes": n_fakes} if n_fakes else {})},
    }
    with tempfile.TemporaryDirectory() as folder:
        release = dalenius.publish(dalenius.Policy.from_dict(rules, folder=Path(folder)), seed=seed)
        made = BucketizedRows.load(release.stored)
    if not suppress:
        return made.model(), original.table
    here = made.rows.columns[_NUMBER].decode().to_numpy(zero_copy_only=False)
    kept = {name: column for name, column in made.rows.columns.items() if name != _NUMBER}
    model = replace(made, rows=replace(made.rows, columns=kept)).model()
    return model, original.table.take(pa.array(np.sort(here)))


def _answers(model: Model, texts: list[str], names: list[str], estimator: str) -> np.ndarray:
    asked = Questions.of(model, texts, names)
    levels = [
        answer_asked(
            model,
            asked.queries,
            asked.asked,
            Request(confidence=level, estimator=estimator or model.estimators.names[0]),
            asked.workspace,
        )
        for level in LEVELS
    ]
    return np.array(
        [
            [
                [rows[0].estimate, *(end for row in rows for end in (row.low, row.high))]
                for rows in zip(*(answer.rows for answer in answers), strict=True)
            ]
            for answers in zip(*levels, strict=True)
        ],
        dtype=np.float64,
    )


def _lines(found: list[Asked]) -> Iterator[str]:
    answers, truth = (np.concatenate([one[k] for one in found]) for k in (0, 1))
    for kind, label in enumerate(KINDS):
        for size, (least, most) in SIZES.items():
            chosen = (truth[:, 0] >= least) & (truth[:, 0] <= most) & np.isfinite(truth[:, kind])
            if chosen.sum() >= 5:
                own, true = answers[chosen, kind], truth[chosen, kind]
                yield f"{label} | {size} | {chosen.sum()} | {numbers_of(own, true)}"


def numbers_of(own: np.ndarray, true: np.ndarray) -> str:
    error = own[:, 0] - true
    relative = np.abs(error) / np.maximum(np.abs(true), 1e-9)
    slack = 1e-6 * np.maximum(1.0, np.abs(true))
    held = [(own[:, 1 + 2 * k] <= true + slack) & (true - slack <= own[:, 2 + 2 * k]) for k in range(3)]
    width = np.nanmean(own[:, 4] - own[:, 3]) / (2 * 1.96 * np.sqrt(np.nanmean(error**2)))
    shares = " | ".join(f"{part.mean():.3f}" for part in held)
    return f"{np.nanmean(relative) if (true != 0).all() else np.nan:.3f} | {shares} | {width:.2f}"
