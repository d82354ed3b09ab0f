"""Attacks on withheld records: which value was too common, who was withheld, and what that tells of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pyarrow.parquet as pq

from dalenius.arrays import Floats, Ints, rank_within
from dalenius.mechanisms.registry import room
from dalenius.mechanisms.rows.estimation import bound_by
from dalenius.mechanisms.suppress.limits import cut_to_limits
from dalenius.mechanisms.suppress.plan import SuppressPlan, plan_suppression
from dalenius.mechanisms.suppress.published import PublishedSuppression, read
from dalenius.promises import read_promise
from dalenius.promises.bounds import Thresholds
from dalenius.promises.rho_privacy import RhoPrivacy
from dalenius.question.targets import Score, Targets
from dalenius.release.folder import StoredRelease
from dalenius.tables.histogram import label, write_cells
from dalenius.threats.counts import Counts, judge_laws, sum_by
from dalenius.threats.facets import Facets
from dalenius.threats.laws import Draws, alike_neighbours
from dalenius.threats.original import CommonCodes, People, Subject, known_values
from dalenius.threats.result import AttackResult, Threat, make_result

THREAT = Threat(
    knows="the algorithm, the number of records, and what was published of them",
    wants="which sensitive value was the commonest of the whole table",
    covered=True,
)
_SMOOTHING = 4.0
"""How many records, spread as all records are, are added to what the release tells of a value's people."""


def attack(subject: Subject) -> Iterator[AttackResult]:
    """Nothing where no record could be withheld."""
    stated = read(subject.release.manifest)
    if stated is None:
        return
    withheld = Withheld.of(subject)
    counts = withheld.counts
    if stated.l is None:
        yield from _attack_limits(withheld, subject.release, stated)
        return
    yield attack_eligibility(counts[counts > 0].tolist(), stated.l, stated.method)
    plan = plan_suppression(counts[counts > 0].tolist(), stated.l, stated.method)
    yield attack_law_of_withholding(withheld, strange=_is_strange(plan, withheld))
    if withheld.n_withheld:
        tied = np.flatnonzero(withheld.published == withheld.published.max())
        yield attack_withheld_people(withheld, subject.release, tied, Fraction(1, stated.l))


def _attack_limits(
    withheld: Withheld, release: StoredRelease, stated: PublishedSuppression
) -> Iterator[AttackResult]:
    """The same where values have limits of their own."""
    limits = _limits_of(withheld, release)
    config = room(release.mechanism, release.method, "config").CONFIG
    kept, cuts = cut_to_limits(withheld.counts.tolist(), limits, is_strict=config.needs_strict_limits)
    worst = max((cut.posterior / cut.limit for cut in cuts), default=Fraction(0))
    yield AttackResult(
        name="eligibility",
        threat=THREAT,
        success=float(max((cut.posterior for cut in cuts), default=Fraction(1, len(limits)))),
        baseline=1 / len(limits),
        bound=None if stated.bound is None else float(max(cut.at_most for cut in stated.limits)),
        holds=None if stated.bound is None else worst <= 1,
        detail={"limits": [{"at_most": float(c.limit), "alike": c.alike} for c in cuts]},
    )
    strange = withheld.is_counted and tuple(withheld.published.tolist()) != kept
    yield attack_law_of_withholding(withheld, strange=strange)
    for cut in cuts:
        tied = [i for i, f in enumerate(limits) if f == cut.limit and kept[i] == cut.level]
        yield attack_withheld_people(withheld, release, np.array(tied), cut.limit)


