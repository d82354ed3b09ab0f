"""`dalenius plan POLICY`: what would be published, before anything is."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dalenius.cli.output import JsonOption, PolicyArgument, SourceOption, print_json, progress_bar, say
from dalenius.errors import PromiseNotMet
from dalenius.policy import Policy
from dalenius.publishing import make_plan
from dalenius.release.verify import tell_outright


def command(
    policy: PolicyArgument,
    as_json: JsonOption = False,
    source: SourceOption = None,
    chart: Annotated[Path | None, typer.Option(help="Draw the plan into this .svg or .png file.")] = None,
) -> int:
    """Show the plan, its loss or error bound and what would be published; touches no output."""
    parsed = Policy.from_file(policy, source=source)
    try:
        with progress_bar() as progress:
            plan = make_plan(parsed, progress=progress)
    except PromiseNotMet as error:
        if not as_json:
            raise
        print_json(
            {
                "mechanism": parsed.mechanism.kind,
                "method": parsed.mechanism.method,
                "feasible": False,
                "reason": error.message,
                "hint": error.hint,
                "private": True,
            }
        )
        return error.exit_code
    if chart is not None:
        from dalenius.pages.pictures import draw_plan

        draw_plan(plan, chart)
    if as_json:
        told = {"mechanism": parsed.mechanism.kind, "feasible": True, "outright": plan.outright}
        print_json({**told, **plan.to_dict(), "private": True})
    else:
        say(str(plan))
        if plan.outright is not None:
            say(tell_outright(plan.outright, parsed.columns.sensitive))
        say("This plan is computed from private counts.")
        say(f"next: dalenius publish {policy} --draft    rehearses it; without --draft it is published")
    return 0
