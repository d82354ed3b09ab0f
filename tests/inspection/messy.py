"""Twenty tables as people have them: names, dates, free text, ids, tiny ones, one dominant value, NULLs."""

from __future__ import annotations

import datetime
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

FIRST = (
    "Anna", "Ben", "Carla", "Deniz", "Émile", "Fatima", "Georg", "Hanna", "Igor", "Julia", "Karim",
    "Lena", "Marek", "Nora", "Oscar", "Pia",
)  # fmt: skip
LAST = (
    "Abel", "Brandt", "Costa", "Dietz", "Engel", "Fuchs", "Grün", "Haas", "Ivanov", "Jansen",
    "Koch", "Lindqvist", "Müller", "Núñez",
)  # fmt: skip
STREETS = ("Main Street", "Church Road", "Hauptstraße", "Rue du Port", "Lindenweg", "Mill Lane")
DISEASES = ("Flu", "Cold", "Diabetes", "Asthma", "Migraine", "HIV")


@dataclass(frozen=True, slots=True, kw_only=True)
class Messy:
    """A table, the column that its publisher would call sensitive, and those that point at a person."""

    table: pa.Table
    sensitive: str
    personal: frozenset[str]
    is_hopeless: bool = False
    """Everybody has the same sensitive value."""


def _table(n: int, seed: int, **more: object) -> dict[str, object]:
    rng = np.random.default_rng(seed)
    return {
        "age": rng.integers(18, 90, n),
        "sex": rng.choice(["f", "m"], n).tolist(),
        "town": rng.choice(["Old Town", "Garden City", "Harbour"], n).tolist(),
        **more,
    }


def _diseases(n: int, seed: int = 3) -> list[str]:
    rng = np.random.default_rng(seed)
    drawn: list[str] = rng.choice(DISEASES, n, p=[0.3, 0.25, 0.2, 0.12, 0.1, 0.03]).tolist()
    return drawn


def _people(n: int, seed: int = 5) -> list[str]:
    rng = np.random.default_rng(seed)
    return [f"{rng.choice(FIRST)} {rng.choice(LAST)}" for _ in range(n)]


def _days(n: int, start: int = 1930, seed: int = 7) -> list[datetime.date]:
    rng = np.random.default_rng(seed)
    return [datetime.date(start, 1, 1) + datetime.timedelta(int(d)) for d in rng.integers(0, 25_000, n)]


def _sentences(n: int, seed: int = 11) -> list[str]:
    rng = np.random.default_rng(seed)
    words = (
        "patient", "was", "seen", "again", "and", "feels", "better", "after", "rest", "no", "fever",
        "today", "will", "call", "back",
    )  # fmt: skip
    return [" ".join(rng.choice(words, rng.integers(5, 14)).tolist()) for _ in range(n)]


def _messy(columns: dict[str, object], sensitive: str, *personal: str, is_hopeless: bool = False) -> Messy:
    return Messy(
        table=pa.table(columns),
        sensitive=sensitive,
        personal=frozenset(personal),
        is_hopeless=is_hopeless,
    )


def _addresses(n: int) -> list[str]:
    return [f"{STREETS[i % 6]} {i % 173}" if i % 2 else f"{i % 211} {STREETS[i % 6]}" for i in range(n)]


def tables() -> dict[str, Messy]:
    """By what is messy about them."""
    n = 300
    phones = [f"+49 151 {i * 7919 % 10**7:07d}" for i in range(n)]
    national = [f"0{i * 7919 % 10**9:09d}" for i in range(n)]
    mails = [f"p{i}@mail{i % 3}.example" for i in range(n)]
    letters = [f"AB-{i * 7919 % 10**6:06d}" for i in range(n)]
    binary = ["positive"] * 6 + ["negative"] * (n - 6)
    return {
        "names and a test": _messy(
            {"name": [f"Person {i}" for i in range(n)], "hiv": ["yes", "no", "no"] * 100}, "hiv", "name"
        ),
        "names without a header that says so": _messy(
            _table(n, 1, who=_people(n), disease=_diseases(n)), "disease", "who"
        ),
        "first and last names that repeat": _messy(
            _table(n, 2, Vorname=(FIRST * 19)[:n], Nachname=(LAST * 22)[:n], Diagnose=_diseases(n)),
            "Diagnose", "Vorname", "Nachname",
        ),
        "e-mails": _messy(_table(n, 3, contact=mails, disease=_diseases(n)), "disease", "contact"),
        "phones": _messy(_table(n, 4, reach_at=phones, disease=_diseases(n)), "disease", "reach_at"),
        "national phones": _messy(_table(n, 5, handy=national, disease=_diseases(n)), "disease", "handy"),
        "addresses": _messy(
            _table(n, 6, lives=_addresses(n), disease=_diseases(n)), "disease", "lives"
        ),
        "addresses by name": _messy(
            _table(n, 7, street=[s for s in STREETS for _ in range(50)], disease=_diseases(n)),
            "disease", "street",
        ),
        "births as dates": _messy(
            _table(n, 8, date_of_birth=_days(n), disease=_diseases(n)), "disease", "date_of_birth"
        ),
        "births as texts": _messy(
            _table(n, 9, geb=[f"{day:%d.%m.%Y}" for day in _days(n)], disease=_diseases(n)), "disease", "geb"
        ),
        "days of a stay": _messy(
            _table(n, 10, admitted=_days(n, 1960), disease=_diseases(n)), "disease", "admitted"
        ),
        "free text": _messy(_table(n, 11, seen=_sentences(n), disease=_diseases(n)), "disease", "seen"),
        "notes": _messy(
            _table(n, 12, notes=[f"call {i}" for i in range(n)], disease=_diseases(n)), "disease", "notes"
        ),
        "row numbers": _messy(_table(n, 13, x=list(range(n)), disease=_diseases(n)), "disease", "x"),
        "codes of records": _messy(_table(n, 14, chart=letters, disease=_diseases(n)), "disease", "chart"),
        "several rows a person": _messy(
            _table(n, 15, patientId=[i // 3 for i in range(n)], disease=_diseases(n)), "disease", "patientId"
        ),
        "one dominant value": _messy(_table(n, 16, result=["none"] * 270 + ["ill"] * 30), "result"),
        "a rare positive": _messy(_table(n, 17, hiv_status=binary), "hiv_status"),
        "everybody the same": _messy(_table(n, 18, disease=["Flu"] * n), "disease", is_hopeless=True),
        "tiny": _messy(
            {"name": ["Ann Lee", "Bo Ek", "Cy Poe"], "age": [30, 40, 50], "illness": ["x", "y", "x"]},
            "illness", "name",
        ),
        "one row": _messy({"age": [30], "disease": ["Flu"]}, "disease", is_hopeless=True),
        "measurements and holes": _messy(
            _table(
                n, 19, lab=np.random.default_rng(1).normal(size=n),
                salary=[None if i % 9 == 0 else 1000 * (i % 40) for i in range(n)],
            ),
            "salary", "lab",
        ),
    }  # fmt: skip
