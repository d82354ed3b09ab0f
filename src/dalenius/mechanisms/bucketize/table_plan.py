"""The plan of a table: buckets for its counts, with fakes among them or inside regions of similar people."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from math import ceil, floor
from types import NoneType
from typing import Any

import numpy as np
import pyarrow as pa

from dalenius.arrays import Codes, Ints
from dalenius.display import PrivatePlan
from dalenius.errors import InternalError, PolicyError, PromiseNotMet
from dalenius.exact import percent, show
from dalenius.mechanisms.base import PolicyOf, Scan
from dalenius.mechanisms.bucketize.apply import count_alike
from dalenius.mechanisms.bucketize.config import MEASURES, BucketizeConfig
from dalenius.mechanisms.bucketize.contents.varied import count_near
from dalenius.mechanisms.bucketize.fakes.plan import FakePlan, plan_fakes
from dalenius.mechanisms.bucketize.plan.methods import BucketPlan, plan_buckets
from dalenius.mechanisms.bucketize.plan.problem import BucketProblem, NoSettingFits, Run, violations
from dalenius.mechanisms.bucketize.plan.windows import densest_share
from dalenius.mechanisms.bucketize.regions.advice import RegionAdvice
from dalenius.mechanisms.bucketize.regions.alike import check_alike, find_alike, largest_share
from dalenius.mechanisms.bucketize.regions.cut import grow, least_rows
from dalenius.mechanisms.bucketize.regions.plan import RegionsPlan, plan_regions
from dalenius.plain import plain_fields
from dalenius.promises import BucketPromise
from dalenius.promises.groups import Group, arrange, check_laminar
from dalenius.promises.l_diversity import LDiversity
from dalenius.promises.proximity import Proximity, ascending, is_number
from dalenius.promises.sets import Having, SetPrivacy
from dalenius.randomness import Randomness
from dalenius.tables.histogram import Histogram, label, write_cells

BucketPolicy = PolicyOf[BucketizeConfig, BucketPromise]
_MOST_VALUES = 40
_MIXED_FROM = 128
"""Numbers with fewer different values are dealt in their own order."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class BucketizePlan(PrivatePlan):
    """The bucket plan of a table, with the counts that it was made from."""

    histogram: Histogram
    schema: pa.Schema
    thresholds: tuple[Fraction, ...]
    buckets: BucketPlan
    problem: BucketProblem
    groups: tuple[Group, ...] = ()
    """Sets of values with a threshold together; the problem has those that limit something."""
    having: tuple[Having, ...] = ()
    """The limits of values, where people have several."""
    proximity: Proximity | None = None
    """The limit of numbers that are near each other."""
    named: frozenset[int] = frozenset()
    """Codes of the values that the policy names."""
    fakes: FakePlan | None = None
    regions: RegionsPlan | None = None
    """Where buckets are made region by region; `buckets` then has those of all regions."""
    is_varied: bool = False
    """Whether buckets trade after they were dealt, so that their contents differ."""
    could_have_regions: bool = False
    """Whether the policy could have regions, and has none."""

    @property
    def advice(self) -> RegionAdvice | None:
        """Whether regions would help, where there could be some."""
        return RegionAdvice.of(self.problem) if self.could_have_regions else None

    @property
    def n_rows(self) -> int:
        """How many records the source has."""
        return self.histogram.n_rows

    @property
    def outright(self) -> int | None:
        """How many people's value their bucket tells, or a column of it; None: it depends on the coins."""
        cells = self.histogram.cells_by_column()
        if self.fakes or self.problem.is_mixed:  # buckets trade at random
            limits = [one.at_most for one in self.having] or self.thresholds
            return 0 if max(limits) < 1 and (self.having or not cells) else None
        if self.is_varied:  # no trade leaves a bucket with one value, but one with such may trade
            return 0 if self.buckets.count_certain() == 0 else None
        if self.regions is None:
            return self.buckets.count_certain(cells)
        return sum(
            plan.count_certain([column[np.flatnonzero(own)] for column in cells])
            for plan, own in zip(self.regions.plans, self.regions.counts, strict=True)
        )

    def count_alike(self, contents: Iterable[tuple[Ints, Codes, Ints]]) -> int:
        """The same from what all buckets list."""
        columns: Sequence[Ints] = self.histogram.cells_by_column()
        if self.having:  # who lacks a value may be known to
            columns = [np.array(cells) for cells in zip(*self.histogram.values, strict=True)]
        return count_alike(
            contents, columns, only_yes=bool(self.having), n_fakes=self.fakes.n_fakes if self.fakes else 0
        )

    def count_near(self, share: float) -> int:
        """How many people are in buckets whose numbers all lie so near; 0 where it is no number, or mixed."""
        cells = [value[0] for value in self.histogram.values]
        if len(self.histogram.columns) > 1 or self.fakes or self.problem.is_mixed:
            return 0
        if any(
            isinstance(cell, bool) or not isinstance(cell, int | float | Decimal | NoneType) for cell in cells
        ):
            return 0
        numbers = np.array([np.nan if cell is None else float(cell) for cell in cells])
        if self.is_varied:
            return count_near(self.buckets, self.problem, numbers, share)
        if self.regions is None:
            return self.buckets.count_near(numbers, share)
        regions = zip(self.regions.plans, self.regions.counts, strict=True)
        return sum(plan.count_near(numbers[np.flatnonzero(own)], share) for plan, own in regions)

    @property
    def plans(self) -> tuple[BucketPlan, ...]:
        """The plan, or that of each region."""
        return (self.buckets,) if self.regions is None else self.regions.plans

    def __str__(self) -> str:
        if self.regions is not None:
            return f"{self.buckets}\n{self.regions}"
        return str(self.buckets) if self.advice is None else f"{self.buckets}\n{self.advice.reason}"

    def to_dict(self) -> dict[str, Any]:
        """The plan as `dalenius plan --json` prints it."""
        plan = self.buckets
        return {
            "method": plan.method,
            "rows": self.n_rows,
            "buckets": [{"size": s, "count": b} for s, b in zip(plan.sizes, plan.n_buckets, strict=True)],
            **plain_fields(plan, *MEASURES),
            **({"contents": "varied"} if self.is_varied else {}),
            **({"fakes": self.fakes.to_summary()} if self.fakes else {}),
            **({"regions": self.regions.to_summary()} if self.regions else {}),
            **({"regions_advice": self.advice.to_dict()} if self.advice else {}),
        }

    def draw(self, altair: Any) -> Any:
        """The picture that `dalenius plan --chart` saves."""
        return draw_buckets(altair, self.histogram, self.thresholds, self.buckets)