def _limits_of(withheld: Withheld, release: StoredRelease) -> list[Fraction]:
    """Of every value, as the stage planned with them."""
    promise = read_promise(release.manifest.promise)
    if isinstance(promise, RhoPrivacy):
        return [promise.rho2] * len(withheld.cells)
    found = Thresholds.of(release.manifest.promise)
    return [found.of_value(cells) or Fraction(1) for cells in withheld.cells]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Withheld:
    """The people of the original, and how many of each combination of quasi-identifiers are published."""

    people: People
    value: Ints
    """Of each person."""
    published: Ints
    """How many records of each value are published."""
    is_counted: bool
    """Whether that is certain: the release lists it, or whoever shares cells shares the value too."""
    cells: tuple[tuple[str | None, ...], ...]
    """How a manifest writes each value."""
    labels: tuple[str, ...]

    @classmethod
    def of(cls, subject: Subject) -> Withheld:
        """Find the original's people in the release."""
        release, original = subject.release, subject.original
        quasi, sensitive = release.columns("quasi"), release.columns("sensitive")
        people = People.find(original, release.read(_table_with(release, quasi), quasi), quasi)
        listing = _find_table(release, (*sensitive, "count"))
        if listing is None:  # values are published that are not the people's own
            common = CommonCodes.of(sensitive, (original,))
            (value,), cells = common.of_rows(sensitive), common.cells(sensitive)
            published, is_counted = _count_published(people, value, len(cells))
        else:
            entries = release.read(listing, (*sensitive, "count"))
            common = CommonCodes.of(sensitive, (original, entries))
            value, entry = common.of_rows(sensitive)
            cells = common.cells(sensitive)
            counts = entries.column("count").to_numpy()
            published, is_counted = np.bincount(entry, counts, len(cells)).astype(np.int64), True
        return cls(
            people=people,
            value=value,
            published=published,
            is_counted=is_counted,
            cells=tuple(map(write_cells, cells)),
            labels=tuple(map(label, cells)),
        )

    @property
    def counts(self) -> Ints:
        """How many people of the source have each value."""
        return np.bincount(self.value, minlength=len(self.labels))

    @property
    def by_profile(self) -> Ints:
        """How many people of each combination of quasi-identifiers are not published."""
        n = self.people.n_profiles
        here, there = (np.bincount(p, minlength=n) for p in (self.people.profile, self.people.row_profile))
        return np.asarray(np.maximum(here - there, 0))

    @property
    def n_withheld(self) -> int:
        """How many records are not published."""
        return int(self.by_profile.sum())


def attack_eligibility(counts: Sequence[int], ell: int, method: str) -> AttackResult:
    """The largest posterior over what can be published of a table with these counts.

    >>> attack_eligibility([10, 4, 2, 1, 1], 3, "safe").holds
    True
    """
    plan = plan_suppression(counts, ell, method)
    worst = plan.worst_posterior
    posterior = 1 / len(counts) if worst is None else float(worst.value)
    bound = None if method == "randomized" else 1 / ell
    holds = None if bound is None or worst is None else worst.low * ell <= 1
    return AttackResult(
        name="eligibility",
        threat=Threat(knows=THREAT.knows, wants=THREAT.wants, covered=bound is not None),
        success=posterior,
        interval=None if worst is None else (float(worst.low), float(worst.high)),
        baseline=1 / len(counts),
        bound=bound,
        holds=holds,
        detail={"how": "no suppression" if worst is None else worst.how},
        advice='[suppress] method = "safe" keeps 1/l' if posterior * ell > 1 else None,
    )


_WHO = Threat(
    knows="who is in the source, and so who was withheld",
    wants="sensitive values, from which records of a value were withheld",
    covered=True,
)


def attack_law_of_withholding(withheld: Withheld, *, strange: bool) -> AttackResult:
    """Which records of a value are withheld may depend on nothing; how many are is up to the method."""
    people = withheld.people
    alike = known_values(people.profile, withheld.value, people.n_profiles) >= 0
    known = np.flatnonzero(alike[people.profile])  # of others it is not known whose record was withheld
    profile = people.profile[known]
    is_withheld = rank_within(profile) < withheld.by_profile[profile]
    alone = np.bincount(people.profile, minlength=people.n_profiles)[profile] == 1
    position = np.where(alone, known, -1)
    columns = [(column.name, column.cells, column.people_codes[known]) for column in people.columns]
    labels = withheld.labels
    draws = Draws(
        what="",
        stratum=withheld.value[known],
        outcome=is_withheld.astype(np.int64),
        outcomes=("kept", "withheld"),
        stratum_label=lambda value: labels[value],
        half=profile % 2,
    )

    def groups() -> Iterator[Counts]:
        for facet in Facets.of(columns, position):
            yield from draws.by(facet)
        located = np.flatnonzero(alone)
        order = located[np.argsort(draws.stratum[located], kind="stable")]
        yield alike_neighbours("the next record of a value", draws.stratum[order], draws.outcome[order])

    return judge_laws(
        "law of withholding",
        _WHO,
        groups() if is_withheld.any() else (),
        n_things=len(known),
        n_failed=len(withheld.value) - len(known),
        advice="which records of a value are withheld must be a random choice, and how many the method's",
        certain=("the published counts are none that the method makes of this table",) if strange else (),
    )


def _is_strange(plan: SuppressPlan, withheld: Withheld) -> bool:
    """Whether the method cannot have kept these numbers of records."""
    kept = sorted(zip(withheld.counts.tolist(), withheld.published.tolist(), strict=True), reverse=True)
    kept = [pair for pair in kept if pair[0]]
    if (withheld.published > withheld.counts).any():
        return True
    if plan.law is None or not withheld.is_counted:
        return False
    ranked = sorted(plan.counts, reverse=True)
    return not any(kept == sorted(zip(ranked, outcome, strict=True), reverse=True) for outcome, _ in plan.law)


