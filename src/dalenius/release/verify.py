"""Checking a release from the release alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dalenius.errors import DaleniusError
from dalenius.mechanisms.base import Check
from dalenius.mechanisms.stages import check_dates, check_release, count_outright
from dalenius.plain import plain_fields
from dalenius.promises import promises_alike
from dalenius.release.admission import look_at_tables, read_stated, wrong_columns, wrong_rows
from dalenius.release.folder import StoredRelease, check_files, list_malformed
from dalenius.release.manifest import Manifest
from dalenius.release.series import open_release
from dalenius.release.signing import check_signature, read_public_key
from dalenius.sql import identifier
from dalenius.tables.uniqueness import count_rare

_DAMAGE = ("files", "rows", "columns", "tables")
"""Checks that fail where a release is not the one that was published, or none at all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """What `verify` found."""

    checks: tuple[Check, ...]
    outright: int | None = None
    """How many people's sensitive value the tables tell for certain; None: they cannot be read."""
    damaged: bool = False
    """Whether what is there is not what was published, so that nothing can be said of the promise."""

    @property
    def ok(self) -> bool:
        """Whether every check passed."""
        return all(check.ok for check in self.checks)

    def to_dict(self) -> dict[str, Any]:
        """As `verify --json` prints it."""
        return plain_fields(self, "ok", "damaged", "checks", "outright")


def verify_release(
    release: StoredRelease, *, strict: bool = False, signer: str | None = None
) -> Verification:
    """Files, tables and promise; with `strict` also whether it may be published at all.

    Of a series that was opened whole, every release. The signer is the public key that must have signed it.
    """
    if release.earlier:
        return _verify_series(release, strict=strict, signer=signer)
    checks = [check_files(release)]
    outright, signature = None, check_signature(release, signer)
    if signature is not None:
        checks.append(signature)
    if checks[0].ok:
        read_stated(release)
        checks.extend(_check_tables(release))
        if all(check.ok for check in checks):
            try:
                outright = count_published_outright(release)
                checks.append(check_outright(release.manifest, outright))
            except list_malformed() as error:
                checks.append(_strange_tables(error))
    if strict:
        checks.append(_check_publishable(release.manifest))
    damaged = any(check.name in _DAMAGE for check in checks if not check.ok)
    return Verification(checks=tuple(checks), outright=outright, damaged=damaged)


def count_published_outright(release: StoredRelease) -> int:
    """How many people's sensitive value the tables tell for certain."""
    with release.connect() as connection:
        return count_outright(connection, release.manifest)


def tell_outright(n_people: int, columns: tuple[str, ...]) -> str:
    """In plain words, how many people's sensitive value is published as it is.

    >>> tell_outright(1, ("disease",))
    "1 person is published outright: anybody can read off the person's disease"
    >>> tell_outright(0, ("disease",))
    'nobody is published outright'
    """
    if not n_people:
        return "nobody is published outright"
    what = " or ".join(columns) or "sensitive value"  # of several, one at least
    if n_people == 1:
        return f"1 person is published outright: anybody can read off the person's {what}"
    return f"{n_people:,} people are published outright: anybody can read off their {what}"


def check_outright(manifest: Manifest, counted: int) -> Check:
    """Whether the manifest says how many; that there are some is for its reader to judge."""
    detail = tell_outright(counted, manifest.columns_of("sensitive"))
    agrees = manifest.outright in (None, counted)
    more = "" if agrees else f", and the manifest says {manifest.outright:,}"
    return Check(name="published outright", ok=agrees, detail=detail + more)


def _verify_series(release: StoredRelease, *, strict: bool, signer: str | None) -> Verification:
    """Every release of the series by itself, and whether they belong together."""
    checks, outright, damaged = [], 0, False
    for one in (*release.earlier, replace(release, earlier=())):
        found = verify_release(one, strict=strict, signer=signer)
        outright += found.outright or 0
        damaged |= found.damaged
        checks += [replace(check, name=f"{one.path.name}: {check.name}") for check in found.checks]
    if release.series.kind == "dates":
        checks += check_dates(release.mechanism, release.method, release.parts)
        outright = found.outright or 0
    return Verification(checks=(*checks, _check_series(release)), outright=outright, damaged=damaged)


