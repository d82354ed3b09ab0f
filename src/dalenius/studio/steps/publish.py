"""Steps 5 and 6: a rehearsal that can be repeated, and the release, which cannot be taken back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from xml.etree.ElementTree import Element

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from dalenius.errors import InputError
from dalenius.pages import document as doc
from dalenius.studio import work
from dalenius.studio.frame import (
    Studio,
    made_for,
    read_form,
    refuse_on,
    refuse_outdated,
    show,
    stop_and_return,
    studio_of,
)
from dalenius.studio.parts import command, next_link, refusal, show_progress, wait_briefly
from dalenius.studio.project import show_promise
from dalenius.studio.steps.promise import outright_notice, plan_of, show_plan
from dalenius.studio.tasks import Task
from dalenius.web.page import blocks, element, field, form, unpack


def _key(what: str, studio: Studio) -> tuple[str, str, str]:
    """A rehearsal or a release is of one policy and one table."""
    return (what, *studio.project.state())


async def rehearse_page(request: Request) -> Response:
    """The page of the rehearsal."""
    studio = studio_of(request)
    if "mechanism" not in studio.project.read():
        return RedirectResponse("/choose", 303)
    task = studio.tasks.find(_key("rehearse", studio))
    start = form(
        "/rehearse",
        request.scope["csrf"],
        element("button", "Rehearse" if task is None else "Rehearse again", type="submit"),
    )
    content: list[Element] = [
        element(
            "p",
            "A rehearsal publishes into a draft, attacks it with your table at hand, and remembers nothing. "
            "It can be repeated as often as you like.",
        )
    ]
    if task is not None and not task.finished:
        content += show_progress(request, task, "Rehearsing", cancel="/rehearse/cancel")
    else:
        content += [start, *_show_rehearsal(task)]
    content.append(
        next_link("publish", is_open=task is not None and task.ok, why="rehearse this policy first")
    )
    policy = studio.project.policy_file.name
    return show(
        request,
        "rehearse",
        content,
        same=[command("publish", policy, "--draft"), command("audit", "RELEASE.draft", "--original", policy)],
        python=f'draft = dalenius.publish("{policy}", draft=True)\ndalenius.audit(draft.path, "{policy}")',
    )


def _show_rehearsal(task: Task | None) -> list[Element]:
    if task is None:
        return []
    if task.error is not None:
        return [refusal(task.error, "The rehearsal failed")]
    done = task.result["published"]
    facts = doc.Facts(
        items=(
            ("Rows of your table", doc.Number(value=done["rows"])),
            ("Rows published", doc.Number(value=done["published"])),
            ("Withheld", None if done["suppressed"] is None else doc.Number(value=done["suppressed"])),
            ("People published outright", doc.Number(value=done["outright"])),
            ("Seconds", doc.Number(value=done["seconds"], style="number")),
        )
    )
    return [*blocks([*_show_exposures(task), facts]), *unpack(task.result["audit"])]


def _show_exposures(rehearsed: Task) -> list[doc.Block]:
    """What gives people away though the promise is kept; publishing is refused, so it is told before."""
    lines, notes = rehearsed.result["exposures"], rehearsed.result["notes"]
    text = "; ".join(
        [*lines, "the studio does not publish this: give the column another role or coarser values"]
    )
    title = "People would be exposed, whatever is promised"
    told = [doc.Notice(tone="bad", title=title, text=text)] if lines else []
    return [
        *told,
        *(doc.Notice(tone="warning", title="Is this what you want?", text=note) for note in notes),
    ]


async def rehearse(request: Request) -> Response:
    """Start a rehearsal."""
    studio = studio_of(request)
    await read_form(request)
    state, policy = studio.project.state(), str(studio.project.policy_file)
    studio.tasks.run(("rehearse", *state), work.rehearse, policy, state)
    return RedirectResponse("/rehearse", 303)


async def cancel_rehearsal(request: Request) -> Response:
    """Stop it; what was written is removed."""
    return await stop_and_return(request, _key("rehearse", studio_of(request)))


async def publish_page(request: Request, before: Sequence[Element] = (), status: int = 200) -> Response:
    """The page of the release."""
    studio = studio_of(request)
    if "mechanism" not in studio.project.read():
        return RedirectResponse("/choose", 303)
    task = studio.tasks.find(_key("publish", studio))
    policy = studio.project.policy_file.name
    content: list[Element] = list(before)
    if task is not None and not task.finished:
        content += show_progress(request, task, "Publishing", cancel="/publish/cancel")
    elif studio.project.is_published():
        text = (
            "It was written whole, and its promise was checked on what was written. It cannot be taken back."
        )
        content += blocks(
            [doc.Notice(tone="good", title=f"Published: {studio.project.release_path}", text=text)]
        )
        content.append(next_link("ask", is_open=True))
    else:
        if task is not None and task.error is not None:
            content.append(refusal(task.error, "Nothing was published"))
        content += await _confirmation(request, studio)
    same, python = [command("publish", policy)], f'release = dalenius.publish("{policy}")'
    return show(request, "publish", content, same=same, python=python, status=status)


async def _confirmation(request: Request, studio: Studio) -> list[Element]:
    rehearsed = studio.tasks.find(_key("rehearse", studio))
    if rehearsed is None or not rehearsed.ok:
        text = "This policy was not rehearsed since it was last changed."
        return [
            *blocks([doc.Notice(tone="warning", title="Rehearse first", text=text)]),
            next_link("rehearse", is_open=True),
        ]
    plan = await wait_briefly(plan_of(studio))
    if not plan.finished:
        return show_progress(request, plan, "Planning")
    if plan.error is not None:
        return show_plan(plan)
    outright = rehearsed.result["published"]["outright"]
    return [
        *blocks(_repeat_choices(studio.project.read())),
        *blocks(_show_exposures(rehearsed)),
        *outright_notice(outright, plan.result["sensitive"]),
        *blocks([doc.Bullets(title="What is not stopped", items=tuple(rehearsed.result["not_covered"]))]),
        *unpack(rehearsed.result["audit"]),
        _publish_form(request, studio, outright),
    ]


def _repeat_choices(data: dict[str, Any]) -> list[doc.Block]:
    """What is about to be published, once more."""
    columns = data["columns"]
    dropped = [*columns.get("identifiers", []), *columns.get("dropped", []), columns.get("unit")]
    items: tuple[tuple[str, doc.Cell], ...] = (
        ("Published as they are", ", ".join(columns.get("quasi", [])) or "nothing"),
        ("Must not be inferable", ", ".join(columns.get("sensitive", [])) or "whole rows"),
        ("Dropped", ", ".join(filter(None, dropped)) or "nothing"),
        ("Promise", show_promise(data["promise"])),
        ("Mechanism", str(data["mechanism"].get("kind"))),
    )
    text = "What is published stays known. Everybody who gets the release keeps it."
    return [doc.Notice(tone="bad", title="This cannot be taken back", text=text), doc.Facts(items=items)]


def _publish_form(request: Request, studio: Studio, outright: int) -> Element:
    name = str(studio.project.read()["release"])
    fields = [
        field(
            "signed",
            "Your name, for the private report",
            element("input", required="required", autocomplete="name"),
        ),
        field(
            "phrase",
            f"To publish, type the name of the release: {name}",
            element("input", required="required", autocomplete="off"),
        ),
    ]
    if outright:
        box = element("input", type="checkbox", value="yes")
        fields.append(
            field("outright", f"I accept that {outright:,} people's value becomes certain for everybody", box)
        )
    return form(
        "/publish",
        request.scope["csrf"],
        made_for(studio.project.state()),
        *fields,
        element("button", "Publish, for good", type="submit", class_="danger"),
    )


@refuse_on(publish_page, "Not confirmed")
async def publish(request: Request) -> Response:
    """Publish, if everything was confirmed."""
    studio = studio_of(request)
    state = studio.project.state()
    sent = await read_form(request)
    yes = _check_confirmation(studio, state, sent)
    signed = str(sent["signed"]).strip()[:200]
    policy = str(studio.project.policy_file)
    studio.tasks.run(("publish", *state), work.publish, policy, state, yes, signed)
    return RedirectResponse("/publish", 303)


def _check_confirmation(studio: Studio, state: tuple[str, str], sent: dict[str, Any]) -> bool:
    """Whether people may be published outright; raises what is missing."""
    refuse_outdated(sent, state)
    rehearsed = studio.tasks.find(("rehearse", *state))
    if rehearsed is None or not rehearsed.ok:
        raise InputError("this policy was not rehearsed", hint="rehearse it first")
    if str(sent.get("phrase", "")).strip() != str(studio.project.read()["release"]):
        raise InputError("the name of the release was not typed as it is")
    if not str(sent.get("signed", "")).strip():
        raise InputError("a name is needed, for the private report")
    outright = rehearsed.result["published"]["outright"]
    if outright and sent.get("outright") != "yes":
        raise InputError(f"{outright:,} people's value would be certain, which was not accepted")
    return bool(outright)


async def cancel_publish(request: Request) -> Response:
    """Stop it; nothing is published."""
    return await stop_and_return(request, _key("publish", studio_of(request)))
