"""The words of the command line, in Python."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Unpack, cast

import pyarrow as pa
from numpy.typing import ArrayLike

from dalenius.ask import Options, ask, ask_many
from dalenius.ask.course import Course, ask_course, ask_each
from dalenius.auditing import audit_release
from dalenius.display import View, notebook_progress
from dalenius.engines.base import Engine
from dalenius.engines.registry import engine_named
from dalenius.evaluate.compare import (
    QUERIES,
    SEEDS,
    Comparison,
    compare_policies,
    find_workload,
    read_policies,
)
from dalenius.evaluate.workload import Workload
from dalenius.export import Exported, export_release
from dalenius.export.complete import COPIES, Pooled, draw_copies, pool_copies
from dalenius.export.fitting import Fitted, Kind, fit_copies
from dalenius.mechanisms.base import Plan
from dalenius.pages.document import Report
from dalenius.pages.writing import write_report
from dalenius.policy import Policy
from dalenius.publishing import make_plan, write_release
from dalenius.question.answer import Answer, Independence
from dalenius.release import series
from dalenius.release.admission import admit
from dalenius.release.folder import StoredRelease
from dalenius.release.signing import read_public_key
from dalenius.release.verify import Verification, verify_release
from dalenius.reporting.build import build_report
from dalenius.sql import identifiers
from dalenius.tables.source import gather_persons as gather_persons  # noqa: PLC0414  (a word of this module)
from dalenius.threats.result import Audit

_LOG = logging.getLogger("dalenius.api")
"""What was done and where, never what a table holds."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Release:
    """A release that can be asked and verified; it needs nothing but its folder."""

    stored: StoredRelease

    @property
    def path(self) -> Path:
        """The folder."""
        return self.stored.path

    @property
    def manifest(self) -> dict[str, Any]:
        """The release's description of itself."""
        return self.stored.manifest.to_dict()

    def ask(self, sql: str, **options: Unpack[Options]) -> Answer:
        """Answer a question with its error bars, e.g. `SELECT COUNT(*) FROM t WHERE age > 60`.

        Options: `confidence`, 0.95 unless given; `estimator`, one of the mechanism's; `tables`, by name, to
        join with; `consistent`, to have no negative counts and totals that add up; `differences` between
        groups; `independence` of the two columns that are grouped by; `limits` of time and memory.
        """
        return ask(self.stored, sql, **options)

    def ask_then(self, sql: str, *later: Release, confidence: float = 0.95) -> Course:
        """Ask this release and later ones the same: a row for each, and the changes from one to the next."""
        return ask_course([self.stored, *(one.stored for one in later)], sql, confidence=confidence)

    def ask_each(self, sql: str, *, confidence: float = 0.95) -> Course:
        """Ask a series: one answer per date or batch, and the changes from one to the next."""
        return ask_each(self.stored, sql, confidence=confidence)

    def test_independence(self, one: str, two: str, *, where: str = "") -> Independence:
        """Whether two columns are independent: a χ² test that knows the release's noise.

        `where` is a condition on people as in SQL: `test_independence("disease", "sex", where="age > 60")`.
        """
        keys, only = identifiers((one, two)), f" WHERE {where}" if where else ""
        sql = f"SELECT {keys}, COUNT(*) FROM t{only} GROUP BY {keys}"
        answer = ask(self.stored, sql, independence=True)
        return cast("Independence", answer.independence)

    def ask_many(self, sqls: Iterable[str], **options: Unpack[Options]) -> list[Answer]:
        """Answer many questions faster than one by one; options are those of `ask`."""
        return ask_many(self.stored, list(sqls), **options)

    def export(
        self,
        target: str | Path,
        *,
        name: str | None = None,
        columns: Sequence[str] = (),
        keep_formulas: bool = False,
    ) -> Exported:
        """Write the tables and a view with weights to PostgreSQL, a `.duckdb` file, or a folder for CSV."""
        return export_release(self.stored, target, name=name, columns=columns, keep_formulas=keep_formulas)

    def complete(self, copies: int = COPIES, *, seed: int | None = None) -> list[pa.Table]:
        """Whole tables drawn from what the release leaves possible; rows are draws, not people."""
        return list(draw_copies(self.stored, copies, seed=seed))

    def fit(
        self, formula: str, *, kind: Kind = "linear", copies: int = COPIES, seed: int | None = None
    ) -> Fitted:
        """A regression on whole tables, pooled: `release.fit("disease == 'Flu' ~ age", kind="logistic")`.

        How often such intervals hold was measured: docs/complete.md.
        """
        return fit_copies(draw_copies(self.stored, copies, seed=seed, to_fit=True), formula, kind)

    def _repr_html_(self) -> str:
        stated = self.stored.manifest
        facts = {
            "folder": str(self.path),
            "mechanism": f"{stated.mechanism.kind}, {stated.mechanism.method}",
            "promise": str(stated.promise["kind"]),
            "published as they are": ", ".join(stated.columns_of("quasi")),
            "protected": ", ".join(stated.columns_of("sensitive")),
            "created": stated.created,
            "for publication": "yes" if stated.for_publication else "no: made with a seed, or a draft",
        }
        not_covered = tuple(f"not covered: {text}" for text in stated.not_covered[:2])
        view = View(title="Release", headings=("", ""), rows=tuple(facts.items()), sentences=not_covered)
        return view._repr_html_()

    def verify(self, *, strict: bool = False) -> Verification:
        """Check files, tables and promise."""
        return verify_release(self.stored, strict=strict)


