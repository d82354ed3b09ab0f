"""Five questions, and the promise and mechanism that suit the answers."""

from __future__ import annotations

from dataclasses import dataclass

from dalenius.errors import InputError
from dalenius.mechanisms import registry
from dalenius.mechanisms.feasible import Proposal, TableFacts, Wish

YES_NO = {"yes": "Some people may be missing from the release.", "no": "Everybody must be in it."}


@dataclass(frozen=True, slots=True, kw_only=True)
class InitQuestion:
    """One of the five, with what can be answered."""

    name: str
    text: str
    answers: dict[str, str]
    """Each answer, and what it means."""


QUESTIONS = (
    InitQuestion(
        name="recipients",
        text="Who will get it?",
        answers={
            "colleagues": "People inside your house, under your rules.",
            "researchers": "People outside it, under a contract.",
            "public": "Anybody.",
        },
    ),
    InitQuestion(
        name="questions",
        text="What will they ask?",
        answers={
            "counts": "How many, how much, on average, also by group: SQL, answered with error bars.",
            "records": "They want a row for each person, for other programs.",
        },
    ),
    InitQuestion(
        name="hide",
        text="What must not be known?",
        answers={
            "value": "A person's sensitive value, such as a disease or a salary.",
            "presence": "That a person is in the table at all.",
        },
    ),
    InitQuestion(name="withhold", text="May records be withheld?", answers=YES_NO),
    InitQuestion(
        name="again",
        text="Will it be published again?",
        answers={
            "no": "Once.",
            "others": "Again, about other people each time.",
            "same": "Again, about the same people.",
        },
    ),
)


def choose_sections(facts: TableFacts, wish: Wish) -> Proposal:
    """The first mechanism that suits, with its reasons, as a policy's sections with comments."""
    rooms = (registry.find_room(kind, None, "feasible") for kind in registry.kinds())
    proposals = (room.propose(facts, wish) for room in rooms if room and hasattr(room, "propose"))
    found: Proposal | None = next((proposal for proposal in proposals if proposal is not None), None)
    if found is None:
        raise InputError(
            "no mechanism publishes single records again and again: one release tells about the next",
            hint="--questions counts can be published in batches of other people, or as several views of the "
            "same ones; --again no publishes records once",
        )
    why = "".join(f"# {reason}\n" for reason in found.reasons)
    return Proposal(
        sections=f"# Why this promise and this mechanism:\n{why}\n{found.sections}", reasons=found.reasons
    )
