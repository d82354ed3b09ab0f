"""Published columns that give the secret away: a code of the diagnosis beside the diagnosis.

Whoever has a cell of such a column has one value, so that no limit on what buckets or coins tell is of use.
Groups of few people agree by chance as well, above all on a common value; a column is told of if far more
people are in groups that agree than that explains.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

import duckdb
import numpy as np
import pyarrow as pa

from dalenius.exact import percent
from dalenius.sql import connect_shared

LOOKED_AT = 20_000
"""Of more records a random choice is looked at: what a column gives away shows in any part of a table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Giveaway:
    """A published column of which most cells go with one sensitive value each."""

    column: str
    share: float
    """Of the people who share their cell of the column with others, those whose cell has one value only."""

    def sentence(self, sensitive: Sequence[str]) -> str:
        """In plain words.

        >>> Giveaway(column="icd", share=0.98).sentence(("diagnosis",))
        "'icd' gives 'diagnosis' away: 98 % of the people who share a cell of it share the value too"
        """
        what = " × ".join(map(repr, sensitive))
        people = f"{percent(self.share)} of the people who share a cell of it"
        return f"{self.column!r} gives {what} away: {people} share the value too"


def find_giveaways(records: pa.Table, quasi: Sequence[str], sensitive: Sequence[str]) -> tuple[Giveaway, ...]:
    """The columns that give the sensitive ones away.

    >>> code = ["E11", "E11", "J10", "J10", "B20", "B20"] * 10
    >>> value = ["Diabetes", "Diabetes", "Flu", "Flu", "HIV", "HIV"] * 10
    >>> records = pa.table({"icd": code, "sex": ["F", "M"] * 30, "diagnosis": value})
    >>> [found.column for found in find_giveaways(records, ["icd", "sex"], ["diagnosis"])]
    ['icd']
    """
    with connect_shared() as connection:
        places = {name: f"c{i}" for i, name in enumerate([*quasi, *sensitive])}
        connection.register("cells", records.select(list(places)).rename_columns(list(places.values())))
        secret = ", ".join(places[name] for name in sensitive)
        connection.sql(f"CREATE TEMP TABLE records AS SELECT *, hash({secret}) AS secret FROM cells")
        counts = connection.sql("SELECT count(*) FROM records GROUP BY secret").fetchnumpy()
        frequency = np.asarray(next(iter(counts.values())), dtype=np.float64) / max(len(records), 1)
        found = [
            Giveaway(column=name, share=share)
            for name in quasi
            if (share := _share(connection, places[name], frequency)) is not None
        ]
    return tuple(found)


_MUCH = 0.25
"""Of the people whom chance leaves in doubt, so many have a value that their cell tells."""
_SURE = 6.0
"""And they are more, by so many standard deviations, than chance gives."""


def _share(connection: duckdb.DuckDBPyConnection, column: str, frequency: np.ndarray) -> float | None:
    """Of the people in groups of two or more, those whose group agrees; None: not more than chance gives."""
    groups = connection.sql(
        f"SELECT n, count(*) AS groups, count(*) FILTER (agree) AS agreeing FROM (SELECT count(*) AS n, "
        f"min(secret) = max(secret) AS agree FROM records GROUP BY {column}) WHERE n > 1 GROUP BY n"
    ).fetchnumpy()
    n, n_groups, agreeing = (np.asarray(groups[key], dtype=np.float64) for key in ("n", "groups", "agreeing"))
    people = float((n * n_groups).sum())
    certain = float((n * agreeing).sum())
    by_chance = (frequency[:, None] ** n).sum(axis=0)  # that all of a group agree
    expected = float((n * n_groups * by_chance).sum())
    deviation = sqrt(float((n**2 * n_groups * by_chance * (1 - by_chance)).sum()))
    is_much = certain - expected >= _MUCH * (people - expected) > 0
    return certain / people if is_much and certain - expected >= _SURE * max(deviation, 1.0) else None
