"""The run's secret key and the independent random streams that derive from it.

Every step of every mechanism draws from a stream of its own name, so that adding a step, or running
the steps elsewhere, does not change what another step draws. A stream is AES-128 in counter mode,
keyed with HMAC-SHA256(run key, name): streams of different names are independent as long as
HMAC-SHA256 is a pseudo-random function. The key comes from the operating system unless a seed is
given; a seeded run can be repeated by anyone who knows the seed and must not be published.

Coins are tossed with exactly the rational probability that is asked for.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from dalenius.arrays import Bools, Ints

_KEY_BYTES = 32
KEY_BITS = 63
"""Of the random numbers that rows are put in order by."""
_DIGIT = 2**62


@dataclass(frozen=True, slots=True, kw_only=True)
class Randomness:
    """A run's key. `stream("step", 3)` is the generator of that step.

    >>> a, b = Randomness.seeded(1), Randomness.seeded(1)
    >>> bool(a.stream("x").integers(2**62) == b.stream("x").integers(2**62))
    True
    >>> bool(a.stream("x").integers(2**62) == a.stream("y").integers(2**62))
    False
    """

    key: bytes = field(repr=False)
    """The run's secret. It never leaves the process that publishes; tasks elsewhere get a child's."""
    is_seeded: bool = False
    """Whether what is made with it is not for publication."""

    @classmethod
    def fresh(cls) -> Randomness:
        """A new key from the operating system's cryptographic source."""
        return cls(key=secrets.token_bytes(_KEY_BYTES))

    @classmethod
    def seeded(cls, seed: int) -> Randomness:
        """A repeatable key, for tests and demonstrations only."""
        digest = hashlib.sha256(f"dalenius seed {seed}".encode()).digest()
        return cls(key=digest, is_seeded=True)

    @classmethod
    def rehearsing(cls) -> Randomness:
        """A new key for a run that nobody publishes."""
        return cls(key=secrets.token_bytes(_KEY_BYTES), is_seeded=True)

    def derived_key(self, *name: str | int) -> bytes:
        """32 bytes that only the holder of the run's key can compute, for the given name."""
        label = "\x1f".join(f"{type(part).__name__}:{_escape(str(part))}" for part in name)
        return hmac.new(self.key, label.encode(), hashlib.sha256).digest()

    def child(self, *name: str | int) -> Randomness:
        """A key of its own for a step that runs elsewhere: who has it cannot compute this one."""
        return Randomness(key=self.derived_key("child", *name), is_seeded=self.is_seeded)

    def stream(self, *name: str | int) -> np.random.Generator:
        """The generator for the step of that name."""
        from randomgen import AESCounter  # not before it is needed: who only asks a release draws nothing

        digest = self.derived_key(*name)
        key = int.from_bytes(digest[:16], "little")
        return np.random.Generator(AESCounter(key=key))


def _escape(part: str) -> str:
    r"""A part of a name without the character that parts are joined by, so that no two names are one label.

    >>> _escape("a\x1fb") == _escape("a\\u001fb"), _escape("usual")
    (False, 'usual')
    """
    return part.replace("\\", "\\\\").replace("\x1f", "\\x1f")


def random_keys(stream: np.random.Generator, n: int) -> Ints:
    """So many random numbers of `KEY_BITS` bits.

    >>> random_keys(Randomness.seeded(1).stream("order"), 1000).min() >= 0
    np.True_
    """
    # whole words: numbers below 2⁶³ are drawn by a method for any bound, which takes three times as long
    return (stream.integers(2**64, size=n, dtype=np.uint64) >> np.uint64(64 - KEY_BITS)).view(np.int64)


def toss(probability: Fraction, n_coins: int, stream: np.random.Generator) -> Bools:
    """Independent coins that are true with exactly this probability.

    A uniform number in [0,1) is compared with the probability digit by digit, in base 2^62; further
    digits are drawn only for the coins that are still tied.
    """
    threshold, rest = divmod(probability * _DIGIT, 1)
    digits = stream.integers(_DIGIT, size=n_coins)
    result: Bools = digits < threshold
    tied = np.flatnonzero(digits == threshold)
    if len(tied) and rest:
        result[tied] = toss(rest, len(tied), stream)
    return result
