"""The promise in plain words, from a manifest alone; nothing is said that the manifest does not promise."""

from __future__ import annotations

from collections.abc import Iterable

from dalenius.mechanisms.registry import stage_rooms
from dalenius.pages.document import Block, Bullets, Notice, Paragraph, Section
from dalenius.pages.words import sensitive_names, words_of
from dalenius.promises.kinds import PROMISES
from dalenius.release.folder import StoredRelease


def describe_promise(release: StoredRelease) -> Section:
    """What is promised, for whom, and what is not."""
    blocks: list[Block] = [
        Notice(tone="note", title="The promise", text=_promise_in_words(release)),
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


def _promise_in_words(release: StoredRelease) -> str:
    """One or two sentences that say what nobody can do."""
    promise, say = release.manifest.promise, words_of(release).promise
    if say is not None:
        return say(release)
    kind = PROMISES.get(promise["kind"])
    if kind is None:
        return f"The promise is of kind {promise['kind']}."
    return kind.in_words(promise, sensitive_names(release))


def _gathered(sentences: Iterable[tuple[str, ...]]) -> list[str]:
    """The sentences of all manifests of a series, each once."""
    return list(dict.fromkeys(text for part in sentences for text in part))


def _paragraphs(release: StoredRelease) -> list[Paragraph]:
    """What else belongs to the promise: of the stages before the mechanism, and releases of a series."""
    texts = [stage.WORDS.promise(release) for stage in stage_rooms("words")]
    series = release.manifest.series
    if series and series.kind == "batches":
        texts.append("Every batch keeps the promise by itself; together they can tell more than each alone.")
    return [Paragraph(text=text) for text in texts if text is not None]
