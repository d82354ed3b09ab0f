"""The words that a report uses, for who reads one for the first time."""

from __future__ import annotations

from dalenius.pages.document import Facts, Section
from dalenius.release.folder import StoredRelease

_ALWAYS = {
    "Quasi-identifier": "something that others may know about a person, such as age, sex or district",
    "Sensitive value": "what others must not find out about a person, such as a disease",
    "95 % interval": "where the true number is, 95 times in 100",
    "Attacker": "anybody who tries to find out something about one person; it may be a neighbour",
    "Manifest": "the file in the release that says what was published, what is promised and what is not",
}
_BY_MECHANISM = {
    "bucketize": {
        "Bucket": "a small group of people whose sensitive values are listed together, in no order",
        "Corruption": "an attacker who already knows the values of the others in a bucket",
        "deFinetti": "an attack that learns from all buckets how values go with age, sex and the like",
        "Fake": "a made-up value in a bucket, which is nobody's",
    },
    "perturb": {
        "Part": "records that have few different values, perturbed with the same coins",
        "gamma": "how much likelier it is that a value is published as it is than as one given other value",
        "rho1, rho2": "the belief in a value before the release that is protected, and the limit after it",
    },
    "alpha-beta": {
        "Tuple": "a row: one value for each column",
        "Domain": "all rows that are possible, whether they occur or not",
        "View": "a published mixture of real rows and rows that were added at random",
        "d, gamma": "the belief in a row before the release that is protected, and the limit after it",
    },
}


def describe_words(release: StoredRelease) -> Section:
    """The section that explains words."""
    words = _ALWAYS | _BY_MECHANISM.get(release.mechanism, {})
    return Section(
        id="words",
        title="Words",
        blocks=(Facts(items=tuple(sorted(words.items(), key=lambda entry: entry[0].casefold()))),),
    )