def mix_numbers(histogram: Histogram, schema: pa.Schema) -> Histogram:
    """Many numbers in an order that is the same for every table of so many, and mixes large with small.

    Values are dealt to buckets one after the other. Neighbouring numbers dealt that way fill all buckets
    alike, which then tell nothing about who earns more than whom, or fill the buckets of one size with a
    narrow range. A public order keeps the plan a function of the counts.
    """
    kinds = [schema.field(name).type for name in histogram.columns]
    numbers = (pa.types.is_floating, pa.types.is_integer, pa.types.is_decimal)
    if len(histogram) <= _MIXED_FROM or not all(any(fits(kind) for fits in numbers) for kind in kinds):
        return histogram
    order = Randomness.seeded(0).stream("bucketize", "mix", len(histogram)).permutation(len(histogram))
    return histogram.in_order(order)


def plan_counts(policy: BucketPolicy, histogram: Histogram, schema: pa.Schema) -> BucketizePlan:
    """The plan for a table with these counts."""
    return plan_promise(policy.mechanism, policy.promise, histogram, schema)


def plan_promise(
    config: BucketizeConfig, promise: BucketPromise, histogram: Histogram, schema: pa.Schema
) -> BucketizePlan:
    """The same for a promise that need not be the policy's own."""
    config.check_promise(promise)
    groups = tuple(group.list_values(histogram) for group in promise.groups)
    check_laminar(groups)
    _check_shares(groups, histogram)
    histogram = arrange(groups, histogram)
    if isinstance(promise, Proximity):
        histogram = _in_order(histogram, schema)
    thresholds = promise.thresholds(histogram)
    if config.is_varied and len(histogram.columns) > 1:
        raise PolicyError(
            '[mechanism] contents = "varied" is for one sensitive column: buckets that trade could come to '
            "hold people who are all alike in one of several",
            hint="leave out contents, or publish one sensitive column",
        )
    problem = BucketProblem(
        counts=histogram.counts,
        thresholds=thresholds,
        max_bucket=config.max_bucket,
        min_bucket=config.min_bucket,
        seconds=config.seconds,
        groups=_runs(groups, histogram),
        windows=_windows(promise, histogram),
        overlapping=_overlapping(promise, histogram, schema),
    )
    _check_windows(promise, problem)
    broken = violations(problem)
    if broken:
        raise _infeasible(promise, histogram, thresholds, broken)
    try:
        buckets = plan_buckets(problem, config.method, config.buckets)
    except NoSettingFits as error:
        hint = None if config.buckets else _room_hint(problem)
        if hint is None:
            raise
        raise NoSettingFits(error.message, needed=error.needed, hint=hint) from error
    return BucketizePlan(
        histogram=histogram,
        schema=schema,
        thresholds=thresholds,
        buckets=buckets,
        problem=problem,
        groups=groups,
        having=promise.having(histogram) if isinstance(promise, SetPrivacy) else (),
        proximity=promise if isinstance(promise, Proximity) else None,
        named=frozenset(code for code, value in enumerate(histogram.values) if promise.is_named(value)),
        fakes=plan_fakes(buckets, problem, config.fakes) if config.fakes else None,
        is_varied=config.is_varied,
    )


