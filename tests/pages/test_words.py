"""How a report finds the words for a release, and writes columns and values."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dalenius.mechanisms import registry
from dalenius.pages.document import Column, Number, head, share
from dalenius.pages.words import Words, quote_names, unit_of, words_of
from dalenius.release.folder import StoredRelease
from dalenius.tables.histogram import show_value
from tests.auditing.releases import deal, people, write_release


@pytest.fixture
def release(tmp_path: Path) -> StoredRelease:
    table, rng = people(100), np.random.default_rng(1)
    return write_release(tmp_path, table, deal(table, 5, rng), rng=rng)


def made_by(release: StoredRelease, kind: str, method: str) -> StoredRelease:
    made = replace(release.manifest.mechanism, kind=kind, method=method)
    return replace(release, manifest=replace(release.manifest, mechanism=made))


def test_every_mechanism_brings_its_own_words(release: StoredRelease) -> None:
    found = [words_of(made_by(release, kind, "-")) for kind in registry.kinds()]
    found += [
        words_of(made_by(release, kind, m)) for kind in registry.kinds() for m in registry.methods(kind)
    ]
    assert len({words.how for words in found}) == len(found)
    assert all(words.how and words.tables and words.glossary and words.limits for words in found)


def test_a_mechanism_without_words_is_reported_on_without_them(release: StoredRelease) -> None:
    with registry.register("mute", "dalenius.cli"):
        words = words_of(made_by(release, "mute", "-"))
    assert (words.how, words.limits, words.promise) == ("", None, None)
    assert words.rows_are_people
    assert words.count_exactly(release) is None


def test_what_a_count_counts(release: StoredRelease, monkeypatch: pytest.MonkeyPatch) -> None:
    assert unit_of(release) == "records"
    once = Words(counts_repeats=lambda _: False)
    monkeypatch.setattr("dalenius.mechanisms.bucketize.words.WORDS", once)
    assert unit_of(release) == "different rows"


def test_names_and_values_fit_into_a_sentence() -> None:
    assert quote_names([]) == ""
    assert quote_names(["a", "b"]) == "“a” and “b”"
    assert quote_names(["a\nb"]) == "“a\\u000ab”"
    assert show_value([]) == "(empty)"
    assert show_value(["x" * 100]) == "x" * 79 + "…"


def test_headings_and_shares_in_short() -> None:
    drawn = Column(title="limit", whole=True)
    assert head("value", drawn) == (Column(title="value"), drawn)
    assert share(None) is None
    assert share(0.25) == Number(value=0.25, style="share")
