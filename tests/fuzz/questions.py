"""Questions from a grammar, good and bad alike, then with words left out, repeated or replaced."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from pathlib import Path

from dalenius.ask import Limits, ask
from dalenius.question.sql import parse_shared
from dalenius.release.series import open_release
from tests.fuzz.cases import Case, Finding, attempt

_COLUMNS = ("age", "sex", "ill", "AGE", '"ill"', "t.age", "agee", "bucket", "rowid", '"a b"', "x.y.z", '""')
_LITERALS = (
    *("0", "1", "-1", "35", "2.5", "1e3", "1e400", "9223372036854775807", "99999999999999999999999", "0x1F"),
    *("NULL", "TRUE", "FALSE", "'cold'", "'F'", "''", "'it''s'", "'%o%'", "E'a\\n'", "'\u202e'", "$$x$$"),
    *("DATE '2020-01-31'", "DATE '2020-13-41'", "TIMESTAMP '2020-01-01'", "INTERVAL 3 DAY", "INTERVAL 'x' y"),
    *("[1, 2]", "{'a': 1}", "MAP {'a': 1}", "?", "$1", ":name", "'" + "x" * 300 + "'", "1_000", "'\x00'"),
)
_FUNCTIONS = (
    *(
        "lower",
        "upper",
        "length",
        "abs",
        "round",
        "floor",
        "sqrt",
        "ln",
        "exp",
        "coalesce",
        "nullif",
        "concat",
    ),
    *(
        "substring",
        "replace",
        "regexp_matches",
        "greatest",
        "least",
        "year",
        "date_trunc",
        "strftime",
        "hash",
    ),
    *(
        "random",
        "now",
        "getenv",
        "read_text",
        "read_csv",
        "pg_sleep",
        "current_setting",
        "list_value",
        "range",
    ),
    *("repeat", "lpad", "generate_series", "unnest", "error", "nextval", "sha256", "printf", "chr", "foo"),
)
_AGGREGATES = ("COUNT", "SUM", "AVG", "COUNT", "SUM", "AVG", "MEDIAN", "MAX", "STRING_AGG", "LIST", "VAR_POP")
_TYPES = ("INTEGER", "VARCHAR", "DOUBLE", "DATE", "DECIMAL(5, 2)", "BOOLEAN", "BLOB", "INT[]", "nothing")
_OPERATORS = ("=", "<>", "<", "<=", ">", ">=", "LIKE", "ILIKE", "SIMILAR TO", "GLOB", "~", "IS DISTINCT FROM")
_ARITHMETIC = ("+", "-", "*", "/", "//", "%", "**", "||", "&", "<<", "^")
_STATEMENTS = (
    *(
        "DROP TABLE t",
        "SET threads = 1",
        "PRAGMA database_list",
        "COPY t TO '/tmp/x'",
        "ATTACH 'x'",
        "SELECT 1",
    ),
    *("INSERT INTO t VALUES (1)", "VALUES (1)", "FROM t", "EXPLAIN SELECT COUNT(*) FROM t", "CALL x()", ";"),
    *("DESCRIBE t", "SELECT * FROM t", "INSTALL httpfs", "", " ", "--", "/* ", "SELECT", "(((((", "\x00"),
)


class Grammar:
    """Draws texts; `deep` is how many levels are left."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng

    def question(self) -> str:
        rng = self.rng
        if rng.random() < 0.04:
            return rng.choice(_STATEMENTS)
        groups = [self.value(1) for _ in range(rng.choice((0, 0, 0, 1, 1, 2)))]
        items = [*groups, *(self.formula(2) for _ in range(rng.choice((1, 1, 1, 2, 3))))]
        named = [
            f"{item} AS {rng.choice(('n', 'm', 'age', 'x1'))}" if rng.random() < 0.2 else item
            for item in items
        ]
        text = f"SELECT {self.rarely('DISTINCT ')}{', '.join(named)} FROM {self.table()}"
        if rng.random() < 0.7:
            text += f" WHERE {self.condition(3)}"
        if groups:
            listed = (
                ", ".join(groups)
                if rng.random() < 0.7
                else rng.choice(("ALL", "1", "1, 2", "n", "ROLLUP (age)", "CUBE (sex)", "()"))
            )
            text += f" GROUP BY {listed}"
        if rng.random() < 0.15:
            text += f" HAVING {self.aggregate(1)} {rng.choice(_OPERATORS)} {rng.choice(_LITERALS)}"
        if rng.random() < 0.2:
            key = rng.choice(("1", "2 DESC", "n", self.aggregate(1), self.value(1), "ALL"))
            text += f" ORDER BY {key} {self.rarely('NULLS FIRST')}"
        if rng.random() < 0.15:
            text += f" LIMIT {rng.choice(('1', '0', '-1', '10%', 'NULL', 'age', '1e9', '3 OFFSET 1'))}"
        if rng.random() < 0.03:
            text += rng.choice(
                (
                    " UNION SELECT 1",
                    "; SELECT 1",
                    " QUALIFY 1",
                    " USING SAMPLE 3",
                    " WINDOW w AS ()",
                    " -- x",
                    " FOR UPDATE",
                )
            )
        return text

    def rarely(self, text: str) -> str:
        return text if self.rng.random() < 0.03 else ""

    def table(self) -> str:
        if self.rng.random() < 0.9:
            return self.rng.choice(("t", "t", "people", "t AS p", '"my t"'))
        return self.rng.choice(
            (
                "a.b",
                "'x.csv'",
                "t, u",
                "t JOIN u USING (age)",
                "(SELECT 1)",
                "read_csv('x')",
                "t AS p(a, b)",
                "VALUES (1)",
            )
        )

    def value(self, deep: int) -> str:
        rng = self.rng
        if deep <= 0 or rng.random() < 0.5:
            return rng.choice(_COLUMNS[:3]) if rng.random() < 0.8 else rng.choice((*_COLUMNS, *_LITERALS))
        made: tuple[Callable[[], str], ...] = (
            lambda: f"{self.value(deep - 1)} {rng.choice(_ARITHMETIC)} {self.value(deep - 1)}",
            lambda: f"({self.value(deep - 1)})",
            lambda: f"-{self.value(deep - 1)}",
            lambda: f"{rng.choice(_FUNCTIONS)}({self.listed(deep - 1, rng.choice((1, 1, 2, 3, 0)))})",
            lambda: f"CAST({self.value(deep - 1)} AS {rng.choice(_TYPES)})",
            lambda: f"TRY_CAST({self.value(deep - 1)} AS {rng.choice(_TYPES)})",
            lambda: f"{self.value(deep - 1)}::{rng.choice(_TYPES)}",
            lambda: (
                f"CASE WHEN {self.condition(deep - 1)} THEN {self.value(0)} ELSE {self.value(deep - 1)} END"
            ),
            lambda: (
                f"CASE {self.value(deep - 1)} WHEN {rng.choice(_LITERALS)} THEN {self.value(deep - 1)} END"
            ),
            lambda: f"IF({self.condition(deep - 1)}, {self.value(deep - 1)}, {self.value(deep - 1)})",
            lambda: f"{self.value(deep - 1)}[{rng.choice(('1', '1:2', 'age'))}]",
            lambda: f"(SELECT {self.value(deep - 1)}{rng.choice(('', ' FROM t', ' FROM u'))})",
            lambda: f"{self.aggregate(deep - 1)} OVER (PARTITION BY {self.value(deep - 1)})",
            lambda: f"(x -> {self.value(deep - 1)})",
            lambda: f"EXTRACT({rng.choice(('year', 'x'))} FROM {self.value(deep - 1)})",
            lambda: f"{self.value(deep - 1)} COLLATE NOCASE",
        )
        return rng.choice(made)()

    def listed(self, deep: int, n_values: int) -> str:
        return ", ".join(self.value(deep) for _ in range(n_values))

    def condition(self, deep: int) -> str:
        rng = self.rng
        if deep <= 0 or rng.random() < 0.4:
            operator = rng.choice(_OPERATORS[:6] if rng.random() < 0.7 else _OPERATORS)
            return f"{self.value(deep - 1)} {operator} {rng.choice(_LITERALS[:16])}"
        listed = ", ".join(rng.choice(_LITERALS[:20]) for _ in range(rng.choice((1, 2, 5, 0))))
        made: tuple[Callable[[], str], ...] = (
            lambda: f"{self.condition(deep - 1)} AND {self.condition(deep - 1)}",
            lambda: f"({self.condition(deep - 1)} OR {self.condition(deep - 1)})",
            lambda: f"NOT {self.condition(deep - 1)}",
            lambda: f"{self.value(deep - 1)} {self.rarely('NOT ')}IN ({listed})",
            lambda: f"{self.value(deep - 1)} BETWEEN {rng.choice(_LITERALS)} AND {rng.choice(_LITERALS)}",
            lambda: (
                f"{self.value(deep - 1)} IS {self.rarely('NOT ')}{rng.choice(('NULL', 'TRUE', 'UNKNOWN'))}"
            ),
            lambda: (
                f"({self.condition(deep - 1)}) IS {rng.choice(('NOT TRUE', 'FALSE', 'NULL', 'NOT NULL'))}"
            ),
            lambda: (
                f"({self.value(0)}, {self.value(0)}) IN (({rng.choice(_LITERALS)}, {rng.choice(_LITERALS)}))"
            ),
            lambda: f"EXISTS (SELECT 1 FROM u WHERE {self.condition(deep - 1)})",
            lambda: f"{self.value(deep - 1)} {rng.choice(_OPERATORS)} ANY ({self.value(deep - 1)})",
            lambda: self.value(deep - 1),
            lambda: f"{self.condition(deep - 1)} XOR {self.condition(deep - 1)}",
        )
        return rng.choice(made)()

    def aggregate(self, deep: int) -> str:
        rng = self.rng
        inner = "*" if rng.random() < 0.4 else f"{self.rarely('DISTINCT ')}{self.value(deep)}"
        text = f"{rng.choice(_AGGREGATES)}({inner}{self.rarely(' ORDER BY age')})"
        if inner == "*" and rng.random() < 0.9:
            text = "COUNT(*)"
        return f"{text} FILTER (WHERE {self.condition(deep - 1)})" if rng.random() < 0.15 else text

    def formula(self, deep: int) -> str:
        if deep <= 0 or self.rng.random() < 0.6:
            return self.aggregate(2)
        return self.rng.choice(
            (
                f"{self.formula(deep - 1)} {self.rng.choice(_ARITHMETIC[:5])} {self.formula(deep - 1)}",
                f"{self.rng.choice(_LITERALS[:8])} * {self.formula(deep - 1)}",
                f"({self.formula(deep - 1)})",
                f"CASE WHEN {self.aggregate(1)} > 3 THEN {self.aggregate(1)} END",
                f"ROUND({self.formula(deep - 1)})",
                self.value(2),
            )
        )

    def damage(self, text: str) -> str:
        """Words left out, repeated, swapped or replaced."""
        words = re.findall(r"\w+|'[^']*'|\s+|.", text, re.DOTALL)
        for _ in range(self.rng.choice((1, 1, 2, 4))):
            if not words:
                break
            at = self.rng.randrange(len(words))
            how = self.rng.randrange(5)
            if how == 0:
                del words[at]
            elif how == 1:
                words.insert(at, words[self.rng.randrange(len(words))])
            elif how == 2:
                words[at] = self.rng.choice(
                    (*_LITERALS, *_COLUMNS, "(", ")", ",", "'", '"', ";", "\u200b", "SELECT")
                )
            elif how == 3:
                words.insert(
                    at, self.rng.choice(("(" * 300, "NOT " * 300, "'", "é", "\ud800", "\\", "--", "/*"))
                )
            else:
                del words[at : at + 4]
        return "".join(words)


class Questions:
    """Questions of a small release of every kind."""

    def __init__(self, folders: dict[str, Path]) -> None:
        self.releases = {name: open_release(path) for name, path in folders.items()}

    def draw(self, kind: str, number: int) -> Case:
        """Case number n, always the same one."""
        rng = random.Random(f"{kind} {number}")  # noqa: S311  (no secret)
        grammar = Grammar(rng)
        text = grammar.question()
        if rng.random() < 0.3:
            text = grammar.damage(text)
        return Case(kind=kind, start=rng.choice(sorted(self.releases)), edits=[[text]])

    def run(self, case: Case, number: int = 0) -> Iterator[Finding]:
        """Parse it; answer one in eight."""
        release, text = self.releases[case.start], case.edits[0][0]
        if number % 8:
            columns = [column.name for column in release.manifest.columns]
            yield from attempt("parse", lambda: parse_shared(text, columns))
        else:
            limits = Limits(seconds=30.0)
            yield from attempt("ask", lambda: ask(release, text, limits=limits))
