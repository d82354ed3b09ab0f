"""What is asked in the background is answered, and dropped when nobody waits for it any more."""

from __future__ import annotations

from functools import partial
from threading import Event

import duckdb
import pytest

from dalenius.engines.local.source import Background
from dalenius.sql import connect, count

_FOREVER = "SELECT count(*) FROM range(10000000) AS a, range(10000000) AS b WHERE a.range * b.range = 7"


def test_answers_come_while_the_first_connection_is_used() -> None:
    with connect() as connection, Background(connection) as background:
        first = connection.sql("SELECT * FROM range(1000000)").to_arrow_reader(1000)
        next(first)
        answers = [background.start(partial(count, sql=f"SELECT {i} + 1")) for i in range(3)]
        assert [answer.result() for answer in answers] == [1, 2, 3]
        assert sum(batch.num_rows for batch in first) == 999_000


def test_an_error_is_raised_where_the_answer_is_taken() -> None:
    with connect() as connection, Background(connection) as background:
        answer = background.start(lambda second: count(second, "SELECT count(*) FROM missing"))
        with pytest.raises(duckdb.CatalogException):
            answer.result()


def test_who_leaves_does_not_wait_for_answers() -> None:
    """Without the interruption this test would not end."""
    begun = Event()

    def ask(second: duckdb.DuckDBPyConnection) -> int:
        begun.set()
        return count(second, _FOREVER)

    with connect() as connection:
        with pytest.raises(KeyError), Background(connection) as background:  # noqa: PT012
            running, waiting = background.start(ask), background.start(ask)
            assert begun.wait(timeout=60)
            raise KeyError("as Ctrl-C would be")
        assert waiting.cancelled()
        assert isinstance(running.exception(), duckdb.InterruptException)
        assert count(connection, "SELECT 1") == 1, "the first connection goes on"
