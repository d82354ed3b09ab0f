"""Words that columns about people are called by, in languages that tables come in; without accents."""

from __future__ import annotations


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
    krankheit gehalt einkommen maladie enfermedad
    """
)
"""Parts of names."""
