"""What thinning values to limits of their own costs: records withheld, coverage and error of the answers.

    python -m bench.limit_coverage [--data FOLDER] [--rows 12000] [--releases 2]

Adult, education (the commonest of 16 values has 32.6 %). Questions: each value with each of two conditions,
where at least five published people satisfy both; the truth is that of the published records.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

import dalenius
from dalenius.reproduce.microdata import data_folder

RARE = {"Doctorate": 0.1, "Preschool": 0.1, "1st-4th": 0.1}
POLICIES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "l-diversity, l = 5": ({"kind": "l-diversity", "l": 5}, {}),
    "f-privacy, 1/5, three rare values 1/10": ({"kind": "f-privacy", "default": 0.2, "values": RARE}, {}),
    "f-privacy 1/5 by perturb": ({"kind": "f-privacy", "default": 0.2}, {"kind": "perturb"}),
    "rho-privacy, max to 1/5, by perturb": (
        {"kind": "rho-privacy", "rho1": "max", "rho2": "1/5"},
        {"kind": "perturb"},
    ),
}
COLUMNS = ["age", "sex", "race", "occupation", "education"]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, default=data_folder())
    parser.add_argument("--rows", type=int, default=12_000)
    parser.add_argument("--releases", type=int, default=2)
    options = parser.parse_args()
    adult = pd.read_csv(options.data / "adult.csv")[COLUMNS].sample(options.rows, random_state=1)
    table = adult.assign(uid=np.arange(options.rows))
    print("| promise | withheld | questions | 95 % | root mean square error |\n|---|---|---|---|---|")
    for name, (promise, mechanism) in POLICIES.items():
        found = [_measure(table, promise, mechanism, seed) for seed in range(options.releases)]
        held, errors = (np.concatenate([one[i] for one in found]) for i in (1, 2))
        rmse = np.sqrt(np.mean(np.square(errors)))
        print(f"| {name} | {found[0][0]} | {len(held)} | {held.mean():.3f} | {rmse:.1f} |", flush=True)


def _measure(
    table: pd.DataFrame, promise: dict[str, Any], mechanism: dict[str, Any], seed: int
) -> tuple[int, np.ndarray, np.ndarray]:
    with tempfile.TemporaryDirectory() as folder:
        policy = dalenius.Policy.from_dict(
            {
                "source": pa.Table.from_pandas(table, preserve_index=False),
                "release": "release",
                "columns": {"quasi": [*COLUMNS[:-1], "uid"], "sensitive": ["education"]},
                "promise": promise,
                "mechanism": mechanism,
                "suppress": {"method": "safe"},
                "ledger": {"path": "ledger"},
            },
            folder=folder,
        )
        release = dalenius.publish(policy, seed=seed)
        shown = pq.read_table(
            release.path / ("data.parquet" if mechanism else "qit.parquet"), columns=["uid"]
        )
        kept = table.set_index("uid").loc[shown["uid"].to_numpy()]
        truth = {}
        for value in sorted(kept.education.unique()):
            for condition, holds in (("sex = 'Female'", kept.sex == "Female"), ("age >= 40", kept.age >= 40)):
                sql = f"SELECT COUNT(*) FROM t WHERE {condition} AND education = '{value}'"
                truth[sql] = int(((kept.education == value) & holds).sum())
        asked = {sql: n for sql, n in truth.items() if n >= 5}
        rows = [answer.rows[0] for answer in release.ask_many(asked)]
    pairs = list(zip(rows, asked.values(), strict=True))
    held = np.array([(row.low or 0) <= n <= (row.high or 0) for row, n in pairs])
    return len(table) - len(kept), held, np.array([(row.estimate or 0) - n for row, n in pairs])


if __name__ == "__main__":
    main()
