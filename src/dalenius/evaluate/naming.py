"""What the words of `compare` mean: workloads by name or file, and policies by their files' names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path

from dalenius.errors import InputError, did_you_mean
from dalenius.evaluate.sql_workload import SqlWorkload
from dalenius.evaluate.workload import AnatomyWorkload, EqualityPool, Marginals, Workload
from dalenius.policy import Policy

QUERIES = 300
"""How many questions are drawn unless another number is given."""
WORKLOADS: dict[str, Callable[[int], Workload]] = {
    "anatomy": lambda queries: AnatomyWorkload(n_questions=queries),
    "equality": lambda queries: EqualityPool(n_conditions=queries),
    "marginals": lambda queries: Marginals(),  # noqa: ARG005  (all of them, however many)
}


def find_workload(name: str | Path, queries: int = QUERIES) -> Workload:
    """A workload by its name, or the questions of an .sql file.

    >>> find_workload("anatomy", 50)
    AnatomyWorkload(n_questions=50, selectivity=0.01, most_quasi=7)
    >>> find_workload("marginals:3")
    Marginals(most_columns=3)
    """
    if str(name) in WORKLOADS:
        return WORKLOADS[str(name)](queries)
    kind, _, number = str(name).partition(":")
    if kind == "marginals" and number.isdecimal():
        return Marginals(most_columns=int(number))
    if Path(name).suffix == ".sql":
        return SqlWorkload.from_file(name)
    raise InputError(
        f"workload {str(name)!r} is unknown; {did_you_mean(str(name), WORKLOADS)}",
        hint="or give a file of questions whose name ends in .sql",
    )


def read_policies(paths: Iterable[str | Path]) -> dict[str, Policy]:
    """Policies by the names of their files; where two files have one name, by their paths."""
    files = [Path(path) for path in paths]
    stems = Counter(file.stem for file in files)
    names = [file.stem if stems[file.stem] == 1 else str(file) for file in files]
    twice = [name for name, n in Counter(names).items() if n > 1]
    if twice:
        raise InputError(f"policy {twice[0]} is given twice")
    return {name: Policy.from_file(file) for name, file in zip(names, files, strict=True)}
