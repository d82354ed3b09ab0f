"""What role a column may have: a guess from its name and from what its cells look like, with the evidence.

A guess is for a comment; the publisher decides. What looks like a person's name, an address, an e-mail, a
phone or record number, an exact day (of birth) or free text is never proposed as quasi-identifier. No
evidence quotes a cell.

A name is compared with words that such columns are called by, in languages that tables come in, without
accents.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal

from dalenius.inspection.shapes import Shape
from dalenius.mechanisms.feasible import ColumnFacts


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


NAMES = _words(
    """
    name names surname firstname lastname forename forenames givenname familyname fullname maiden
    initials vorname vornamen nachname familienname nom prenom apellido apellidos nombre nombres
    cognome nome sobrenome apelido naam achternaam voornaam navn fornavn efternavn etternavn namn fornamn
    efternamn imie nazwisko jmeno prijmeni meno priezvisko ime priimek prezime nume prenume nimi etunimi
    sukunimi nev vezeteknev keresztnev soyad soyadi isim vardas pavarde
    имя фамилия отчество фио прізвище име ονομα επωνυμο שם الاسم 姓名 名字 名前 氏名 이름 성명
    """
)
THINGS = _words(
    """
    district town city ward hospital clinic drug product school country region state county disease
    test company department job plan insurance brand event file group category class course species
    variety medication item model type site station shop store treatment
    """
)
"""Their names are no person's."""
ADDRESSES = _words(
    """
    address addresses addr adresse anschrift street strasse rue calle direccion indirizzo endereco
    housenumber hausnummer latitude lat longitude lon lng gps coordinates geolocation ip ipaddress
    postaladdress homeaddress
    """
)
E_MAILS = _words(
    """
    email emails mail mailaddress emailaddress courriel correo
    """
)
PHONES = _words(
    """
    phone phones telephone tel mobile cellphone phonenumber fax telefon telefonnummer handy telefono
    telefone telefoon
    """
)
NUMBERS = _words(
    """
    ssn mrn nhs iban passport aadhaar pesel cpf bsn dni cpr personnummer uuid guid uid vin
    socialsecurity login username userid patientid personid customerid memberid
    """
)
MAYBE_NUMBERS = _words(
    """
    id ids nr no num number nummer numero key record account konto license licence barcode serial
    token card plate pid user handle url reference ref case
    """
)
"""Only where there are many different ones: `number_of_rooms` and `region_id` are no one's numbers."""
NUMBER_ENDS = ("nr", "nummer", "number")
"""Of words that are written as one, as `Fallnr`: the same."""
HOUSEHOLDS = _words(
    """
    household households haushalt haushalte family families familie menage foyer hogar famiglia
    """
)
"""Whose cells people share who belong together, and may share the secret."""
PEOPLE = _words(
    """
    patient person client customer member user subject participant respondent employee student pupil
    resident citizen worker tenant debtor passenger voter donor defendant inmate caller
    patienten kunde mitarbeiter schuler teilnehmer cliente paciente paziente
    """
)
"""A column that is called just so, and has many different values, says who a row is about."""
BIRTHS = _words(
    """
    birth born dob birthday birthdate dateofbirth bday geburt geburtsdatum geburtstag geboren geb
    naissance nacimiento nascita nascimento fodelsedatum fodselsdato geboortedatum narozeni urodzenia
    рождения 出生日期 生年月日
    """
)
NO_DAY_OF_BIRTH = _words(
    """
    year weight order place country town city rate month type jahr
    """
)
"""A year or a weight of birth is no day."""
TEXTS = _words(
    """
    note notes comment comments remark remarks description freetext text narrative bemerkung
    bemerkungen kommentar kommentare anamnese summary letter message details observations remarques
    comentarios
    """
)
SENSITIVE = _words(
    """
    disease diagnos diagnoz condition illness symptom hiv icd salary income wage earning occupation religion
    crime offence offense conviction medication treatment therapy orientation vote party debt outcome
    positive infected sick pregnan cancer diabet addict disabil result
    krankheit krank gehalt einkommen befund maladie enfermedad
    """
)
"""Parts of names."""


Role = Literal["unit", "identifiers", "quasi", "sensitive", "dropped"]


