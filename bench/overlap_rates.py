"""How often the ledger takes different people for the same, and misses the same people.

    python -m bench.overlap_rates [PAIRS]

Unrelated tables share all domains (age, sex, city, job, disease), the population and the numbering of their
rows, and are of different sizes. Misses are counted for tables of which some people are in an earlier one.
"""

from __future__ import annotations

import sys
from itertools import combinations, islice

import numpy as np
import pyarrow as pa

from dalenius.tables.sketch import Sketch, find_overlap
from tests.people import people, sketch

SIZES = (20, 30, 50, 100, 300, 1000, 3000)
SHARES = (1.0, 0.5, 0.25, 0.1)
_DRAWS = 10


def unrelated(n_tables: int) -> list[Sketch]:
    """Tables of different people, of all kinds of columns and sizes."""
    rng = np.random.default_rng(1)
    found = []
    for seed in range(n_tables):
        n_rows = int(10 ** rng.uniform(1.5, 3.7))
        table = people(n_rows, 10_000 + seed)
        if seed % 3 == 0:
            table = table.select(["age", "sex", "disease"])
        if seed % 2:
            table = table.append_column("id", pa.array(np.arange(n_rows) + 1))
        found.append(sketch(table))
    return found


def numbered(table: pa.Table, first: int, n_columns: int) -> pa.Table:
    """With so many columns of running numbers."""
    for i in range(n_columns):
        numbers = [f"{'PQ'[i]}{first + row}" for row in range(len(table))]
        table = table.append_column(f"number {i}", pa.array(numbers))
    return table


def missed(n_rows: int, share: float, n_numbers: int = 0) -> float:
    """How often a table is not known of which this share of people is in an earlier one of the same size.

    Running numbers of the earlier one are those of its rows; beside others' from far away they are no more.
    """
    n_missed = 0
    for draw in range(_DRAWS):
        earlier, n_same = numbered(people(n_rows, 2 * draw), 0, n_numbers), round(share * n_rows)
        rest = numbered(people(max(n_rows - n_same, 1), 2 * draw + 1), 10**6, n_numbers)
        new = pa.concat_tables([earlier.slice(0, n_same), rest])  # with all people, one more
        n_missed += find_overlap(sketch(new), sketch(earlier)) is None
    return n_missed / _DRAWS


def main() -> None:
    """Print both."""
    n_pairs = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    tables = unrelated(int((2 * n_pairs) ** 0.5) + 2)
    pairs = list(islice(combinations(tables, 2), n_pairs))
    alarms = sum(find_overlap(a, b) is not None for a, b in pairs)
    print(f"false alarms: {alarms} of {len(pairs):,} pairs of tables of different people", flush=True)
    print("missed, by the number of people and the share of them that was published before:")
    print("people  " + "".join(f"{share:>8.0%}" for share in SHARES))
    for n_rows in SIZES:
        print(f"{n_rows:>6,}  " + "".join(f"{missed(n_rows, share):>8.0%}" for share in SHARES), flush=True)
    print("of 300 people who have one and two numbers, which run on in the earlier table only:")
    for n_numbers in (1, 2):
        print(f"{n_numbers:>6,}  " + "".join(f"{missed(300, share, n_numbers):>8.0%}" for share in SHARES))


if __name__ == "__main__":
    main()
