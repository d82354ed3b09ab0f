"""`dalenius doctor`: what is installed, what is missing, how to get it."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from importlib import metadata

from dalenius.cli.output import JsonOption, print_json, say, say_table
from dalenius.plain import plain
from dalenius.randomness import Randomness

REQUIRED = (
    "duckdb",
    "highspy",
    "jsonschema",
    "narwhals",
    "numpy",
    "opt_einsum",
    "pyarrow",
    "randomgen",
    "rich",
    "scipy",
    "sqlglot",
    "typer",
)
OPTIONAL = {
    "adbc-driver-postgresql": "postgres",
    "altair": "plots",
    "vl-convert-python": "plots",
    "pyreadstat": "files",
    "python-calamine": "files",
    "pyspark": "spark",
    "opendp": "evaluate",
    "scikit-learn": "evaluate",
    "statsmodels": "evaluate",
    "cryptography": "sign",
    "python-multipart": "studio",
    "starlette": "studio",
    "fastapi": "serve",
    "uvicorn": "serve",
    "mkdocs-material": "docs",
    "mkdocstrings": "docs",
}
LEAST_JAVA = 17


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One line of the doctor's report."""

    name: str
    found: str | None
    needed: bool
    remedy: str | None


def command(as_json: JsonOption = False) -> int:
    """Look at this installation and say what is missing; exit 1 if something needed is."""
    findings = examine()
    ok = all(finding.found or not finding.needed for finding in findings)
    if as_json:
        print_json({"ok": ok, "findings": plain(findings)})
        return 0 if ok else 1
    say_table(
        ["part", "found"],
        [[f.name, f.found or ("MISSING" if f.needed else "not installed")] for f in findings],
    )
    for finding in findings:
        if finding.remedy:  # on a line of its own, which can be copied
            say(f"to get {finding.name}: {finding.remedy}")
    say("everything that is needed is there" if ok else "something that is needed is missing")
    return 0 if ok else 1


def examine() -> list[Finding]:
    """Python, randomness, disk, packages, Java."""
    python = Finding(name="python", found=platform.python_version(), needed=True, remedy=None)
    random = Finding(name="cryptographic randomness", found=_randomness(), needed=True, remedy=None)
    free = f"{shutil.disk_usage('.').free / 2**30:.1f} GiB free here"
    needed = [_package(name, needed=True, extra=None) for name in REQUIRED]
    optional = [_package(name, needed=False, extra=extra) for name, extra in OPTIONAL.items()]
    disk = Finding(name="disk", found=free, needed=True, remedy=None)
    return [python, random, disk, *needed, *optional, _java()]


def _package(name: str, *, needed: bool, extra: str | None) -> Finding:
    remedy = f'{sys.executable} -m pip install "{f"dalenius[{extra}]" if extra else name}"'
    try:
        return Finding(name=name, found=metadata.version(name), needed=needed, remedy=None)
    except metadata.PackageNotFoundError:
        return Finding(name=name, found=None, needed=needed, remedy=remedy)


def _java() -> Finding:
    """Spark runs on Java, which no Python package brings along."""
    found = _java_version()
    remedy = f"install Java {LEAST_JAVA} or later, e.g. apt-get install openjdk-{LEAST_JAVA}-jre-headless"
    is_new = found is not None and int(found.split(".")[0]) >= LEAST_JAVA
    return Finding(
        name="java (for spark)",
        found=found if is_new else None,
        needed=False,
        remedy=None if is_new else remedy,
    )


def _java_version() -> str | None:
    home = os.environ.get("JAVA_HOME")
    program = f"{home}/bin/java" if home else shutil.which("java")
    if program is None:
        return None
    try:
        told = subprocess.run(  # noqa: S603  (the user's own Java)
            [program, "-version"], capture_output=True, text=True, timeout=60, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    version = re.search(r'version "(\d+[^"]*)"', told.stderr)
    return None if version is None else version[1]


def _randomness() -> str | None:
    first, second = (Randomness.fresh().stream("doctor").integers(2**62) for _ in range(2))
    return "AES-128 counter mode, keyed by the operating system" if first != second else None
