"""How long `dalenius compare` takes on all columns of KDD Census-Income.

    python -m bench.compare_speed

Four policies, one for each kind of promise, and the baselines at their bounds; 300 questions, three draws of
each. DALENIUS_DATA names the folder of the data.
"""

from __future__ import annotations

import sys
import time
from typing import Any

from dalenius.evaluate.compare import compare_policies
from dalenius.evaluate.workload import AnatomyWorkload
from dalenius.policy import Policy
from dalenius.reproduce.microdata import data_file
from dalenius.tables.source import open_source

SENSITIVE = "occupation_code"
PROMISES: dict[str, dict[str, Any]] = {
    "linear": {"promise": {"kind": "f-privacy", "default": {"times": 8, "plus": "0.02"}}},
    "diverse": {"promise": {"kind": "l-diversity", "l": 5}},
    "perturbed": {
        "promise": {"kind": "rho-privacy", "rho1": "max", "rho2": "1/5"},
        "mechanism": {"kind": "perturb", "method": "least-variance"},
    },
    "view": {
        "promise": {"kind": "d-gamma-privacy", "gamma": "1/5", "k": 10},
        "mechanism": {"kind": "alpha-beta", "domains": "active", "duplicates": "distinct"},
    },
}


def policies() -> dict[str, Policy]:
    """The four policies, all for one file."""
    file = data_file("kdd_workers.csv.gz")
    names = open_source(file).column_names
    columns = {"quasi": [name for name in names if name != SENSITIVE], "sensitive": [SENSITIVE]}
    shared = {"source": str(file.absolute()), "columns": columns}
    return {name: Policy.from_dict({**shared, **own}) for name, own in PROMISES.items()}


def main() -> None:
    """One policy by itself, and then all of them with the baselines."""
    named = policies()
    for chosen in (["diverse"], list(named)):
        clock, processor = time.perf_counter(), time.process_time()
        found = compare_policies(
            {name: named[name] for name in chosen},
            workload=AnatomyWorkload(n_questions=300),
            seed=1,
            progress=lambda step, done, total: print(f"{step} {done}/{total}", file=sys.stderr),
        )
        taken, used = time.perf_counter() - clock, time.process_time() - processor
        print(
            f"{len(chosen)} policies, {len(found.standings)} rows, {found.n_questions} questions, "
            f"{found.n_seeds} draws: {taken:.0f} s by the clock, {used:.0f} s of processor time"
        )


if __name__ == "__main__":
    main()
