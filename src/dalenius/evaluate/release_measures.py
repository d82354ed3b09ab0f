"""Numbers that a release has without being asked anything."""

from __future__ import annotations

from dalenius.evaluate.sample import Sample
from dalenius.mechanisms.alphabeta.published import PublishedView
from dalenius.mechanisms.perturb.public import PublicParts
from dalenius.release.reader import StoredRelease
from dalenius.sql import one_row


def bucket_loss(sample: Sample) -> float | None:
    """Σ (size − 1)² over the buckets; None for other mechanisms."""
    release = sample.release
    if release is None or release.mechanism != "bucketize":
        return None
    with release.connect() as connection:
        sizes = "SELECT count(*) AS size FROM qit GROUP BY bucket"
        return float(one_row(connection, f"SELECT sum((size - 1) * (size - 1)) FROM ({sizes})")[0])


def suppressed_share(sample: Sample) -> float | None:
    """The withheld records by all records; None where it is not known."""
    if sample.contender.kind == "nothing":
        return 1.0
    if sample.release is None:
        return None
    withheld = sample.release.manifest["rows"]["suppressed"]
    return None if withheld is None else withheld / sample.original.n_rows


def retention(sample: Sample) -> float | None:
    """The expected share of the records that the release shows with their own value.

    In a bucket everybody has each of its values with the same probability; a perturbed record keeps its value
    with γ/(m−1+γ); of a view it is the share of the rows that it keeps (α+β, or γ_f).
    """
    release = sample.release
    if sample.contender.kind == "nothing":
        return 0.0
    if release is None or release.manifest["parameters"].get("fakes"):
        return None
    if release.mechanism == "alpha-beta":
        view = PublishedView.of(release.manifest)
        kept = view.gamma_f if view.law is None else view.law.retention
        return None if kept is None else float(kept)
    kept_records = _kept_in_buckets(release) if release.mechanism == "bucketize" else _kept_in_parts(release)
    return kept_records / sample.original.n_rows


def _kept_in_buckets(release: StoredRelease) -> float:
    with release.connect() as connection:
        sizes = 'SELECT bucket, sum("count") AS size FROM st GROUP BY bucket'
        query = f'SELECT sum("count" * "count" / size) FROM st JOIN ({sizes}) USING (bucket)'
        return float(one_row(connection, query)[0])


def _kept_in_parts(release: StoredRelease) -> float:
    with release.connect() as connection:
        channels = PublicParts.read(connection, release.manifest).channels
        sizes = dict(connection.execute("SELECT part, count(*) FROM data GROUP BY part").fetchall())
    diagonals = [float(channel.gamma / (channel.n_values - 1 + channel.gamma)) for channel in channels]
    return float(sum(sizes.get(number, 0) * kept for number, kept in enumerate(diagonals, start=1)))
