"""How often each sensitive value occurs: what the release tells of it, and with the original the truth.

The truth is read from the original beside a release. Whatever is made from it is private.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import duckdb
import pyarrow as pa

from dalenius.ask import ask
from dalenius.auditing import read_original
from dalenius.engines.base import Progress, silent
from dalenius.errors import InputError, QueryError
from dalenius.mechanisms.config import config_of
from dalenius.pages import document as doc
from dalenius.pages.words import SHOWN, Key, key_of, plural, quote_names, unit_of, words_of
from dalenius.release.folder import StoredRelease
from dalenius.sql import connect, identifier, identifiers
from dalenius.tables.histogram import show_value
from dalenius.tables.uniqueness import FEW, study_uniqueness


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Truth:
    """The original's published columns, with the types that the release has."""

    table: pa.Table
    connection: duckdb.DuckDBPyConnection
    """In which the records that the release is about are the view `t`."""

    @classmethod
    def load(cls, original: Any, release: StoredRelease, progress: Progress = silent) -> Truth:
        """Read the original: a table, a file, or the policy (file) that published it.

        Raises:
            InputError: it is not the table that was published.
        """
        _refuse_batches(release)
        table = read_original(original, release, progress)
        _refuse_other_size(table, release)
        connection = connect()
        connection.register("original", table)
        cast = ", ".join(
            f"CAST({identifier(name)} AS {kind}) AS {identifier(name)}"
            for name, kind in _types(release).items()
        )
        distinct = "" if words_of(release).counts_repeats(release) else "DISTINCT "
        try:
            connection.execute(f"CREATE TEMP TABLE t AS SELECT {distinct}{cast} FROM original")
        except duckdb.ConversionException:
            raise InputError(
                "the original has other types than the release",
                hint="if the policy recodes it, give the policy file as the original",
            ) from None
        return cls(table=table, connection=connection)

    def count(self, sql: str) -> dict[Key, float]:
        """The true answer of a question with one aggregate, which comes last, by its groups."""
        rows = self.connection.execute(sql).fetchall()
        return {key_of(row[:-1]): float(row[-1] or 0) for row in rows}


def _types(release: StoredRelease) -> dict[str, str]:
    """The published columns and their types in the release."""
    wanted = (*release.columns("quasi"), *release.columns("sensitive"))
    found: dict[str, str] = {}
    with release.connect() as connection:
        for entry in release.manifest.tables:
            rows = connection.execute(f"DESCRIBE {identifier(entry.name)}").fetchall()
            found |= {name: kind for name, kind, *_ in rows}
    return {name: found[name] for name in wanted}


def _refuse_batches(release: StoredRelease) -> None:
    if release.is_several_batches:
        raise InputError(
            "a series of batches has an original for every batch",
            hint="report on one of them, e.g. dalenius report SERIES/batch-1 --original FIRST_DAY.csv",
        )


