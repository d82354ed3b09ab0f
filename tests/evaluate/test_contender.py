"""One draw of a contender, and draws that fail."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dalenius.engines.base import silent
from dalenius.errors import DaleniusError, InputError, InternalError, PromiseNotMet
from dalenius.evaluate import compare
from dalenius.evaluate.compare import Standing, compare_policies, sample_randomness
from dalenius.evaluate.contender import (
    NOISE,
    NOTHING,
    Contender,
    Sample,
    draw_sample,
    policy_contender,
    publish_aside,
    release_seed,
)
from dalenius.evaluate.original import Original, read_shared
from dalenius.evaluate.workload import Marginals, Questions, TrueAnswer
from dalenius.policy import Policy
from dalenius.promises.bounds import Bound
from dalenius.randomness import Randomness
from dalenius.release.verify import verify_release
from tests.contract.subject import people

DIVERSE = {"kind": "l-diversity", "l": 3}
TUPLES = {"kind": "d-gamma-privacy", "d": "1/100", "gamma": "3/10"}
COUNTS = Questions.of_counts(["SELECT COUNT(*) AS n FROM t"] * 2, [40, 60], n_rows=300, most_changed=2)


def policy(promise: dict[str, Any], release: Path | None = None, **sections: Any) -> Policy:
    columns = {"quasi": ["uid", "age"], "sensitive": ["disease"]}
    given = {"source": people(300), "columns": columns, "promise": promise, **sections}
    return Policy.from_dict(given if release is None else {**given, "release": str(release)})


def alone(kind: str, epsilon: float | None = None) -> Sample:
    bound = Bound(largest=Fraction(1, 4), symbol="", meaning="")
    contender = Contender(name=kind, kind=kind, method="", bound=bound, is_baseline=True, epsilon=epsilon)
    original = Original.of(people(300), ["disease"])
    return Sample(contender=contender, original=original, randomness=Randomness.seeded(1), release=None)


def test_nothing_answers_zero_and_noise_answers_only_what_it_was_made_for() -> None:
    nothing = alone(NOTHING).ask(COUNTS)
    assert nothing is not None
    assert (nothing.estimate.tolist(), nothing.truth.tolist()) == ([0.0, 0.0], [40.0, 60.0])
    assert alone(NOISE, epsilon=1.0).ask(COUNTS) is None
    assert alone(NOTHING).answer_workload(COUNTS).estimate.tolist() == [0.0, 0.0]


def test_the_scale_of_the_noise_is_what_one_record_can_change_by_epsilon() -> None:
    """2 counts that change by 2 in all: scale 2/ε = 20 and E|X| near 20; 2,000 draws, 5 standard errors."""
    sample = alone(NOISE, epsilon=0.1)
    n = 1_000
    drawn = [sample.answer_workload(COUNTS).estimate - COUNTS.truth for _ in range(n)]
    assert abs(np.abs(drawn).mean() - 20) < 5 * 20 / np.sqrt(2 * n)


def test_noise_for_what_no_record_is_bounded_in_is_refused() -> None:
    means = Questions(
        sqls=("q",), answers=(TrueAnswer(cells={((), "m"): 2.5}, scale={"m": 0.0}),), most_changed=None
    )
    with pytest.raises(InputError, match="counts only"):
        alone(NOISE, epsilon=1.0).answer_workload(means)


def test_a_draw_leaves_nothing_behind(tmp_path: Path) -> None:
    own = policy(DIVERSE, tmp_path / "own.release")
    shared = read_shared({"own": own}, silent)
    contender = policy_contender("own", own, shared)
    with draw_sample(contender, shared.original, Randomness.seeded(1)) as sample:
        assert sample.release is not None
        folder = sample.release.path
        assert verify_release(sample.release).ok
        asked = Marginals(most_columns=1).questions(shared.original, np.random.default_rng(1))
        cells = sample.ask(asked)
        assert cells is not None
        assert cells.n_unanswered == 0
    assert not folder.exists()
    assert not (tmp_path / "own.release").exists()
    assert not Path(os.environ["DALENIUS_LEDGER"]).exists()


def test_all_views_of_a_series_are_drawn_each_with_its_own_seed(tmp_path: Path) -> None:
    mechanism = {"duplicates": "distinct", "domains": "active", "views": 3}
    release = publish_aside(policy(TUPLES, mechanism=mechanism), tmp_path, Randomness.seeded(1))
    assert len(release.earlier) == 2
    series = [view.manifest.series for view in (*release.earlier, release)]
    assert [(entry.index, entry.of) for entry in series if entry] == [(1, 3), (2, 3), (3, 3)]
    assert len({release_seed(Randomness.seeded(1), view) for view in range(3)}) == 3


def test_a_batch_is_drawn_as_a_release_by_itself(tmp_path: Path) -> None:
    daily = policy(DIVERSE, tmp_path / "daily", series={"kind": "batches"})
    release = publish_aside(daily, tmp_path, Randomness.seeded(1))
    assert release.manifest.series is None
    assert not (tmp_path / "daily").exists()


def test_no_two_draws_share_their_coins() -> None:
    own = alone(NOTHING).contender
    other = alone(NOISE).contender
    randomness = Randomness.seeded(3)
    keys = [sample_randomness(randomness, who, number).key for who in (own, other) for number in range(4)]
    assert len(set(keys)) == 8
    assert sample_randomness(randomness, own, 2).key == keys[2]
    assert sample_randomness(Randomness.seeded(4), own, 2).key != keys[2]


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Makes the draws of one contender fail, from the first one on, with one error after the other."""

    def fail(name: str, *errors: DaleniusError | None) -> None:
        left = list(errors)

        @contextmanager
        def draw(contender: Contender, *arguments: Any) -> Iterator[Sample]:
            error = left.pop(0) if contender.name == name and left else None
            if error is not None:
                raise error
            with draw_sample(contender, *arguments) as sample:
                yield sample

        monkeypatch.setattr(compare, "draw_sample", draw)

    return fail


def compared(n_seeds: int = 2) -> dict[str, Standing]:
    found = compare_policies(
        {"own": policy(DIVERSE)}, workload=Marginals(most_columns=1), n_seeds=n_seeds, seed=1
    )
    return {one.contender.name: one for one in found.standings}


def test_draws_that_give_no_release_are_counted(failing: Any) -> None:
    failing("own", PromiseNotMet("the draw left no record"), None)
    own = compared()["own"]
    assert (own.n_failed, own.reason) == (1, None)
    assert len(own.spreads["rmse"].values) == 1


def test_a_promise_that_is_never_kept_has_its_reason(failing: Any) -> None:
    failing("own", PromiseNotMet("too strict"), PromiseNotMet("too strict", hint="relax"))
    own = compared()["own"]
    assert (own.spreads, own.reason) == ({}, "too strict (relax)")


def test_a_baseline_may_be_wrong_but_not_a_policy(failing: Any) -> None:
    failing("UP", *[InputError("not installed", hint="install it")] * 2)
    assert compared()["UP"].reason == "not installed (install it)"
    failing("own", InputError("no such column", hint="look again"))
    with pytest.raises(InputError, match="own: no such column") as refused:
        compared()
    assert refused.value.hint == "look again"


def test_a_bug_is_not_a_reason(failing: Any) -> None:
    failing("Anatomy", InternalError("the table changed"))
    with pytest.raises(InternalError, match="the table changed"):
        compared()
