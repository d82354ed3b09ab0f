"""What a comparison asks of a mechanism, besides publishing and answering.

A mechanism's own is a subclass in its room `measures`, under the name MEASURES. All of it is optional.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import pyarrow as pa

from dalenius.mechanisms import registry
from dalenius.policy import Policy
from dalenius.promises.bounds import Bound
from dalenius.release.folder import StoredRelease
from dalenius.sql import identifier, identifiers


@dataclass(frozen=True, slots=True, kw_only=True)
class Measures:
    """What is known of a mechanism that says nothing of itself."""

    label: str
    """What a chart calls releases of this kind."""
    notes: tuple[str, ...] = ()
    """What its bound does not say, for readers who compare it with other mechanisms' bounds."""
    records: str | None = None
    """The table whose rows look like those of the original; None: there is none."""

    def bound(self, policy: Policy, bound: Bound) -> Bound:  # noqa: ARG002
        """The promise's bound, with what it means for this policy's method."""
        return bound

    def baseline(
        self, _table: Policy, _bound: Fraction, _others: Sequence[Policy], /
    ) -> tuple[str, Policy] | None:
        """A well-known method that keeps this bound on the table, with its name; None: there is none.

        Args:
            _table: A policy for the table; its promise and mechanism are to be replaced.
            _bound: The largest probability that may be inferred.
            _others: The policies that it is compared with.
        """
        return None

    def loss(self, release: StoredRelease) -> float | None:  # noqa: ARG002
        """Σ (size − 1)² over the buckets; None: there are no buckets."""
        return None

    def retention(self, release: StoredRelease, n_rows: int) -> float | None:  # noqa: ARG002
        """The expected share of the records that the release shows with their own value."""
        return None

    def training_rows(
        self, release: StoredRelease, quasi: Sequence[str], sensitive: Sequence[str], sample: str
    ) -> pa.Table | None:
        """Rows of these columns to train a classifier on, weighted if they have a column `weight`.

        Args:
            release: What was published.
            quasi: What predicts.
            sensitive: What is predicted.
            sample: SQL that follows the name of a table to read some of its rows only.
        """
        if self.records is None:
            return None
        with release.connect() as connection:
            query = f"SELECT {identifiers((*quasi, *sensitive))} FROM {identifier(self.records)} {sample}"
            return connection.sql(query).to_arrow_table()


def measures_of(kind: str, method: str | None = None) -> Measures:
    """What a mechanism says of itself, or nothing if it has no such room."""
    room = registry.find_room(kind, method, "measures")
    found: Measures = Measures(label=kind) if room is None else room.MEASURES
    return found
