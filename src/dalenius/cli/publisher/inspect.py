"""`dalenius inspect SOURCE`: columns, the sensitive histogram, feasible promises."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dalenius.cli.output import JsonOption, print_json, say, say_table
from dalenius.inspection import Inspection, look_at
from dalenius.mechanisms.suppress.config import SuppressConfig
from dalenius.tables.histogram import Histogram, label
from dalenius.tables.source import open_source

_MOST_SHOWN = 30


def command(
    source: Annotated[Path, typer.Argument(help="CSV, TSV, Parquet or a folder of Parquet.")],
    as_json: JsonOption = False,
    sensitive: Annotated[
        list[str] | None,
        typer.Option(help="The sensitive column; repeat for a compound one. Guessed if not given."),
    ] = None,
) -> int:
    """Show columns, domain sizes, the sensitive histogram and which promises are feasible."""
    inspection = look_at(open_source(source), tuple(sensitive or ()))
    if as_json:
        print_json(inspection.to_dict())
        return 0
    _say_columns(inspection)
    if inspection.histogram is not None:
        _say_histogram(inspection.histogram)
        _say_feasible(inspection)
    _say_d_gamma(inspection)
    say(f"next: dalenius init {source}")
    return 0


def _say_columns(inspection: Inspection) -> None:
    say(f"{inspection.source}: {inspection.n_rows:,} rows, {inspection.domain_size:,} possible rows")
    rows = [[c.name, c.type, f"{c.n_distinct:,}", f"{c.n_null:,}"] for c in inspection.columns]
    say_table(["column", "type", "values", "NULLs"], rows)


def _say_histogram(histogram: Histogram) -> None:
    by_count = sorted(range(len(histogram)), key=lambda code: -histogram.counts[code])
    say(f"\nsensitive: {' × '.join(histogram.columns)}, {len(histogram)} values (these counts are private)")
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


def _say_feasible(inspection: Inspection) -> None:
    say(
        f"\nfeasible: l-diversity up to l = {inspection.largest_l}; f-privacy with any thresholds that are "
        "not below the shares above"
    )
    needs = [need for need in inspection.suppression() if need.withheld is not None]
    if not needs:
        return
    methods = SuppressConfig.methods
    rows = [
        [str(need.l), *(_withheld(need.withheld[method], inspection.n_rows) for method in methods)]
        for need in needs
        if need.withheld is not None
    ]
    say("\na larger l needs [suppress]; records withheld on average by each of its methods:")
    say_table(["l", *methods], rows)


def _withheld(number: float, n_rows: int) -> str:
    return f"{number:,.0f} ({number / n_rows:.1%})"


def _say_d_gamma(inspection: Inspection) -> None:
    region = inspection.d_gamma
    if not region:
        return
    say(
        f"\nd-gamma-privacy of whole rows, {len(inspection.tuple_columns)} columns, "
        f"{inspection.tuple_domain:,} possible rows (with declared domains there are more, which helps):"
    )
    rows = []
    for one in region:
        cost = one.at_usual_gamma
        gamma = "none" if one.useful_gamma is None else f"{float(one.useful_gamma):g}"
        error = "not possible" if cost is None else f"±{cost.error_rows:,.0f}"
        rho = "–" if cost is None else f"{cost.rho:.3g}"
        rows.append([f"{float(one.k):g}", f"{float(one.d):.3g}", rho, error, gamma])
    headings = ["k", "d = k·n/m", "rho at gamma = 0.2", "error of a count", "gamma for an error below 10 %"]
    say_table(headings, rows)
    for text in dict.fromkeys(text for one in region for text in one.warnings):
        say(f"warning: {text}")
