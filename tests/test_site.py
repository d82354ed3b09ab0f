"""The documentation site builds without a warning, loads nothing from elsewhere, and has no broken link."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote

import pytest

from dalenius.cli.main import COMMANDS

PROJECT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    for name in ("mkdocs", "material", "mkdocstrings"):
        pytest.importorskip(name, reason='the site needs the extra `docs`: pip install "dalenius[docs]"')
    folder = tmp_path_factory.mktemp("site")
    environment = {**os.environ, "PYTHONPATH": str(PROJECT / "src"), "NO_MKDOCS_2_WARNING": "1"}
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)],
        cwd=PROJECT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (built.returncode, built.stdout, built.stderr) == (0, "", "")
    return folder


def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    loads = re.compile(r"<(?:script|link|img|iframe)\b[^>]*?(?:src|href)=\"?(https?:)?//", re.IGNORECASE)
    for page in site.rglob("*.html"):
        text = re.sub(r"<link rel=\"?canonical[^>]*>", "", page.read_text(encoding="utf-8"))
        assert not loads.search(text), page
    for sheet in site.rglob("*.css"):
        assert not re.search(r"(?:url\(|@import)\s*[\"']?https?:", sheet.read_text(encoding="utf-8")), sheet


def test_every_link_leads_somewhere(site: Path) -> None:
    pages = {
        page: page.read_text(encoding="utf-8") for page in site.rglob("*.html") if page.name != "404.html"
    }
    anchors = {page: set(re.findall(r"\bid=\"?([^\"\s>]+)", text)) for page, text in pages.items()}
    n_links = 0
    for page, text in pages.items():
        for link in re.findall(r"<a\b[^>]*?href=\"([^\"]*)\"", text):
            target, _, anchor = link.partition("#")
            if re.match(r"[a-z]+:", target):
                continue
            found = (page.parent / unquote(target)).resolve() if target else page
            assert found.exists(), f"{page.name}: {link}"
            if anchor and found.suffix == ".html" and not anchor.startswith("__"):
                assert unquote(anchor) in anchors[found], f"{page.name}: {link}"
            n_links += 1
    assert n_links > 1_000


def test_the_commands_and_the_names_of_python_are_there(site: Path) -> None:
    commands = (site / "reference" / "commands.html").read_text(encoding="utf-8")
    assert all(f'id="{name}"' in commands and f"dalenius {name}" in commands for name in COMMANDS)
    names = (site / "python.html").read_text(encoding="utf-8")
    assert all(f"dalenius.api.{name}" in names for name in ("publish", "open_release", "Release.ask"))


def test_search_is_offline(site: Path) -> None:
    text = (site / "search" / "search_index.js").read_text(encoding="utf-8")
    index = json.loads(text.partition("=")[2].strip().rstrip(";"))
    assert any("homogeneity" in entry["text"] for entry in index["docs"])
    assert "site/iframe-worker.js" in (site / "index.html").read_text(encoding="utf-8")
    assert (site / "site" / "iframe-worker.js").stat().st_size > 500
