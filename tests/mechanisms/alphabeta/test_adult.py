"""The paper's experiment on Adult: αβ against FRAPP on all equality queries of up to three attributes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations
from pathlib import Path

import numpy as np
import pyarrow.csv
import pytest

from dalenius.mechanisms.alphabeta.apply import first_view, union
from dalenius.mechanisms.alphabeta.plan.law import PAPER
from dalenius.mechanisms.alphabeta.plan.views import plan_alphabeta
from dalenius.mechanisms.frapp.apply import frapp_view
from dalenius.mechanisms.frapp.plan import plan_frapp
from dalenius.mechanisms.tuples.domain import Domain, TupleCodes
from dalenius.promises.d_gamma_privacy import DGammaPrivacy
from dalenius.randomness import Randomness

PROMISE = DGammaPrivacy(gamma=Fraction(1, 5), k=Fraction(10))


@pytest.fixture(scope="module")
def adult(real_data: Path) -> tuple[Domain, TupleCodes]:
    table = pyarrow.csv.read_csv(real_data / "adult.csv")
    domain = Domain.of({name: table.column(name).unique() for name in table.column_names})
    return domain, domain.encode(table)


def all_queries(domain: Domain, *sets: TupleCodes) -> Iterator[list[np.ndarray]]:
    """Each set's counts of every combination of values, for every choice of up to three attributes."""
    for n_columns in (1, 2, 3):
        for chosen in combinations(range(len(domain.sizes)), n_columns):
            shape = [domain.sizes[i] for i in chosen]
            yield [
                np.bincount(
                    np.ravel_multi_index([codes[i] for i in chosen], shape), minlength=math.prod(shape)
                )
                for codes in sets
            ]


def test_adults_active_domain_and_duplicates(adult: tuple[Domain, TupleCodes]) -> None:
    domain, rows = adult
    assert domain.size == 648_023_040
    assert len(rows[0]) == 30_162
    assert len(union(domain, [rows])[0]) == 19_502


def test_frapp_errs_about_four_and_a_half_times_as_much(adult: tuple[Domain, TupleCodes]) -> None:
    domain, rows = adult
    table = union(domain, [rows])
    n_rows = len(table[0])
    ab, fr = plan_alphabeta(n_rows, domain, PROMISE, choice=PAPER), plan_frapp(n_rows, domain, PROMISE)
    view = first_view(domain, table, ab.law, Randomness.seeded(1).stream("view"))
    noisy = frapp_view(domain, table, fr.law.gamma_f, Randomness.seeded(1).stream("frapp"))
    assert len(view[0]) == pytest.approx(ab.noise_rows + n_rows / 2, rel=0.02)
    alpha, beta = float(ab.law.alpha), float(ab.law.beta)
    other = float((1 - fr.law.gamma_f) / (domain.size - 1))
    errors: list[np.ndarray] = []
    for truth, seen, replaced in all_queries(domain, table, view, noisy):
        n_domain = domain.size // len(truth)
        by_alphabeta = (seen - beta * n_domain) / alpha
        by_frapp = (replaced - n_rows * other * n_domain) / (float(fr.law.gamma_f) - other)
        errors.append(np.stack([by_alphabeta - truth, by_frapp - truth]))
    mean_error = np.abs(np.concatenate(errors, axis=1)).mean(axis=1)
    assert sum(e.shape[1] for e in errors) == 304_364
    assert mean_error[1] / mean_error[0] == pytest.approx(4.5, abs=0.4)
