"""Secret numbers: what proximity costs beside l-diversity, and how often its intervals cover.

    python -m bench.near_numbers [--data FOLDER] [--table adult.csv] [--rows 8000] [--releases 4]
        [--questions 60] [--first 0] [--fractions]

Samples of Adult or KDD with `age` as the secret: proximity within 3 years at most 1/4, and l-diversity with
l = 4, the nearest promise that knows no distance. Questions are about people like a random person in one or
two columns, of 20 or more, all different: counts of an age range, sums, averages and quartiles of age.
Printed too: errors as multiples of their standard errors, root mean square. `--first` is the first seed. With
`--fractions` everybody's age has a random fraction of a year, so that no two are the same.
"""

from __future__ import annotations

import argparse
import tempfile
from collections import defaultdict
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa

import dalenius
from dalenius.reproduce.microdata import data_folder

PROMISES = {
    "proximity 3, 1/4": {"kind": "proximity", "within": 3, "at_most": "1/4"},
    "l-diversity 4": {"kind": "l-diversity", "l": 4},
}
QUASI = ("sex", "race", "education", "marital-status", "marital", "workclass", "class_of_worker")
FEWEST = 20
KINDS = ("count", "SUM", "AVG", "quartile")


def questions(table: pa.Table, n_questions: int, stream: np.random.Generator) -> list[tuple[str, str]]:
    """Kinds and texts, as many of each kind."""
    found: list[tuple[str, str]] = []
    names = [name for name in QUASI if name in table.column_names]
    while len(found) < n_questions:
        person = table.slice(int(stream.integers(table.num_rows)), 1)
        chosen = sorted(stream.choice(names, size=int(stream.integers(1, 3)), replace=False).tolist())
        low = int(stream.integers(17, 70))
        high = low + int(stream.integers(4, 25))
        where = " AND ".join(f"\"{name}\" = '{person.column(name)[0].as_py()}'" for name in chosen)
        kind = KINDS[len(found) % len(KINDS)]
        what = {
            "count": "COUNT(*)",
            "quartile": f"quantile_cont(age, {stream.choice([0.25, 0.5, 0.75])})",
        }.get(kind, f"{kind}(age)")
        if kind == "count":
            where += f" AND age BETWEEN {low} AND {high}"
        text = f"SELECT {what} FROM t WHERE {where}"
        if (kind, text) not in found and _ask(table, f"SELECT COUNT(*) FROM t WHERE {where}") >= FEWEST:
            found.append((kind, text))
    return found


def _ask(table: pa.Table, text: str) -> float:
    with duckdb.connect() as connection:
        connection.register("t", table)
        return float(connection.sql(text).fetchall()[0][0])


def _publish(table: pa.Table, promise: dict[str, object], folder: str, seed: int) -> dalenius.Release:
    quasi = [name for name in QUASI if name in table.column_names]
    policy = {
        "source": table.select([*quasi, "age"]),
        "release": f"{folder}/r",
        "columns": {"quasi": quasi, "sensitive": ["age"]},
        "promise": promise,
    }
    return dalenius.publish(dalenius.Policy.from_dict(policy), seed=seed, yes=True)


def main() -> None:
    """Print coverage and error by kind of question."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, default=data_folder())
    parser.add_argument("--table", default="adult.csv")
    parser.add_argument("--rows", type=int, default=8_000)
    parser.add_argument("--releases", type=int, default=4)
    parser.add_argument("--questions", type=int, default=60)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--fractions", action="store_true")
    given = parser.parse_args()
    with duckdb.connect() as connection:
        whole = connection.sql(f"SELECT * FROM read_csv('{given.data / given.table}')").to_arrow_table()
    held: dict[tuple[str, str], list[bool]] = defaultdict(list)
    errors: dict[tuple[str, str], list[float]] = defaultdict(list)
    multiples: dict[tuple[str, str], list[float]] = defaultdict(list)
    for seed in range(given.first, given.first + given.releases):
        stream = np.random.default_rng(seed)
        table = whole.take(stream.permutation(whole.num_rows)[: given.rows])
        if given.fractions:
            ages = table.column("age").to_numpy() + stream.random(given.rows).round(6)
            table = table.set_column(table.column_names.index("age"), "age", pa.array(ages))
        asked = questions(table, given.questions, stream)
        truth = [_ask(table, text) for _, text in asked]
        for name, promise in PROMISES.items():
            with tempfile.TemporaryDirectory() as folder:
                release = _publish(table, promise, folder, seed)
                answers = release.ask_many([text for _, text in asked])
            for (kind, _), answer, true in zip(asked, answers, truth, strict=True):
                (row,) = answer.rows
                if row.estimate is not None and row.low is not None and row.high is not None:
                    held[name, kind].append(row.low <= true <= row.high)
                    errors[name, kind].append(abs(row.estimate - true) / max(abs(true), 1.0))
                    multiples[name, kind].append((row.estimate - true) / (row.std_error or np.nan))
    for (name, kind), covered in held.items():
        print(
            f"{name}: {kind}: {len(covered)} answers, {np.mean(covered):.3f} covered, median relative "
            f"error {np.median(errors[name, kind]):.4f}, mean {np.mean(errors[name, kind]):.4f}, errors "
            f"{np.sqrt(np.nanmean(np.square(multiples[name, kind]))):.2f} times their standard errors",
            flush=True,
        )


if __name__ == "__main__":
    main()
