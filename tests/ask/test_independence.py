"""The test of independence: scipy's where nothing is hidden, honest where noise makes it larger."""

from __future__ import annotations

import json
from dataclasses import fields
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

import dalenius
from dalenius.ask import ask
from dalenius.cli.main import run
from dalenius.cli.reader.ask import _say_independence
from dalenius.errors import QueryError
from dalenius.mechanisms.bucketize.estimate.posterior import Posterior
from dalenius.mechanisms.rows import together
from dalenius.question.answer import Independence
from dalenius.release.folder import StoredRelease
from tests.ask.conftest import coded, patients
from tests.ask.releases import deal, write_release
from tests.chance import FALSE_ALARM

TABLE = "SELECT sex, disease, COUNT(*) FROM t GROUP BY sex, disease"
N = 1_500


def found(release: StoredRelease, sql: str = TABLE) -> Independence:
    answer = ask(release, sql, independence=True).independence
    assert answer is not None
    return answer


def test_where_nothing_is_hidden_it_is_pearsons(clear_release: StoredRelease, table: pa.Table) -> None:
    counts = table.to_pandas().groupby(["sex", "disease"], dropna=False).size().unstack(fill_value=0)
    counts = counts.to_numpy()
    answer = found(clear_release)
    kept = counts[:, counts.sum(axis=0) * counts.sum(axis=1).min() / counts.sum() >= 5]
    if answer.n_left_out == counts.shape[1] - kept.shape[1]:
        expected = stats.chi2_contingency(kept, correction=False)
        assert answer.statistic == pytest.approx(expected.statistic)
        assert answer.freedom == pytest.approx(expected.dof)
        assert answer.p_value == pytest.approx(expected.pvalue)
    assert answer.larger == pytest.approx(1)


def publish(folder: Path, seed: int, *, strength: float) -> dalenius.Release:
    rng = np.random.default_rng(seed)
    sex = rng.integers(2, size=N)
    logits = np.array([0.3, 0.0, 0.0, -0.3]) + strength * np.outer(sex, [1.0, -1.0, 0.5, 0.0])
    disease = (logits + rng.gumbel(size=(N, 4))).argmax(axis=1)
    source = pa.table({"sex": np.array(["F", "M"])[sex], "disease": np.array(list("abcd"))[disease]})
    policy = dalenius.Policy.from_dict(
        {
            "source": source,
            "release": str(folder / f"{seed}-{strength}"),
            "columns": {"quasi": ["sex"], "sensitive": ["disease"]},
            "promise": {"kind": "rho-privacy", "rho1": "max", "rho2": str(Fraction(2, 3))},
            "mechanism": {"kind": "perturb", "method": "uniform"},
        }
    )
    return dalenius.publish(policy, seed=seed)


def test_independent_columns_are_seldom_called_dependent(tmp_path: Path) -> None:
    """At 5 %, over releases of tables drawn anew; Pearson's own test, the twin, is fooled by noise."""
    n, alarms, naive = 14, 0, 0
    for seed in range(n):
        tested = publish(tmp_path, seed, strength=0.0).test_independence("sex", "disease")
        alarms += tested.p_value < 0.05
        naive += stats.chi2.sf(tested.pearson, 3) < 0.05
        assert tested.larger > 1
    most = stats.binom.isf(FALSE_ALARM, n, 0.05)
    assert alarms <= most
    assert naive > most


def test_a_strong_association_is_found(tmp_path: Path) -> None:
    tested = publish(tmp_path, 7, strength=1.0).test_independence("sex", "disease")
    assert tested.p_value < 0.05
    assert 0.2 < tested.cramers_v <= 1


def test_the_command_and_what_it_refuses(release: StoredRelease, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["ask", str(release.path), TABLE, "--independence"]) == 0
    assert "independence of sex and disease" in capsys.readouterr().out
    assert run(["ask", str(release.path), TABLE, "--independence", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)["independence"]
    assert set(told) == {
        "columns", "statistic", "freedom", "p_value", "pearson", "larger", "cramers_v", "left_out",
    }  # fmt: skip
    for sql, message in (
        ("SELECT COUNT(*) FROM t", "two columns"),
        ("SELECT sex, disease, AVG(age) FROM t GROUP BY sex, disease", "two columns"),
        ("SELECT sex, 1 AS one, COUNT(*) FROM t GROUP BY sex, one", "at least two"),
    ):
        with pytest.raises(QueryError, match=message):
            ask(release, sql, independence=True)


@pytest.mark.parametrize(
    ("p_value", "shown"),
    [(0.0, "p < 0.0001"), (9.9e-5, "p < 0.0001"), (1e-4, "p = 0.0001")],
)
def test_no_probability_is_shown_as_0(p_value: float, shown: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = Independence(
        columns=("sex", "disease"),
        statistic=9.0,
        freedom=2.0,
        p_value=p_value,
        pearson=9.0,
        larger=1.0,
        cramers_v=0.1,
        n_left_out=0,
    )
    _say_independence(found)
    assert f", {shown};" in capsys.readouterr().out


def test_the_covariance_of_the_cells_is_found_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A table of 14 by 2 cells took half a minute, combination by combination: the same numbers."""
    source = patients(2_000).select(["sex", "zip", "disease"])
    bucket = deal(coded(source, ["disease"]), {4: 500}, np.random.default_rng(5))
    release, calls = write_release(tmp_path, source, ["disease"], bucket), []
    own = Posterior._together

    def count(*given: Any) -> float:
        calls.append(given)
        return own(*given)

    monkeypatch.setattr(Posterior, "_together", count)
    quick = found(release)
    assert not calls
    monkeypatch.setattr(together, "_FEWEST", 10_000)
    slow = found(release)
    assert calls
    assert [getattr(quick, f.name) for f in fields(quick)[1:]] == pytest.approx(
        [getattr(slow, f.name) for f in fields(slow)[1:]]
    )
