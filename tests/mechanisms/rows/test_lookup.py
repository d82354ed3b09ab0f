"""What expressions were worth is remembered, but not without an end, and never wrongly."""

from __future__ import annotations

import pyarrow as pa
import pytest

from dalenius.mechanisms.rows.lookup import Lookup
from dalenius.question.database import Database, Deadline, Limits, Remembered, Workspace
from dalenius.question.query import Expression
from dalenius.tables.columns import CodedTable

PEOPLE = CodedTable.of(pa.table({"age": [20, 20, 30, 40], "sex": ["F", "M", "F", "M"]}))
SECRET = CodedTable.of(pa.table({"ill": ["flu", "cold"]}))


def older(years: int) -> Expression:
    return Expression(sql=f"__row.age > {years}", columns=("age",))


class Counted(Database):
    """Counts how many expressions it was given."""

    n = 0

    def select(self, expressions: list[str], rows: pa.Table, deadline: Deadline) -> pa.Table:
        self.n += len(expressions)
        return super().select(expressions, rows, deadline)


@pytest.fixture
def database() -> Counted:
    return Counted({}, Limits())


def lookup(database: Database, remembered: Remembered) -> Lookup:
    workspace = Workspace(database=database, deadline=Deadline(Limits()), remembered=remembered)
    return Lookup(rows=PEOPLE, sensitive=SECRET, workspace=workspace)


def test_an_expression_is_evaluated_once_and_the_oldest_are_forgotten(database: Counted) -> None:
    remembered = Remembered(most=3)
    found = lookup(database, remembered)
    for years in (10, 25, 35, 10, 45, 10):
        found.prepare([older(years)])
        assert found.values(older(years)).to_pylist() == [age > years for age in (20, 30, 40)]
    assert database.n == 4
    remembered.forget_oldest()
    known = [years for years in (10, 25, 35, 45) if remembered.get(older(years).sql) is not None]
    assert known == [10, 35, 45]  # 25 was not needed for longest
    assert found.values(older(25)).to_pylist() == [False, True, True]
    assert database.n == 5


def test_what_is_prepared_together_stays_until_the_next_question(database: Counted) -> None:
    found = lookup(database, Remembered(most=2))
    found.prepare([older(years) for years in range(20)])
    assert database.n == 20
    assert all(found.values(older(years)) is not None for years in range(20))
    assert database.n == 20
    found.prepare([older(0)])
    assert database.n == 21


def test_many_bytes_are_forgotten_too(database: Counted) -> None:
    remembered = Remembered(most_bytes=2)
    found = lookup(database, remembered)
    for years in range(50):
        found.prepare([older(years)])
    remembered.forget_oldest()
    assert sum(remembered.get(older(years).sql) is not None for years in range(50)) <= 2
