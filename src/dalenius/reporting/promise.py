"""The promise in plain words, from a manifest alone; nothing is said that the manifest does not promise."""

from __future__ import annotations

from dalenius.mechanisms.registry import stage_rooms
from dalenius.pages.document import Block, Bullets, Notice, Paragraph, Section
from dalenius.pages.words import sensitive_names, words_of
from dalenius.policy.sections import PROMISES
from dalenius.release.folder import StoredRelease


def describe_promise(release: StoredRelease) -> Section:
    """What is promised, for whom, and what is not."""
    blocks: list[Block] = [
        Notice(tone="note", title="The promise", text=_promise_in_words(release)),
        *_paragraphs(release),
    ]
    for title, items in (
        ("It does not cover", _gathered(release, "not_covered")),
        ("It assumes that", _gathered(release, "assumes")),
        ("What the release tells anyway", _gathered(release, "disclosed")),
    ):
        if items:
            blocks.append(Bullets(title=title, items=tuple(items)))
    return Section(id="promise", title="What is promised, and what is not", blocks=tuple(blocks))


def _promise_in_words(release: StoredRelease) -> str:
    """One or two sentences that say what nobody can do."""
    promise, say = release.manifest["promise"], words_of(release).promise
    if say is not None:
        return say(release)
    kind = PROMISES.get(promise["kind"])
    if kind is None:
        return f"The promise is of kind {promise['kind']}."
    return kind.in_words(promise, sensitive_names(release))


def _gathered(release: StoredRelease, entry: str) -> list[str]:
    """The sentences of all manifests of a series, each once."""
    parts = (*release.earlier, release)
    return list(dict.fromkeys(text for part in parts for text in part.manifest[entry]))


def _paragraphs(release: StoredRelease) -> list[Paragraph]:
    """What else belongs to the promise: of the stages before the mechanism, and releases of a series."""
    texts = [stage.WORDS.promise(release) for stage in stage_rooms("words")]
    series = release.manifest["series"]
    if series and series["kind"] == "batches":
        texts.append("Every batch keeps the promise by itself; together they can tell more than each alone.")
    return [Paragraph(text=text) for text in texts if text is not None]
