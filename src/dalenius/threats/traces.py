"""Traces: what a release's files and the order of its rows tell beside what the rows say.

Of order nothing may show more than chance. Each test's success is a share that would be its baseline if
order were random; the bound is what chance reaches with the share of an audit's false alarm that it has.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from dalenius.release.folder import StoredRelease, changed_files
from dalenius.release.manifest import FILE_NAME
from dalenius.threats.chance import SHARE, rank_correlation
from dalenius.threats.original import People, Subject
from dalenius.threats.result import AttackResult, Threat

_FILES = Threat(
    knows="the release's files, byte by byte",
    wants="anything about the source that the promise does not speak of",
    covered=True,
)


def attack_metadata(subject: Subject, genuine: Collection[str]) -> AttackResult:
    """Look for what a writer may leave: metadata, uneven row groups, unpublished cells, other files.

    Args:
        subject: The release and its original.
        genuine: The columns of which every published cell is somebody's in the original; noise may have any.
    """
    release = subject.release
    leaks = list(_leaks(subject, genuine))
    n_looked = 1 + sum(len(release.files(entry.name)) for entry in release.manifest.tables)
    return AttackResult(
        name="metadata",
        threat=_FILES,
        success=min(1.0, len(leaks) / n_looked),
        interval=(1.0 / n_looked if leaks else 0.0, min(1.0, len(leaks) / n_looked)),
        baseline=0.0,
        bound=0.0,
        holds=not leaks,
        n_trials=n_looked,
        detail={"leaks": leaks, "seeded": not release.manifest.for_publication},
        advice="write the tables with Dalenius, and add nothing to the folder",
    )


def _leaks(subject: Subject, genuine: Collection[str]) -> Iterator[str]:
    release = subject.release
    listed = {FILE_NAME, *(f.file for entry in release.manifest.tables for f in entry.files)}
    for path in release.path.rglob("*"):
        if path.is_file() and path.relative_to(release.path).as_posix() not in listed:
            yield f"{path.name} is not part of the release"
    yield from changed_files(release)
    for entry in release.manifest.tables:
        for path in release.files(entry.name):
            yield from _file_leaks(path)
    if len(release.manifest.created) > len("2026-01-01"):
        yield "the manifest states a time finer than a day"
    for table, column in _published_cells(release, genuine):
        outside = _n_outside(release, subject.original, table, column)
        if outside:
            yield f"{table}: {outside} different cells of {column!r} are nobody's in the original"


def _file_leaks(path: Path) -> Iterator[str]:
    metadata = pq.read_metadata(path)
    if metadata.metadata:
        yield f"{path.name} has key-value metadata ({len(metadata.metadata)} entries)"
    groups = [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)]
    if len(set(groups[:-1])) > 1 or (len(groups) > 1 and groups[-1] > groups[0]):
        yield f"{path.name} has row groups of different sizes, which may follow the source's batches"


def _published_cells(release: StoredRelease, genuine: Collection[str]) -> Iterator[tuple[str, str]]:
    for entry in release.manifest.tables:
        for path in release.files(entry.name)[:1]:
            for column in pq.read_schema(path).names:
                if column in genuine:
                    yield entry.name, column


def _n_outside(release: StoredRelease, original: pa.Table, table: str, column: str) -> int:
    """Cells, or dictionary entries, that no row of the original has."""
    known = original.column(column).unique()
    published = release.read(table, [column]).column(column).unique()
    if pa.types.is_dictionary(published.type):
        published = published.dictionary_decode()
    return int(pc.sum(pc.invert(pc.is_in(published, value_set=known.cast(published.type)))).as_py() or 0)


SOURCE_ORDER = Threat(
    knows="the order of the source's rows and everybody's quasi-identifiers",
    wants="which rows and buckets belong to which values",
    covered=True,
)
_FEW = 30
"""Rank correlations of fewer are not tested."""


def attack_table_order(people: People) -> AttackResult:
    """Do the rows of a table follow the source's order?"""
    position = people.position_of_row()
    known = position[position >= 0]
    n = len(known)
    found = abs(rank_correlation(np.arange(n), known))
    return report_correlations(
        "source order",
        {"source order": found},
        n=n,
        n_failed=len(position) - n,
        advice="rows must be in random order, not in the source's",
    )


def report_correlations(
    name: str, found: dict[str, float], *, n: int, n_failed: int, advice: str
) -> AttackResult:
    """The strongest of some rank correlations over n things, against what chance reaches."""
    strongest, p_value = max(found.values()), 1.0
    if n >= _FEW:
        # a correlation of independent orders has variance 1/(n−1) and lighter tails than the normal one
        p_value = min(1.0, 2 * len(found) * math.exp(-(n - 1) * strongest**2 / 2))
    return AttackResult(
        name=name,
        threat=SOURCE_ORDER,
        success=strongest,
        interval=(0.0, min(1.0, strongest + 2 / math.sqrt(max(n - 1, 1)))),
        baseline=0.0,
        bound=_correlation_limit(n, len(found)),
        holds=p_value > SHARE,
        p_value=p_value,
        n_trials=n,
        n_failed=n_failed,
        detail={"rank_correlation": found},
        advice=advice,
    )


def _correlation_limit(n: int, n_tests: int) -> float:
    """What the strongest of some correlations reaches with the share of the false alarm."""
    if n < _FEW:
        return 1.0
    return min(1.0, math.sqrt(2 * math.log(2 * n_tests / SHARE) / (n - 1)))
