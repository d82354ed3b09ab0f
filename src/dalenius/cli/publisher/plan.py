"""`dalenius plan POLICY`: what would be published, before anything is."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

from dalenius.cli.declared import Option
from dalenius.cli.output import JsonOption, PolicyArgument, SourceOption, print_json, progress_bar, say
from dalenius.errors import PromiseNotMet
from dalenius.pages.words import say_plan
from dalenius.policy import Policy
from dalenius.publishing import preview
from dalenius.release.verify import tell_outright


def command(
    policy: PolicyArgument,
    as_json: JsonOption = False,
    source: SourceOption = None,
    seconds: Annotated[
        int | None,
        Option(min=1, help="About how long to look for a better plan: 1, unless the policy says more."),
    ] = None,
    chart: Annotated[Path | None, Option(help="Draw the plan into this .svg or .png file.")] = None,
) -> int:
    """Show the plan, its loss or error bound and what would be published; touches no output."""
    parsed = Policy.from_file(policy, source=source)
    if seconds is not None:
        parsed = replace(parsed, mechanism=parsed.mechanism.with_seconds(seconds))
    with progress_bar() as progress:
        seen = preview(parsed, progress=progress)
    told, plan = seen.findings(), seen.plan
    if isinstance(plan, PromiseNotMet):
        if not as_json:
            raise plan
        print_json(
            {
                "mechanism": parsed.mechanism.kind,
                "method": parsed.mechanism.method,
                "feasible": False,
                "reason": plan.message,
                "hint": plan.hint,
                **told,
                "private": True,
            }
        )
        return plan.exit_code
    if chart is not None:
        from dalenius.pages.pictures import draw_plan

        draw_plan(plan, chart)
    sentences = say_plan(parsed.mechanism.kind, parsed.mechanism.method, plan)
    if as_json:
        first = {"mechanism": parsed.mechanism.kind, "feasible": True, "outright": plan.outright}
        print_json({**first, **plan.to_dict(), **told, "words": sentences, "private": True})
    else:
        for sentence in sentences:
            say(sentence)
        say(f"\n{plan}" if sentences else str(plan))
        if plan.outright is not None:
            say(tell_outright(plan.outright, parsed.columns.sensitive))
        for line in seen.lines():
            say(line)
        say("This plan is computed from private counts.")
        if seconds is not None:
            say(f"`seconds = {seconds}` in [mechanism] publishes this plan")
        say(f"next: dalenius publish {policy} --draft    rehearses it; without --draft it is published")
    return 0