_ASKS = Threat(
    knows="who is in the source, and so who was withheld; asks the release which of the values that it has "
    "most of goes with people like them",
    wants="the commonest value of the source, and so the value of those who were withheld",
    covered=False,
)


def attack_withheld_people(
    withheld: Withheld, release: StoredRelease, tied: Ints, stated: Fraction
) -> AttackResult:
    """Which of the values that the release has most of goes with the people who were withheld?

    They are mostly of the commonest values, and the release can be asked how its values go with each
    quasi-identifier. The value under which the withheld people's quasi-identifiers are likeliest is guessed.
    """
    guess = int(tied[_likelihoods(withheld, release, tied).argmax()])
    lost = withheld.counts - withheld.published
    total = max(int(lost.sum()), 1)
    commonest = withheld.counts == withheld.counts.max()
    return make_result(
        "withheld people",
        _ASKS,
        successes=float(max(lost[guess], 0)),
        trials=total,
        baseline=float(lost[tied].mean()) / total,
        detail={"finds_the_commonest": bool(commonest[guess]), "tied": len(tied), "stated": float(stated)},
        advice="drop or coarsen the quasi-identifiers that go with the commonest value, or do not let it be "
        "known who is in the source"
        if lost[guess] > 1.1 * lost[tied].mean()
        else None,
    )


def _likelihoods(withheld: Withheld, release: StoredRelease, tied: Ints) -> Floats:
    """The logarithm of how likely the withheld people's quasi-identifiers are, by tied value."""
    people, n = withheld.people, len(withheld.value)
    both = [(c.name, c.cells, np.concatenate([c.people_codes, c.row_codes])) for c in people.columns]
    facets = Facets.of(both).coarse
    weight = withheld.by_profile[people.profile] / np.bincount(people.profile)[people.profile]
    cells = [np.flatnonzero(facet.codes[n:] == cell) for facet in facets for cell in range(facet.n_cells)]
    found = np.maximum(_ask(release, cells, withheld, tied), 0.0) if cells else np.zeros((0, len(tied)))
    result, first = np.zeros(len(tied)), 0
    for facet in facets:
        own = slice(first, first + facet.n_cells)
        first += facet.n_cells
        share = np.array([len(rows) for rows in cells[own]]) / max(len(people.row_profile), 1)
        smooth = np.maximum(found[own] + _SMOOTHING * share[:, None], 1e-9)
        result += sum_by(facet.codes[:n], weight, facet.n_cells) @ np.log(smooth / smooth.sum(axis=0))
    return result


def _ask(release: StoredRelease, cells: list[Ints], withheld: Withheld, tied: Ints) -> Floats:
    """Cells × tied values: how many people the release tells of each."""
    model = room(release.mechanism, release.method, "answer").load(release)
    listed = zip(*(column.decode().to_pylist() for column in model.sensitive.columns.values()), strict=True)
    place = {label(value): k for k, value in enumerate(listed)}
    one = np.eye(len(place))
    terms = [[(s, one[place[withheld.labels[z]]])] for s in range(len(cells)) for z in tied]
    estimator = model.estimators[model.estimators.names[0]]
    alike = getattr(estimator, "alike", None)  # of buckets: scores are of kinds of people, who share cells
    chosen = cells if alike is None else [np.unique(alike.kind_of_row[rows]) for rows in cells]
    source, targets = estimator.estimation([Score(rows=rows) for rows in chosen]), Targets.of(terms)
    found = bound_by(source.estimate(targets), source.possible_range(targets))
    return np.asarray(found.estimate).reshape(len(cells), len(tied))


def _count_published(people: People, value: Ints, n_values: int) -> tuple[Ints, bool]:
    """How many records of each value are published, by who is; where only some of a profile are, on average.

    The second says whether that is certain: no profile of people with different values has lost some.
    """
    n = people.n_profiles
    here, there = (np.bincount(p, minlength=n) for p in (people.profile, people.row_profile))
    share = np.minimum(there / np.maximum(here, 1), 1.0)
    is_mixed = known_values(people.profile, value, n) < 0
    published = np.rint(np.bincount(value, share[people.profile], n_values)).astype(np.int64)
    return published, not (is_mixed & (share < 1)).any()


def _table_with(release: StoredRelease, columns: Sequence[str]) -> str:
    """The first table that has all these columns."""
    return _find_table(release, columns) or release.manifest.tables[0].name


def _find_table(release: StoredRelease, columns: Sequence[str]) -> str | None:
    for entry in release.manifest.tables:
        names = {name for path in release.files(entry.name)[:1] for name in pq.read_schema(path).names}
        if set(columns) <= names:
            return entry.name
    return None
