"""Secret numbers: what proximity costs beside l-diversity, and how often its intervals cover.

    python -m bench.near_numbers [--releases 3] [--questions 100]

Adult (or KDD) with `age` as the secret: proximity within 3 years at most 1/4, and l-diversity with l = 4, the
nearest promise that knows no distance. Questions are counts of an age range among people like a random
person in two columns, sums and averages of age, all different. The truth is that of the table.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa

import dalenius

DATA = Path("../shared/data")
PROMISES = {
    "proximity 3, 1/4": {"kind": "proximity", "within": 3, "at_most": "1/4"},
    "l-diversity 4": {"kind": "l-diversity", "l": 4},
}
QUASI = ("sex", "race", "education", "marital-status", "marital", "workclass", "class_of_worker")


def questions(table: pa.Table, n_questions: int, stream: np.random.Generator) -> list[str]:
    """Counts, sums and averages, a third each."""
    found: list[str] = []
    names = [name for name in QUASI if name in table.column_names]
    while len(found) < n_questions:
        person = table.slice(int(stream.integers(table.num_rows)), 1)
        chosen = sorted(stream.choice(names, size=2, replace=False).tolist())
        low = int(stream.integers(17, 70))
        high = low + int(stream.integers(4, 25))
        where = " AND ".join(f"\"{name}\" = '{person.column(name)[0].as_py()}'" for name in chosen)
        kind = len(found) % 3
        text = (
            f"SELECT COUNT(*) FROM t WHERE {where} AND age BETWEEN {low} AND {high}"
            if kind == 0
            else f"SELECT {'SUM' if kind == 1 else 'AVG'}(age) FROM t WHERE {where}"
        )
        if text not in found:
            found.append(text)
    return found


def main() -> None:
    """Print coverage and error by kind of question."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--releases", type=int, default=3)
    parser.add_argument("--questions", type=int, default=100)
    parser.add_argument("--table", default="adult.csv")
    given = parser.parse_args()
    connection = duckdb.connect()
    table = connection.sql(f"SELECT * FROM read_csv('{DATA / given.table}')").to_arrow_table()
    connection.register("t", table)
    stream = np.random.default_rng(17)
    asked = questions(table, given.questions, stream)
    truth = [float(connection.sql(text).fetchall()[0][0]) for text in asked]
    for name, promise in PROMISES.items():
        hits: dict[str, list[bool]] = {"COUNT": [], "SUM": [], "AVG": []}
        errors: dict[str, list[float]] = {"COUNT": [], "SUM": [], "AVG": []}
        for seed in range(given.releases):
            with tempfile.TemporaryDirectory() as folder:
                policy = dalenius.Policy.from_dict(
                    {
                        "source": table,
                        "release": f"{folder}/r",
                        "columns": {
                            "quasi": [c for c in table.column_names if c != "age"],
                            "sensitive": ["age"],
                        },
                        "promise": promise,
                    }
                )
                release = dalenius.publish(policy, seed=seed)
                for text, true in zip(asked, truth, strict=True):
                    (row,) = release.ask(text).rows
                    if row.estimate is None or row.low is None or row.high is None:
                        continue
                    kind = text.split("(")[0].split()[-1]
                    hits[kind].append(row.low <= true <= row.high)
                    errors[kind].append(abs(row.estimate - true) / max(abs(true), 1.0))
        for kind, covered in hits.items():
            print(
                f"{name}: {kind}: {len(covered)} answers, {np.mean(covered):.3f} covered, median relative "
                f"error {np.median(errors[kind]):.4f}, mean {np.mean(errors[kind]):.4f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
