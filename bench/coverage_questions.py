"""A synthetic table, random questions about it, and the truth."""

from __future__ import annotations

from collections.abc import Sequence

import duckdb
import numpy as np
import pyarrow as pa

QUASI = ("age", "sex", "region", "school")
COLUMNS = ("COUNT(*)", "SUM(age)", "AVG(age)", "the share of women")


def people(n: int = 3_000, seed: int = 1) -> pa.Table:
    """A table whose twelve diseases depend on age, sex and schooling, some strongly."""
    rng = np.random.default_rng(seed)
    age, sex = rng.integers(20, 60, n), rng.integers(2, size=n)
    school = np.clip(rng.normal(2.5 + (age < 35) * 1.0, 1.3, n).round(), 0, 5).astype(int)
    lean = rng.normal(size=(12, 3)) * 0.9
    utility = (
        np.outer((age - 40) / 12, lean[:, 0])
        + np.outer(sex - 0.5, 2 * lean[:, 1])
        + np.outer(school - 2.5, lean[:, 2])
    )
    disease = (utility - 0.12 * np.arange(12) + rng.gumbel(size=(n, 12))).argmax(axis=1)
    return pa.table(
        {
            "age": age,
            "sex": np.array(["F", "M"])[sex],
            "region": rng.integers(1, 9, n),
            "school": school,
            "disease": np.array([f"d{k:02d}" for k in range(12)])[disease],
        }
    )


def questions(n: int, seed: int) -> list[str]:
    """Random conditions on one to three quasi columns and on the disease, of all sizes."""
    rng = np.random.default_rng(seed)
    domains: dict[str, Sequence[object]] = {
        "age": list(range(20, 60)),
        "sex": ["F", "M"],
        "region": list(range(1, 9)),
        "school": list(range(6)),
    }
    diseases = [f"d{k:02d}" for k in range(12)]
    texts = []
    for _ in range(n):
        columns = rng.choice(QUASI, int(rng.integers(1, 4)), replace=False).tolist()
        share = rng.choice([0.15, 0.35, 0.7])
        parts = [_membership(column, domains[column], share, rng) for column in columns]
        parts.append(_membership("disease", diseases, rng.choice([0.05, 0.2, 0.5]), rng))
        texts.append(
            "SELECT COUNT(*), SUM(age), AVG(age), COUNT(*) FILTER (WHERE sex = 'F') / COUNT(*) "
            f"FROM t WHERE {' AND '.join(parts)}"
        )
    return texts


def _membership(column: str, domain: Sequence[object], share: float, rng: np.random.Generator) -> str:
    chosen = rng.choice(len(domain), max(1, round(share * len(domain))), replace=False)
    return f"{column} IN ({', '.join(repr(domain[k]) for k in sorted(chosen))})"


def truths(table: pa.Table, texts: list[str]) -> np.ndarray:
    """Questions × columns: what DuckDB says about the table; NaN for NULL."""
    with duckdb.connect() as connection:
        connection.register("t", table)
        rows = connection.execute(" UNION ALL ".join(texts)).fetchall()
    return np.array([[np.nan if cell is None else float(cell) for cell in row] for row in rows])
