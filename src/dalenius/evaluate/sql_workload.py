"""The user's own questions: a file of SELECT statements, separated by semicolons."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import sqlglot
from sqlglot.tokenizer_core import Token, TokenType

from dalenius.ask.query import Query
from dalenius.ask.refusal import place
from dalenius.ask.sql import parse
from dalenius.errors import InputError, QueryError
from dalenius.evaluate.original import Original
from dalenius.evaluate.questions import Questions, TrueAnswer
from dalenius.evaluate.true_answer import answer_truly, most_changed

_CHOOSING = {TokenType.HAVING: "HAVING", TokenType.LIMIT: "LIMIT", TokenType.OFFSET: "OFFSET"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """One statement, and where in its file it starts."""

    text: str
    start: int
    """The number of characters before it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SqlWorkload:
    """Questions as they are written, asked of one table under any name."""

    name: str
    text: str

    @classmethod
    def from_file(cls, path: str | Path) -> SqlWorkload:
        """Read a file; its questions are checked when the table is known."""
        file = Path(path)
        try:
            text = file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"the workload {file} cannot be read as text") from error
        return cls(name=file.name, text=text)

    def questions(self, original: Original, stream: np.random.Generator) -> Questions:  # noqa: ARG002
        """Check every statement and answer it on the original; nothing is random."""
        found = self.statements()
        if not found:
            raise InputError(
                f"{self.name} holds no question",
                hint="write SELECT COUNT(*) FROM t WHERE …; one after the other",
            )
        parsed = [self._parse(statement, original.table) for statement in found]
        changes = [most_changed(query) for query in parsed]
        return Questions(
            sqls=tuple(statement.text for statement in found),
            answers=tuple(self._answer(*pair, original.table) for pair in zip(found, parsed, strict=True)),
            most_changed=None if None in changes else sum(change or 0 for change in changes),
        )

    def _answer(self, statement: Statement, query: Query, table: pa.Table) -> TrueAnswer:
        try:
            return answer_truly(query, table)
        except QueryError as error:
            where = place(self.text, statement.start)
            raise QueryError(f"{self.name}, {where}: {error.message}", hint=error.hint) from error

    def statements(self) -> list[Statement]:
        """The statements; semicolons in texts and comments do not end one.

        >>> workload = SqlWorkload(name="own.sql", text="SELECT ';' /* a;b */; SELECT 2;")
        >>> [statement.text for statement in workload.statements()]
        ["SELECT ';'", 'SELECT 2']
        """
        statements: list[Statement] = []
        own: list[Token] = []
        for token in [*self._tokens(), None]:
            if token is not None and token.token_type != TokenType.SEMICOLON:
                own.append(token)
            elif own:
                start, end = own[0].start, own[-1].end + 1
                statements.append(Statement(text=self.text[start:end], start=start))
                own = []
        return statements

    def _tokens(self) -> list[Token]:
        try:
            return sqlglot.tokenize(self.text, read="duckdb")
        except sqlglot.errors.SqlglotError as error:
            raise InputError(f"{self.name} is not SQL: {str(error).splitlines()[0]}") from error

    def _parse(self, statement: Statement, table: pa.Table) -> Query:
        self._refuse_choosing(statement)
        # Blanks for what comes before it: places in messages are then places in the file.
        before = "".join(sign if sign == "\n" else " " for sign in self.text[: statement.start])
        try:
            return parse(before + statement.text, table.column_names)
        except QueryError as error:
            raise QueryError(f"{self.name}, {error.message}", hint=error.hint) from error

    def _refuse_choosing(self, statement: Statement) -> None:
        """HAVING and LIMIT show other groups of a release than of the table: there is nothing to compare."""
        for token in sqlglot.tokenize(statement.text, read="duckdb"):
            if token.token_type in _CHOOSING:
                where = place(self.text, statement.start + token.start)
                raise QueryError(
                    f"{self.name}, {where}: {_CHOOSING[token.token_type]} chooses groups by their estimates, "
                    "which differ from release to release",
                    hint="leave it out: a workload compares all groups",
                )
