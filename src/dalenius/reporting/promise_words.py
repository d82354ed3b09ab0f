"""The promise in plain words, from a manifest alone; nothing is said that the manifest does not promise."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from typing import Any

from dalenius.pages.document import Block, Bullets, Notice, Paragraph, Section
from dalenius.pages.formatting import write_number
from dalenius.release.folder import StoredRelease
from dalenius.reporting.labels import sensitive_names, shown

_MOST_EXAMPLES = 3


def describe_promise(release: StoredRelease) -> Section:
    """What is promised, for whom, and what is not."""
    blocks: list[Block] = [
        Notice(tone="note", title="The promise", text=promise_in_words(release)),
        *_paragraphs(release),
    ]
    parts = [part.manifest for part in release.parts]
    for title, items in (
        ("It does not cover", _gathered(part.not_covered for part in parts)),
        ("It assumes that", _gathered(part.assumes for part in parts)),
        ("What the release tells anyway", _gathered(part.disclosed for part in parts)),
    ):
        if items:
            blocks.append(Bullets(title=title, items=tuple(items)))
    return Section(id="promise", title="What is promised, and what is not", blocks=tuple(blocks))


def promise_in_words(release: StoredRelease) -> str:
    """One or two sentences that say what nobody can do."""
    promise = release.manifest.promise
    write = _WORDS.get(promise["kind"])
    return f"The promise is of kind {promise['kind']}." if write is None else write(release, promise)


def _gathered(sentences: Iterable[tuple[str, ...]]) -> list[str]:
    """The sentences of all manifests of a series, each once."""
    return list(dict.fromkeys(text for part in sentences for text in part))


def _percent(value: Fraction | str) -> str:
    return write_number(float(Fraction(value)), "share")


def _f_privacy(release: StoredRelease, promise: Mapping[str, Any]) -> str:
    limits = sorted((Fraction(entry["at_most"]), shown(entry["value"])) for entry in promise["thresholds"])
    examples = [f"{name} at most {_percent(limit)}" for limit, name in limits[:_MOST_EXAMPLES] if limit < 1]
    strictest = f" The strictest limits: {'; '.join(examples)}." if examples else ""
    return (
        "Nobody who uses the release to find out in which bucket a person is, and knows nothing else, can "
        f"link that person to a value of {sensitive_names(release)} with more certainty than the limit that "
        f"was set for this value.{strictest}"
    )


def _l_diversity(release: StoredRelease, promise: Mapping[str, Any]) -> str:
    ell = int(promise["l"])
    return (
        "Nobody who uses the release to find out in which bucket a person is, and knows nothing else, can "
        f"link that person to any value of {sensitive_names(release)} with more certainty than 1 in {ell} "
        f"({_percent(Fraction(1, ell))})."
    )


def _rho_privacy(release: StoredRelease, promise: Mapping[str, Any]) -> str:
    rho2 = _percent(promise["rho2"])
    what = f"a value of {sensitive_names(release)}"
    if "prior_at_most" in promise:
        return (
            f"Whoever believed {what} of a person with at most {_percent(promise['prior_at_most'])} before "
            f"seeing the person's published value, believes it with at most {rho2} afterwards."
        )
    whom = (
        "every value"
        if promise["rho1"] == "max"
        else f"every value that at most {_percent(promise['rho1'])} of the people have"
    )
    return (
        f"Whoever expects {what} of a person exactly as often as it occurs in the person's part of the table "
        f"cannot become surer of it than {rho2} by seeing the person's published value. It holds for {whom}."
    )


def _d_gamma_privacy(release: StoredRelease, promise: Mapping[str, Any]) -> str:
    gamma = _percent(promise["gamma"])
    if release.manifest.mechanism.method == "frapp":
        prior = Fraction(promise["k"]) / int(release.manifest.parameters["domain_size"])
        return (
            f"Whoever gave a row at most {_percent(prior)} of being a given record gives it at most {gamma} "
            "after seeing what was published for that record."
        )
    views = int(promise.get("views", 1))
    seen = "the published rows" if views == 1 else f"all {views} views that may ever be published"
    return (
        f"Whoever thought it at most {_percent(promise['d'])} likely that a given row is in the table thinks "
        f"it at most {gamma} likely after seeing {seen}."
    )


_WORDS: dict[str, Callable[[StoredRelease, Mapping[str, Any]], str]] = {
    "f-privacy": _f_privacy,
    "l-diversity": _l_diversity,
    "rho-privacy": _rho_privacy,
    "d-gamma-privacy": _d_gamma_privacy,
}


def _paragraphs(release: StoredRelease) -> list[Paragraph]:
    """What else belongs to the promise: withheld records, and releases of a series."""
    manifest, texts = release.manifest, []
    suppression = manifest.promise.get("suppression")
    if suppression and suppression["bound"] is not None:
        texts.append(
            "Records were withheld so that nobody can be surer than "
            f"{_percent(suppression['bound'])} which value is the commonest of the table."
        )
    elif suppression and manifest.rows.suppressed:
        texts.append(
            "Records were withheld by a method that promises no bound on how sure somebody can be which "
            "value is the commonest of the table."
        )
    series = manifest.series
    if series and series.kind == "batches":
        texts.append("Every batch keeps the promise by itself; together they can tell more than each alone.")
    return [Paragraph(text=text) for text in texts]
