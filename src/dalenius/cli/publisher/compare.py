"""`dalenius compare POLICY…`: several policies of one table side by side, before one is published."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from dalenius.cli.declared import Argument, Option
from dalenius.cli.output import JsonOption, progress_bar, say, say_table, tell
from dalenius.evaluate.compare import (
    QUERIES,
    SEEDS,
    Comparison,
    Standing,
    compare_policies,
    find_workload,
    read_policies,
)
from dalenius.evaluate.contender import not_comparable
from dalenius.evaluate.measures import Measure
from dalenius.pages.pictures import refuse_other_formats
from dalenius.release.verify import tell_outright

MEASURES_SIDE_BY_SIDE = 2
"""More go into further tables, so that none is wider than a terminal."""


def command(
    policies: Annotated[list[Path], Argument(help="Policy files, all for one table.")],
    as_json: JsonOption = False,
    workload: Annotated[
        str,
        Option(help="anatomy, equality, marginals (marginals:3: of up to three columns), or an .sql file."),
    ] = "anatomy",
    queries: Annotated[int, Option(help="How many questions are drawn.")] = QUERIES,
    seeds: Annotated[int, Option(help="How many releases are drawn of each.")] = SEEDS,
    metric: Annotated[
        list[str] | None, Option(help="What is measured; several times for more, the first one ranks.")
    ] = None,
    seed: Annotated[int | None, Option(help="Makes questions and releases repeatable.")] = None,
    chart: Annotated[
        Path | None, Option(help="Draw privacy against error into this .svg, .png or .html file.")
    ] = None,
) -> int:
    """Compare policies and baselines on one workload; nothing is published. Exit 3 if none is feasible."""
    asked = find_workload(workload, queries)
    if chart is not None:
        refuse_other_formats(chart)
    named = read_policies(policies)
    with progress_bar("done") as progress:
        comparison = compare_policies(
            named, workload=asked, metrics=metric or (), n_seeds=seeds, seed=seed, progress=progress
        )
    if chart is not None:
        from dalenius.evaluate.frontier import draw_frontier

        draw_frontier(comparison, chart)
    found, is_kept = comparison.to_dict(), comparison.is_feasible
    return tell(found, lambda: say_comparison(comparison), as_json=as_json, is_kept=is_kept)


def say_comparison(comparison: Comparison) -> None:
    """The contenders as a table, the best and why, and what cannot be compared."""
    say(
        f"{comparison.n_questions:,} questions ({comparison.workload}), {comparison.n_cells:,} answers each; "
        f"mean ± standard deviation of {comparison.n_seeds} draws\n"
    )
    for measures in _side_by_side(comparison.measures):
        headings = ["", "", "bound", "outright", *(measure.heading for measure in measures)]
        say_table(headings, [_line(one, comparison, measures) for one in comparison.standings])
        say("")
    say("* the best policy at its bound; + nothing else has a lower bound and is better too\n")
    for one in comparison.standings:
        if one.reason is not None:
            say(f"{one.contender.name} is not possible: {one.reason}")
        elif one.outright:
            say(f"{one.contender.name} is not recommended: {tell_outright(one.outright, ())}")
        elif one.n_failed:
            say(f"{one.contender.name}: {one.n_failed} of {comparison.n_seeds} draws gave no release")
    for best in comparison.best:
        say(f"\nbest at {best.bound:.3g}: {best.policy}; {best.reason}")
    say("\nThe bound is the largest probability that may be inferred; what it bounds differs:")
    for note in not_comparable():
        say(f"  - {note}")
    say("this comparison was made with the original: do not publish it")


def _side_by_side(measures: Sequence[Measure]) -> list[Sequence[Measure]]:
    """The measures, as many at a time as a terminal is wide."""
    size = MEASURES_SIDE_BY_SIDE
    return [measures[start : start + size] for start in range(0, len(measures), size)]


def _line(one: Standing, comparison: Comparison, measures: Sequence[Measure]) -> list[str]:
    best = {best.policy for best in comparison.best}
    is_best = not one.contender.is_baseline and one.contender.name in best
    marks = ("*" if is_best else "") + ("+" if one in comparison.frontier else "")
    role = "baseline " if one.contender.is_baseline else ""
    cells = [_cell(one, measure) for measure in measures]
    outright = "–" if one.outright is None else f"{one.outright:,}"
    return [role + one.contender.name, marks, f"{one.bound:.3g}", outright, *cells]


def _cell(one: Standing, measure: Measure) -> str:
    """The mean with its deviation."""
    spread = one.spreads.get(measure.name)
    if spread is None:
        return "–"
    deviation = f" ± {significant(spread.deviation, 1)}" if spread.deviation else ""
    return significant(spread.mean, 3) + deviation


def significant(number: float, digits: int) -> str:
    """A number with that many digits, without an exponent unless it is tiny.

    >>> significant(3894.2, 3), significant(0.01234, 2), significant(-0.5, 1), significant(0, 3)
    ('3,890', '0.012', '-0.5', '0')
    >>> significant(0.00000123, 2), significant(float("nan"), 2)
    ('1.2e-06', 'nan')
    """
    if not math.isfinite(number) or number == 0:
        return f"{number:.0f}"
    decimals = digits - 1 - math.floor(math.log10(abs(number)))
    if decimals > digits + 4:
        return f"{number:.{digits - 1}e}"
    return f"{round(number, decimals):,.{max(0, decimals)}f}"
