"""What expressions were worth is remembered, but not without an end, and never wrongly."""

from __future__ import annotations

import pyarrow as pa
import pytest

from dalenius.mechanisms.rows.lookup import Lookup
from dalenius.question.database import Database, Deadline, Limits, Remembered, Workspace
from dalenius.question.query import Expression, UpTo, atoms, expression_of
from dalenius.question.sql import parse
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


CELLS = [-(2**31), -7, 0, None, 3, 7, 2**31 - 1]
KINDS = [pa.int64(), pa.int32(), pa.float64(), pa.decimal128(21, 2)]
BEYOND = ("300000000000", "-300000000000", "9223372036854775807", "9223372036854775808")
NUMBERS = ("0", "3", "-7", "7", "2.5", *BEYOND)
WITHOUT = {pa.int64(), pa.int32()}


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("is_secret", [False, True])
def test_comparisons_with_whole_numbers_are_as_duckdb_has_them(kind: pa.DataType, is_secret: bool) -> None:
    column = pa.array(CELLS, pa.int64()).cast(kind)
    table, other = CodedTable.of(pa.table({"x": column})), CodedTable.of(pa.table({"y": ["a", "b"]}))
    database = Counted({}, Limits())
    workspace = Workspace(database=database, deadline=Deadline(Limits()))
    found = Lookup(
        rows=other if is_secret else table, sensitive=table if is_secret else other, workspace=workspace
    )
    signs = ("<", "<=", ">", ">=", "<>", "!=", "=")
    texts = [f"x {sign} {number}" for sign in signs for number in NUMBERS]
    texts += ["x BETWEEN -7 AND 3", "x NOT BETWEEN 0 AND 7", "x BETWEEN 7 AND 0"]
    n_plain = 0
    for text in texts:
        for atom in atoms(parse(f"SELECT COUNT(*) FROM t WHERE {text}", ["x", "y"]).where):
            n_before = database.n
            truths = found.truths(atom)
            n_plain += database.n == n_before and not isinstance(atom, Expression)
            expected = Lookup(rows=found.rows, sensitive=found.sensitive, workspace=workspace).values(
                Expression(sql=f"CAST(({expression_of(atom).sql}) AS INT)", columns=("x",))
            )
            assert truths.ravel().tolist() == [-1 if one is None else one for one in expected.to_pylist()], (
                text
            )
    assert (n_plain > 40) == (kind in WITHOUT)


def test_a_column_by_itself_is_as_duckdb_has_it(database: Counted) -> None:
    found = lookup(database, Remembered())
    for name in ("age", "sex", "ill"):
        plain = Expression(sql=f'__row."{name}"', columns=(name,))
        own = found.values(plain)
        assert database.n == 0
        (again,) = found._evaluate((name,), [plain.sql])
        assert own.type == again.type
        assert own.to_pylist() == again.to_pylist()
        database.n = 0


@pytest.mark.parametrize("limit", [-0.5, 20.0, 0.1 + 0.2, 1e300])
def test_numbers_up_to_a_limit_are_as_duckdb_has_them(database: Counted, limit: float) -> None:
    cells = pa.array([20.0, None, float("nan"), -1.0, 0.3, 0.1 + 0.2, 1e301])
    table = CodedTable.of(pa.table({"x": cells}))
    workspace = Workspace(database=database, deadline=Deadline(Limits()))
    found = Lookup(rows=table, sensitive=SECRET, workspace=workspace)
    x = Expression(sql='__row."x"', columns=("x",))
    up_to = UpTo.of(x, limit)
    values = found.values(up_to).to_pylist()
    assert values == found._evaluate(("x",), [up_to.sql])[0].to_pylist()
    assert database.n == 2  # the numbers, once, and what the test asked for
    assert found.values(UpTo.of(x, limit + 1)).null_count <= found.values(up_to).null_count
    assert database.n == 2
