"""`dalenius audit RELEASE --original SOURCE`: attack a release before others do."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from dalenius.auditing import audit_release
from dalenius.cli.declared import Option
from dalenius.cli.output import JsonOption, ReleaseArgument, progress_bar, say, say_table, tell
from dalenius.cli.sources import OriginalOption
from dalenius.release.folder import StoredRelease
from dalenius.release.series import open_release
from dalenius.threats.result import AttackResult, Audit

_LEFT_OUT = (
    "left out: others share their quasi-identifiers, so that nobody can say which record is whose, or they "
    "were not drawn from a large table"
)


def command(
    release: ReleaseArgument,
    original: OriginalOption,
    as_json: JsonOption = False,
    also: Annotated[
        list[Path] | None, Option(help="Another release about the same people, to be joined with it.")
    ] = None,
    seed: Annotated[int | None, Option(help="Makes the attackers' own coins repeatable.")] = None,
) -> int:
    """Attack a release with the original at hand; exit 3 if a promised bound is broken beyond doubt."""
    with progress_bar() as progress:
        others = [StoredRelease.open(path) for path in also or []]
        stored = open_release(release)
        audit = audit_release(stored, original, also=others, seed=seed, progress=progress)
    return tell(audit.to_dict(), lambda: say_audit(audit), as_json=as_json, is_kept=audit.ok)


def say_audit(audit: Audit) -> None:
    """The attacks as a table, then what to change, then the verdict."""
    headings = ["attack", "success", "±", "baseline", "control", "bound", "holds", "trials", "left out"]
    say_table(headings, [_line(attack) for attack in audit.attacks])
    if any(attack.n_failed for attack in audit.attacks):
        say(_LEFT_OUT)
    for attack in audit.attacks:
        if attack.recommendation:
            say(f"{attack.name}: {attack.recommendation}")
    broken = [attack.name for attack in audit.attacks if attack.holds is False]
    uncovered = [attack.name for attack in audit.attacks if attack.bound is None]
    if uncovered:
        say(f"nothing is promised against: {', '.join(uncovered)}")
    say(f"BROKEN by {', '.join(broken)}" if broken else "no promised bound is broken")
    say("this audit holds private numbers: do not publish it")


def _line(attack: AttackResult) -> list[str]:
    holds = "–" if attack.holds is None else "yes" if attack.holds else "NO"
    interval = f"{(attack.high - attack.low) / 2:.3f}"
    rates = [_rate(rate) for rate in (attack.baseline, attack.control, attack.bound)]
    numbers = [f"{attack.n_trials:,}", f"{attack.n_failed:,}"]
    return [attack.name, _rate(attack.success), interval, *rates, holds, *numbers]


def _rate(rate: float | None) -> str:
    return "–" if rate is None else f"{rate:.3f}"
