"""The bytes of a file: decompressed, out of an archive, from standard input; and the encoding of its text.

What cannot be read where it is goes into a private file that has no name, so that nothing is left of it when
the process ends, however it ends.
"""

from __future__ import annotations

import codecs
import os
import shutil
import sys
import tempfile
import weakref
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import IO, Literal

import duckdb
import pyarrow as pa

from dalenius.errors import SourceError

STANDARD_INPUT = "-"
START_BYTES = 1 << 20
"""From so many bytes at its start a file's encoding and delimiter are told."""
_COMPRESSIONS: dict[str, str] = {".gz": "gzip", ".zst": "zstd", ".bz2": "bz2"}
COMPRESSED_SUFFIXES = (*_COMPRESSIONS, ".zip")
_CHUNK = 1 << 20
_MUCH, _MOST_TIMES = 1 << 30, 250
"""A file that unpacks to more than so many bytes, and so many times its size, is no table of people."""
_OPEN_FILES = Path("/proc/self/fd")
_NOT_IN_CP1252 = frozenset(b"\x81\x8d\x8f\x90\x9d")
_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


class PrivateFile:
    """A file that only this process can read, and that is gone with it."""

    def __init__(self) -> None:
        handle, path = tempfile.mkstemp(prefix="dalenius-")  # which only the owner may read
        self.handle = handle
        if (_OPEN_FILES / str(handle)).exists():  # Linux: it can be read without a name
            os.unlink(path)
            self.path = str(_OPEN_FILES / str(handle))
            weakref.finalize(self, os.close, handle)
        else:
            self.path = path
            weakref.finalize(self, _remove, handle, path)

    def open(self) -> IO[bytes]:
        """To write into, from its start."""
        return open(self.handle, "wb", closefd=False)


_held: weakref.WeakKeyDictionary[duckdb.DuckDBPyConnection, set[PrivateFile]] = weakref.WeakKeyDictionary()


def hold(connection: duckdb.DuckDBPyConnection, files: Iterable[FileBytes]) -> list[str]:
    """Where files are; private ones stay as long as the connection that reads them."""
    listed = list(files)
    kept = {file.kept for file in listed if file.kept is not None}
    if kept:
        _held.setdefault(connection, set()).update(kept)
    return [file.path for file in listed]


def _remove(handle: int, path: str) -> None:
    os.close(handle)
    os.unlink(path)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileBytes:
    """Where a file's bytes are."""

    name: str
    """What messages call the file."""
    path: str
    suffix: str
    """The ending of its name, in small letters and without that of its compression."""
    compression: Literal["gzip"] | None = None
    """DuckDB reads it so; anything else is decompressed before."""
    kept: PrivateFile | None = None
    """What holds the bytes, if not the file itself."""

    @classmethod
    def of(cls, path: Path) -> FileBytes:
        """A file, decompressed unless by gzip, or standard input."""
        if str(path) == STANDARD_INPUT:
            return cls(name="standard input", path=_read_input().path, suffix="", kept=_read_input())
        suffixes = [suffix.lower() for suffix in path.suffixes]
        last = suffixes[-1] if suffixes else ""
        inner = suffixes[-2] if len(suffixes) > 1 else ""
        plain = cls(name=str(path), path=str(path), suffix=last)
        if last == ".zip":
            return _extract(plain)
        if last not in _COMPRESSIONS:
            return plain
        if last == ".gz":
            return replace(plain, suffix=inner, compression="gzip")
        return _decompress(replace(plain, suffix=inner), _COMPRESSIONS[last])

    def plain(self) -> FileBytes:
        """The same, decompressed for readers that cannot do it."""
        if self.compression is None:
            return self
        return _decompress(replace(self, compression=None), self.compression)

    def named(self, suffix: str) -> FileBytes:
        """The same, known by what its bytes are."""
        return replace(self, suffix=suffix)

    def start(self) -> bytes:
        """Its first bytes."""
        with self.reading() as file:
            found = b""
            while len(found) < START_BYTES:
                chunk = file.read(START_BYTES - len(found))
                if not chunk:
                    break
                found += chunk
            return found

    @contextmanager
    def reading(self) -> Iterator[IO[bytes] | pa.NativeFile]:
        """Its bytes, decompressed."""
        with _explained(self.name), open(self.path, "rb") as file:
            if self.compression is None:
                yield file
            else:
                with pa.CompressedInputStream(file, self.compression) as stream:
                    yield stream

    def to_utf8(self, encoding: str, skip: int = 0) -> FileBytes:
        """A text file of another encoding, as UTF-8, without some characters at its start."""
        kept = PrivateFile()
        decoder = codecs.getincrementaldecoder(encoding)()
        n_before = 0
        with self.reading() as file, kept.open() as target:
            while True:
                chunk = file.read(_CHUNK)
                try:
                    text = decoder.decode(chunk, final=not chunk)
                except UnicodeError as error:
                    place = n_before + (error.start if isinstance(error, UnicodeDecodeError) else 0)
                    raise SourceError(
                        f"{self.name}: the text is not {encoding}, at about byte {place:,}",
                        hint="another one: --encoding, or `encoding` in the policy's source",
                    ) from None  # its text quotes bytes of a cell
                target.write(text[skip:].encode())
                skip = max(0, skip - len(text))
                n_before += len(chunk)
                if not chunk:
                    break
        return replace(self, path=kept.path, compression=None, kept=kept)