def _check_series(release: StoredRelease) -> Check:
    parts, last, of = release.parts, release.manifest, release.series.of
    indices = [part.series.index for part in parts]
    # Views of one table share all parameters; batches and dates have other buckets, but the same columns.
    if release.series.kind != "views":
        shared, same = "columns", all(part.manifest.columns == last.columns for part in parts)
    else:
        shared, same = "parameters", all(part.manifest.parameters == last.parameters for part in parts)
    if same and not all(promises_alike(part.manifest.promise, last.promise) for part in parts):
        shared, same = "promises", False
    return Check(
        name="series",
        ok=same and indices == list(range(1, len(parts) + 1)) and (of is None or len(parts) <= of),
        detail=f"releases {', '.join(map(str, indices))}"
        + ("" if of is None else f" of {of}")
        + ("" if same else f", made with different {shared}"),
    )


def check_promise(release: StoredRelease) -> list[Check]:
    """What the mechanism says about its own tables."""
    with release.connect() as connection:
        return check_release(connection, release.manifest)


def check_k(release: StoredRelease) -> Iterator[Check]:
    """Where it was a condition, that every record shares its quasi-identifiers with enough others."""
    k, quasi = release.manifest.k, release.columns("quasi")
    if k is None:
        return
    with release.connect() as connection:
        showing = [
            table.name
            for table in release.manifest.tables
            if set(quasi) <= set(connection.sql(f"FROM {identifier(table.name)} LIMIT 0").columns)
        ]
        n_few = sum(count_rare(connection, identifier(name), quasi, k).n_few for name in showing)
    yield Check(
        name="k",
        ok=bool(showing) and not n_few,
        detail=f"{n_few:,} records share their quasi-identifiers with fewer than {k - 1} others"
        if n_few
        else f"every record shares its quasi-identifiers with at least {k - 1} others"
        if showing
        else "no table shows the quasi-identifiers",
    )


def _check_tables(release: StoredRelease) -> Iterator[Check]:
    try:
        manifest, contents = release.manifest, look_at_tables(release)
        yield Check.of("rows", "; ".join(wrong_rows(manifest, contents)), "row counts match")
        wrong = "; ".join(wrong_columns(manifest, contents))
        columns = Check.of("columns", wrong, "the columns are those of the manifest")
        yield columns
        if columns.ok:
            yield from check_k(release)
            yield from check_promise(release)
    except list_malformed(DaleniusError) as error:
        yield _strange_tables(error)


def _strange_tables(error: Exception) -> Check:
    import duckdb

    known = isinstance(error, duckdb.Error | DaleniusError)
    detail = str(error).splitlines()[0] if known else type(error).__name__
    return Check(name="tables", ok=False, detail=f"the tables are not those of this mechanism: {detail}")


def why_unpublishable(manifest: Manifest) -> str | None:
    """What a release that is not for publication was made for or with; None if it is."""
    if manifest.for_publication is True:
        return None
    if manifest.draft:
        return "a draft, made to try out and not to be published"
    return "made with a seed: whoever knows it can undo the release"


def _check_publishable(manifest: Manifest) -> Check:
    why = why_unpublishable(manifest)
    detail = "the manifest says: made with secret randomness" if why is None else why
    return Check(name="for publication", ok=why is None, detail=detail)


def verify(path: str | Path, *, strict: bool = False, signer: Path | None = None) -> Verification:
    """Verify a release folder; the signer is the PEM file of a public key."""
    key = None if signer is None else read_public_key(signer)
    return verify_release(open_release(path), strict=strict, signer=key)
