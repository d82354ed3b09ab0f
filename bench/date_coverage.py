"""Coverage and error of answers from a table that is published again as people come and leave.

    python -m bench.date_coverage [--data FOLDER] [--table adult|kdd|workers] [--series 4] [--first 0]
        [--open 0.5]

Three dates of one table: of everybody so far some leave, sooner the older they are; in the second third of
the rows also with the commonest value, in the last with every value at a rate of its own (a factor of e^0.4
is one standard deviation). Others come. Questions: each value with each of three conditions at each date, and
the changes between dates, where at least five people satisfy both at the first. Beside it: a release of the
last date's table by itself, which promises the same but not together with the others. Beside the intervals
that hold: those that would if they were half a person shorter at both ends, which is what rounding outwards
adds on average. `--open` is the variance of effects of leaving that buckets tell nothing of; `--first` the
first seed.
"""

from __future__ import annotations

import argparse
import tempfile
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa

import dalenius
from dalenius.mechanisms.bucketize.dates import answer as dated_answers
from dalenius.reproduce.microdata import data_folder

Table = tuple[str, str, dict[str, Callable[[pd.DataFrame], pd.Series]], float]
TABLES: dict[str, Table] = {
    "adult": (
        "adult.csv",
        "occupation",
        {
            "sex = 'Female'": lambda table: table.sex == "Female",
            "age >= 40": lambda table: table.age >= 40,
            "education = 'Bachelors'": lambda table: table.education == "Bachelors",
        },
        0.2,
    ),
    "kdd": (
        "kdd_education.csv.gz",
        "education",
        {
            "sex = 'Female'": lambda table: table.sex == "Female",
            "age >= 40": lambda table: table.age >= 40,
            "age < 25": lambda table: table.age < 25,
        },
        0.4,
    ),
    "workers": (
        "kdd_workers.csv.gz",
        "industry_code",
        {
            "sex = 'Female'": lambda table: table.sex == "Female",
            "age >= 40": lambda table: table.age >= 40,
            "education = 'High school graduate'": lambda table: table.education == "High school graduate",
        },
        0.2,
    ),
}
LEAVING = ("by age", "by age and the commonest value", "by age and every value")
CHANGES = ((1, 2), (2, 3), (1, 3))
ROWS = 10_000
_HALF = 0.5


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, default=data_folder())
    parser.add_argument("--table", choices=sorted(TABLES), default="adult")
    parser.add_argument("--series", type=int, default=4)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--open", type=float, default=dated_answers.OPEN)
    options = parser.parse_args()
    dated_answers.OPEN = options.open
    file, sensitive, conditions, limit = TABLES[options.table]
    people = pd.read_csv(options.data / file)
    kept = list(dict.fromkeys(["age", "sex", *(c for c in ("education",) if c in people), sensitive]))
    people = people[kept].rename(columns=str)
    print("| who leaves | asked | questions | 95 % | shorter | root mean square error |")
    print("|---|---|---|---|---|---|")
    for leaving in LEAVING:
        found: dict[str, list[tuple[bool, bool, float]]] = defaultdict(list)
        for seed in range(options.first, options.first + options.series):
            _measure(people, sensitive, conditions, limit, seed, found, leaving)
        for what, every in found.items():
            held, shorter, errors = zip(*every, strict=True)
            print(
                f"| {leaving} | {what} | {len(every)} "
                f"| {np.mean(held):.3f} | {np.mean(shorter):.3f} "
                f"| {np.sqrt(np.mean(np.square(errors))):.1f} |",
                flush=True,
            )


