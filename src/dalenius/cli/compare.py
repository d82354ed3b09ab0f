"""`dalenius compare POLICY…`: several policies of one table side by side, before one is published."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dalenius.cli.output import JsonOption, print_json, progress_bar, say, say_table
from dalenius.errors import PromiseNotMet
from dalenius.evaluate.compare import SEEDS, compare_policies
from dalenius.evaluate.comparison import Comparison, Standing
from dalenius.evaluate.inference import NOT_COMPARABLE
from dalenius.evaluate.measures import Measure
from dalenius.evaluate.naming import QUERIES, find_workload, read_policies

NAME = "compare"


def command(
    policies: Annotated[list[Path], typer.Argument(help="Policy files, all for one table.")],
    as_json: JsonOption = False,
    workload: Annotated[
        str, typer.Option(help="anatomy, equality, marginals, or an .sql file of your own questions.")
    ] = "anatomy",
    queries: Annotated[int, typer.Option(help="How many questions are drawn.")] = QUERIES,
    seeds: Annotated[int, typer.Option(help="How many releases are drawn of each.")] = SEEDS,
    metric: Annotated[
        list[str] | None, typer.Option(help="What is measured; several times for more, the first one ranks.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Makes questions and releases repeatable.")] = None,
    chart: Annotated[
        Path | None, typer.Option(help="Draw privacy against error into this .svg, .png or .html file.")
    ] = None,
) -> int:
    """Compare policies and baselines on one workload; nothing is published. Exit 3 if none is feasible."""
    asked = find_workload(workload, queries)
    named = read_policies(policies)
    with progress_bar("done") as progress:
        comparison = compare_policies(
            named, workload=asked, metrics=metric or (), n_seeds=seeds, seed=seed, progress=progress
        )
    if chart is not None:
        from dalenius.evaluate.frontier_chart import draw_frontier

        draw_frontier(comparison, chart)
    if as_json:
        print_json(comparison.to_dict())
    else:
        say_comparison(comparison)
    return 0 if comparison.is_feasible else PromiseNotMet.exit_code


def say_comparison(comparison: Comparison) -> None:
    """The contenders as a table, the best and why, and what cannot be compared."""
    say(
        f"{comparison.n_questions:,} questions ({comparison.workload}), {comparison.n_cells:,} answers each; "
        f"mean ± standard deviation of {comparison.n_seeds} draws\n"
    )
    headings = ["", "", "bound", *(measure.heading for measure in comparison.measures)]
    say_table(headings, [_line(one, comparison) for one in comparison.standings])
    say("\n* the best policy at its bound; + nothing else has a lower bound and is better too\n")
    for one in comparison.standings:
        if one.reason is not None:
            say(f"{one.contender.name} is not possible: {one.reason}")
        elif one.n_failed:
            say(f"{one.contender.name}: {one.n_failed} of {comparison.n_seeds} draws gave no release")
    for best in comparison.best:
        say(f"\nbest at {best.bound:.3g}: {best.policy}; {best.reason}")
    say("\nThe bound is the largest probability that may be inferred; what it bounds differs:")
    for note in NOT_COMPARABLE:
        say(f"  - {note}")
    say("this comparison was made with the original: do not publish it")


def _line(one: Standing, comparison: Comparison) -> list[str]:
    best = {best.policy for best in comparison.best}
    is_best = not one.contender.is_baseline and one.contender.name in best
    marks = ("*" if is_best else "") + ("+" if one in comparison.frontier else "")
    role = "baseline " if one.contender.is_baseline else ""
    cells = [_cell(one, measure, comparison) for measure in comparison.measures]
    return [role + one.contender.name, marks, f"{one.bound:.3g}", *cells]


def _cell(one: Standing, measure: Measure, comparison: Comparison) -> str:
    """The mean; with its deviation for the measure that ranks."""
    spread = one.spreads.get(measure.name)
    if spread is None:
        return "–"
    ranks = measure is comparison.measure
    return f"{spread.mean:,.3g}" + (f" ± {spread.deviation:.1g}" if ranks and spread.deviation else "")