def _refuse_other_size(table: pa.Table, release: StoredRelease) -> None:
    rows = release.manifest.rows
    if not words_of(release).rows_are_people or rows.published is None or rows.suppressed is None:
        return
    expected = rows.published + rows.suppressed
    if table.num_rows != expected:
        raise InputError(
            f"the original has {table.num_rows:,} rows, and the release was made from {expected:,}",
            hint="give the table that was published, or the policy that published it",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class EstimatedShares:
    """What is known of one value's count."""

    key: Key
    estimate: float
    low: float | None
    high: float | None
    is_exact: bool
    original: float | None

    @property
    def is_covered(self) -> bool:
        """Whether the interval holds the original."""
        if self.original is None or self.low is None or self.high is None:
            return True
        return self.low - 1e-6 <= self.original <= self.high + 1e-6


def question_of(columns: tuple[str, ...]) -> str:
    """How often each combination of these columns occurs, as a question to the release."""
    listed = identifiers(columns)
    return f"SELECT {listed}, COUNT(*) FROM t GROUP BY {listed}"


_MOST_COLUMNS = 3
"""So many are shown where no column is sensitive."""
_CONFIDENCE = 0.95


def describe_distribution(release: StoredRelease, truth: Truth | None) -> doc.Section:
    """The section on the sensitive values, or where there are none, on a few columns."""
    sensitive = release.columns("sensitive")
    what = "the sensitive values" if sensitive else "how often values occur"
    title = f"Before and after: {what}" if truth else what[:1].upper() + what[1:]
    blocks: list[doc.Block] = [doc.Paragraph(text=_introduction(truth))]
    for columns in [sensitive] if sensitive else [(name,) for name in release.columns("quasi")]:
        if len(blocks) <= _MOST_COLUMNS:
            blocks.append(_tabulate(release, columns, truth))
    return doc.Section(id="distribution", title=title, blocks=tuple(blocks))


def _introduction(truth: Truth | None) -> str:
    if truth is None:
        return (
            "This is what anybody can work out from the release about how often each value occurs among all "
            "the people together."
        )
    return (
        "The bar is how often a value occurs in the original table, the dot is what anybody can work out "
        "from the release, with the interval that should hold the truth 95 times in 100."
    )


def _tabulate(release: StoredRelease, columns: tuple[str, ...], truth: Truth | None) -> doc.Block:
    what = quote_names(columns) if len(columns) == 1 else f"the combination of {quote_names(columns)}"
    try:
        found, assumption = _ask(release, columns)
    except QueryError:
        return doc.Paragraph(text=f"The values of {what} are too many to be listed here.")
    if truth is not None:
        found = _with_truth(found, truth.count(question_of(columns)))
    found.sort(key=lambda e: (-(e.estimate if e.original is None else e.original), e.key))
    is_exact = all(entry.is_exact for entry in found)
    top, rest = (found, []) if len(found) <= SHOWN + 1 else (found[:SHOWN], found[SHOWN:])
    rows = [_row(entry, is_exact=is_exact) for entry in top]
    if rest:
        rows.append(_rest(rest, is_exact=is_exact))
    return doc.Table(
        caption=f"How many {unit_of(release)} have each value of {what}",
        columns=_columns(is_exact=is_exact, is_private=truth is not None),
        rows=tuple(rows),
        note=_note(assumption, found, len(rest), is_exact=is_exact, is_private=truth is not None),
    )


def _ask(release: StoredRelease, columns: tuple[str, ...]) -> tuple[list[EstimatedShares], str | None]:
    """What the release tells of each value, and what the intervals rest on."""
    counted = words_of(release).count_exactly(release) if columns == release.columns("sensitive") else None
    if counted is not None:
        return [
            EstimatedShares(key=key, estimate=n, low=n, high=n, is_exact=True, original=None)
            for key, n in counted.items()
        ], None
    answer = ask(release, question_of(columns), confidence=_CONFIDENCE)
    found = [
        EstimatedShares(
            key=key_of(cell for _, cell in row.group),
            estimate=row.estimate or 0.0,
            low=row.low,
            high=row.high,
            is_exact=row.status == "exact",
            original=None,
        )
        for row in answer.rows
    ]
    return found, answer.assumption


def _with_truth(found: list[EstimatedShares], truth: dict[Key, float]) -> list[EstimatedShares]:
    """The true counts beside the estimates, also of values of which nothing is left in the release."""
    known = {entry.key for entry in found}
    withheld = [
        EstimatedShares(key=key, estimate=0.0, low=0.0, high=0.0, is_exact=True, original=count)
        for key, count in truth.items()
        if key not in known
    ]
    return [replace(entry, original=truth.get(entry.key, 0.0)) for entry in found] + withheld


def _columns(*, is_exact: bool, is_private: bool) -> tuple[doc.Column, ...]:
    after = "in the release" if is_exact else "estimate from the release"
    legend = (
        doc.Legend(bar="original", point=after)
        if is_private
        else doc.Legend(bar=after, point=None if is_exact else "estimate with its 95 % interval")
    )
    return (
        doc.Column(title="value"),
        doc.Column(title="records", legend=legend, style="count"),
        *([doc.Column(title="original (private)")] if is_private else []),
        doc.Column(title=after if is_exact else f"{after}, and its 95 % interval"),
        *([doc.Column(title="interval holds the original")] if is_private and not is_exact else []),
    )


def _row(entry: EstimatedShares, *, is_exact: bool) -> tuple[doc.Cell, ...]:
    is_private = entry.original is not None
    low, high = (None, None) if is_exact else (entry.low, entry.high)
    has_point = is_private or not is_exact
    picture = doc.Picture(
        bar=entry.original if is_private else entry.estimate,
        point=entry.estimate if has_point else None,
        low=low,
        high=high,
    )
    covered = (
        doc.Verdict(tone="good", text="yes") if entry.is_covered else doc.Verdict(tone="warning", text="no")
    )
    return (
        show_value(entry.key),
        picture,
        *([doc.Number(value=entry.original)] if entry.original is not None else []),
        doc.Number(value=entry.estimate)
        if is_exact
        else doc.Estimate(value=entry.estimate, low=entry.low, high=entry.high),
        *([covered] if is_private and not is_exact else []),
    )


def _rest(rest: list[EstimatedShares], *, is_exact: bool) -> tuple[doc.Cell, ...]:
    is_private = rest[0].original is not None
    original = sum(entry.original or 0.0 for entry in rest)
    return (
        f"{len(rest):,} other values together",
        None,
        *([doc.Number(value=original)] if is_private else []),
        doc.Number(value=sum(entry.estimate for entry in rest)),
        *([None] if is_private and not is_exact else []),
    )


def _note(
    assumption: str | None, found: list[EstimatedShares], n_rest: int, *, is_exact: bool, is_private: bool
) -> str | None:
    notes = []
    if is_exact:
        notes.append("The release shows these counts of the published records as they are.")
    if n_rest:
        listed = f"The {SHOWN} commonest of {len(found):,} values are listed, the others are added up."
        notes.append(listed)
    if is_private and not is_exact:
        n_covered = sum(entry.is_covered for entry in found)
        notes.append(f"{n_covered:,} of {plural(len(found), 'interval', 'intervals')} hold the original.")
    if any(entry.estimate < 0 for entry in found):
        notes.append("Estimates are right on average, so that of a rare value can be below 0.")
    if assumption:
        notes.append(f"The intervals rest on this: {assumption}.")
    return " ".join(notes) or None


def describe_people(release: StoredRelease, truth: Truth) -> doc.Section | None:
    """The section on people whom few others are like; None where quasi-identifiers are not published."""
    quasi = release.columns("quasi")
    if not config_of(release.mechanism, release.method).publishes_quasi or not quasi:
        return None
    found = study_uniqueness(truth.connection, "t", quasi, few=release.manifest.k or FEW)
    said = found.sentence()
    blocks: list[doc.Block] = [
        doc.Paragraph(
            text=f"In the table that was published, {said}. The release shows these columns as they are: who "
            "knows them of a person finds that person's record, or one of so few. What is bounded is what "
            "the record then tells about the sensitive value."
        )
    ]
    if found.rarity.n_few:
        blocks.append(
            doc.Table(
                caption="Who is rare, by what an attacker knows",
                columns=doc.head("the attacker knows", "alone", f"among fewer than {found.fewer_than}"),
                rows=tuple(
                    (known, doc.Number(value=rarity.n_alone), doc.Number(value=rarity.n_few))
                    for known, rarity in found.lines()
                ),
                note="Rows with [recode] are what a policy with that line would leave; `k` under [columns] "
                "makes it a condition." + (" Rows after the first are estimates." if found.estimated else ""),
            )
        )
    return doc.Section(id="people", title="Who is alone with what can be known", blocks=tuple(blocks))
