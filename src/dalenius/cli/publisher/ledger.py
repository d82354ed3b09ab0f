"""`dalenius ledger list | show ID | forget ID`: the publisher's private memory of what was published."""

from __future__ import annotations

from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

from dalenius.cli.declared import Argument, Option
from dalenius.cli.output import JsonOption, print_json, say, say_table
from dalenius.errors import InputError
from dalenius.release.ledger import Entry, Ledger, open_ledger

_SHORT = 12
"""So much of an id tells releases apart."""


class Action(StrEnum):
    """What to do with the ledger."""

    list = "list"
    show = "show"
    forget = "forget"


def command(
    action: Annotated[Action, Argument(help="list, show or forget.")],
    name: Annotated[str, Argument(metavar="ID", help="The release's id, or its beginning.")] = "",
    as_json: JsonOption = False,
    path: Annotated[Path | None, Option(help="The ledger's file, if it is not the user's own.")] = None,
    reason: Annotated[str, Option(help="Why a release is forgotten; the ledger keeps it.")] = "",
    yes: Annotated[bool, Option("--yes", help="Forget: its people can then be published again.")] = False,
) -> int:
    """Look into the ledger, or have it forget a release."""
    if path is not None and not path.is_file():
        raise InputError(f"there is no ledger {path}", hint="[ledger] path in the policy says where it is")
    ledger = open_ledger(path)
    if action is Action.list:
        _list(ledger, as_json=as_json)
    elif action is Action.show:
        _show(ledger.find(name), as_json=as_json)
    else:
        _forget(ledger, name, reason, yes=yes, as_json=as_json)
    return 0


def describe(entry: Entry) -> dict[str, Any]:
    """What a ledger says of a release: nothing about its table but how it is known."""
    series = None
    if entry.series_id is not None:
        series = {"id": entry.series_id, "index": entry.series_index, "of": entry.series_of}
    known_by = {
        "records": entry.source_fingerprint,
        "values": entry.values_fingerprint,
        "people": entry.sketch,
    }
    return {
        "id": entry.id,
        "created": entry.created,
        "path": entry.path,
        "exists": Path(entry.path).exists(),
        "mechanism": entry.mechanism,
        "for_publication": entry.for_publication,
        "manifest_sha256": entry.manifest_sha256,
        "series": series,
        "known_by": [name for name, mark in known_by.items() if mark is not None],
    }


def _list(ledger: Ledger, *, as_json: bool) -> None:
    releases, forgotten = [describe(entry) for entry in ledger.releases()], ledger.forgotten()
    if as_json:
        gone = [asdict(one) for one in forgotten]
        print_json({"ledger": str(ledger.path), "releases": releases, "forgotten": gone})
        return
    say(f"{ledger.path}: {len(releases)} release{'s' if len(releases) != 1 else ''}")
    if releases:
        say_table(
            ["id", "published", "mechanism", "where"],
            [[one["id"][:_SHORT], one["created"], one["mechanism"], one["path"]] for one in releases],
        )
    for one in forgotten:
        what = f"{one.id[:_SHORT]}, published on {one.created} to {one.path}"
        say(f"forgotten on {one.day}: {what}: {one.reason}")


def _show(entry: Entry, *, as_json: bool) -> None:
    described = describe(entry)
    if as_json:
        print_json(described)
        return
    for name, value in described.items():
        say(f"{name}: {', '.join(value) if name == 'known_by' else value}")


def _forget(ledger: Ledger, name: str, reason: str, *, yes: bool, as_json: bool) -> None:
    entry = ledger.find(name)
    if not reason:
        raise InputError(
            f"why is {entry.id[:_SHORT]} to be forgotten?", hint='--reason "…", which the ledger keeps'
        )
    if not yes:
        raise InputError(
            f"the release of {entry.created} at {entry.path} would be forgotten: its people could be "
            "published again, and nothing would say what both releases tell together",
            hint="--yes forgets it; the ledger keeps the day and the reason",
        )
    gone = ledger.forget(entry.id, reason)
    if as_json:
        print_json(asdict(gone))
        return
    say(f"forgotten: {gone.id[:_SHORT]}, published on {gone.created} to {gone.path}")
