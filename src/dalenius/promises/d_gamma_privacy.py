"""(d,γ)-privacy: what one may come to believe about the presence of a tuple.

The attacker holds a prior in which tuples are independent and each has Pr[t] ≤ d, or is known. Seeing
the release, Pr[t | V] ≤ γ, and Pr[t | V] ≥ (d/γ)·Pr[t] (Rastogi, Suciu, Hong, definition 2.3).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

from dalenius.errors import PolicyError, PromiseNotMet, refuse_unknown_keys
from dalenius.exact import parse_fraction, percent
from dalenius.plain import Stated, plain_fields
from dalenius.promises.bounds import Bound
from dalenius.tables.histogram import Histogram

Adversary = Literal["independent", "exclusive"]

_COARSEST_STEP = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class DGammaPrivacy:
    """A bound γ on the posterior of every tuple whose prior is at most d, or at most k·n/m.

    The exclusive adversary also knows sets of tuples of which exactly one is in the table (join and link
    attacks); against it only Pr[t | V] ≤ γ is promised, in addition to the above (theorem 6.3).

    >>> DGammaPrivacy(gamma=Fraction(1, 5), k=Fraction(10)).to_dict()["gamma"]
    '1/5'
    """

    gamma: Fraction
    k: Fraction | None = None
    d: Fraction | None = None
    adversary: Adversary = "independent"

    kind = "d-gamma-privacy"
    protects = "row"
    states = ("d", "gamma", "k", "adversary", "views", "changing")

    @staticmethod
    def in_words(promise: Mapping[str, Any], what: str) -> str:  # noqa: ARG004  (it is about whole rows)
        """The promise of a manifest in plain words."""
        given = Stated.of(promise, "promise")
        views = 1 if given.get("views") is None else given["views"].integer(at_least=1)
        seen = "the published rows" if views == 1 else f"all {views} views that may ever be published"
        d, gamma = (percent(given[name].fraction()) for name in ("d", "gamma"))
        if given.is_set("changing"):
            return (
                f"Whoever takes rows as independent of each other, and thought it at most {d} likely that a "
                "given row is in the table at any of the dates at which it is published, thinks it at most "
                f"{gamma} likely after seeing {seen}, each of the table as it was then."
            )
        return (
            f"Whoever takes rows as independent of each other, and thought it at most {d} likely that a "
            f"given row is in the table, thinks it at most {gamma} likely after seeing {seen}."
        )

    @classmethod
    def from_manifest(cls, promise: Mapping[str, Any]) -> DGammaPrivacy:
        """What a manifest states; it has the d that a k became, too."""
        given = Stated.of(promise, "promise")
        k = given.get("k")
        return cls(
            gamma=given["gamma"].fraction(),
            k=None if k is None else k.fraction(),
            d=given["d"].fraction() if k is None else None,
            adversary=given["adversary"].one_of("independent", "exclusive"),  # type: ignore[arg-type]
        )

    @classmethod
    def from_policy(cls, section: Mapping[str, Any], sensitive: tuple[str, ...]) -> DGammaPrivacy:  # noqa: ARG003
        """Read the `[promise]` section: decimals as written, fractions in quotes."""
        refuse_unknown_keys(section, ("kind", "k", "d", "gamma"), "[promise] d-gamma-privacy")
        if "gamma" not in section:
            raise PolicyError("[promise] d-gamma-privacy needs gamma, and k or d")
        k, d = (
            parse_fraction(section[name], f"[promise] {name}") if name in section else None
            for name in ("k", "d")
        )
        return cls(gamma=parse_fraction(section["gamma"], "[promise] gamma"), k=k, d=d)

    def __post_init__(self) -> None:
        if not 0 < self.gamma < 1:
            raise PolicyError(f"gamma is {self.gamma}; a posterior bound lies between 0 and 1, both excluded")
        if (self.k is None) == (self.d is None):
            raise PolicyError(
                "exactly one of k and d is needed", hint="k bounds the prior by k·n/m, d by itself"
            )
        if self.k is not None and self.k <= 0:
            raise PolicyError(f"k is {self.k}; it must be above 0, and is usually above 1")
        if self.d is not None and not 0 < self.d < 1:
            raise PolicyError(f"d is {self.d}; a prior bound lies between 0 and 1, both excluded")
        if self.adversary not in ("independent", "exclusive"):
            raise PolicyError(f"adversary is {self.adversary!r}; known: 'independent', 'exclusive'")

    def bound(self, histogram: Histogram | None) -> Bound:  # noqa: ARG002
        """γ."""
        return Bound(largest=self.gamma, symbol="gamma", meaning="that a whole row is in the table")

    def prior_bound(self, n_rows: int, largest_share: Fraction) -> Fraction:
        """The d that is kept and published; with k, from the rounded number of rows.

        Args:
            n_rows: how many tuples the table has; it must not be readable from the result.
            largest_share: the largest probability of one tuple under the noise: 1/m when it is uniform.

        Raises:
            PromiseNotMet: the prior already reaches γ, so that nothing can be published.
        """
        d = self.d if self.k is None else self.k * published_rows(n_rows) * largest_share
        assert d is not None  # noqa: S101  (exactly one of k and d is set)
        if d >= self.gamma:
            raise PromiseNotMet(
                f"the prior bound d ({float(d):.4g}) is not below gamma ({float(self.gamma):.4g}): "
                "an attacker may already believe what must not be learnt",
                hint="lower k or d, raise gamma, or publish more or larger columns (d = k·n/m)",
            )
        return d

    def to_dict(self) -> dict[str, str | None]:
        """The promise as data; fractions as strings."""
        return {"kind": self.kind, **plain_fields(self)}


def published_rows(n_rows: int) -> int:
    """The number of rows rounded up to two digits and at least to the next ten.

    Whoever knows everybody else's presence learns the last person's from n. Each rounded number stands
    for at least ten numbers of rows, and the steps do not depend on the table.

    >>> [published_rows(n) for n in (6, 90, 91, 994, 30_162)]
    [10, 90, 100, 1000, 31000]
    """
    if n_rows < 1:
        raise PolicyError(f"the table has {n_rows} rows; there is nothing to protect")
    step: int = max(_COARSEST_STEP, 10 ** (len(str(n_rows)) - 2))
    return -(-n_rows // step) * step
