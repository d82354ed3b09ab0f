"""`dalenius demo`: the whole tour on a synthetic hospital table."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Annotated

import pyarrow.csv

from dalenius.ask import ask
from dalenius.cli.declared import Argument
from dalenius.cli.output import JsonOption, print_json, progress_bar, say, say_table
from dalenius.cli.reader.ask import say_answer
from dalenius.demo_data import hospital
from dalenius.errors import InputError
from dalenius.mechanisms.base import Plan
from dalenius.pages.pictures import draw_plan
from dalenius.pages.writing import default_path, write_report
from dalenius.policy import Policy
from dalenius.publishing import Published, make_plan, write_release
from dalenius.release.verify import verify_release
from dalenius.reporting.build import build_report
from dalenius.sql import connect, count

QUESTION = "SELECT COUNT(*) FROM patients WHERE age >= 60 AND disease = 'Hypertension'"
POLICY = """\
source  = "patients.csv"
release = "patients.release"

[columns]
unit        = "patient_id"
identifiers = ["name"]
quasi       = ["age", "sex", "district", "insurance"]
sensitive   = ["disease"]

[promise]                                  # nobody can be linked to a disease with more than …
kind    = "f-privacy"
default = { times = 3, plus = 0.02 }       # … three times its share + 2 %, and never above 1/2
values  = { HIV = 0.03, Schizophrenia = 0.03 }    # stricter for these

[mechanism]
kind    = "bucketize"
regions = true                             # buckets of people who are alike: mostly sharper, same promise

[ledger]
path = "private/ledger"                    # remembers what was published; only its owner can read it
"""


def command(
    folder: Annotated[Path, Argument(help="Where to put the tour's files.")] = Path("demo"),
    as_json: JsonOption = False,
) -> int:
    """Take the whole tour: a table, a policy, a plan, a release, a verdict, an answer, a report."""
    policy_file = _write_files(folder)
    policy = Policy.from_file(policy_file)
    plan = make_plan(policy)
    chart = _draw(plan, folder / "plan.svg")
    with progress_bar() as progress:
        published = write_release(policy, progress=progress)
    verdict = verify_release(published.release, strict=True)
    answer = ask(published.release, QUESTION)
    reports = _report(published, policy)
    if as_json:
        print_json(
            {
                "policy": str(policy_file),
                "plan": plan.to_dict(),
                "publish": published.to_dict(),
                "verify": verdict.to_dict(),
                "ask": answer.to_dict(),
                "reports": [str(path) for path in reports],
            }
        )
        return 0
    say(f"1. A table of {published.n_rows:,} people that never lived: {folder / 'patients.csv'}")
    say(f"2. A policy, which says what must not be inferable: {policy_file}\n")
    say("3. The plan, from the counts of the diseases alone:\n")
    say(str(plan))
    if chart is not None:
        say(f"\n   drawn in {chart}")
    say(f"\n4. The release, written in {published.seconds:.1f} s: {published.release.path}")
    say("   Who lives where is in qit.parquet, who has what in st.parquet; only the bucket joins them.\n")
    say("5. Verified from the release alone:\n")
    say_table(
        ["check", "", "detail"], [[c.name, "ok" if c.ok else "FAILED", c.detail] for c in verdict.checks]
    )
    say(f"\n6. Asked, from the release alone: {QUESTION}\n")
    say_answer(answer)
    _say_truth(folder)
    say("\n7. Two reports that open in any browser:\n")
    say(f"   for everybody, from the release alone:                 {reports[0]}")
    say(f"   for the publisher, with true counts and attacks on it: {reports[1]}")
    _say_next(published, policy_file)
    return 0


def _write_files(folder: Path) -> Path:
    policy_file = folder / "patients.toml"
    if (folder / "patients.release").exists() or policy_file.exists():
        raise InputError(
            f"{folder} holds a tour already", hint="remove it, or give another folder: dalenius demo FOLDER"
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        pyarrow.csv.write_csv(hospital(), folder / "patients.csv")
        policy_file.write_text(POLICY, encoding="utf-8")
    except OSError as error:
        raise InputError(f"cannot write to {folder}: {error.strerror}") from error
    return policy_file


def _draw(plan: Plan, path: Path) -> Path | None:
    """The plan's picture, if the drawing library is installed."""
    try:
        draw_plan(plan, path)
    except InputError:
        return None
    return path


def _report(published: Published, policy: Policy) -> tuple[Path, Path]:
    """The reports for outsiders and for the publisher."""
    release = published.release
    paths = default_path(release.path, private=False), default_path(release.path, private=True)
    for path, original in zip(paths, (None, policy), strict=True):
        write_report(build_report(release, original), path, release)
    return paths


def _say_truth(folder: Path) -> None:
    """What only the publisher can know, for comparison."""
    with connect() as connection:
        connection.register("patients", hospital())
        truth = count(connection, QUESTION)
    say(f"\n   (The table in {folder}, which only the publisher has, says {truth:,}.)")


def _say_next(published: Published, policy_file: Path) -> None:
    release, dalenius = published.release.path, program()
    say("\nTry next:")
    say(f"  {dalenius} ask {release} \"SELECT disease, COUNT(*) FROM t WHERE sex = 'F' GROUP BY disease\"")
    say(f"  {dalenius} plan {policy_file}          after changing a threshold in it")
    say(f"  {dalenius} inspect YOUR.csv; {dalenius} init YOUR.csv")


def program() -> str:
    """What to type to start this program again: its path, where its name alone would not be found."""
    started = Path(sys.argv[0])
    return str(started) if started.name == "dalenius" and shutil.which("dalenius") is None else "dalenius"
