"""Every promise on a real table: published, verified, audited and asked, beside the nearest promise.

    python -m bench.real_promises [--data FOLDER] [--only NAME ...] [--rows 10000] [--releases 2] [--first 0]
        [--unaudited]

Tables are samples of Adult and KDD Census-Income. The same questions go to both releases: counts of a random
person's value among people like another random person in one or two columns, of 20 or more. (Were both of one
person, what is asked about would depend on the truth: counts that are larger than a release tells would be
asked about more often, and posterior intervals miss them. Questions here depend on nothing that is hidden but
by the least of 20.) Printed: whether `verify` is
content, how many attacks of the audits have a bound and keep it, how many 95 % intervals hold (with a
standard error from the scatter over releases, since the questions of one go together), and the root mean
square error, beside those of the nearest promise. `--first` is the first seed; `--unaudited` releases are
only asked. Dates and changing views are of a table of which a tenth leaves between two dates, and as many
come.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa

import dalenius
from dalenius.reproduce.microdata import data_folder

OFFICE = ["Exec-managerial", "Prof-specialty", "Adm-clerical", "Tech-support"]
RARE = {"Doctorate": 0.1, "Preschool": 0.1, "1st-4th": 0.1}
LIMITS = {"times": 8, "plus": "0.02"}
TWICE = {"times": 2, "plus": "0.02"}
SETS = {
    "gov": "workclass IN ('Federal-gov', 'State-gov', 'Local-gov')",
    "single": "\"marital-status\" = 'Never-married'",
    "rich": "salary <> '<=50K'",
    "degree": "education IN ('Bachelors', 'Masters', 'Doctorate', 'Prof-school')",
    "divorced": "\"marital-status\" IN ('Divorced', 'Separated')",
}


HAVING = 'age, sex, race, "native-country", occupation, ' + ", ".join(
    f"{sql} AS {name}" for name, sql in SETS.items()
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A table, a promise and the nearest one."""

    file: str
    quasi: tuple[str, ...]
    sensitive: str
    ours: dict[str, Any]
    near: dict[str, Any]
    near_name: str
    dates: int = 1
    """How often the table is published; of more than one, the last and the change to it are asked."""
    select: str = "*"
    asked: str = "{secret} = '{value}'"


ADULT = ("age", "sex", "race", "education")
CASES: dict[str, Case] = {
    "changing views": Case(
        file="adult.csv",
        quasi=("age", "sex", "race", "education", "marital-status", "workclass", "native-country", "salary"),
        sensitive="occupation",
        ours={
            "promise": {"kind": "d-gamma-privacy", "d": "1/40000", "gamma": 0.2},
            "mechanism": {
                "kind": "alpha-beta",
                "duplicates": "distinct",
                "views": 3,
                "changing": True,
            },
        },
        near={
            "promise": {"kind": "d-gamma-privacy", "d": "1/40000", "gamma": 0.2},
            "mechanism": {"kind": "alpha-beta", "duplicates": "distinct"},
        },
        near_name="one view of the last table",
        dates=3,
    ),
    "dates": Case(
        file="adult.csv",
        quasi=ADULT,
        sensitive="occupation",
        ours={"promise": {"kind": "f-privacy", "default": 0.2}, "series": {"kind": "dates"}},
        near={"promise": {"kind": "f-privacy", "default": 0.2}},
        near_name="the last table by itself",
        dates=3,
    ),
    "dates, KDD": Case(
        file="kdd_education.csv.gz",
        quasi=("age", "sex", "race"),
        sensitive="education",
        ours={"promise": {"kind": "f-privacy", "default": 0.4}, "series": {"kind": "dates"}},
        near={"promise": {"kind": "f-privacy", "default": 0.4}},
        near_name="the last table by itself",
        dates=3,
    ),
    "limits by perturb": Case(
        file="adult.csv",
        quasi=ADULT,
        sensitive="occupation",
        ours={"promise": {"kind": "f-privacy", "default": LIMITS}, "mechanism": {"kind": "perturb"}},
        near={"promise": {"kind": "f-privacy", "default": LIMITS}},
        near_name="the same limits by bucketize",
    ),
    "groups": Case(
        file="adult.csv",
        quasi=ADULT,
        sensitive="occupation",
        ours={
            "promise": {
                "kind": "f-privacy",
                "default": TWICE,
                "groups": {"office": {"values": OFFICE, "at_most": 0.5}},
            }
        },
        near={"promise": {"kind": "f-privacy", "default": TWICE}},
        near_name="f-privacy without groups",
    ),
    "sets": Case(
        file="adult.csv",
        quasi=("age", "sex", "race", "native-country", "occupation"),
        sensitive=", ".join(SETS),
        ours={"promise": {"kind": "sets", "default": TWICE}},
        near={"promise": {"kind": "f-privacy", "default": TWICE}},
        near_name="f-privacy of the combinations",
        select=HAVING,
        asked="{value}",
    ),
    "sets, alike in sex": Case(
        file="adult.csv",
        quasi=("age", "sex", "race", "native-country", "occupation"),
        sensitive=", ".join(SETS),
        ours={"promise": {"kind": "sets", "default": TWICE, "alike": ["sex"]}},
        near={"promise": {"kind": "sets", "default": TWICE}},
        near_name="sets",
        select=HAVING,
        asked="{value}",
    ),
    "suppression before limits": Case(
        file="adult.csv",
        quasi=("uid", "age", "sex", "race", "occupation"),
        sensitive="education",
        ours={
            "promise": {"kind": "f-privacy", "default": 0.2, "values": RARE},
            "suppress": {"method": "safe"},
        },
        near={"promise": {"kind": "l-diversity", "l": 5}, "suppress": {"method": "safe"}},
        near_name="l-diversity, l = 5, with suppression",
    ),
    "suppression before perturb": Case(
        file="adult.csv",
        quasi=("uid", "age", "sex", "race", "occupation"),
        sensitive="education",
        ours={
            "promise": {"kind": "f-privacy", "default": 0.2},
            "suppress": {"method": "safe"},
            "mechanism": {"kind": "perturb"},
        },
        near={"promise": {"kind": "l-diversity", "l": 5}, "suppress": {"method": "safe"}},
        near_name="l-diversity, l = 5, with suppression",
    ),
    "proximity": Case(
        file="adult.csv",
        quasi=("sex", "race", "education", "marital-status"),
        sensitive="age",
        ours={"promise": {"kind": "proximity", "within": 3, "at_most": "1/4"}},
        near={"promise": {"kind": "l-diversity", "l": 4}},
        near_name="l-diversity, l = 4",
        asked="age BETWEEN {value} AND {value} + 12",
    ),
}
Found = list[tuple[bool, float]]


