"""Attacks on αβ views and on suppression: exact posteriors, the paper's false claims among them."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dalenius.auditing import audit_release
from dalenius.mechanisms.alphabeta.apply import first_view
from dalenius.mechanisms.alphabeta.attacks.views import (
    ViewCase,
    attack_correlated_tuples,
    attack_exclusive_set,
    attack_one_tuple,
    attack_views,
)
from dalenius.mechanisms.alphabeta.plan.law import ViewLaw, choose_law, usual_decay
from dalenius.mechanisms.tuples.domain import Domain
from dalenius.mechanisms.tuples.plan import describe_domain
from dalenius.release.folder import StoredRelease, sha256
from tests.auditing.releases import write_manifest

# Adult's numbers
N, M, K, GAMMA = 30_162, 648_023_040, 10, Fraction(1, 5)
D = Fraction(K * N, M)
HALF = Fraction(1, 2)


def case_of(law: ViewLaw, d: Fraction = D, gamma: Fraction = GAMMA) -> ViewCase:
    shown, noise = int(N * law.retention), int((M - N) * law.beta)
    return ViewCase(law=law, d=d, gamma=gamma, domain_size=M, n_table=N, n_shown=shown, n_noise=noise)


def test_one_view_with_its_parameters_holds_and_is_nearly_tight() -> None:
    found = attack_one_tuple(case_of(choose_law(D, GAMMA, retention=HALF)))
    assert found.holds
    assert found.success == pytest.approx(0.2, abs=0.002)


@pytest.mark.parametrize(("views", "posterior"), [(2, 0.292), (3, 0.328), (8, 0.375)])
def test_single_view_parameters_for_several_views_are_caught(views: int, posterior: float) -> None:
    single = choose_law(D, GAMMA, retention=HALF)
    law = replace(single, views=views, decay=usual_decay(views))
    found = attack_views(case_of(law))
    assert found.holds is False
    assert found.success == pytest.approx(posterior, abs=1e-3)  # beta is rounded up a little
    assert attack_views(case_of(choose_law(D, GAMMA, views=views))).holds is True
    assert attack_views(case_of(single), views).holds is False  # more views than were planned


def test_brothers_and_exclusive_sets_are_open_and_said_to_be() -> None:
    case = case_of(choose_law(D, GAMMA, retention=HALF))
    brothers, rule_out = attack_correlated_tuples(case), attack_exclusive_set(case)
    ratio = float(case.law.retention / case.law.beta)
    odds = ratio**2 * float(D) / (1 - float(D))
    assert brothers.success == pytest.approx(odds / (1 + odds))
    assert brothers.success > 0.9  # one alone gives 0.2
    assert brothers.bound is rule_out.bound is None
    assert 0 < rule_out.success < 1


def test_too_little_noise_or_too_much_kept_is_caught() -> None:
    case = case_of(choose_law(D, GAMMA, retention=HALF))
    assert attack_one_tuple(replace(case, n_noise=int(case.n_noise * 0.95))).holds is False
    assert attack_one_tuple(replace(case, n_noise=int(case.n_noise * 0.995))).holds is True
    assert attack_one_tuple(replace(case, n_shown=int(case.n_shown * 1.1))).holds is False


def write_view(
    folder: Path, table: pa.Table, law: ViewLaw, used: ViewLaw, domain: Domain, d: Fraction, gamma: Fraction
) -> Path:
    path = folder / "v"
    path.mkdir()
    codes = first_view(domain, domain.encode(table), used, np.random.default_rng(3))
    view = pa.Table.from_batches([domain.decode(codes)])
    pq.write_table(view, path / "view.parquet", store_schema=False)
    entry = {"file": "view.parquet", "sha256": sha256(path / "view.parquet")}
    parameters = {
        "method": "alpha-beta",
        "alpha": str(law.alpha),
        "beta": str(law.beta),
        "decay": str(law.decay),
        "views": law.views,
        "domain_size": str(domain.size),
        "d": str(d),
        "gamma": str(gamma),
        "unit": "tuple",
        "domains": describe_domain(domain),
    }
    write_manifest(
        path,
        table,
        [{"name": "view", "rows": len(view), "files": [entry]}],
        promise={
            "kind": "d-gamma-privacy",
            "gamma": str(gamma),
            "d": str(d),
            "adversary": "independent",
            "unit": "tuple",
            "views": law.views,
        },
        parameters=parameters,
        kind="alpha-beta",
    )
    return path


@pytest.mark.parametrize("factor", [1, Fraction(1, 2)])
def test_a_view_is_audited_from_its_files(factor: int | Fraction, tmp_path: Path) -> None:
    """With half the noise that it states, a view is caught."""
    domain = Domain.of({"uid": range(3_000), "age": range(50), "disease": [f"d{i}" for i in range(10)]})
    rng = np.random.default_rng(1)
    n = 3_000
    table = pa.table(
        {
            "uid": np.arange(n),
            "age": rng.integers(50, size=n),
            "disease": [f"d{i}" for i in rng.integers(10, size=n)],
        }
    )
    d, gamma = Fraction(10 * n, domain.size), Fraction(1, 5)
    law = choose_law(d, gamma, retention=HALF)
    path = write_view(tmp_path, table, law, replace(law, beta=law.beta * factor), domain, d, gamma)
    audit = audit_release(StoredRelease.open(path), table, seed=1)
    assert audit.named("linking").holds is (factor == 1)
    assert audit.named("several views").holds is True
    assert audit.named("linking").detail["kept"] == pytest.approx(0.5, abs=0.05)
