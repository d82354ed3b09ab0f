"""Comparing policies: every contender is drawn several times and asked the same questions.

Workloads are given by name or file, policies by their files.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from dalenius.engines.base import Progress, silent
from dalenius.errors import DaleniusError, InputError, InternalError, PromiseNotMet, did_you_mean
from dalenius.evaluate.comparison import Comparison, Standing
from dalenius.evaluate.contender import Contender, baselines, draw_sample, policy_contender
from dalenius.evaluate.measures import Measure, measures_named
from dalenius.evaluate.metrics import Spread, bands_over_draws
from dalenius.evaluate.original import Original, Shared, read_shared
from dalenius.evaluate.sql_workload import SqlWorkload
from dalenius.evaluate.workload import AnatomyWorkload, Cells, EqualityPool, Marginals, Questions, Workload
from dalenius.policy import Policy
from dalenius.randomness import Randomness

QUERIES = 300
"""How many questions are drawn unless another number is given."""
WORKLOADS: dict[str, Callable[[int], Workload]] = {
    "anatomy": lambda queries: AnatomyWorkload(n_questions=queries),
    "equality": lambda queries: EqualityPool(n_conditions=queries),
    "marginals": lambda queries: Marginals(),  # noqa: ARG005  (all of them, however many)
}


def find_workload(name: str | Path, queries: int = QUERIES) -> Workload:
    """A workload by its name, or the questions of an .sql file.

    >>> find_workload("anatomy", 50)
    AnatomyWorkload(n_questions=50, selectivity=0.01, most_quasi=7)
    >>> find_workload("marginals:3")
    Marginals(most_columns=3)
    """
    if str(name) in WORKLOADS:
        return WORKLOADS[str(name)](queries)
    kind, _, number = str(name).partition(":")
    if kind == "marginals" and number.isdecimal():
        return Marginals(most_columns=int(number))
    if Path(name).suffix == ".sql":
        return SqlWorkload.from_file(name)
    raise InputError(
        f"workload {str(name)!r} is unknown; {did_you_mean(str(name), WORKLOADS)}",
        hint="or give a file of questions whose name ends in .sql",
    )


def read_policies(paths: Iterable[str | Path]) -> dict[str, Policy]:
    """Policies by the names of their files; where two files have one name, by their paths."""
    files = [Path(path) for path in paths]
    stems = Counter(file.stem for file in files)
    names = [file.stem if stems[file.stem] == 1 else str(file) for file in files]
    twice = [name for name, n in Counter(names).items() if n > 1]
    if twice:
        raise InputError(f"policy {twice[0]} is given twice")
    return {name: Policy.from_file(file) for name, file in zip(names, files, strict=True)}


SEEDS = 3
"""How many releases are drawn of each contender unless another number is given."""


def compare_policies(
    policies: Mapping[str, Policy],
    *,
    workload: Workload | None = None,
    metrics: Sequence[str] = (),
    n_seeds: int = SEEDS,
    seed: int | None = None,
    progress: Progress = silent,
) -> Comparison:
    """Publish every policy several times into a temporary folder, and measure what the releases answer.

    Args:
        policies: By the name that tables and pictures use; all for one table.
        workload: What is asked; None: Anatomy's random questions.
        metrics: What is measured, the first one to rank by; none: the usual ones.
        n_seeds: How many times each is drawn; what differs between draws is the spread.
        seed: Makes the questions and the releases repeatable, but not OpenDP's noise.
        progress: Told after each draw.
    """
    if not policies:
        raise InputError("no policy is given: there is nothing to compare")
    if n_seeds < 1:
        raise InputError(f"seeds: {n_seeds} draws measure nothing", hint="at least 1; 3 show a spread")
    measures = measures_named(tuple(metrics))
    workload = workload or AnatomyWorkload()
    randomness = Randomness.fresh() if seed is None else Randomness.seeded(seed)
    shared = read_shared(policies, silent)
    questions = workload.questions(shared.original, randomness.stream("compare", "workload"))
    setting = _Setting(
        original=shared.original,
        questions=questions,
        measures=measures,
        n_seeds=n_seeds,
        randomness=randomness,
    )
    standings = setting.stand_all(shared, progress)
    return Comparison(
        workload=workload.name,
        n_questions=len(questions.sqls),
        n_cells=questions.n_cells,
        n_seeds=n_seeds,
        measures=measures,
        standings=tuple(standings),
    )


def sample_randomness(randomness: Randomness, contender: Contender, number: int) -> Randomness:
    """The key of one draw of a contender; no two draws share anything."""
    role = "baseline" if contender.is_baseline else "policy"
    key = randomness.derived_key("compare", role, contender.name, number)
    return Randomness(key=key, is_seeded=randomness.is_seeded)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Setting:
    original: Original
    questions: Questions
    measures: tuple[Measure, ...]
    n_seeds: int
    randomness: Randomness

    def stand_all(self, shared: Shared, progress: Progress) -> list[Standing]:
        """The policies first; then the baselines at the bounds that were kept, or at all if none was."""
        own = [policy_contender(name, policy, shared) for name, policy in shared.policies.items()]
        standings = [self.stand(one) for one in _told(own, progress, "policies")]
        kept = [one for one in standings if one.reason is None] or standings
        others = baselines(shared, {one.contender.bound.largest for one in kept})
        return standings + [self.stand(one) for one in _told(others, progress, "baselines")]

    def stand(self, contender: Contender) -> Standing:
        """What was measured of a contender, or why nothing could be."""
        drawn: list[Cells] = []
        outright: list[int] = []
        values: dict[str, list[float]] = {measure.name: [] for measure in self.measures}
        reason = contender.reason
        n_failed = 0
        for number in range(self.n_seeds if reason is None else 0):
            try:
                drawn.append(self._draw(contender, number, values, outright))
            except DaleniusError as error:
                reason = _reason(contender, error)
                n_failed += 1
        if not drawn:
            return Standing(contender=contender, spreads={}, reason=reason)
        return Standing(
            contender=contender,
            spreads={name: Spread.of(found) for name, found in values.items() if found},
            bands=bands_over_draws(drawn),
            n_unanswered=sum(cells.n_unanswered for cells in drawn),
            n_failed=n_failed,
            outright=max(outright, default=None),
        )

    def _draw(
        self, contender: Contender, number: int, values: dict[str, list[float]], outright: list[int]
    ) -> Cells:
        randomness = sample_randomness(self.randomness, contender, number)
        with draw_sample(contender, self.original, randomness) as sample:
            cells = sample.answer_workload(self.questions)
            if sample.release is not None:
                outright.append(sum(part.manifest.outright or 0 for part in sample.release.parts))
            for measure in self.measures:
                value = measure.measure(sample, cells)
                if value is not None:
                    values[measure.name].append(value)
        return cells


def _told(contenders: list[Contender], progress: Progress, what: str) -> Iterator[Contender]:
    """One after the other, saying how many are done."""
    for done, contender in enumerate(contenders):
        progress(what, done, len(contenders))
        yield contender
    progress(what, len(contenders), len(contenders))


def _reason(contender: Contender, error: DaleniusError) -> str:
    """Why a draw gave nothing. A policy that is wrong, not too strict, is an error of the comparison."""
    if isinstance(error, InternalError):
        raise error
    if not contender.is_baseline and not isinstance(error, PromiseNotMet):
        raise type(error)(f"{contender.name}: {error.message}", hint=error.hint) from error
    return error.message if error.hint is None else f"{error.message} ({error.hint})"