def plan(policy: Policy | str | Path, *, engine: str | Engine | None = None) -> Plan:
    """What a policy would publish, from counts alone; raises PromiseNotMet where no release can exist."""
    with notebook_progress() as progress:
        found = make_plan(_policy(policy), engine=_engine(engine), progress=progress)
    _LOG.info("planned")
    return found


def publish(
    policy: Policy | str | Path,
    *,
    seed: int | None = None,
    again: bool = False,
    yes: bool = False,
    draft: bool = False,
    engine: str | Engine | None = None,
    sign: str | Path | None = None,
) -> Release:
    """Publish a table. A seed makes the run repeatable, and the release unfit for publication.

    With `draft=True` it is a rehearsal: written beside the release, with `.draft` at the end of its name, in
    place of an earlier draft; not for publication, and the ledger neither asked nor told.

    A table that was published before is refused, with what both releases would tell together, unless
    `again=True`. So is one that would tell some people's sensitive value for certain, unless `yes=True` or
    the policy allows it. The engine is `"local"` or `"spark"`; if none is given, Spark publishes PySpark
    data frames. `sign` is the PEM file of a private Ed25519 key, with which the manifest is signed. What the
    command line would warn of is logged as a warning.
    """
    with notebook_progress() as progress:
        done = write_release(
            _policy(policy),
            seed=seed,
            again=again,
            yes=yes,
            is_draft=draft,
            engine=_engine(engine),
            progress=progress,
            sign=None if sign is None else Path(sign),
        )
    _LOG.info("published %s in %.1f s", done.release.path, done.seconds)
    for line in done.warnings():
        _LOG.warning("%s", line.removeprefix("warning: "))
    return Release(stored=done.release)


def open_release(path: str | Path) -> Release:
    """Open a release folder, or a folder of the releases of one series."""
    stored = series.open_release(path)
    admit(stored)
    return Release(stored=stored)


def verify(path: str | Path, *, strict: bool = False, signer: str | Path | None = None) -> Verification:
    """Check a release folder from itself alone, and that the public key of a PEM file signed it."""
    key = None if signer is None else read_public_key(signer)
    return verify_release(series.open_release(path), strict=strict, signer=key)


def pool(estimates: Sequence[ArrayLike], covariances: Sequence[ArrayLike]) -> Pooled:
    """The results of one analysis on several copies as one, by Rubin's rules.

    Args:
        estimates: Of every copy, a number or several.
        covariances: Of every copy, the variance of the number, or the covariance matrix of several.
    """
    return pool_copies(estimates, covariances)


def audit(
    path: str | Path,
    original: Policy | str | Path | Any,
    *,
    also: Iterable[str | Path] = (),
    seed: int | None = None,
) -> Audit:
    """Attack a release folder with the original at hand: its table, or the policy that published it."""
    others = [StoredRelease.open(other) for other in also]
    return audit_release(series.open_release(path), original, also=others, seed=seed)


def report(
    path: str | Path,
    original: Policy | str | Path | Any = None,
    *,
    output: str | Path | None = None,
    seed: int | None = None,
) -> Report:
    """The report on a release folder, written to `output` (.html, .json or .txt) where that is given.

    Without the original it is for outsiders: made from the release alone. With it the report is private.
    """
    stored = series.open_release(path)
    built = build_report(stored, original, seed=seed)
    if output is not None:
        write_report(built, Path(output), stored)
    return built


def compare(
    policies: Mapping[str, Policy] | Iterable[str | Path],
    *,
    workload: Workload | str | Path = "anatomy",
    queries: int = QUERIES,
    seeds: int = SEEDS,
    metrics: Sequence[str] = (),
    seed: int | None = None,
) -> Comparison:
    """Publish several policies of one table aside, ask each the same questions, and say which errs least.

    Args:
        policies: Policies by name, or the paths of policy files, which are called as the files are.
        workload: `anatomy`, `equality`, `marginals`, a file of SQL questions, or a workload of your own.
        queries: How many questions are drawn.
        seeds: How many releases are drawn of each; their differences are the spread.
        metrics: What is measured; the first one ranks.
        seed: Makes it repeatable, except for OpenDP's noise.
    """
    named = dict(policies) if isinstance(policies, Mapping) else read_policies(policies)
    asked = find_workload(workload, queries) if isinstance(workload, str | Path) else workload
    return compare_policies(named, workload=asked, metrics=metrics, n_seeds=seeds, seed=seed)


def _engine(engine: str | Engine | None) -> Engine | None:
    return engine_named(engine) if isinstance(engine, str) else engine


def _policy(policy: Policy | str | Path) -> Policy:
    return policy if isinstance(policy, Policy) else Policy.from_file(policy)
