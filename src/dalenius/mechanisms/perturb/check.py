"""What the release alone shows of a perturbation: parts, domains and laws that fit the promise.

A part's γ_i is ρ2(1−ρ1_i)/(ρ1_i(1−ρ2)), so it gives ρ1_i back, and ρ1_i·n_i must be the whole number of
records that the part's commonest protected value has: a γ that is too large breaks that, or is above what
any histogram of the part's domain allows. Whether the values were really drawn with these laws cannot be
seen in one release: every published table is possible under every law.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction

import duckdb
import pyarrow as pa

from dalenius.mechanisms.base import Check
from dalenius.mechanisms.perturb import published
from dalenius.mechanisms.perturb.channel import Channel
from dalenius.mechanisms.perturb.published import PublishedParts
from dalenius.promises.rho_privacy import amplification_limit, frequency_behind
from dalenius.release.manifest import Manifest
from dalenius.sql import count, identifier


def check_parts(connection: duckdb.DuckDBPyConnection, manifest: Manifest) -> Iterator[Check]:
    """Parts and their values in the data, then their laws."""
    stated = published.read(manifest)
    cells = ", ".join(f"{identifier(name)} AS c{i}" for i, name in enumerate(stated.columns))
    connection.execute(
        f"CREATE OR REPLACE TEMP TABLE seen AS SELECT part, {cells}, count(*) AS n FROM data GROUP BY ALL"
    )
    rows = dict(connection.execute("SELECT part, sum(n)::BIGINT FROM seen GROUP BY part").fetchall())
    listed = set(range(1, len(stated.channels) + 1))
    strange = sorted(set(rows) ^ listed, key=str)
    some = ", ".join(map(str, strange[:5]))
    problem = f"parts {some} are not both in the data and in the manifest" if strange else None
    yield Check.of("parts", problem, f"every record is in one of {len(listed)} parts")
    foreign = _n_foreign(connection, stated)
    problem = f"{foreign} records have a value that their part does not list" if foreign else None
    yield Check.of("values", problem, "every published value is one of its part's")
    if not strange:
        yield _check_laws([rows[number] for number in sorted(listed)], stated, manifest)


def _n_foreign(connection: duckdb.DuckDBPyConnection, stated: PublishedParts) -> int:
    """Records whose value is not in SA_i of their part; `seen` has how often each part has each value."""
    values, columns = stated.values(connection), range(len(stated.columns))
    numbers = [n for n, channel in enumerate(stated.channels, start=1) for _ in channel.codes]
    codes = [code for channel in stated.channels for code in channel.codes]
    cells = {f"v{i}": values.column(i).take(pa.array(codes)) for i in columns}
    connection.register("domains", pa.table({"number": pa.array(numbers, pa.int64()), **cells}))
    same = " AND ".join(f"c{i} IS NOT DISTINCT FROM v{i}" for i in columns)
    return count(
        connection,
        f"SELECT coalesce(sum(n), 0) FROM seen ANTI JOIN domains ON number = part AND {same}",
    )


def _check_laws(sizes: list[int], stated: PublishedParts, manifest: Manifest) -> Check:
    channels, rho2 = stated.channels, stated.promise.rho2
    if stated.limits is not None:
        ok = _keeps_limits(channels, stated.limits)
        detail = f"every value is amplified as {'its limit allows' if ok else 'no limit of it allows'}"
        return Check(name="promise", ok=ok, detail=detail)
    if manifest.mechanism.method == "uniform":
        # a prior that is not stated allows nothing: the limit of 1 is 0
        limit = amplification_limit(stated.prior_at_most or Fraction(1), rho2)
        ok = len(channels) == 1 and channels[0].weights is None and channels[0].gamma <= limit
        detail = "gamma is what rho1 and rho2 allow" if ok else "gamma is above what rho1 and rho2 allow"
        return Check(name="promise", ok=ok, detail=detail)
    covers_all = stated.promise.rho1 is None
    wrong = [
        number
        for number, (n_rows, channel) in enumerate(zip(sizes, channels, strict=True), start=1)
        if channel.weights is not None or not _fits(n_rows, channel, rho2, covers_all=covers_all)
    ]
    problem = f"gamma of part {wrong[0]} fits no histogram of its rows and values" if wrong else None
    return Check.of("promise", problem, "every part's gamma is what its commonest protected value allows")


def _keeps_limits(channels: Sequence[Channel], limits: Sequence[tuple[Fraction, Fraction]]) -> bool:
    """Whether one part has all values, each published from itself no oftener than its limit allows."""
    if len(channels) != 1 or channels[0].codes != tuple(range(len(limits))):
        return False
    return all(
        after == 1 or channels[0].amplification(place) <= amplification_limit(before, after)
        for place, (before, after) in enumerate(limits)
    )


def _fits(n_rows: int, channel: Channel, rho2: Fraction, *, covers_all: bool) -> bool:
    """Whether a part of that size can have the top count that its γ stands for."""
    top = frequency_behind(channel.gamma, rho2) * n_rows
    # where every value is protected, the commonest has no fewer records than the average one
    least = Fraction(n_rows, channel.n_values) if covers_all else Fraction(1)
    most = n_rows - channel.n_values + 1  # the other values occur too
    return top.denominator == 1 and max(least, Fraction(1)) <= top <= most