def main() -> None:
    """Print a row per promise and kind of question."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, default=data_folder())
    parser.add_argument("--only", nargs="*", default=list(CASES))
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--questions", type=int, default=60)
    parser.add_argument("--releases", type=int, default=2)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--unaudited", action="store_true")
    options = parser.parse_args()
    print("| promise | asked | verified | attacks within bounds | answers | 95 % | error | nearest promise |")
    print("|---|---|---|---|---|---|---|---|")
    for name in options.only:
        _measure(name, CASES[name], options)


def _measure(name: str, case: Case, options: argparse.Namespace) -> None:
    whole = _read(options.data / case.file, case.select)
    found: dict[str, list[Found]] = {}
    near: list[Found] = []
    verified, kept, bounded = True, 0, 0
    for seed in range(options.first, options.first + options.releases):
        rng = np.random.default_rng(seed)
        tables = list(_dates(whole, options.rows, case.dates, rng))
        asked = _questions(case, tables[-1], options.questions, rng)
        with tempfile.TemporaryDirectory() as folder:
            for table in tables:
                dalenius.publish(_policy(case, case.ours, table, whole, folder), seed=seed, yes=True)
            release = dalenius.open_release(Path(folder) / "r")
            verified = verified and dalenius.verify(Path(folder) / "r").ok
            for attack in () if options.unaudited else _audited(case, Path(folder) / "r", tables):
                if attack.holds is not None:
                    bounded, kept = bounded + 1, kept + attack.holds
            published = _published(case, release, tables)
            for what, estimator, signed in _asked(case):
                truth = _truth(asked, published, signed)
                found.setdefault(what, []).append(_compare(release, asked, estimator, truth))
        with tempfile.TemporaryDirectory() as folder:
            alone = dalenius.publish(_policy(case, case.near, tables[-1], whole, folder), seed=seed, yes=True)
            truth = _truth(asked, _published(case, alone, tables[-1:]), (0,))
            near.append(_compare(alone, asked, None, truth))
    for what, releases in found.items():
        held, error = _summary(releases)
        held_near, error_near = _summary(near)
        is_sound = "yes" if verified else "NO"
        print(
            f"| {name} | {what} | {is_sound} | {kept} of {bounded} | {sum(map(len, releases))} | {held} "
            f"| {error} | {case.near_name}: {held_near}, {error_near} |",
            flush=True,
        )


def _summary(releases: list[Found]) -> tuple[str, str]:
    held, errors = zip(*(answer for answers in releases for answer in answers), strict=True)
    each = [np.mean([is_held for is_held, _ in answers]) for answers in releases]
    scatter = f" ± {100 * np.std(each, ddof=1) / np.sqrt(len(each)):.1f}" if len(each) > 1 else ""
    return f"{np.mean(held):.1%}{scatter}", f"{np.sqrt(np.mean(np.square(errors))):.1f}"


def _read(path: Path, select: str) -> pd.DataFrame:
    with duckdb.connect() as connection:
        return connection.sql(f"SELECT {select} FROM read_csv('{path}')").df()


def _dates(
    whole: pd.DataFrame, n_rows: int, n_dates: int, rng: np.random.Generator
) -> Iterator[pd.DataFrame]:
    sample = whole.iloc[rng.permutation(len(whole))[:n_rows]].reset_index(drop=True)
    sample = sample.assign(uid=np.arange(len(sample)))
    first = n_rows if n_dates == 1 else n_rows * 8 // 10
    here = np.arange(len(sample)) < first
    yield sample[here]
    for date in range(1, n_dates):
        here = here & (rng.random(len(sample)) >= 0.1)
        here[first + (date - 1) * n_rows // 10 : first + date * n_rows // 10] = True
        yield sample[here]


def _policy(
    case: Case, sections: dict[str, Any], table: pd.DataFrame, whole: pd.DataFrame, folder: str
) -> dalenius.Policy:
    secret = case.sensitive.split(", ")
    is_tuples = sections.get("mechanism", {}).get("kind") == "alpha-beta"
    columns: dict[str, Any] = {"quasi": list(case.quasi), "sensitive": secret}
    if is_tuples:
        columns = {"quasi": [*case.quasi, *secret]}
    elif "series" in sections:
        columns["unit"] = "uid"
    kept = table[list(dict.fromkeys([*case.quasi, *secret, *(["uid"] if "unit" in columns else [])]))]
    return dalenius.Policy.from_dict(
        {
            "source": pa.Table.from_pandas(kept, preserve_index=False),
            "release": "r",
            "columns": columns,
            "ledger": {"path": "ledger"},
            **({"domains": {c: sorted(whole[c].unique().tolist()) for c in kept}} if is_tuples else {}),
            **sections,
        },
        folder=folder,
    )


def _audited(case: Case, path: Path, tables: list[pd.DataFrame]) -> Iterator[Any]:
    secret = case.sensitive.split(", ")
    kept = list(dict.fromkeys([*case.quasi, *secret, "uid"]))
    original = pa.Table.from_pandas(tables[-1][kept], preserve_index=False)
    if case.ours.get("series"):
        path = path / f"date-{len(tables)}"
    elif case.dates > 1:
        original = original.drop_columns(["uid"])
    yield from dalenius.audit(path, original, seed=0).attacks


def _published(case: Case, release: dalenius.Release, tables: list[pd.DataFrame]) -> list[pd.DataFrame]:
    """What answers are about: different rows of a view, and people who were not withheld."""
    if release.manifest["mechanism"]["kind"] == "alpha-beta":
        return [table[[*case.quasi, *case.sensitive.split(", ")]].drop_duplicates() for table in tables]
    if "uid" in case.quasi:  # some were withheld
        name = "data" if release.manifest["mechanism"]["kind"] == "perturb" else "qit"
        here = release.stored.read(name, ("uid",)).column("uid").to_numpy()
        return [table[table.uid.isin(here)] for table in tables]
    return tables


def _asked(case: Case) -> list[tuple[str, str | None, tuple[int, ...]]]:
    """What is asked, with which estimator, and of which tables the truth is the sum (−) and difference."""
    if case.dates == 1:
        return [("counts", None, (0,))]
    kind = "date" if case.ours.get("series") else "view"
    last = case.dates
    each = [(f"{kind} {d}", f"{kind}-{d}", (d - 1,)) for d in range(1, last + 1)]
    return [*each, ("change to the last", f"change-{last - 1}-{last}", (last - 1, last - 2))]


def _questions(case: Case, table: pd.DataFrame, n: int, rng: np.random.Generator) -> list[str]:
    found: list[str] = []
    text = [name for name in case.quasi if not pd.api.types.is_numeric_dtype(table[name])]
    secret = case.sensitive.split(", ")
    for _ in range(50 * n):
        person = table.iloc[int(rng.integers(len(table)))]
        chosen = sorted(rng.choice(text, size=min(len(text), int(rng.integers(1, 3))), replace=False))
        where = " AND ".join(f"\"{name}\" = '{person[name]}'" for name in chosen)
        other = table.iloc[int(rng.integers(len(table)))]
        value = rng.choice(secret) if len(secret) > 1 else other[secret[0]]
        asked = f"{where} AND {case.asked.format(secret=secret[0], value=value)}"
        if asked not in found and len(table) and _count(table, asked) >= 20:
            found.append(asked)
        if len(found) == n:
            break
    return found


def _count(table: pd.DataFrame, where: str) -> int:
    with duckdb.connect() as connection:
        connection.register("t", table)
        (n,) = connection.execute(f"SELECT COUNT(*) FROM t WHERE {where}").fetchone() or (0,)
    return int(n)


def _truth(asked: list[str], tables: list[pd.DataFrame], signed: tuple[int, ...]) -> list[float]:
    signs = (1.0, -1.0)
    return [
        sum(sign * _count(tables[i], where) for sign, i in zip(signs, signed, strict=False))
        for where in asked
    ]


def _compare(release: dalenius.Release, asked: list[str], estimator: str | None, truth: list[float]) -> Found:
    answers = release.ask_many(
        [f"SELECT COUNT(*) FROM t WHERE {where}" for where in asked], estimator=estimator
    )
    found = []
    for answer, true in zip(answers, truth, strict=True):
        (row,) = answer.rows
        is_held = row.low is not None and row.high is not None and row.low <= true <= row.high
        found.append((is_held, (row.estimate or 0.0) - true))
    return found


if __name__ == "__main__":
    main()
