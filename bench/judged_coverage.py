"""How often intervals hold, and how wide they are, for every mechanism on tables that nothing was settled on.

    python -m bench.judged_coverage [--only perturb] [--rows 6000] [--releases 6] [--questions 60] [--first 0]

Counts of the kinds of `bench.bucket_coverage` on its tables for judging, by the true number of people. Every
release is of other people (`--rows` of the table's, at random) and asked other questions. *Width*: that of
95 % intervals, as a multiple of the ideal one (of a normal law with the standard deviation of the errors of
these questions); the standard error of a share is from its scatter over releases, because the errors of
questions on one release go together. Of a view the truth is the number of different rows.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import dalenius
from bench.bucket_coverage import SIZES, TABLES, Asked, ask_release, l_diverse, numbers_of, read_table
from dalenius.ask import open_for_asking
from dalenius.evaluate.original import Original
from dalenius.question.model import Model
from dalenius.reproduce.microdata import data_folder

_DEFAULT = ""
"""Each mechanism's own estimator."""
_F, _BUCKETS = "f-privacy", {"kind": "bucketize"}
_VIEWS = {"kind": "alpha-beta", "domains": "active"}
_D_GAMMA = {"kind": "d-gamma-privacy", "k": 2, "gamma": "1/2"}
_RULES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    **{
        f"bucketize, {times}f + 0.02": ({"kind": _F, "default": {"times": times, "plus": "0.02"}}, _BUCKETS)
        for times in (2, 4, 8, 16)
    },
    "perturb": ({"kind": "rho-privacy", "rho1": "max", "rho2": "1/2"}, {"kind": "perturb"}),
    "alpha-beta": (_D_GAMMA, {**_VIEWS, "duplicates": "distinct"}),
    "frapp": (_D_GAMMA, {**_VIEWS, "method": "frapp"}),
}
SUBJECTS: dict[str, Callable[..., tuple[Model, pa.Table]]] = {
    "l-diversity, ℓ = 4": partial(l_diverse, n_fakes=0, suppress=0),
    "bucketize with a fake, ℓ = 4": partial(l_diverse, n_fakes=1, suppress=0),
    "suppress, ℓ = 5": partial(l_diverse, n_fakes=0, suppress=5),
    "suppress, ℓ = 7": partial(l_diverse, n_fakes=0, suppress=7),
}
"""What cannot be published by rules alone; all others are in `_RULES`."""


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, default=data_folder())
    parser.add_argument("--only", default="", help="mechanisms whose name has this in it")
    parser.add_argument("--tables", default="", help="tables whose name has this in it")
    parser.add_argument("--rows", type=int, default=6_000)
    parser.add_argument("--releases", type=int, default=6, help="of each table")
    parser.add_argument("--questions", type=int, default=60)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    options = parser.parse_args()
    print(
        "| mechanism | table | people | n | mean RE | 90 % | 95 % | 99 % | width | ± at 90 % |\n|"
        + "---|" * 10
    )
    wanted = [name for name, row in TABLES.items() if row[-1] == "judging" and options.tables in name]
    names = [name for name in wanted if (options.data / TABLES[name][0]).exists()]
    for name in sorted({*wanted} - {*names}):
        print(f"{name} is left out: no {options.data / TABLES[name][0]}", file=sys.stderr)
    with tempfile.TemporaryDirectory() as folder:
        for subject in [name for name in (*_RULES, *SUBJECTS) if options.only in name]:
            model = SUBJECTS.get(subject) or partial(_published, name=subject, folder=Path(folder))
            every: list[Asked] = []
            for table in names:
                found = list(_ask(model, table, options))
                every += found
                for line in _lines(found, ("> 20",)):
                    print(f"| {subject} | {table} | {line} |", flush=True)
            for line in _lines(every, tuple(SIZES)):
                print(f"| {subject} | **all** | {line} |", flush=True)


def _ask(
    model: Callable[..., tuple[Model, pa.Table]], table: str, options: argparse.Namespace
) -> Iterator[Asked]:
    whole = read_table(options.data, table)
    for seed in range(options.first, options.first + options.releases):
        try:
            yield ask_release(table, whole, model, options.questions, options.rows, seed, _DEFAULT)
        except dalenius.PromiseNotMet:
            continue  # these people have a value that is too common


def _published(original: Original, *, name: str, folder: Path, seed: int) -> tuple[Model, pa.Table]:
    """A release as it is asked, and whom it is about."""
    promise, mechanism = _RULES[name]
    is_view = mechanism["kind"] == "alpha-beta"
    secret, quasi = list(original.sensitive), list(original.quasi)
    rules = {
        "source": original.table,
        "release": f"{name}-{seed}-{'-'.join(secret)}-{len(quasi)}".replace("/", "-"),
        "columns": {"quasi": quasi + secret} if is_view else {"quasi": quasi, "sensitive": secret},
        "promise": promise,
        "mechanism": mechanism,
    }
    release = dalenius.publish(dalenius.Policy.from_dict(rules, folder=folder), seed=seed)
    people = original.table
    if mechanism.get("duplicates") == "distinct":
        people = people.group_by(people.column_names).aggregate([])
    return open_for_asking(release.stored).model, people


def _lines(found: list[Asked], sizes: tuple[str, ...]) -> Iterator[str]:
    for size in sizes:
        least, most = SIZES[size]
        kept = [(own[:, 0], true[:, 0]) for own, true in found]
        kept = [(own[part], true[part]) for own, true in kept for part in [(least <= true) & (true <= most)]]
        kept = [one for one in kept if len(one[1])]
        if sum(len(true) for _, true in kept) < 5:
            continue
        own, true = (np.concatenate([one[k] for one in kept]) for k in (0, 1))
        yield f"{size} | {len(true)} | {numbers_of(own, true)} | {_scatter(kept):.3f}"


def _scatter(found: list[tuple[np.ndarray, np.ndarray]]) -> float:
    """The standard error of how many 90 % intervals hold, from release to release."""
    held = [(own[:, 1] <= true + 1e-6) & (true - 1e-6 <= own[:, 2]) for own, true in found]
    hits, n = np.array([one.sum() for one in held]), np.array([len(one) for one in held])
    left = hits - n * hits.sum() / n.sum()
    return float(np.sqrt((left**2).sum() * len(n) / max(len(n) - 1, 1)) / n.sum())


if __name__ == "__main__":
    main()
