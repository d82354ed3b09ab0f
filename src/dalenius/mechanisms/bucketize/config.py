"""The policy's `[mechanism]` section of bucketize."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Self

from dalenius.errors import PolicyError, refuse_unknown_keys
from dalenius.exact import parse_integer
from dalenius.mechanisms.config import MechanismConfig
from dalenius.promises import Promise
from dalenius.promises.f_privacy import FPrivacy
from dalenius.promises.l_diversity import LDiversity
from dalenius.promises.proximity import Proximity
from dalenius.promises.sets import SetPrivacy

MAX_BUCKET = 50
MEASURES = ("loss", "mse", "lower_bound", "gap")
"""How good a plan is, by the names that JSON has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketizeConfig(MechanismConfig):
    """How buckets are made."""

    method: str = "optimal"
    max_bucket: int = MAX_BUCKET
    min_bucket: int = 1
    buckets: tuple[tuple[int, int], ...] = ()
    """The publisher's own setting: sizes, and how many buckets of each; empty: the method finds one."""
    fakes: int = 0
    """σ: how many values of every bucket are nobody's."""
    seconds: int = 1
    """About how long the optimum may be sought."""
    contents: str = "even"
    """Whether round-robin decides what is in which bucket, or buckets trade afterwards."""
    regions: bool | int = False
    """Whether buckets are made inside regions of similar people; a number: of at least so many rows."""

    kind = "bucketize"
    promises = ("f-privacy", "l-diversity", "proximity", "sets")
    methods = ("optimal", "two-size", "multi-size", "anatomy")
    stages = ("suppress",)
    series = ("batches", "dates")

    @classmethod
    def from_policy(cls, section: Mapping[str, Any]) -> Self:
        """Read the section."""
        refuse_unknown_keys(
            section,
            (
                "kind",
                "method",
                "max_bucket",
                "min_bucket",
                "buckets",
                "fakes",
                "contents",
                "regions",
                "seconds",
            ),
            "[mechanism]",
        )
        buckets = _parse_buckets(section)
        most = max((size for size, _ in buckets), default=MAX_BUCKET)
        config = cls(
            method=cls.parse_method(section),
            max_bucket=parse_integer(section.get("max_bucket", most), "[mechanism] max_bucket", at_least=1),
            min_bucket=parse_integer(section.get("min_bucket", 1), "[mechanism] min_bucket", at_least=1),
            buckets=buckets,
            fakes=parse_integer(section.get("fakes", 0), "[mechanism] fakes", at_least=0),
            contents=_parse_contents(section.get("contents", "even")),
            regions=_parse_regions(section.get("regions", False)),
        )
        if "seconds" in section:
            config = config.with_seconds(parse_integer(section["seconds"], "[mechanism] seconds", at_least=1))
        if config.min_bucket > config.max_bucket:
            raise PolicyError(
                f"[mechanism] min_bucket ({config.min_bucket}) is above max_bucket ({config.max_bucket})"
            )
        _refuse_with_regions(config)
        _refuse_with_varied(config)
        return config

    @property
    def is_varied(self) -> bool:
        """Whether buckets trade after they were dealt, so that their contents differ."""
        return self.contents == "varied"

    def with_seconds(self, seconds: int) -> Self:
        """For the optimum only: the other methods end by themselves."""
        if self.method != "optimal" or self.buckets:
            return MechanismConfig.with_seconds(self, seconds)
        return replace(self, seconds=seconds)

    def check_promise(self, promise: Promise) -> None:
        """Groups of values, and numbers that are near each other, are kept in buckets of the whole table."""
        refused = {
            "fakes": bool(self.fakes),
            "regions": bool(self.regions),
            'contents = "varied"': self.is_varied,
        }
        if isinstance(promise, Proximity | SetPrivacy):
            if isinstance(promise, SetPrivacy):
                refused |= {
                    f"method {self.method!r}": self.method != "optimal",
                    "buckets": bool(self.buckets),
                }
            if any(refused.values()):
                what = next(what for what, is_asked in refused.items() if is_asked)
                raise PolicyError(
                    f"[promise] {promise.kind} does not go with [mechanism] {what}, which would not keep its "
                    "limits",
                    hint=f"leave out {what}",
                )
        if not getattr(promise, "groups", ()):
            return
        for what, is_asked in {f"method {self.method!r}": self.method != "optimal", **refused}.items():
            if is_asked:
                raise PolicyError(
                    f"[promise] groups do not go with [mechanism] {what}, which would not keep their "
                    "thresholds",
                    hint='use method = "optimal" without fakes, regions and varied contents, or leave out '
                    "groups",
                )

    def could_have_regions(self, promise: Promise) -> bool:
        """Whether regions could be added to what the policy says."""
        with_regions = replace(self, regions=True)
        try:
            _refuse_with_regions(with_regions)
            _refuse_with_varied(with_regions)
            with_regions.check_promise(promise)
        except PolicyError:
            return False
        return not self.regions

    def check_dates(self, promise: Promise) -> None:
        """Newcomers of every date have buckets of their own, under the thresholds of the first date."""
        if isinstance(promise, Proximity | SetPrivacy):
            raise PolicyError(
                f"[series] dates do not go with [promise] {promise.kind}: buckets of newcomers are dealt by "
                "single values",
                hint="publish under f-privacy or l-diversity, or one release",
            )
        for what in ("fakes", "regions", "buckets"):
            if getattr(self, what):
                raise PolicyError(
                    f"[series] dates do not go with [mechanism] {what}", hint=f"leave out {what}"
                )
        if self.is_varied:
            raise PolicyError(
                '[series] dates do not go with [mechanism] contents = "varied": buckets of newcomers are '
                "dealt evenly",
                hint="leave out contents",
            )
        if isinstance(promise, FPrivacy) and any(group.is_open for group in promise.groups):
            raise PolicyError(
                "[series] dates need groups that are the same at every date; a value that leaves cells open "
                "stands for those that the table has",
                hint="list the values of the group with all their cells",
            )
        if isinstance(promise, FPrivacy) and not isinstance(promise.default, Fraction | None):
            raise PolicyError(
                "[series] dates need thresholds that are the same at every date; this default depends on how "
                "often a value occurs",
                hint="default = 0.2, one number for all values that are not named",
            )

    def check_stage(self, stage: str, promise: Promise) -> None:
        """What is left by suppression must be published, whatever is drawn."""
        if self.fakes:
            raise PolicyError(
                f"[{stage}] does not go with fakes: its promise is about the true counts of what is "
                "published, and whether fakes fit in would depend on the draw, so that a refusal would tell "
                "about it",
                hint=f"leave out [mechanism] fakes, or [{stage}]",
            )
        if self.regions:
            raise PolicyError(
                f"[{stage}] does not go with regions: what was withheld may not show in where regions "
                "are cut",
                hint="leave out one of them",
            )
        if self.buckets or self.min_bucket > 1:
            raise PolicyError(
                f"[{stage}] does not go with [mechanism] {'buckets' if self.buckets else 'min_bucket'}: "
                "whether what is left fits would depend on the draw, and a refusal would tell about it",
                hint=f"leave it out, or [{stage}]",
            )
        if self.is_varied:
            raise PolicyError(
                f'[{stage}] does not go with [mechanism] contents = "varied": what it promises was worked '
                "out for buckets that are dealt evenly",
                hint=f"leave out contents, or [{stage}]",
            )
        # A table that is l-diverse as a whole always has buckets of l to 2l-1 people, in two sizes that
        # differ by one.
        if isinstance(promise, LDiversity) and self.max_bucket < 2 * promise.l - 1:
            raise PolicyError(
                f"[mechanism] max_bucket {self.max_bucket} is too small for [{stage}] with l = "
                f"{promise.l}: what is left may need larger buckets, and it must not be drawn a second time",
                hint=f"max_bucket = {2 * promise.l - 1} is always enough",
            )


