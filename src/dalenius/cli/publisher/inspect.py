"""`dalenius inspect SOURCE`: columns, the sensitive histogram, feasible promises."""

from __future__ import annotations

from typing import Annotated

from dalenius.cli import sources
from dalenius.cli.declared import Option
from dalenius.cli.output import JsonOption, print_json, say, say_table
from dalenius.inspection.looking import Inspection, inspect_source
from dalenius.tables.files.options import SourceOptions
from dalenius.tables.histogram import Histogram, label
from dalenius.tables.postgres import hide_passwords
from dalenius.tables.source import open_source
from dalenius.tables.uniqueness import Uniqueness

_MOST_SHOWN = 30


@sources.takes_dialect
def command(
    source: sources.TableArgument,
    options: SourceOptions,
    as_json: JsonOption = False,
    sensitive: Annotated[
        list[str] | None,
        Option(help="The sensitive column; repeat for a compound one. Without: by its name."),
    ] = None,
    quasi: Annotated[
        list[str] | None,
        Option(help="Columns an attacker may know (repeat, or a,b,c): who is alone with them?"),
    ] = None,
) -> int:
    """Show columns, domain sizes, the sensitive histogram and which promises are feasible."""
    inspection = inspect_source(open_source(source, options), sensitive or (), quasi or ())
    if as_json:
        print_json(inspection.to_dict())
        return 0
    _say_columns(inspection)
    if inspection.facts.histogram is not None:
        _say_histogram(inspection.facts.histogram, " by its name" if inspection.is_guessed else "")
    for sentence in () if inspection.numbers is None else inspection.numbers.sentences:
        say(f"note: {sentence}")
    for finding in inspection.findings.values():
        for text in finding.text:
            if isinstance(text, str):
                say(text)
            else:
                say_table(list(text.headings), [list(row) for row in text.rows])
    if inspection.uniqueness is not None:
        _say_uniqueness(inspection.uniqueness)
    same = "" if options == SourceOptions() else ", with the same options"
    say(f"next: dalenius init {hide_passwords(source)}{same}")
    return 0


def _say_uniqueness(found: Uniqueness) -> None:
    say(f"\n{found.sentence()} (these counts are private)")
    if found.rarity.n_few:
        about = "about " if found.estimated else ""
        rows = [
            [known, f"{about if i else ''}{rarity.n_alone:,}", f"{about if i else ''}{rarity.n_few:,}"]
            for i, (known, rarity) in enumerate(found.lines())
        ]
        say_table(["who knows", "alone", f"among fewer than {found.fewer_than}"], rows)


def _say_columns(inspection: Inspection) -> None:
    facts = inspection.facts
    say(f"{inspection.source}: {facts.n_rows:,} rows, {facts.domain_size:,} possible rows")
    rows = [
        [c.name, c.type, shape, f"{c.n_distinct:,}", f"{c.n_null:,}", f"{guess.role}?", guess.evidence]
        for c, guess, shape in zip(facts.columns, inspection.guesses, inspection.look.shapes, strict=True)
    ]
    if inspection.look.how:
        say("read as " + ", ".join(f"{key} {value}" for key, value in inspection.look.how.items()))
    say_table(["column", "type", "most look like", "values", "NULLs", "role", "evidence"], rows)
    for note in inspection.look.notes:
        say(f"note: {note}")


def _say_histogram(histogram: Histogram, guessed: str) -> None:
    by_count = sorted(range(len(histogram)), key=lambda code: -histogram.counts[code])
    columns = " × ".join(histogram.columns)
    say(f"\nsensitive{guessed}: {columns}, {len(histogram)} values (these counts are private)")
    rows = [
        [
            label(histogram.values[code]),
            f"{histogram.counts[code]:,}",
            f"{float(histogram.frequency(code)):.2%}",
        ]
        for code in by_count[:_MOST_SHOWN]
    ]
    say_table(["value", "count", "share"], rows)
    if len(histogram) > _MOST_SHOWN:
        say(f"… and {len(histogram) - _MOST_SHOWN} rarer values")