_FEW_ROWS = 20
"""With fewer rows, that all cells differ says nothing."""
_MOST = 0.8
_HALF = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Guess:
    """What a column may be, and why."""

    column: str
    role: Role = field(metadata={"json": "guess"})
    evidence: str
    is_clear: bool = field(default=False, metadata={"json": None})
    """Whether it can be left out of the release without asking: nobody publishes it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _ColumnLook:
    """A column, ready to be judged."""

    facts: ColumnFacts
    shape: Shape
    n_rows: int

    @property
    def name_words(self) -> list[str]:
        """Of its name, without accents, in any script: `Geburts-Datum` and `birthDate` have two."""
        spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", self.facts.name).replace("ß", "ss")
        bare = re.sub(r"[\u0300-\u036f]", "", unicodedata.normalize("NFKD", spaced))
        return re.findall(r"[^\W\d_]+", unicodedata.normalize("NFC", bare).lower())

    @property
    def tokens(self) -> frozenset[str]:
        """The words of its name, neighbours also in one: `e-mail` is `email`."""
        parts = self.name_words
        return frozenset([*parts, *(one + two for one, two in pairwise(parts)), "".join(parts)])

    @property
    def is_called_a_person(self) -> bool:
        return len(self.name_words) == 1 and self.name_words[0].removesuffix("s") in PEOPLE

    @property
    def is_text(self) -> bool:
        return self.facts.type == "varchar" or self.facts.type.startswith("enum")

    @property
    def is_day(self) -> bool:
        return self.facts.type.startswith(("date", "timestamp")) or (self.is_text and self.shape.day >= _MOST)

    @property
    def is_whole(self) -> bool:
        return self.facts.type.endswith(("int", "integer", "hugeint"))

    def differs(self, share: float) -> bool:
        """Whether more than that share of the rows has a value of its own; of a few rows, whether all do."""
        n = self.facts.n_distinct
        return n > share * self.n_rows if self.n_rows >= _FEW_ROWS else n >= self.n_rows > 0

    @property
    def is_varied(self) -> bool:
        """Whether it has more than a few values; a yes or no about e-mails is no e-mail address."""
        return self.facts.n_distinct > _FEW_ROWS or self.differs(0.2)

    @property
    def values(self) -> str:
        """How many, in words."""
        n = self.facts.n_distinct
        if n <= 1:
            return "the same in every row"
        if n >= self.n_rows:
            return f"{n:,} different values, one a row"
        mean = self.n_rows / n
        return f"{n:,} different values, each in {mean:,.{0 if mean >= 10 else 1}f} rows on average"


def guess_role(facts: ColumnFacts, shape: Shape, n_rows: int) -> Guess:
    """The likeliest role of a column of a table of so many rows."""
    look = _ColumnLook(facts=facts, shape=shape, n_rows=n_rows)
    for judge in _JUDGES:
        found = judge(look)
        if found is not None:
            return found
    return _guess(look, "quasi", look.values)


def _guess(look: _ColumnLook, role: Role, evidence: str, *, is_clear: bool = False) -> Guess:
    return Guess(column=look.facts.name, role=role, evidence=evidence, is_clear=is_clear)


def _reads(look: _ColumnLook, by_name: object, by_cells: bool, what: str, role: Role) -> Guess | None:
    """A column that looks like something no release shows, by its name or by most of its cells."""
    if not by_name and not by_cells:
        return None
    seen = "its name and its cells look" if by_name and by_cells else "its name looks"
    evidence = f"{seen if by_name else 'nearly all of its cells look'} like {what}"
    return _guess(look, role, evidence, is_clear=True)


def _e_mail(look: _ColumnLook) -> Guess | None:
    by_name = look.tokens & E_MAILS and look.is_varied
    return _reads(look, by_name, look.shape.e_mail >= _HALF, "an e-mail address", "identifiers")


def _phone(look: _ColumnLook) -> Guess | None:
    by_cells = look.is_text and not look.is_day and look.differs(0.2) and look.shape.phone >= _MOST
    return _reads(look, look.tokens & PHONES and look.is_varied, by_cells, "a phone number", "identifiers")


def _free_text(look: _ColumnLook) -> Guess | None:
    shape = look.shape
    if look.is_text and look.tokens & TEXTS and shape.words >= 2 and not look.differs(0.2):
        # the same few sentences again and again: they may name the secret all the same
        return _guess(
            look, "dropped", f"its name looks like free text ({look.values}); it may name the secret"
        )
    if not look.is_text or not look.differs(0.2):
        return None
    by_name = look.tokens & TEXTS and (shape.words >= 2 or look.differs(_HALF))
    by_cells = (shape.words >= 6 or shape.length >= 60) and shape.street < _HALF
    return _reads(look, by_name, by_cells, "free text", "dropped")


def _address(look: _ColumnLook) -> Guess | None:
    shape = look.shape
    has_places = shape.house >= _HALF and (shape.street >= 0.3 or shape.words >= 2.5)
    by_cells = look.is_text and not look.is_day and look.differs(0.2) and has_places
    by_name = look.tokens & ADDRESSES and look.facts.n_distinct > 1
    return _reads(look, by_name, by_cells, "an address or a place", "identifiers")


def _name(look: _ColumnLook) -> Guess | None:
    called = look.tokens & NAMES
    is_thing = look.tokens & THINGS and called <= {"name", "names", "nom", "nombre", "nome"}
    differs = look.differs(0.3) or (look.is_called_a_person and look.is_varied)
    by_cells = look.is_text and differs and look.shape.words < 6 and look.shape.name >= _MOST
    by_name = look.is_text and called and not is_thing
    return _reads(look, by_name, by_cells, "a person's name", "identifiers")


def _birth(look: _ColumnLook) -> Guess | None:
    has_years = not look.is_day and not look.is_text and look.facts.n_distinct <= 150
    if not look.tokens & BIRTHS or look.tokens & NO_DAY_OF_BIRTH or has_years:
        return None
    evidence = (
        f"its name looks like a date of birth ({look.values}); only its year, or an age, could be quasi"
    )
    return _guess(look, "dropped", evidence)


def _named_number(look: _ColumnLook) -> Guess | None:
    """A number of a record or a person; one that repeats may say whose rows are whose."""
    is_number = any(word.endswith(NUMBER_ENDS) for word in look.name_words)
    may_be = look.tokens & MAYBE_NUMBERS or is_number or look.is_called_a_person
    if not (look.tokens & NUMBERS or (may_be and look.differs(0.2))):
        return None
    evidence = f"its name looks like a number of a record or a person ({look.values})"
    if look.facts.n_distinct < look.n_rows:
        return _guess(look, "unit", f"{evidence}; a person with several rows is refused")
    return _guess(look, "identifiers", evidence, is_clear=True)


def _household(look: _ColumnLook) -> Guess | None:
    """Of people who belong together: of few cells it is a kind of household, or how many live there."""
    if not look.tokens & HOUSEHOLDS or not look.differs(0.2):
        return None
    evidence = f"its name looks like a household, whose people may share the secret ({look.values})"
    return _guess(look, "identifiers", evidence)


def _sensitive(look: _ColumnLook) -> Guess | None:
    name = "".join(look.name_words)
    is_so = any(word in look.tokens or (len(word) > 5 and word in name) for word in SENSITIVE)
    return _guess(look, "sensitive", f"its name says so ({look.values})") if is_so else None


def _number(look: _ColumnLook) -> Guess | None:
    is_code = look.is_text and not look.is_day and look.shape.number >= _MOST
    if not (look.is_whole or is_code) or not look.differs(0.9) or look.n_rows < _FEW_ROWS:
        return None
    evidence = f"its cells look like numbers of records ({look.values})"
    return _guess(look, "identifiers", evidence, is_clear=is_code)


def _day(look: _ColumnLook) -> Guess | None:
    if not look.is_day or look.facts.n_distinct <= min(366, max(_FEW_ROWS, look.n_rows // 10)):
        return None
    return _guess(look, "dropped", f"exact days ({look.values}); a month or a year could be quasi")


def _own_value(look: _ColumnLook) -> Guess | None:
    # of a few people all may well differ in age; texts that all differ are names, whatever they are called
    if not look.differs(0.9) or (look.n_rows < _FEW_ROWS and not (look.is_text and look.n_rows > 2)):
        return None
    evidence = f"nearly everybody has a value alone ({look.values}); coarser values could be quasi"
    return _guess(look, "dropped", evidence)


_JUDGES: tuple[Callable[[_ColumnLook], Guess | None], ...] = (
    _e_mail,
    _birth,
    _phone,
    _free_text,
    _address,
    _name,
    _household,
    _named_number,
    _sensitive,
    _number,
    _day,
    _own_value,
)
"""In this order: what points at a person comes before what may be published."""
