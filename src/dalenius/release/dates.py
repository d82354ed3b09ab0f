"""A series of dates: one table, published again as people come and leave.

Whoever was published before must be known again, and so must what bucket she is in and whether her value is
still the one that she came with. For that the publisher keeps a private file beside the ledger: of everybody
who was ever published a digest of the person's identifier, one of the identifier as one would say it, one of
identifier and value together, one of other identifiers, and the number of the bucket. All digests are under
the ledger's key, which is not in the file: without it the file tells how many people there are in which
bucket, as the releases do, and who shares other identifiers with whom. There is a file for every date, which
is written before the release appears; only the last one is kept.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from math import log
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dalenius import system
from dalenius.arrays import Bools, Ints
from dalenius.engines.base import OpenedTable
from dalenius.errors import InputError, PromiseNotMet
from dalenius.files import make_private
from dalenius.mechanisms.base import NEW, WITHHELD, KeptPeople
from dalenius.release.folder import StoredRelease
from dalenius.release.ledger import Ledger

if TYPE_CHECKING:  # what is published is checked without what reads a policy
    from dalenius.policy import Policy

_GONE, _PLAIN, _ALSO = "gone", "plain", "also"
_FALSE_ALARM = 1e-6
"""The chance that people who are new are taken for people who have left."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Roll:
    """Everybody who was published so far, in the order of their digests."""

    person: pa.Array
    value: pa.Array
    """Of person and value, at the date when the person came."""
    bucket: Ints
    gone: Bools
    """Whose value has changed, and who left for good."""
    plain: pa.Array
    """Of the person's identifier in another spelling; empty where it was not written down at the time."""
    also: pa.Array
    """Of what the person has beside the identifier, such as a name; empty alike."""

    @classmethod
    def empty(cls) -> Roll:
        """Before the first date."""
        none = pa.array([], pa.string())
        return cls(
            person=none,
            value=none,
            bucket=np.zeros(0, dtype=np.int64),
            gone=np.zeros(0, dtype=np.bool_),
            plain=none,
            also=none,
        )

    @classmethod
    def read(cls, path: Path) -> Roll:
        """From the publisher's private file."""
        import pyarrow.parquet as pq

        try:
            table = pq.read_table(path)
            for name in {_PLAIN, _ALSO} - {*table.column_names}:
                table = table.append_column(name, _no_digests(table))
            table = table.select(["person", "value", "bucket", _GONE, _PLAIN, _ALSO])
        except (OSError, pa.ArrowException, KeyError) as error:
            raise InputError(
                f"{path} cannot be read, which says who is in which bucket of this series",
                hint="put it back as it was: without it the people of the next date cannot be known again",
            ) from error
        return cls(
            person=table.column("person").combine_chunks(),
            value=table.column("value").combine_chunks(),
            bucket=table.column("bucket").to_numpy().astype(np.int64),
            gone=table.column(_GONE).to_numpy(zero_copy_only=False).astype(np.bool_),
            plain=table.column(_PLAIN).combine_chunks(),
            also=table.column(_ALSO).combine_chunks(),
        )

    def write(self, path: Path) -> None:
        """So that only its owner can read it."""
        import pyarrow.parquet as pq

        if not path.parent.is_dir():
            system.make_private_folder(path.parent)
        make_private(path)
        columns = {"person": self.person, "value": self.value, "bucket": self.bucket, _GONE: self.gone}
        columns |= {_PLAIN: self.plain, _ALSO: self.also}
        pq.write_table(pa.table(columns), path)

    def find(self, person: pa.Array) -> Ints:
        """Where each of some people is; −1: nowhere."""
        place = _texts(self.person)
        wanted = _texts(person)
        if not len(place):
            return np.full(len(wanted), -1)
        found = np.minimum(np.searchsorted(place, wanted), len(place) - 1)
        return np.where(place[found] == wanted, found, -1)


def _no_digests(table: pa.Table) -> pa.Array:
    """Of people who were published before this was written down too."""
    return pa.array([""] * len(table), pa.string())


