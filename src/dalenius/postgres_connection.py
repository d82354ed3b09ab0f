"""A connection to PostgreSQL, whose errors never quote a password."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from dalenius.errors import DaleniusError, InputError


@contextmanager
def connected(uri: str, explained: Callable[[Any], DaleniusError]) -> Iterator[Any]:
    """A connection; `explained` makes Dalenius' own error out of the driver's, without its secrets."""
    try:
        from adbc_driver_manager import Error
        from adbc_driver_postgresql import dbapi
    except ImportError as error:
        raise InputError(
            "PostgreSQL needs the extra `postgres`", hint='pip install "dalenius[postgres]"'
        ) from error
    try:
        with dbapi.connect(uri) as connection:
            yield connection
    except Error as error:
        raise explained(error) from None  # the driver's own message may quote the password