def _parse_regions(value: Any) -> bool | int:
    if isinstance(value, bool):
        return value
    if isinstance(value, int) and value >= 1:
        return value
    raise PolicyError(
        f"[mechanism] regions: {value!r} must be true, false, or the least number of rows of a region",
        hint="regions = true chooses the number from the number of rows and max_bucket",
    )


def _parse_contents(value: Any) -> str:
    if value in ("even", "varied"):
        return str(value)
    raise PolicyError(
        f'[mechanism] contents: {value!r} must be "even" or "varied"',
        hint='"even" is the default; "varied" makes answers sharper, and so the guesses of attackers who '
        "learn from the release how columns go with values",
    )


def _parse_buckets(section: Mapping[str, Any]) -> tuple[tuple[int, int], ...]:
    """`buckets = [[size, count], …]`, and nothing beside it that says the same."""
    listed = section.get("buckets", [])
    if not listed and "buckets" not in section:
        return ()
    doubled = sorted({"method", "max_bucket", "min_bucket"} & section.keys())
    if doubled:
        raise PolicyError(
            f"[mechanism] buckets say how many there are of each size; leave out {', '.join(doubled)}"
        )
    if not isinstance(listed, list) or not listed or not all(_is_pair(entry) for entry in listed):
        raise PolicyError(
            "[mechanism] buckets must be a list of pairs [size, count] of whole numbers from 1 on",
            hint="buckets = [[4, 9], [14, 1]]: nine buckets of 4 people and one of 14",
        )
    pairs = sorted((int(size), int(count)) for size, count in listed)
    if len({size for size, _ in pairs}) < len(pairs):
        raise PolicyError("[mechanism] buckets name a size twice", hint="add their numbers up")
    return tuple(pairs)


def _is_pair(entry: Any) -> bool:
    is_two = isinstance(entry, list | tuple) and len(entry) == 2
    return is_two and all(type(number) is int and number >= 1 for number in entry)


def _refuse_with_regions(config: BucketizeConfig) -> None:
    if config.regions and (config.buckets or config.min_bucket > 1):
        raise PolicyError(
            f"[mechanism] regions do not go with {'buckets' if config.buckets else 'min_bucket'}: where "
            "regions are cut follows from the largest bucket alone",
            hint="leave out one of them",
        )
    if config.regions and config.fakes:
        raise PolicyError(
            "[mechanism] regions do not go with fakes: the law of the fakes is one for the whole table, and "
            "against a region's own counts fakes would stand out",
            hint="leave out one of them",
        )
    if config.regions and config.method == "anatomy":
        raise PolicyError(
            "[mechanism] regions do not go with method 'anatomy', which knows one threshold for all values",
            hint='use method = "optimal"',
        )


def _refuse_with_varied(config: BucketizeConfig) -> None:
    reasons = {
        "fakes": "where there are fakes, contents are mixed already, and their law was made for that",
        "regions": "where regions are cut was worked out for buckets that are dealt evenly",
    }
    for what, reason in reasons.items():
        if config.is_varied and getattr(config, what):
            raise PolicyError(
                f'[mechanism] contents = "varied" does not go with {what}: {reason}',
                hint="leave out one of them",
            )


CONFIG = BucketizeConfig
