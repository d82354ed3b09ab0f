"""`dalenius publish POLICY`: write a release."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from dalenius import system
from dalenius.cli.declared import Option
from dalenius.cli.output import JsonOption, PolicyArgument, SourceOption, print_json, progress_bar, say
from dalenius.engines.registry import engine_named
from dalenius.mechanisms.registry import stage_rooms
from dalenius.policy import Policy
from dalenius.publishing import write_release


def command(
    policy: PolicyArgument,
    as_json: JsonOption = False,
    source: SourceOption = None,
    seed: Annotated[
        int | None, Option(help="Repeatable, and therefore marked as not for publication.")
    ] = None,
    again: Annotated[
        bool, Option("--again", help="Even if the ledger knows another release of this table.")
    ] = False,
    yes: Annotated[
        bool, Option("--yes", help="Even if some people's sensitive value is then certain.")
    ] = False,
    draft: Annotated[
        bool, Option("--draft", help="A rehearsal, to RELEASE.draft: not published, not remembered.")
    ] = False,
    sign: Annotated[
        Path | None, Option(help="Sign the manifest with this private Ed25519 key, a PEM file.")
    ] = None,
    engine: Annotated[str, Option(help="Where to run: local or spark.")] = "local",
) -> int:
    """Carry a plan out and write the release, whole or not at all."""
    system.keep_freed_memory()
    with progress_bar() as progress:
        published = write_release(
            Policy.from_file(policy, source=source),
            engine=engine_named(engine),
            seed=seed,
            again=again,
            yes=yes,
            is_draft=draft,
            sign=sign,
            progress=progress,
        )
    if as_json:
        print_json(published.to_dict())
        return 0
    path, seconds = published.release.path, published.seconds
    done = f"{published.n_published:,} of {published.n_rows:,} records"
    if published.n_suppressed is None:  # random insertions and deletions: rows are not records
        done = f"a view of {published.n_published:,} rows, drawn from {published.n_rows:,} records,"
    say(f"{'drafted' if draft else 'published'} {done} to {path} in {seconds:.1f} s")
    if published.n_suppressed:
        told = [stage.WORDS.published(published.release) for stage in stage_rooms("words")]
        say("; ".join([f"withheld {published.n_suppressed:,}", *filter(None, told)]))
    for line in published.warnings():
        say(line)
    if published.synthetic:
        say("this is the bundled demo table, whose people never lived: the ledger passes it over")
    if draft:
        say(f"a draft: not for publication; `dalenius publish {policy}` publishes")
    elif seed is not None:
        say("made with a seed: not for publication (`dalenius verify --strict` refuses it)")
    say(f'next: dalenius verify {path}; dalenius ask {path} "SELECT COUNT(*) FROM t"')
    return 0