def _measure(
    people: pd.DataFrame,
    sensitive: str,
    conditions: dict[str, Callable[[pd.DataFrame], pd.Series]],
    limit: float,
    seed: int,
    found: dict[str, list[tuple[bool, bool, float]]],
    leaving: str,
) -> None:
    tables = _tables(people, sensitive, seed, leaving)
    truth = [
        {
            f"SELECT COUNT(*) FROM t WHERE {condition} AND {sensitive} = {_literal(value)}": int(
                ((table[sensitive] == value) & holds(table)).sum()
            )
            for value in sorted(people[sensitive].unique())
            for condition, holds in conditions.items()
        }
        for table in tables
    ]
    with tempfile.TemporaryDirectory() as folder:
        for table in tables:
            dalenius.publish(_policy(table, sensitive, limit, folder, {"kind": "dates"}), seed=seed, yes=True)
        series = dalenius.open_release(Path(folder) / "series")
        asked = [q for q, n in truth[0].items() if n >= 5]
        for date in (1, 2, 3):
            _compare(series, asked, f"date-{date}", truth[date - 1], f"date {date}", found)
        for first, last in CHANGES:
            change = {q: truth[last - 1][q] - truth[first - 1][q] for q in asked}
            _compare(series, asked, f"change-{first}-{last}", change, f"change from {first} to {last}", found)
    with tempfile.TemporaryDirectory() as folder:
        alone = dalenius.publish(_policy(tables[-1], sensitive, limit, folder, None), seed=seed, yes=True)
        _compare(alone, asked, None, truth[2], "date 3 published by itself", found)


def _compare(
    release: dalenius.Release,
    asked: list[str],
    estimator: str | None,
    truth: dict[str, int],
    what: str,
    found: dict[str, list[tuple[bool, bool, float]]],
) -> None:
    for question, answer in zip(asked, release.ask_many(asked, estimator=estimator), strict=True):
        (row,) = answer.rows
        low, high, true = row.low or 0, row.high or 0, truth[question]
        is_held, is_within = low <= true <= high, low + _HALF <= true <= high - _HALF
        found[what].append((is_held, is_within or low == true == high, (row.estimate or 0) - true))


def _literal(value: object) -> str:
    return f"'{value}'" if isinstance(value, str) else str(value)


def _tables(people: pd.DataFrame, sensitive: str, seed: int, leaving: str) -> list[pd.DataFrame]:
    """Three dates; about a tenth leaves between two of them and as many come."""
    rng = np.random.default_rng(seed)
    sample = people.iloc[rng.permutation(len(people))[:ROWS]].reset_index(drop=True)
    sample = sample.assign(uid=np.arange(len(sample)))
    here, n_come = np.arange(len(sample)) < ROWS * 8 // 10, ROWS // 10
    tables, seen = [sample[here]], ROWS * 8 // 10
    rate = 0.05 + 0.1 * (sample.age >= 40).to_numpy()
    if leaving == LEAVING[1]:
        rate = rate + 0.15 * (sample[sensitive] == sample[sensitive].mode()[0]).to_numpy()
    elif leaving == LEAVING[2]:
        values = sorted(people[sensitive].unique())
        factor = dict(zip(values, np.exp(0.4 * rng.normal(size=len(values))), strict=True))
        rate = np.minimum(rate * sample[sensitive].map(factor).to_numpy(), 0.9)
    for _ in range(2):
        here = here & (rng.random(len(sample)) >= rate)
        here[seen : seen + n_come] = True
        seen += n_come
        tables.append(sample[here])
    return tables


def _policy(
    table: pd.DataFrame, sensitive: str, limit: float, folder: str, series: dict[str, str] | None
) -> dalenius.Policy:
    quasi = [name for name in table.columns if name not in (sensitive, "uid")]
    return dalenius.Policy.from_dict(
        {
            "source": pa.Table.from_pandas(table, preserve_index=False),
            "release": "series",
            "columns": {"unit": "uid", "quasi": quasi, "sensitive": [sensitive]},
            "promise": {"kind": "f-privacy", "default": limit},
            "ledger": {"path": "ledger"},
            **({} if series is None else {"series": series}),
        },
        folder=folder,
    )


if __name__ == "__main__":
    main()
