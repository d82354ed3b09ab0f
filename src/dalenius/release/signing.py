"""Who published a release: an Ed25519 signature over the manifest, which has the hashes of all other files.

The manifest names the signer's public key, so that a signature cannot be taken away unseen, and
`manifest.sig` holds the signature beside it. That shows that the release is whole and from whoever has the
private key. Whose key it is, a reader must know from elsewhere: `verify --signer` compares it with a file.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from dalenius.errors import EngineError, InputError, ReleaseCorrupt
from dalenius.mechanisms.base import Check
from dalenius.release.folder import StoredRelease
from dalenius.release.manifest import FILE_NAME, SIGNATURE_NAME

_CONTEXT = b"dalenius release manifest, version 1\n"
"""Goes before what is signed: a signature for another purpose with the same key is none of a release."""
_MOST_BYTES = 1024
"""Of a file with a signature, which has 129."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Signer:
    """A private key, ready to sign."""

    public: str
    """The public key, in hexadecimal, as manifests have it."""
    key: Any

    @classmethod
    def load(cls, path: str | Path) -> Signer:
        """From a PEM file, as `openssl genpkey -algorithm ed25519` writes it."""
        library = _library()
        key = _load(Path(path), lambda text: library.serialization.load_pem_private_key(text, None))
        if not isinstance(key, library.ed25519.Ed25519PrivateKey):
            raise InputError(f"{path} is not an Ed25519 key", hint=_make_key(Path(path)))
        return cls(public=key.public_key().public_bytes_raw().hex(), key=key)

    def sign(self, folder: Path) -> None:
        """Write the signature of a folder's manifest beside it."""
        signature = self.key.sign(_CONTEXT + (folder / FILE_NAME).read_bytes())
        (folder / SIGNATURE_NAME).write_text(signature.hex() + "\n", encoding="ascii")


def read_public_key(path: str | Path) -> str:
    """The public key of a PEM file, in hexadecimal, as manifests have it."""
    library = _library()
    key = _load(Path(path), library.serialization.load_pem_public_key)
    if not isinstance(key, library.ed25519.Ed25519PublicKey):
        raise InputError(
            f"{path} is not an Ed25519 public key", hint="openssl pkey -in KEY -pubout -out FILE"
        )
    found: str = key.public_bytes_raw().hex()
    return found


def check_signature(release: StoredRelease, signer: str | None = None) -> Check | None:
    """Whether the release is signed by the key that it names, and by the one that is expected.

    Args:
        release: The release.
        signer: The public key that it must be signed by; None: any.

    Returns:
        None where nobody is said to have signed it, and nobody is expected to have.
    """
    stated = release.manifest.signer
    if stated is None:
        missing = "no signer is named: whoever has the folder may have changed it"
        return None if signer is None else Check(name="signature", ok=False, detail=missing)
    if signer not in (None, stated):
        return Check(name="signature", ok=False, detail=f"signed with another key, {stated[:16]}…")
    problem = _problem(release, stated)
    whose = "the expected key" if signer else f"key {stated[:16]}…; whose it is, --signer would tell"
    return Check.of("signature", problem, f"the manifest is signed with {whose}")


def refuse_false_signature(release: StoredRelease) -> None:
    """A release that names a signer must be signed by them."""
    check = check_signature(release)
    if check is not None and not check.ok:
        raise ReleaseCorrupt(
            f"{release.path} is damaged: {check.detail}", hint="`dalenius verify` lists what is wrong"
        )


def _problem(release: StoredRelease, public: str) -> str | None:
    library = _library()
    path = release.path / SIGNATURE_NAME
    try:
        if not path.is_file() or path.stat().st_size > _MOST_BYTES:  # nor a pipe, nor a device without end
            raise ValueError
        signature = bytes.fromhex(path.read_text(encoding="ascii"))
        key = library.ed25519.Ed25519PublicKey.from_public_bytes(bytes.fromhex(public))
    except (OSError, ValueError):
        return f"the manifest names a signer, and {SIGNATURE_NAME} is not a signature"
    try:
        key.verify(signature, _CONTEXT + (release.path / FILE_NAME).read_bytes())
    except library.InvalidSignature:
        return "the manifest is not the one that was signed"
    return None


class _Library:
    """What is used of `cryptography`, loaded when it is needed."""

    def __init__(self) -> None:
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import ed25519

        self.InvalidSignature = InvalidSignature
        self.serialization: ModuleType = serialization
        self.ed25519: ModuleType = ed25519


_INSTALL = 'pip install "dalenius[sign]"'


def _library() -> _Library:
    try:
        return _Library()
    except ImportError as error:
        raise EngineError(
            "the package cryptography is needed to make and check signatures", hint=_INSTALL
        ) from error


def _load(path: Path, load: Any) -> Any:
    try:
        return load(path.read_bytes())
    except OSError as error:
        raise InputError(f"key {path} cannot be read: {error.strerror}", hint=_make_key(path)) from error
    except (ValueError, TypeError) as error:  # a key with a password is a TypeError
        raise InputError(
            f"{path} is not a PEM file with a key that can be read without a password", hint=_make_key(path)
        ) from error


def _make_key(path: Path) -> str:
    return f"openssl genpkey -algorithm ed25519 -out {path} makes a key; `docs/release.md` has the rest"