def plan_in_regions(policy: BucketPolicy, plan: BucketizePlan, scan: Scan) -> BucketizePlan:
    """The plan with its buckets made inside regions, for the same thresholds."""
    config, asked = policy.mechanism, policy.mechanism.regions
    least = least_rows(plan.n_rows, config.max_bucket) if isinstance(asked, bool) else asked
    encoder = plan.histogram.encoder(plan.schema)
    tree, counts = grow(
        scan, encoder, plan.thresholds, policy.columns.quasi, max_bucket=config.max_bucket, least=least
    )
    regions = plan_regions(tree, counts, plan.problem, plan.buckets, least)
    buckets = regions.merged()
    buckets.check(plan.problem)
    return replace(plan, buckets=buckets, regions=regions)


def plan_among_alike(policy: BucketPolicy, plan: BucketizePlan, scan: Scan) -> BucketizePlan:
    """The plan with its buckets made among people who are alike, where the promise says in what."""
    promise = policy.promise
    columns = promise.alike if isinstance(promise, SetPrivacy) else ()
    if not isinstance(promise, SetPrivacy) or not columns:
        return plan
    people, counts = find_alike(scan, plan.histogram, columns)
    without_any = largest_share(counts, plan.problem.overlapping[-1][0])
    if without_any > plan.having[-1].at_most:  # nobody names this limit: it is the share where that is larger
        raised = replace(promise, none_at_least=without_any)
        plan = plan_promise(policy.mechanism, raised, plan.histogram, plan.schema)
    check_alike(counts, plan.problem, plan.having, columns)
    regions = plan_regions(people, counts, plan.problem, plan.buckets, None)
    buckets = regions.merged()
    buckets.check(plan.problem)
    return replace(plan, buckets=buckets, regions=regions)


def _runs(groups: Sequence[Group], histogram: Histogram) -> tuple[Run, ...]:
    """The groups that limit anything as runs of an arranged histogram, the inner ones first."""
    runs = []
    for group in groups:
        codes = [code for code, value in enumerate(histogram.values) if group.has(value)]
        if codes and group.at_most < 1:
            if codes[-1] - codes[0] + 1 != len(codes):
                raise InternalError("the values of a group do not stand together")
            runs.append(Run(begin=codes[0], end=codes[-1] + 1, threshold=group.at_most))
    return tuple(sorted(runs, key=lambda run: run.end - run.begin))


