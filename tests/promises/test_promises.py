"""A promise that a manifest states as data is read back as the promise."""

from __future__ import annotations

from fractions import Fraction

import pytest

from dalenius.promises import PROMISES, read_promise
from dalenius.promises.d_gamma_privacy import DGammaPrivacy
from dalenius.promises.f_privacy import FPrivacy
from dalenius.promises.l_diversity import LDiversity
from dalenius.promises.proximity import Distance, Proximity
from dalenius.promises.rho_privacy import RhoPrivacy
from dalenius.tables.histogram import Histogram

HISTOGRAM = Histogram.of(("disease",), {("Flu",): 5, ("HIV",): 1, (None,): 2})
NEAR = Proximity(within=Distance.parse("12.5%"), at_most=Fraction(1, 3))
READ_BACK = [
    (LDiversity(l=3), LDiversity(l=3).to_dict(HISTOGRAM)),
    (LDiversity(l=1), {"kind": "l-diversity", "l": 1}),
    (NEAR, NEAR.to_dict(HISTOGRAM)),
    (RhoPrivacy(rho1=None, rho2=Fraction(1, 2)), {"kind": "rho-privacy", "rho1": "max", "rho2": "1/2"}),
    (
        RhoPrivacy(rho1=Fraction(1, 13), rho2=Fraction(1, 6)),
        RhoPrivacy(rho1=Fraction(1, 13), rho2=Fraction(1, 6)).to_dict(),
    ),
    (
        DGammaPrivacy(gamma=Fraction(1, 5), d=Fraction(1, 50)),
        DGammaPrivacy(gamma=Fraction(1, 5), d=Fraction(1, 50)).to_dict(),
    ),
    (  # views state the d that their k became
        DGammaPrivacy(gamma=Fraction(1, 5), k=Fraction(10), adversary="exclusive"),
        {"kind": "d-gamma-privacy", "gamma": "1/5", "k": "10", "d": "1/40", "adversary": "exclusive"},
    ),
]


@pytest.mark.parametrize(("promise", "stated"), READ_BACK)
def test_a_promise_is_read_back(promise: object, stated: dict[str, object]) -> None:
    assert read_promise(stated) == promise


def test_thresholds_are_read_back_of_every_value_null_too() -> None:
    promise = FPrivacy(default=Fraction(1, 4), named=((("HIV",), Fraction(1, 8)),))
    found = read_promise(promise.to_dict(HISTOGRAM))
    assert isinstance(found, FPrivacy)
    assert found.thresholds(HISTOGRAM) == promise.thresholds(HISTOGRAM)


def test_every_kind_can_be_read() -> None:
    assert {promise.kind for promise, _ in READ_BACK} | {"f-privacy", "sets"} == set(PROMISES)  # type: ignore[attr-defined]
