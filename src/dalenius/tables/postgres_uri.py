"""Connection strings, without ever showing a password."""

from __future__ import annotations

import re
from urllib.parse import parse_qsl, unquote, urlsplit

from dalenius.errors import InputError

SCHEMES = ("postgresql", "postgres")
_SECRET_OPTIONS = ("password", "sslpassword")


def is_uri(target: str) -> bool:
    """Whether this is a connection string and not a path."""
    return "://" in target


def checked(uri: str) -> str:
    """The connection string, if it can be shown without its password.

    A password with a bare @, / or # would be read as something else and could be shown as such.
    """
    try:
        parts = urlsplit(uri)
        _ = parts.port
    except ValueError as error:
        raise _malformed() from error
    n_marks = uri.count("@")
    if parts.scheme not in SCHEMES or n_marks > 1 or n_marks != parts.netloc.count("@") or parts.fragment:
        raise _malformed()
    return uri


def without_password(uri: str) -> str:
    """The connection string for people to see: without password, and without options, which may hold others.

    >>> without_password("postgresql://ann:secret@db.example:5432/clinic?sslmode=require")
    'postgresql://ann@db.example:5432/clinic'
    """
    parts = urlsplit(checked(uri))
    user, mark, host = parts.netloc.rpartition("@")
    return f"{parts.scheme}://{user.partition(':')[0]}{mark}{host}{parts.path}"


def without_secrets(text: str, uri: str) -> str:
    """A server's message, first line only, without the connection string or its passwords.

    >>> without_secrets('bad "s%20t" for ann', "postgresql://ann:s%20t@db/clinic")
    'bad "***" for ann'
    """
    parts = urlsplit(uri)
    options = parse_qsl(parts.query, keep_blank_values=True)
    given = [parts.password, *(value for key, value in options if key.lower() in _SECRET_OPTIONS)]
    secrets = {uri} | {form for secret in given if secret for form in (secret, unquote(secret))}
    line = (text.strip().splitlines() or [""])[0]
    for secret in sorted(secrets, key=len, reverse=True):
        line = line.replace(secret, "***")
    return line


def hide_passwords(text: str) -> str:
    """A text that may quote connection strings, without what stands between :// and @.

    >>> hide_passwords("unexpected argument (postgresql://ann:secret@db/clinic)")
    'unexpected argument (postgresql://***@db/clinic)'
    """
    return re.sub(r"://\S*@", "://***@", text)


def _malformed() -> InputError:
    return InputError(
        "the connection string cannot be read (it is not shown: it may hold a password)",
        hint="postgresql://user@host:5432/database; write @ : / ? # % in a password as %40 %3A %2F %3F %23 "
        "%25, or leave it to PGPASSWORD or ~/.pgpass",
    )