@cache
def _read_input() -> PrivateFile:
    """Standard input can be read once, a source is read several times."""
    kept = PrivateFile()
    with _explained("standard input"), kept.open() as target:
        shutil.copyfileobj(sys.stdin.buffer, target)
    return kept


@contextmanager
def _explained(name: str) -> Iterator[None]:
    """What goes wrong with bytes, by the file's name."""
    try:
        yield
    except (
        OSError,
        EOFError,
        zipfile.BadZipFile,
        zlib.error,
        NotImplementedError,
        pa.ArrowException,
    ) as error:
        said = str(error).splitlines() or ["it ends too early"]  # an EOFError says nothing
        what = getattr(error, "strerror", None) or said[0]
        raise SourceError(
            f"{name} cannot be read: {what}",
            hint="is it damaged, or not whole? get it again from where it came",
        ) from error


def _decompress(file: FileBytes, compression: str) -> FileBytes:
    kept = PrivateFile()
    with (
        _explained(file.name),
        pa.OSFile(file.path) as source,
        pa.CompressedInputStream(source, compression) as stream,
        kept.open() as target,
    ):
        _copy(stream, target, file)
    return replace(file, path=kept.path, kept=kept)


def _copy(source: IO[bytes] | pa.NativeFile, target: IO[bytes], packed: FileBytes) -> None:
    """All that a packed file holds, unless it is made to fill the disk."""
    most, n_bytes = max(_MUCH, _MOST_TIMES * Path(packed.path).stat().st_size), 0
    while chunk := source.read(_CHUNK):
        n_bytes += len(chunk)
        if n_bytes > most:
            raise SourceError(
                f"{packed.name} unpacks to more than {_MOST_TIMES} times its size",
                hint="is it what it should be? then unpack it yourself, and give the file",
            )
        target.write(chunk)


def _extract(file: FileBytes) -> FileBytes:
    """The only table of an archive."""
    kept = PrivateFile()
    with _explained(file.name), zipfile.ZipFile(file.path) as archive:
        members = [
            one
            for one in archive.infolist()
            if not one.is_dir()
            and not one.filename.startswith(("__MACOSX/", "."))
            and "/." not in one.filename
        ]
        if len(members) != 1:
            raise SourceError(
                f"{file.name} holds {len(members)} files; a source is one table",
                hint="unpack it, then give one file, or a folder of files with the same columns",
            )
        if members[0].flag_bits & 1:
            raise SourceError(f"{file.name} is encrypted", hint="unpack it with its password first")
        with archive.open(members[0]) as source, kept.open() as target:
            _copy(source, target, file)
    return replace(file, path=kept.path, suffix=Path(members[0].filename).suffix.lower(), kept=kept)


def find_encoding(start: bytes) -> str:
    """The encoding of a text that begins so: by its mark, or the first one that can be.

    >>> find_encoding("naïve".encode("utf-16")), find_encoding("naïve".encode("latin-1"))
    ('utf-16', 'cp1252')
    """
    for mark, encoding in _BYTE_ORDER_MARKS:
        if start.startswith(mark):
            return encoding
    half = len(start) // 2
    zeros = (start[1::2].count(0), start[::2].count(0))  # of Latin letters in UTF-16 every second byte
    if half and max(zeros) > 0.4 * half and min(zeros) < 0.1 * half:
        return "utf-16-le" if zeros[0] > zeros[1] else "utf-16-be"
    try:
        codecs.getincrementaldecoder("utf-8")().decode(start)  # a character may be cut at the end
    except UnicodeDecodeError:
        return "latin-1" if _NOT_IN_CP1252 & frozenset(start) else "cp1252"
    return "utf-8"
