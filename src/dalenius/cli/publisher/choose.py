"""`dalenius choose SOURCE`: five questions, then a policy with reasons."""

from __future__ import annotations

import sys
from typing import Annotated, Any

from dalenius.cli.declared import Option
from dalenius.cli.output import JsonOption, print_json, say
from dalenius.cli.publisher.init import OutOption, say_policy, write_policy
from dalenius.cli.sources import TableArgument, takes_dialect, takes_roles
from dalenius.errors import InputError, did_you_mean
from dalenius.inspection.choosing import QUESTIONS, InitQuestion, choose_sections
from dalenius.inspection.first_policy import FirstPolicy
from dalenius.inspection.roles import Role
from dalenius.mechanisms.feasible import Wish
from dalenius.tables.files.options import SourceOptions


@takes_dialect
@takes_roles
def command(
    source: TableArgument,
    roles: dict[Role, list[str]],
    options: SourceOptions,
    as_json: JsonOption = False,
    recipients: Annotated[
        str | None, Option(help="Who will get it: colleagues, researchers or public.")
    ] = None,
    questions: Annotated[str | None, Option(help="What they will ask: counts or records.")] = None,
    hide: Annotated[str | None, Option(help="What must not be known: value or presence.")] = None,
    withhold: Annotated[str | None, Option(help="May records be withheld: yes or no.")] = None,
    again: Annotated[str | None, Option(help="Published again: no, others or same.")] = None,
    out: OutOption = None,
) -> int:
    """Answer five questions, on the terminal or by options, and get a policy with the reasons in comments."""
    found = FirstPolicy.of(source, roles, options)
    given = (recipients, questions, hide, withhold, again)
    may_ask = not as_json and sys.stdin.isatty()
    answers = {
        question.name: _answer(question, text, may_ask=may_ask)
        for question, text in zip(QUESTIONS, given, strict=True)
    }
    proposal = choose_sections(found.facts, _wish(answers))
    target = write_policy(found, source, out, proposal.sections)
    if as_json:
        reasons = list(proposal.reasons)
        print_json({"policy": str(target), "answers": answers, "reasons": reasons, **found.to_dict()})
        return 0
    say_policy(found, target)
    say("\nwhy this promise and this mechanism:")
    for reason in proposal.reasons:
        say(f"  {reason}")
    return 0


def _wish(answers: dict[str, str]) -> Wish:
    parts: dict[str, Any] = {**answers, "withhold": answers["withhold"] == "yes"}
    return Wish(**parts)


def _answer(question: InitQuestion, given: str | None, *, may_ask: bool) -> str:
    """What an option says, or what is typed; refused where it is neither of the answers."""
    known = list(question.answers)
    if given is not None:
        if given not in known:
            raise InputError(f"--{question.name} {given!r} is unknown; {did_you_mean(given, known)}")
        return given
    if not may_ask:
        raise InputError(
            f"{question.text} --{question.name} is not given, and this is no terminal to ask on",
            hint=f"--{question.name} {' | '.join(known)}",
        )
    say(f"\n{question.text}")
    for name, meaning in question.answers.items():
        say(f"  {name:12} {meaning}")
    while True:
        typed = _ask(question.name).strip().lower()
        close = [name for name in known if typed and name.startswith(typed)]
        if len(close) == 1:
            return close[0]
        say(f"  one of {', '.join(known)}, please")


def _ask(name: str) -> str:
    import typer  # which asking alone needs

    try:
        return str(typer.prompt(name))
    except typer.Abort:
        raise KeyboardInterrupt from None
