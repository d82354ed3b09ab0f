"""Signed releases: whole and from whoever has the key, or refused."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import dalenius
from dalenius.errors import ReleaseCorrupt
from tests.cli.test_cli import call

serialization = pytest.importorskip("cryptography.hazmat.primitives.serialization")
ed25519 = pytest.importorskip("cryptography.hazmat.primitives.asymmetric.ed25519")
ec = pytest.importorskip("cryptography.hazmat.primitives.asymmetric.ec")


def write_keys(folder: Path, name: str, key: Any = None) -> tuple[Path, Path]:
    key = key or ed25519.Ed25519PrivateKey.generate()
    private, public = folder / f"{name}.key", folder / f"{name}.pub"
    pem, plain = serialization.Encoding.PEM, serialization.NoEncryption()
    private.write_bytes(key.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain))
    public.write_bytes(key.public_key().public_bytes(pem, serialization.PublicFormat.SubjectPublicKeyInfo))
    return private, public


def publish(folder: Path, sign: Path | None) -> Path:
    policy = dalenius.Policy.from_dict(
        {
            "source": pa.table({"age": list(range(40)), "ill": ["a", "b", "c", "d"] * 10}),
            "release": str(folder / "r"),
            "columns": {"quasi": ["age"], "sensitive": ["ill"]},
            "promise": {"kind": "l-diversity", "l": 2},
        }
    )
    return dalenius.publish(policy, seed=1, sign=sign).path


@pytest.fixture
def keys(tmp_path: Path) -> tuple[Path, Path]:
    return write_keys(tmp_path, "office")


@pytest.fixture
def release(tmp_path: Path, keys: tuple[Path, Path]) -> Path:
    return publish(tmp_path, keys[0])


def signature(release: Path, signer: Path | None) -> dict[str, Any]:
    checks = dalenius.verify(release, signer=signer).checks
    (found,) = [check.to_dict() for check in checks if check.name == "signature"]
    return found


def test_the_expected_signer_is_found(release: Path, keys: tuple[Path, Path]) -> None:
    assert dalenius.verify(release, signer=keys[1]).ok
    assert signature(release, None)["ok"]
    assert "whose it is" in signature(release, None)["detail"]
    assert dalenius.open_release(release).ask("SELECT COUNT(*) FROM t").rows[0].estimate == 40


def test_another_signer_is_not(release: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, stranger = write_keys(tmp_path, "stranger")
    assert not signature(release, stranger)["ok"]
    assert call(capsys, "verify", release, "--signer", stranger)[0] == 3


def test_an_unsigned_release_is_not_the_signers(tmp_path: Path, keys: tuple[Path, Path]) -> None:
    release = publish(tmp_path, None)
    assert "no signer is named" in signature(release, keys[1])["detail"]
    assert dalenius.verify(release).ok


def test_a_changed_manifest_is_refused_by_everything(release: Path) -> None:
    path = release / "manifest.json"
    path.write_text(path.read_text().replace('"l": 2', '"l": 3'))
    assert not dalenius.verify(release).ok
    assert "not the one that was signed" in signature(release, None)["detail"]
    with pytest.raises(dalenius.ReleaseCorrupt, match="not the one that was signed"):
        dalenius.open_release(release)


@pytest.mark.parametrize("content", [None, "", "zz", "00" * 64])
def test_so_is_a_release_without_its_signature(release: Path, content: str | None) -> None:
    path = release / "manifest.sig"
    if content is None:
        path.unlink()
    else:
        path.write_text(content)
    with pytest.raises(dalenius.ReleaseCorrupt, match=r"manifest\.sig is not a signature|that was signed"):
        dalenius.open_release(release)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes with names are those of POSIX")
@pytest.mark.parametrize("kind", ["a pipe", "a device", "four gigabytes", "a folder"])
def test_nor_is_anything_read_without_end(release: Path, kind: str) -> None:
    """A stranger's folder may have anything under this name."""
    path = release / "manifest.sig"
    path.unlink()
    if kind == "a pipe":
        os.mkfifo(path)
    elif kind == "a device":
        path.symlink_to("/dev/zero")
    elif kind == "a folder":
        path.mkdir()
    else:
        with path.open("wb") as file:
            file.truncate(2**32)
    assert "is not a signature" in signature(release, None)["detail"]
    with pytest.raises(ReleaseCorrupt, match="is not a signature"):
        dalenius.open_release(release).ask("SELECT COUNT(*) FROM t")


def test_a_signature_that_nobody_claims_is_a_file_too_many(tmp_path: Path) -> None:
    release = publish(tmp_path, None)
    (release / "manifest.sig").write_text("00" * 64)
    (files,) = [check for check in dalenius.verify(release).checks if check.name == "files"]
    assert not files.ok


def test_taking_the_signer_out_does_not_help(release: Path, keys: tuple[Path, Path]) -> None:
    path = release / "manifest.json"
    manifest = json.loads(path.read_text())
    del manifest["signer"]
    path.write_text(json.dumps(manifest))
    (release / "manifest.sig").unlink()
    assert not dalenius.verify(release, signer=keys[1]).ok


def test_other_keys_are_refused_before_anything_is_published(tmp_path: Path, keys: tuple[Path, Path]) -> None:
    other, _ = write_keys(tmp_path, "other", ec.generate_private_key(ec.SECP256R1()))
    for wrong in (other, keys[1], tmp_path / "missing.key"):
        with pytest.raises(dalenius.InputError, match=r"Ed25519|PEM|cannot be read"):
            publish(tmp_path, wrong)
    assert not (tmp_path / "r").exists()
