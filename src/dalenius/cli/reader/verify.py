"""`dalenius verify RELEASE`: check a release from itself alone."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from dalenius.cli.declared import Option
from dalenius.cli.output import JsonOption, ReleaseArgument, print_json, say, say_table
from dalenius.errors import PromiseNotMet, ReleaseCorrupt
from dalenius.release.verify import verify

_AGREES = "what the release shows agrees with its promise; whether its coins were fair cannot be seen in it"

_BROKEN = "the release does NOT hold what it promises"
_DAMAGED = "the release is damaged: get it again from whoever published it"


def command(
    release: ReleaseArgument,
    as_json: JsonOption = False,
    strict: Annotated[bool, Option("--strict", help="Also refuse what is not for publication.")] = False,
    signer: Annotated[Path | None, Option(help="Whose it must be: a public Ed25519 key, a PEM file.")] = None,
) -> int:
    """Check hashes, schema and the promise on the published tables.

    Exit 1 if the release is damaged, 3 if what it shows does not hold what it promises.
    """
    verdict = verify(release, strict=strict, signer=signer)
    if as_json:
        print_json(verdict.to_dict())
    else:
        say_table(
            ["check", "", "detail"], [[c.name, "ok" if c.ok else "FAILED", c.detail] for c in verdict.checks]
        )
        if verdict.outright:
            say(f"{verdict.outright:,} people are published outright: their sensitive value is certain")
        say(_AGREES if verdict.ok else _DAMAGED if verdict.damaged else _BROKEN)
    if verdict.damaged:
        return ReleaseCorrupt.exit_code
    return 0 if verdict.ok else PromiseNotMet.exit_code