def _in_order(histogram: Histogram, schema: pa.Schema) -> Histogram:
    """The numbers in ascending order, where near ones stand together."""
    (name,) = histogram.columns
    kind = schema.field(name).type
    if not is_number(kind):
        raise PolicyError(
            f"[promise] proximity is about numbers; column {name!r} is {kind}",
            hint="publish the column under f-privacy, or give it as numbers",
        )
    return histogram.in_order(ascending(write_cells(value)[0] for value in histogram.values))


def _windows(promise: BucketPromise, histogram: Histogram) -> tuple[int, ...]:
    """Where the numbers end that lie near each other, from each of the ascending values on."""
    if not isinstance(promise, Proximity):
        return ()
    return promise.reach([write_cells(value)[0] for value in histogram.values])


def _overlapping(
    promise: BucketPromise, histogram: Histogram, schema: pa.Schema
) -> tuple[tuple[tuple[int, ...], Fraction], ...]:
    """The sets that hold each value, where people have several, with the value's threshold."""
    if not isinstance(promise, SetPrivacy):
        return ()
    kinds = [schema.field(name).type for name in histogram.columns]
    if not all(map(pa.types.is_boolean, kinds)) or any(None in value for value in histogram.values):
        raise PolicyError(
            "[promise] sets needs sensitive columns of yes and no, without NULL; a column is not",
            hint="source = { path = …, persons = { unit = …, values = … } } makes one of each value",
        )
    found = []
    for one in promise.having(histogram):
        _check_share(one, repr(one.name), histogram, " of the people", hint="raise the threshold")
        codes = tuple(code for code, value in enumerate(histogram.values) if one.has(value))
        found.append((codes, one.at_most))
    return tuple(found)


def _check_windows(promise: BucketPromise, problem: BucketProblem) -> None:
    """No release can keep the fullest window below its share of the table."""
    if not isinstance(promise, Proximity):
        return
    share = densest_share(problem)
    if share > promise.at_most:
        raise PromiseNotMet(
            f"{percent(share)} of the records are near one number (within {promise.within}), and at_most is "
            f"{show(promise.at_most)}; the lowest that any release can keep is {show(share)}",
            hint="raise at_most, or make within smaller",
        )


def _check_shares(groups: Sequence[Group], histogram: Histogram) -> None:
    """No release can keep a group below its share of the table; the policy names the group."""
    for group in groups:
        hint = "raise at_most, or publish fewer of these records"
        _check_share(group, f"the group {group.name!r}", histogram, hint=hint)


def _check_share(one: Group | Having, name: str, histogram: Histogram, of: str = "", *, hint: str) -> None:
    share = Fraction(one.count(histogram), histogram.n_rows)
    if share > one.at_most:
        raise PromiseNotMet(
            f"threshold of {name} ({show(one.at_most)}) is below its share{of} ({show(share)}); "
            f"the lowest that any release can keep is {show(share)}",
            hint=hint,
        )


def _infeasible(
    promise: BucketPromise, histogram: Histogram, thresholds: tuple[Fraction, ...], broken: tuple[int, ...]
) -> PromiseNotMet:
    """Why no release can keep the thresholds (Lemma 1); only values that the policy names are named."""
    named = [code for code in broken if promise.is_named(histogram.values[code])]
    column = " × ".join(repr(name) for name in histogram.columns)
    if named:
        code = named[0]
        lowest = show(histogram.frequency(code))
        message = (
            f"threshold of {label(histogram.values[code])!r} ({show(thresholds[code])}) is below its "
            f"frequency ({lowest}); the lowest that any release can keep is {lowest}"
        )
        return PromiseNotMet(message, hint="raise the threshold, or publish fewer of these records")
    worst = max(broken, key=histogram.frequency)
    frequency = histogram.frequency(worst)
    message = (
        f"{len(broken)} of {len(histogram)} values of {column} are more frequent than their threshold; "
        f"the commonest makes up {show(frequency)} of the records, its threshold is {show(thresholds[worst])}"
    )
    largest_l = frequency.denominator // frequency.numerator
    hint = f"no threshold can be below {show(frequency)}, nor l above {largest_l}"
    if isinstance(promise, LDiversity) and len(histogram) >= promise.l:
        hint += "; or publish part of the table: a section [suppress] in the policy withholds records"
    return PromiseNotMet(message, hint=hint)


