"""What is measured of a release, by hand and by slow twins, and what each mechanism says of itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dalenius.engines.base import silent
from dalenius.errors import InputError
from dalenius.evaluate.contender import (
    NOISE,
    NOTHING,
    Contender,
    Sample,
    all_labels,
    baselines,
    draw_sample,
    label_of,
    not_comparable,
    policy_contender,
    promised_bound,
)
from dalenius.evaluate.measures import MEASURES, encode, joint_columns, measures_named, predict
from dalenius.evaluate.original import Shared, read_shared
from dalenius.evaluate.workload import Cells
from dalenius.mechanisms import registry
from dalenius.mechanisms.measures import Measures, measures_of
from dalenius.policy import Policy
from dalenius.promises.bounds import Bound
from dalenius.promises.d_gamma_privacy import DGammaPrivacy
from dalenius.randomness import Randomness
from dalenius.release.folder import StoredRelease
from tests.contract.subject import people

ROLES = {"quasi": ["age", "uid"], "sensitive": ["disease"]}
DIVERSE = {"kind": "l-diversity", "l": 3}
RHO = {"kind": "rho-privacy", "rho1": "max", "rho2": "3/5"}
TUPLES = {"kind": "d-gamma-privacy", "d": "1/100", "gamma": "3/10"}
ACTIVE = {"kind": "alpha-beta", "duplicates": "distinct", "domains": "active"}
FRAPP = {"kind": "alpha-beta", "method": "frapp", "domains": "active"}


def policy(promise: dict[str, Any], table: Any = None, **sections: Any) -> Policy:
    source = people(300) if table is None else table
    return Policy.from_dict({"source": source, "columns": ROLES, "promise": promise, **sections})


def shared_of(**policies: Policy) -> Shared:
    return read_shared(policies, silent)


@contextmanager
def drawn(own: Policy, seed: int = 1) -> Iterator[Sample]:
    shared = shared_of(own=own)
    contender = policy_contender("own", own, shared)
    with draw_sample(contender, shared.original, Randomness.seeded(seed)) as sample:
        yield sample


def measured(sample: Sample, name: str) -> float | None:
    nothing = np.zeros(0)
    return MEASURES[name].measure(sample, Cells(truth=nothing, estimate=nothing, scale=nothing))


def read(release: StoredRelease | None, table: str) -> pa.Table:
    assert release is not None
    return pa.concat_tables([pq.read_table(file) for file in release.files(table)])


def test_loss_and_retention_of_buckets_are_their_definitions() -> None:
    with drawn(policy(DIVERSE)) as sample:
        loss, kept = measured(sample, "loss"), measured(sample, "retention")
        sizes = Counter(read(sample.release, "qit")["bucket"].to_pylist())
        values = read(sample.release, "st").to_pylist()
    assert loss == sum((size - 1) ** 2 for size in sizes.values())
    # who is given one of the bucket's values at random has the own one with probability count / size
    right = sum(row["count"] * row["count"] / sizes[row["bucket"]] for row in values)
    assert kept == pytest.approx(right / 300)


def test_where_values_are_nobodys_nothing_is_retained_or_not_cannot_be_said() -> None:
    with drawn(policy(DIVERSE, mechanism={"kind": "bucketize", "fakes": 1})) as sample:
        assert measured(sample, "retention") is None
        assert measured(sample, "loss") is not None


@pytest.mark.parametrize(
    ("promise", "mechanism"),
    [(RHO, {"kind": "perturb", "method": "uniform"}), (TUPLES, ACTIVE), (TUPLES, FRAPP)],
    ids=["perturb", "alpha-beta", "frapp"],
)
def test_other_mechanisms_have_no_buckets(promise: dict[str, Any], mechanism: dict[str, Any]) -> None:
    with drawn(policy(promise, mechanism=mechanism)) as sample:
        assert measured(sample, "loss") is None
        kept = measured(sample, "retention")
    assert kept is not None
    assert 0 < kept < 1


def test_retention_of_a_view_is_how_many_rows_it_keeps_on_average() -> None:
    """α+β of the manifest; over 30 views of 300 rows, within 5 standard deviations."""
    own = policy(TUPLES, mechanism=ACTIVE)
    table = {tuple(row.values()) for row in people(300).select(["age", "uid", "disease"]).to_pylist()}
    n_kept = 0
    for seed in range(30):
        with drawn(own, seed) as sample:
            stated = measured(sample, "retention")
            shown = read(sample.release, "view").select(["age", "uid", "disease"]).to_pylist()
        n_kept += len(table & {tuple(row.values()) for row in shown})
    assert stated is not None
    n = 30 * len(table)
    assert abs(n_kept - n * stated) < 5 * np.sqrt(n * stated * (1 - stated))


def test_withheld_records_and_what_is_not_known() -> None:
    with drawn(policy(DIVERSE)) as sample:
        assert measured(sample, "suppressed") == 0
    skewed = people(300).set_column(2, "disease", pa.array(["Flu"] * 150 + ["Cold"] * 80 + ["HIV"] * 70))
    with drawn(policy(DIVERSE, skewed, suppress={"method": "safe"})) as sample:
        n_published = read(sample.release, "qit").num_rows
        assert measured(sample, "suppressed") == pytest.approx(1 - n_published / 300)
    with drawn(policy(TUPLES, mechanism=ACTIVE)) as sample:
        assert measured(sample, "suppressed") is None


def alone(kind: str, **more: Any) -> Contender:
    bound = Bound(largest=Fraction(1, 4), symbol="", meaning="")
    return Contender(name=kind, kind=kind, method="", bound=bound, is_baseline=True, **more)


def test_nothing_and_noise_have_what_can_be_said_of_them() -> None:
    original = shared_of(own=policy(DIVERSE)).original
    nothing, noise = (
        Sample(contender=contender, original=original, randomness=Randomness.seeded(1), release=None)
        for contender in (alone(NOTHING), alone(NOISE, epsilon=1.0))
    )
    assert [measured(nothing, name) for name in ("suppressed", "retention", "loss")] == [1.0, 0.0, None]
    assert [measured(noise, name) for name in ("suppressed", "retention", "loss")] == [None, None, None]
    assert measured(noise, "accuracy") is None
    assert measured(noise, "hellinger") is None
    counts = Counter(people(300)["disease"].to_pylist())
    # who knows the histogram and guesses the commonest value; a fifth of 300 people is tested
    share = max(counts.values()) / 300
    assert measured(nothing, "accuracy") == pytest.approx(share, abs=5 * np.sqrt(share * (1 - share) / 60))


def test_training_rows_of_a_bucket_are_its_people_with_each_value_by_its_share() -> None:
    with drawn(policy(DIVERSE)) as sample:
        assert sample.release is not None
        rows = sample.mechanism.training_rows(sample.release, ["uid"], ["disease"], "")
        assert rows is not None
        bucket_of = {row["uid"]: row["bucket"] for row in read(sample.release, "qit").to_pylist()}
        values = read(sample.release, "st").to_pylist()
    sizes = Counter(bucket_of.values())
    slow = {
        (uid, row["disease"]): row["count"] / sizes[bucket]
        for uid, bucket in bucket_of.items()
        for row in values
        if row["bucket"] == bucket
    }
    found = {(row["uid"], row["disease"]): row["weight"] for row in rows.to_pylist()}
    assert found == pytest.approx(slow)


@pytest.mark.parametrize(
    ("promise", "mechanism", "table"),
    [(RHO, {"kind": "perturb"}, "data"), (TUPLES, ACTIVE, "view"), (TUPLES, FRAPP, "view")],
    ids=["perturb", "alpha-beta", "frapp"],
)
def test_training_rows_of_others_are_what_is_published(
    promise: dict[str, Any], mechanism: dict[str, Any], table: str
) -> None:
    with drawn(policy(promise, mechanism=mechanism)) as sample:
        assert sample.release is not None
        rows = sample.mechanism.training_rows(sample.release, ["age"], ["disease"], "")
        few = sample.mechanism.training_rows(
            sample.release, ["age"], ["disease"], "USING SAMPLE reservoir(7 ROWS) REPEATABLE (1)"
        )
        shown = read(sample.release, table).select(["age", "disease"])
    assert rows is not None
    assert few is not None
    assert Counter(map(str, rows.to_pylist())) == Counter(map(str, shown.to_pylist()))
    assert few.num_rows == 7


def test_a_classifier_learns_what_is_there_and_a_value_from_elsewhere_has_a_code_of_its_own() -> None:
    table = pa.table({"age": [1, 2, 3] * 40, "disease": ["Flu", "Cold", None] * 40})
    original = shared_of(
        own=Policy.from_dict(
            {
                "source": table,
                "columns": {"quasi": ["age"], "sensitive": ["disease"]},
                "promise": {"kind": "l-diversity", "l": 3},
            }
        )
    ).original
    features, label, weight = encode(original, table)
    assert features.shape == (120, 1)
    assert len({tuple(pair) for pair in zip(features[:, 0].tolist(), label.tolist(), strict=True)}) == 3
    assert weight.tolist() == [1.0] * 120
    assert predict((features, label, weight), (features, label, weight), original) == 1.0
    foreign, _, _ = encode(original, pa.table({"age": [99], "disease": ["Flu"]}))
    assert foreign.tolist() == [[3]]
    upside_down = np.where(label == label[0], label[1], label[0])
    assert predict((features, upside_down, weight), (features, label, weight), original) < 0.7


def test_joint_distributions_are_of_every_column_with_the_secret() -> None:
    with drawn(policy(DIVERSE)) as sample:
        assert joint_columns(sample) == [("age", "disease"), ("uid", "disease")]
    with drawn(
        Policy.from_dict(
            {
                "source": people(300),
                "columns": {"quasi": ["age", "uid", "disease"], "sensitive": []},
                "promise": TUPLES,
                "mechanism": ACTIVE,
            }
        )
    ) as sample:
        assert joint_columns(sample) == [("age", "uid"), ("age", "disease"), ("uid", "disease")]


def test_measures_are_asked_for_by_name() -> None:
    assert [one.name for one in measures_named(())] == [
        "relative-error",
        "median-relative-error",
        "rmse",
        "suppressed",
    ]
    assert [one.name for one in measures_named(("rmse", "loss", "rmse"))] == ["rmse", "loss"]
    with pytest.raises(InputError, match="did you mean 'retention'"):
        measures_named(("retentoin",))
    assert {one.better for one in MEASURES.values() if one.name in ("retention", "accuracy")} == {"higher"}


# what each mechanism says of itself


def test_a_bound_means_what_the_method_makes_of_it() -> None:
    for promise, mechanism, meaning in (
        (DIVERSE, {"kind": "bucketize"}, "a person's sensitive value"),
        (RHO, {"method": "uniform"}, "a person's sensitive value, from any belief"),
        (RHO, {"method": "small-domain"}, "a person's sensitive value, from the part's histogram as belief"),
        (TUPLES, ACTIVE, "that a whole row is in the table"),
        (TUPLES, FRAPP, "a record's whole row"),
    ):
        assert promised_bound(policy(promise, mechanism=mechanism), None).meaning == meaning


def test_baselines_keep_each_bound_that_is_far_enough_from_the_others() -> None:
    shared = shared_of(own=policy({"kind": "l-diversity", "l": 2}))
    found = baselines(shared, {Fraction(1, 2), Fraction(51, 100), Fraction(3, 4), Fraction(1)})
    assert [one.name for one in found] == [
        *("Anatomy at 0.5", "UP at 0.5", "FRAPP at 0.5", "Laplace at 0.5"),
        *("Anatomy at 0.75", "UP at 0.75", "FRAPP at 0.75", "Laplace at 0.75"),
        "suppress-all",
    ]
    assert all(one.is_baseline for one in found)
    by_name = {one.name: one for one in found}
    assert by_name["Anatomy at 0.75"].bound.largest == Fraction(1, 2)  # l is a whole number, at least 2
    assert by_name["UP at 0.75"].bound.largest == Fraction(3, 4)
    assert by_name["FRAPP at 0.5"].bound.largest == Fraction(1, 2)
    assert {one.method for one in found[:3]} == {"anatomy", "uniform", "frapp"}
    alike = [one.policy for one in found if one.policy is not None]
    assert all(one.suppress is None and one.series is None and one.domains == () for one in alike)


def test_frapp_takes_the_k_of_a_policy_and_the_papers_otherwise() -> None:
    def k_of(**policies: Policy) -> Fraction | None:
        (frapp,) = [one for one in baselines(shared_of(**policies), {Fraction(1, 4)}) if one.name == "FRAPP"]
        assert frapp.policy is not None
        assert isinstance(frapp.policy.promise, DGammaPrivacy)
        return frapp.policy.promise.k

    own = policy(DIVERSE)
    view = policy({"kind": "d-gamma-privacy", "k": 3, "gamma": "3/10"}, mechanism=ACTIVE)
    assert k_of(own=own) == 10
    assert k_of(own=own, view=view) == 3


def test_noise_has_no_place_at_a_bound_that_a_guess_reaches() -> None:
    shared = shared_of(own=policy(DIVERSE))
    (noise,) = [one for one in baselines(shared, {Fraction(1, 5)}) if one.kind == NOISE]
    counts = Counter(people(300)["disease"].to_pylist())
    assert noise.epsilon is None
    share = max(counts.values()) / 300
    assert noise.reason == f"the commonest value's share, {share:.3g}, is not below the bound"


def test_without_a_sensitive_column_only_whole_rows_have_a_baseline() -> None:
    whole = {"quasi": ["age", "uid", "disease"], "sensitive": []}
    own = Policy.from_dict({"source": people(300), "columns": whole, "promise": TUPLES, "mechanism": ACTIVE})
    assert [one.name for one in baselines(shared_of(own=own), {Fraction(1, 4)})] == ["FRAPP", "suppress-all"]


def test_labels_and_what_the_axis_hides_come_in_one_order() -> None:
    assert all_labels() == ["buckets", "perturbation", "views", "noisy answers", "nothing published"]
    assert label_of("alpha-beta", "frapp") == label_of("alpha-beta") == "views"
    beginnings = [note.split(":")[0].split(" ")[0] for note in not_comparable()]
    assert beginnings == ["bucketize", "f'", "perturb", "alpha-beta", "Laplace", "nothing"]


def test_a_mechanism_that_says_nothing_of_itself_takes_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "silent_rooms"
    package.mkdir()
    (package / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    with registry.register("silent", "silent_rooms"):
        found = measures_of("silent")
        assert found == Measures(label="silent")
        assert label_of("silent", "any") == "silent"
        assert "silent" in all_labels()
    with drawn(policy(DIVERSE)) as sample:
        release = sample.release
        assert release is not None
        assert (found.loss(release), found.retention(release, 300)) == (None, None)
        assert found.training_rows(release, ["age"], ["disease"], "") is None
    bound = Bound(largest=Fraction(1, 2), symbol="", meaning="")
    assert found.bound(policy(DIVERSE), bound) is bound
    assert found.baseline(policy(DIVERSE), Fraction(1, 2), []) is None
