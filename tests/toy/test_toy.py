"""The fifth mechanism: its numbers are right, and nobody else knows it."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from dalenius.question.targets import Score, Targets
from tests.conftest import PROJECT
from tests.contract.subjects import SPARK_SUBJECTS
from tests.contract.subjects import SUBJECTS as CONTRACT
from tests.toy.answer import Inversion
from tests.toy.config import CONFIG
from tests.toy.published import Wheel
from tests.toy.subjects import SUBJECTS

HERE = Path(__file__).parent


def test_nothing_outside_its_folder_names_it() -> None:
    command = ["git", "ls-files"]
    listed = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=True)
    inside = HERE.relative_to(PROJECT).as_posix()
    words = (CONFIG.kind, __package__, CONFIG.__name__)
    for name in listed.stdout.splitlines():
        path = PROJECT / name
        if not name.startswith(f"{inside}/") and path.is_file():
            found = path.read_bytes()
            assert not [word for word in words if word.encode() in found], name


WHEEL = Wheel(spin=Fraction(2, 5), n_values=3)
OWN = [0, 2, 1]


def published_tables() -> list[tuple[Fraction, tuple[int, ...]]]:
    """Every table that three records can be published as, with its probability."""
    spun, kept = WHEEL.spin / WHEEL.n_values, 1 - WHEEL.spin
    found = []
    for codes in itertools.product(range(3), repeat=3):
        chances = [spun + (kept if code == own else 0) for code, own in zip(codes, OWN, strict=True)]
        found.append((chances[0] * chances[1] * chances[2], codes))
    return found


@pytest.mark.parametrize(
    "terms",
    [
        [(0, np.array([1.0, 0.0, 0.0]))],
        [(0, np.array([1.0, 1.0, 1.0]))],
        [(1, np.array([0.0, 2.0, 1.0])), (0, np.array([0.0, 0.0, -1.0]))],
    ],
    ids=["count", "all", "sums"],
)
def test_estimate_and_variance_are_right_on_average(terms: list[tuple[int, np.ndarray]]) -> None:
    """The brute-force twin: all published tables, weighted with their exact probabilities."""
    scores = [Score(rows=np.arange(3)), Score(rows=np.array([0, 1]), values=np.array([4.0, -1.0]))]
    values = [np.ones(3), np.array([4.0, -1.0, 0.0])]
    truth = sum(float((values[score] * weights[OWN]).sum()) for score, weights in terms)
    mean = square = variance = 0.0
    for chance, codes in published_tables():
        estimation = Inversion(wheel=WHEEL, code=np.array(codes)).estimation(scores)
        targets = Targets.of([terms])
        raw = estimation._moments(estimation._tables(targets)[0])  # the variance before it is cut at 0
        low, high = estimation.possible_range(targets)
        assert low[0] <= truth <= high[0]
        assert estimation.estimate(targets).estimate[0] == pytest.approx(raw[0])
        mean += float(chance) * raw[0]
        square += float(chance) * raw[0] ** 2
        variance += float(chance) * raw[1]
    assert mean == pytest.approx(truth)
    assert variance == pytest.approx(square - mean**2)


@pytest.mark.parametrize("prior", ["1/10", "1/3", "3/5"])
def test_gamma_is_what_bayes_makes_of_the_wheel(prior: str) -> None:
    before, spun = Fraction(prior), WHEEL.spin / WHEEL.n_values
    seen_as_itself = before * (1 - WHEEL.spin + spun)
    after = seen_as_itself / (seen_as_itself + (1 - before) * spun)
    assert after / (1 - after) == WHEEL.gamma * before / (1 - before)
    assert WHEEL.prior_at_most(after) == before


def test_an_installed_package_needs_nothing_but_its_entry_point(tmp_path: Path) -> None:
    """The command line in a process of its own, which has never heard of tests."""
    about = tmp_path / "lib" / "casino-1.0.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: casino\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(f"[dalenius.mechanisms]\n{CONFIG.kind} = {__package__}\n")
    rows = [f"{age},{'Flu' if age % 2 else 'Cold'}" for age in range(50)]
    (tmp_path / "t.csv").write_text("\n".join(["age,disease", *rows]))
    (tmp_path / "t.toml").write_text(
        'source = "t.csv"\nrelease = "t.release"\n[columns]\nquasi = ["age"]\nsensitive = ["disease"]\n'
        f'[promise]\nkind = "rho-privacy"\nrho1 = "max"\nrho2 = "9/10"\n[mechanism]\nkind = "{CONFIG.kind}"\n'
    )
    path = os.pathsep.join([str(tmp_path / "lib"), str(PROJECT / "src"), str(PROJECT)])
    for arguments in (
        ["publish", "t.toml"],
        ["verify", "t.release", "--strict"],
        ["ask", "t.release", "SELECT COUNT(*) FROM t WHERE disease = 'Flu'"],
    ):
        subprocess.run(
            [sys.executable, "-m", "dalenius", *arguments],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": path},
            check=True,
            capture_output=True,
        )


def test_it_is_a_subject_of_the_contract_suite() -> None:
    assert all(subject in CONTRACT for subject in SUBJECTS)
    assert [subject.mechanism["kind"] for subject in SPARK_SUBJECTS].count(CONFIG.kind) == 1