def _room_hint(problem: BucketProblem) -> str | None:
    """Which cap would do where a value's threshold is its own share: only buckets of it keep that."""
    shares = (Fraction(count, problem.n_rows) for count in problem.counts)
    pairs = zip(shares, problem.thresholds, strict=True)
    tight = max((share for share, threshold in pairs if share == threshold), default=None)
    cap = None if tight is None else cap_above(tight, problem.max_bucket)
    if tight is None or cap is None:
        return None
    return (
        f"a value makes up {show(tight)} of the records and its threshold is exactly that; a larger one "
        f"leaves room in smaller buckets, e.g. cap = {show(cap)}"
    )


def cap_above(share: Fraction, max_bucket: int) -> Fraction | None:
    """A short decimal above the share that a bucket of the largest size can keep; None: only 1 is.

    >>> [str(cap_above(Fraction(share), 50)) for share in ("0.6", "0.6003", "0.979", "0.981")]
    ['31/50', '31/50', '49/50', 'None']
    """
    least = Fraction(floor(share * max_bucket) + 1, max_bucket)
    if least >= 1:
        return None
    scales = (10**digits for digits in range(2, 20))
    rounded = (Fraction(ceil(least * scale), scale) for scale in scales)
    return next(cap for cap in rounded if cap < 1)


_BUCKET = (
    "A bucket is a small group of people. The release",
    "lists them and, apart from them, their values,",
    "but not whose value is whose.",
)


def draw_buckets(
    altair: Any, histogram: Histogram, thresholds: Sequence[Fraction], buckets: BucketPlan
) -> Any:
    """The values with their thresholds, beside the buckets."""
    from dalenius.pages.pictures import COLOURS  # not for every plan: few are drawn

    blue, orange = COLOURS[:2]
    values = _values(altair, histogram, thresholds, blue, orange)
    both = altair.hconcat(values, _buckets(altair, buckets, blue))
    return both.configure_view(stroke=None)


def _values(altair: Any, histogram: Histogram, thresholds: Sequence[Fraction], blue: str, orange: str) -> Any:
    shown = sorted(range(len(histogram)), key=lambda code: -histogram.counts[code])[:_MOST_VALUES]
    rows = [
        {
            "value": label(histogram.values[code]),
            "share": float(histogram.frequency(code)),
            "threshold": float(thresholds[code]),
        }
        for code in shown
    ]
    base = altair.Chart(altair.Data(values=rows)).encode(
        y=altair.Y(
            "value:N", sort=None, title=" × ".join(histogram.columns), axis=altair.Axis(labelLimit=160)
        )
    )
    percent = altair.Axis(format="%")
    bars = base.mark_bar(color=blue).encode(
        x=altair.X("share:Q", axis=percent, title="share of the table (bar), most in any bucket (mark)")
    )
    marks = base.mark_tick(color=orange, thickness=3, height=12).encode(x="threshold:Q")
    return (bars + marks).properties(width=320, title="What may be inferred")


def _buckets(altair: Any, buckets: BucketPlan, blue: str) -> Any:
    pairs = zip(buckets.sizes, buckets.n_buckets, strict=True)
    rows = [{"size": size, "records": size * count} for size, count in pairs]
    return (
        altair.Chart(altair.Data(values=rows))
        .mark_bar(color=blue)
        .encode(
            x=altair.X("size:O", title="people in the bucket", axis=altair.Axis(labelAngle=0)),
            y=altair.Y("records:Q", title="records in buckets of this size"),
        )
        .properties(width=260, height=220, title=altair.Title("Buckets", subtitle=list(_BUCKET)))
    )
