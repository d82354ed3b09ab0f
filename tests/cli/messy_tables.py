"""Twenty tables as a new user may have them, written by the tests: none of them is about anybody."""

from __future__ import annotations

import csv
import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from pathlib import Path
from typing import Any

ILLNESSES = ("Gout", "Mumps", "Scurvy", "Rickets", "Lupus", "Quinsy")
FIRST = ("Anna", "Bela", "Chidi", "Dana", "Emeka", "Freya", "Goran", "Hilde", "Ines", "Jonas", "Kaito")
LAST = ("Aas", "Brandt", "Castellano", "Dubois", "Eriksen", "Farkas", "Gruber", "Horvath", "Ito", "Jimenez")
FOREIGN = (
    ("Žofie", "Łukasz", "Ólafur", "José", "Мария", "Αννα", "Ayşe", "Zoë", "Đorđe", "Ñusta"),
    (
        "Nováková",
        "Wójcik",
        "Þórsson",
        "Ñandú",
        "Иванова",
        "Παππά",
        "Çelik",
        "O’Brien",
        "Sánchez-Gil",
        "Ørsted",
    ),
)
HAN = ("王伟", "李娜", "张敏", "刘洋", "陈静", "杨磊", "赵军", "黄丽", "周涛", "吴霞", "徐强", "孙杰")
HAN_PARTS = tuple("王李张刘陈杨赵黄周吴徐孙朱马胡郭林何高梁")
STREETS = ("Mill Lane", "Church Road", "Station Street", "Kings Avenue", "High Street")
WORDS = ("patient", "reports", "mild", "pain", "since", "the", "visit", "and", "asks", "for", "more", "rest")
Column = Callable[[random.Random, int], Sequence[Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Messy:
    """A table, what its publisher knows about it, and what no release of it may show."""

    columns: dict[str, Column]
    secret: str
    """What its publisher would call sensitive."""
    rows: int = 240
    personal: frozenset[str] = frozenset()
    """Columns that say who somebody is: never proposed as quasi-identifiers."""
    repeat: int = 1
    """How often every row is there."""
    cells: frozenset[str] = field(default=frozenset(ILLNESSES))
    """Sensitive cells that are told from other words."""

    def write(self, path: Path, seed: int) -> None:
        """As a CSV file."""
        coins = random.Random(seed)  # noqa: S311  (the same table in every run)
        made = {name: make(coins, self.rows) for name, make in self.columns.items()}
        rows = [
            dict(zip(made, cells, strict=True)) for cells in zip(*made.values(), strict=True)
        ] * self.repeat
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, list(made))
            writer.writeheader()
            writer.writerows(rows)


def among(*values: object, weights: Sequence[int] | None = None) -> Column:
    """Each cell one of these."""
    return lambda coins, n: coins.choices(values, weights, k=n)


def each(make: Callable[[random.Random, int], object]) -> Column:
    """Each cell made from a coin and its place."""
    return lambda coins, n: [make(coins, i) for i in range(n)]


def whole(low: int, high: int) -> Column:
    """Whole numbers."""
    return each(lambda coins, _: coins.randint(low, high))


def some_missing(column: Column, missing: object, share: float) -> Column:
    """The same column with holes."""
    return lambda coins, n: [missing if coins.random() < share else cell for cell in column(coins, n)]


def _day(coins: random.Random, _: int) -> date:
    return date(1935, 1, 1) + timedelta(days=coins.randrange(27_000))


AGE, SEX, TOWN = whole(18, 90), among("f", "m"), among("Northam", "Southam", "Eastham")
ILLNESS = among(*ILLNESSES, weights=(30, 25, 18, 12, 10, 5))
FOREIGNER = each(lambda coins, _: " ".join(coins.choice(part) for part in FOREIGN))
PERSON = each(lambda coins, _: f"{coins.choice(FIRST)} {coins.choice(LAST)}")
USUAL: dict[str, Column] = {"age": AGE, "sex": SEX, "town": TOWN}


def messy(secret: str, columns: dict[str, Column], personal: Iterable[str] = (), **more: Any) -> Messy:
    """A table with some of the usual columns."""
    return Messy(secret=secret, columns=columns, personal=frozenset(personal), **more)


def _mail(coins: random.Random, i: int) -> str:
    return f"{coins.choice(FIRST)}.{i}@example.org".lower()


def _phone(coins: random.Random, _: int) -> str:
    return f"+44 20 7{coins.randrange(10**6):06d}"


def _address(coins: random.Random, _: int) -> str:
    return f"{coins.randint(1, 250)} {coins.choice(STREETS)}"


def _note(coins: random.Random, _: int) -> str:
    return " ".join(coins.choices(WORDS, k=coins.randint(7, 14)))


TABLES = {
    "names and diagnoses": messy("diagnosis", {"name": PERSON, "diagnosis": ILLNESS}, ["name"]),
    "dates of birth": messy("diagnosis", {"dob": each(_day), "sex": SEX, "diagnosis": ILLNESS}, ["dob"]),
    "free text notes": messy("disease", {**USUAL, "notes": each(_note), "disease": ILLNESS}, ["notes"]),
    "one row": messy("disease", {**USUAL, "disease": ILLNESS}, rows=1),
    "two rows": messy("disease", {"name": PERSON, "age": AGE, "disease": ILLNESS}, ["name"], rows=2),
    "five rows": messy("disease", {"name": PERSON, "age": AGE, "disease": ILLNESS}, ["name"], rows=5),
    "one dominant value": messy(
        "finding", {**USUAL, "finding": among("Gout", "Lupus", "Mumps", weights=(96, 3, 1))}
    ),
    "binary values": messy(
        "hiv_test", {**USUAL, "hiv_test": among("Lupus", "Gout", weights=(1, 9))}
    ),
    "numbers of records": messy(
        "disease",
        {"patient_id": each(lambda _, i: 100_000 + 7 * i), **USUAL, "disease": ILLNESS},
        ["patient_id"],
    ),
    "every column unique": messy(
        "diagnosis",
        {
            "code": each(lambda coins, i: f"QX-{coins.randrange(900) + 100}-{i:04d}"),
            "mass": each(lambda coins, _: round(coins.gauss(75, 14), 6)),
            "diagnosis": ILLNESS,
        },
        ["code", "mass"],
    ),
    "e-mails": messy("disease", {"reach": each(_mail), "age": AGE, "disease": ILLNESS}, ["reach"]),
    "phone numbers": messy("disease", {"contact": each(_phone), "age": AGE, "disease": ILLNESS}, ["contact"]),
    "addresses": messy("disease", {"home": each(_address), "age": AGE, "disease": ILLNESS}, ["home"]),
    "mostly missing": messy(
        "diagnosis",
        {"sex": SEX, "ward": some_missing(TOWN, None, 0.85), "diagnosis": some_missing(ILLNESS, None, 0.7)},
    ),
    "numbers as secrets": messy(
        "salary",
        {**USUAL, "salary": each(lambda coins, _: 10_007 + 1_013 * coins.randrange(40))},
        cells=frozenset(str(10_007 + 1_013 * i) for i in range(40)),
    ),
    "one column": messy("disease", {"disease": ILLNESS}),
    "rows twice": messy("disease", {**USUAL, "disease": ILLNESS}, rows=120, repeat=2),
    "yes and no": messy(
        "convicted", {**USUAL, "convicted": among(True, False, weights=(1, 4))}, cells=frozenset()
    ),
    "many different secrets": messy(
        "icd",
        {**USUAL, "icd": each(lambda coins, _: f"Zq{coins.randrange(150):03d}")},
        cells=frozenset(f"Zq{i:03d}" for i in range(150)),
        rows=160,
    ),
    "a secret of its own for everybody": messy(
        "therapy",
        {**USUAL, "therapy": each(lambda _, i: f"regimen-{i:04d}-x")},
        cells=frozenset(f"regimen-{i:04d}-x" for i in range(90)),
        rows=90,
    ),
    "empty texts": messy(
        "disease",
        {"sex": some_missing(SEX, "", 0.3), "town": TOWN, "disease": some_missing(ILLNESS, "", 0.2)},
    ),
    "foreign names": messy("diagnóstico", {"кто": FOREIGNER, "age": AGE, "diagnóstico": ILLNESS}, ["кто"]),
    "names in a foreign header": messy(
        "diagnoza",
        {"Příjmení": among(*LAST), "姓名": among(*HAN), "age": AGE, "diagnoza": ILLNESS},
        ["Příjmení", "姓名"],
    ),
    "foreign names without a header": messy(
        "disease",
        {"a": each(lambda coins, _: "".join(coins.choices(HAN_PARTS, k=3))), "age": AGE, "disease": ILLNESS},
        ["a"],
    ),
    "everybody the same": messy("disease", {**USUAL, "disease": among("Scurvy")}),
}  # fmt: skip