def _texts(digests: pa.Array | pa.ChunkedArray) -> NDArray[np.bytes_]:
    return np.asarray(digests.to_numpy(zero_copy_only=False)).astype("S32")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NextDate:
    """The people of the table of the next date, and what the publisher remembers of them."""

    people: pa.Table
    """`person`, `value` and the sensitive cells, a row a record."""
    roll: Roll
    place: Ints
    """Where each record's person is in the roll; −1: new."""
    changed: Bools
    renumbered: int
    """How many who would be new are probably people who were there under another identifier."""
    kept: KeptPeople
    folder: Path
    series_id: str
    index: int

    @classmethod
    def of(
        cls,
        policy: Policy,
        scan: OpenedTable,
        ledger: Ledger,
        series_id: str,
        earlier: tuple[StoredRelease, ...],
    ) -> NextDate:
        """Find everybody again.

        Raises:
            InputError: nobody is known, or a value has changed and the policy does not say what then.
        """
        folder, sensitive = people_folder(ledger), list(policy.columns.sensitive)
        key = hmac.new(ledger.key(), b"people" + series_id.encode(), hashlib.sha256).digest()
        people = scan.people(policy, key)
        roll = Roll.read(_file(folder, series_id, len(earlier))) if earlier else Roll.empty()
        place = roll.find(people.column("person"))
        is_known = place >= 0
        _refuse_spellings(roll, people.column(_PLAIN).filter(pa.array(~is_known)), policy)
        if earlier and not is_known.any():
            raise InputError(
                f"none of the {len(place)} people of this table was in the series before",
                hint="unit must be the same identifier for a person at every date; a table of other people "
                "is a series of its own",
            )
        bucket = np.where(is_known, roll.bucket[place] if len(roll.bucket) else NEW, NEW)
        own = _texts(people.column("value"))
        changed = is_known.copy()
        changed[is_known] = _texts(roll.value)[place[is_known]] != own[is_known]
        if changed.any() and policy.changed is None:
            from dalenius.policy import TELL_CHANGED

            raise PromiseNotMet(
                f"{int(changed.sum())} people have another sensitive value than when they came, and the "
                "policy does not say what then",
                hint=f"[series] {TELL_CHANGED}",
            )
        if policy.changed == "leaves":
            gone = is_known.copy()
            gone[is_known] = roll.gone[place[is_known]]
            bucket[changed | gone] = WITHHELD
        return cls(
            people=people,
            roll=roll,
            place=place,
            changed=changed,
            renumbered=_count_renumbered(roll, place, people.column(_ALSO)),
            kept=KeptPeople(
                bucket=bucket,
                cells=people.select(sensitive).filter(pa.array(bucket == NEW)),
                known=_known_buckets(earlier, policy, scan.schema),
                n_changed=int(changed.sum()),
            ),
            folder=folder,
            series_id=series_id,
            index=len(earlier) + 1,
        )

    @contextmanager
    def remember(self, bucket: Ints, *, leaves: bool) -> Iterator[None]:
        """Write down who is where now; it is taken back if the release does not come to be."""
        path = _file(self.folder, self.series_id, self.index)
        self._next_roll(bucket, leaves=leaves).write(path)
        try:
            yield
        except BaseException:
            path.unlink(missing_ok=True)
            raise
        _file(self.folder, self.series_id, self.index - 1).unlink(missing_ok=True)

    def _next_roll(self, bucket: Ints, *, leaves: bool) -> Roll:
        is_new = self.place < 0
        gone = self.roll.gone.copy()
        if leaves:
            gone[self.place[self.changed]] = True
        fresh = self.people.filter(pa.array(is_new))
        person = pa.concat_arrays([self.roll.person, fresh.column("person").combine_chunks()])
        order = np.argsort(_texts(person), kind="stable")
        value = pa.concat_arrays([self.roll.value, fresh.column("value").combine_chunks()])
        return Roll(
            person=person.take(pa.array(order)),
            value=value.take(pa.array(order)),
            bucket=np.concatenate([self.roll.bucket, bucket[is_new]])[order],
            gone=np.concatenate([gone, np.zeros(int(is_new.sum()), dtype=np.bool_)])[order],
            **{
                name: pa.concat_arrays([before, fresh.column(name).combine_chunks()]).take(pa.array(order))
                for name, before in ((_PLAIN, self.roll.plain), (_ALSO, self.roll.also))
            },
        )


def _refuse_spellings(roll: Roll, newcomers: pa.ChunkedArray, policy: Policy) -> None:
    """Nobody gets a second bucket because the unit is written in another way than before."""
    n_known = int(np.isin(_texts(newcomers), _texts(roll.plain)).sum())
    if n_known:
        who = "1 person would" if n_known == 1 else f"{n_known} people would"
        raise InputError(
            f"{who} be new whose {policy.columns.unit!r} was in the series before, written in another way "
            "(in case, spaces, zeros before it or a decimal point): who has two buckets has a value that "
            "both hold",
            hint="write the unit as at the earlier dates",
        )


def _count_renumbered(roll: Roll, place: Ints, also: pa.ChunkedArray) -> int:
    """Who would be new and is like somebody who has left; 0 where as many of those who stay are.

    People who stay are others than those who have left, and show how often others are alike by chance. That k
    of n newcomers are among those that a share q of all is has at most the probability exp(−n·KL(k/n, q)),
    also if they are drawn without replacement (Hoeffding, 1963).
    """
    is_new = place < 0
    has_left = np.ones(len(roll.bucket), dtype=np.bool_)
    has_left[place[~is_new]] = False
    left = np.unique(_texts(roll.also)[has_left])
    is_alike = np.isin(_texts(also), left[left != b""])
    n, k, q = int(is_new.sum()), int(is_alike[is_new].sum()), float(is_alike.mean())
    if not k or k / n <= q:
        return 0
    doubt = 0.0 if k == n else (n - k) * log((1 - k / n) / (1 - q))
    return k if k * log(k / n / q) + doubt >= log(1 / _FALSE_ALARM) else 0


def people_folder(ledger: Ledger) -> Path:
    """Where the rolls of a ledger's series are."""
    return ledger.path.with_name(f"{ledger.path.name}.people")


def new_series_id() -> str:
    """A random one."""
    return secrets.token_hex(16)


def _file(folder: Path, series_id: str, index: int) -> Path:
    return folder / f"{series_id}-{index}.parquet"


def _known_buckets(earlier: tuple[StoredRelease, ...], policy: Policy, schema: pa.Schema) -> pa.Table:
    """Every bucket that was ever published, with its values, from the last release that lists it."""
    sensitive = policy.columns.sensitive
    wanted = pa.schema(
        [
            ("bucket", pa.int64()),
            *((name, schema.field(name).type) for name in sensitive),
            ("count", pa.int64()),
        ]
    )
    found, seen = [wanted.empty_table()], np.zeros(0, dtype=np.int64)
    for release in reversed(earlier):
        table = release.read("st", wanted.names).cast(wanted)
        bucket = table.column("bucket").to_numpy()
        found.append(table.filter(pa.array(~np.isin(bucket, seen))))
        seen = np.union1d(seen, bucket)
    return pa.concat_tables(found).sort_by("bucket").combine_chunks()
