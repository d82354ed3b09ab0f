"""People with several values: what limits per value cost beside limits per set, and what intervals cover.

    python -m bench.person_sets [--releases 3] [--questions 60] [--rare 12]

Adult with five properties of a person as the set (works for the government, never married, earns more than
50K, has a degree, is divorced): `sets` with limits of twice the share and 0.02, and F'-privacy of the
combinations with the same rule, the nearest promise, which limits no single value. Questions count the people
with a value who are like a random person in two columns. The truth is that of the table. With --rare, so many
made-up tables of 2,000 people and eight independent values are planned instead: the loss beside its bound.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa

import dalenius

DATA = Path("../shared/data/adult.csv")
SETS = {
    "gov": "workclass IN ('Federal-gov', 'State-gov', 'Local-gov')",
    "single": "\"marital-status\" = 'Never-married'",
    "rich": "salary <> '<=50K'",
    "degree": "education IN ('Bachelors', 'Masters', 'Doctorate', 'Prof-school')",
    "divorced": "\"marital-status\" IN ('Divorced', 'Separated')",
}
QUASI = ("age", "sex", "race", "native-country", "occupation")
RULE = {"times": 2, "plus": "0.02"}
PROMISES = {"sets": {"kind": "sets", "default": RULE}, "f-privacy": {"kind": "f-privacy", "default": RULE}}


def questions(table: pa.Table, n_questions: int, stream: np.random.Generator) -> list[str]:
    """All different."""
    found: list[str] = []
    while len(found) < n_questions:
        person = table.slice(int(stream.integers(table.num_rows)), 1)
        chosen = sorted(stream.choice(["sex", "race", "occupation"], size=2, replace=False).tolist())
        where = " AND ".join(f"\"{name}\" = '{person.column(name)[0].as_py()}'" for name in chosen)
        text = f"SELECT COUNT(*) FROM t WHERE {where} AND {stream.choice(list(SETS))}"
        if text not in found:
            found.append(text)
    return found


def plan_rare(n_tables: int) -> None:
    """Eight independent values of 8 to 15 % each, limits of 1.5, 2 and 3 times the share and 0.01."""
    for number in range(n_tables):
        stream, times = np.random.default_rng(100 + number), (1.5, 2, 3)[number % 3]
        shares = stream.uniform(0.08, 0.15, 8)
        held = {f"v{k}": stream.random(2_000) < share for k, share in enumerate(shares)}
        promise = {"kind": "sets", "default": {"times": times, "plus": "0.01"}}
        policy = dalenius.Policy.from_dict(
            {
                "source": pa.table({"row": range(2_000), **held}),
                "columns": {"quasi": ["row"], "sensitive": list(held)},
                "promise": promise,
            }
        )
        try:
            found = dalenius.plan(policy).to_dict()
        except dalenius.PromiseNotMet as error:
            print(f"times {times}: {error}")
            continue
        print(
            f"times {times}: loss {found['mse'] * 1_999 / found['lower_bound']:.2f} times the bound",
            flush=True,
        )


def main() -> None:
    """Print coverage and error of both."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--releases", type=int, default=3)
    parser.add_argument("--questions", type=int, default=60)
    parser.add_argument("--rare", type=int, default=0)
    given = parser.parse_args()
    if given.rare:
        plan_rare(given.rare)
        return
    connection = duckdb.connect()
    listed = ", ".join(
        [*(f'"{name}"' for name in QUASI), *(f"{sql} AS {name}" for name, sql in SETS.items())]
    )
    table = connection.sql(f"SELECT {listed} FROM read_csv('{DATA}')").to_arrow_table()
    connection.register("t", table)
    asked = questions(table, given.questions, np.random.default_rng(17))
    truth = [float(connection.sql(text).fetchall()[0][0]) for text in asked]
    for name, promise in PROMISES.items():
        hits, errors, loss = [], [], 0.0
        for seed in range(given.releases):
            with tempfile.TemporaryDirectory() as folder:
                policy = dalenius.Policy.from_dict(
                    {
                        "source": table,
                        "release": f"{folder}/r",
                        "columns": {"quasi": list(QUASI), "sensitive": list(SETS)},
                        "promise": promise,
                    }
                )
                loss = dalenius.plan(policy).to_dict()["mse"]
                release = dalenius.publish(policy, seed=seed)
                for text, true in zip(asked, truth, strict=True):
                    (row,) = release.ask(text).rows
                    if row.estimate is None or row.low is None or row.high is None:
                        continue
                    hits.append(row.low <= true <= row.high)
                    errors.append(abs(row.estimate - true) / max(true, 1.0))
        print(
            f"{name}: MSE {loss:.3f}, {len(hits)} answers, {np.mean(hits):.3f} covered, median relative "
            f"error {np.median(errors):.4f}, mean {np.mean(errors):.4f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
