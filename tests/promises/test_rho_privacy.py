"""(ρ1,ρ2)-privacy is held exactly, and refuses what it cannot mean."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dalenius.errors import InputError, PolicyError
from dalenius.promises.rho_privacy import RhoPrivacy, amplification_limit

shares = st.fractions(Fraction(1, 1000), Fraction(999, 1000))


@given(rho1=shares, rho2=shares)
def test_gamma_takes_a_prior_of_rho1_exactly_to_rho2(rho1: Fraction, rho2: Fraction) -> None:
    gamma = amplification_limit(rho1, rho2)
    assert gamma * rho1 / (gamma * rho1 + 1 - rho1) == rho2
    assert (gamma > 1) == (rho1 < rho2)


@pytest.mark.parametrize(
    ("rho1", "rho2", "said"),
    [
        (Fraction(1, 3), Fraction(1, 3), "rho1 (1/3) must be below rho2 (1/3)"),
        (Fraction(0), Fraction(1, 3), "rho1 (0) must lie between 0 and 1"),
        (Fraction(3, 2), Fraction(1, 3), "rho1 (3/2) must lie between 0 and 1"),
        (None, Fraction(1), "rho2 (1) must lie between 0 and 1"),
        (None, Fraction(0), "rho2 (0) must lie between 0 and 1"),
        (Fraction(1, 3), Fraction(-1), "rho2 (-1) must lie between 0 and 1"),
    ],
)
def test_impossible_bounds_are_refused(rho1: Fraction | None, rho2: Fraction, said: str) -> None:
    with pytest.raises(InputError) as refused:
        RhoPrivacy(rho1=rho1, rho2=rho2)
    assert said in refused.value.message


@pytest.mark.parametrize("rho1", ["1/13", Decimal("0.075"), "0.075", "max"])
def test_a_policy_reads_back_as_written(rho1: object) -> None:
    promise = RhoPrivacy.from_policy({"kind": "rho-privacy", "rho1": rho1, "rho2": "1/6"}, ())
    assert RhoPrivacy.from_policy(promise.to_dict(), ()) == promise
    assert promise.rho1 is None if rho1 == "max" else promise.rho1 == Fraction(str(rho1))


@pytest.mark.parametrize("wrong", ["a thirteenth", "1/0", None, True])
def test_what_is_no_number_is_refused(wrong: object) -> None:
    with pytest.raises(PolicyError, match="rho1"):
        RhoPrivacy.from_policy({"rho1": wrong, "rho2": "1/6"}, ())


def test_a_missing_bound_is_named() -> None:
    with pytest.raises(PolicyError, match="needs rho2"):
        RhoPrivacy.from_policy({"rho1": "1/13"}, ())


def test_protection_ends_exactly_at_rho1() -> None:
    promise = RhoPrivacy(rho1=Fraction(29, 100), rho2=Fraction(1, 2))  # 0.29·100 floors to 28 in floats
    assert promise.protected([29, 30, 0, 41]) == (0,)
    assert RhoPrivacy(rho1=None, rho2=Fraction(1, 2)).protected([29, 30, 0, 41]) == (0, 1, 3)
