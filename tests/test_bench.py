"""Every benchmark starts in the one way that its docstring says, with the options that it names."""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).parent.parent
STARTED = sorted(
    path.stem for path in (PROJECT / "bench").glob("*.py") if "def main()" in path.read_text(encoding="utf-8")
)
TEXTS = [PROJECT / "Makefile", *sorted((PROJECT / "docs").rglob("*.md")), *sorted(PROJECT.glob("bench/*.py"))]


@pytest.mark.parametrize("name", STARTED)
def test_a_benchmark_takes_the_options_that_its_docstring_names(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    module = importlib.import_module(f"bench.{name}")
    commands = re.findall(rf"^    python -m bench\.{name}\b(.*)$", module.__doc__ or "", re.MULTILINE)
    assert commands, f"the docstring does not say: python -m bench.{name}"
    options = set(re.findall(r"--[a-z-]+", " ".join(commands)))
    if not options:
        return
    monkeypatch.setattr(sys, "argv", [name, "--help"])
    with pytest.raises(SystemExit) as stopped:
        module.main()
    assert stopped.value.code == 0
    assert options <= set(re.findall(r"--[a-z-]+", capsys.readouterr().out))


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.name)
def test_benchmarks_are_started_as_modules(path: Path) -> None:
    """As files they do not find one another."""
    text = path.read_text(encoding="utf-8")
    assert "python bench/" not in text
    assert set(re.findall(r"-m bench\.(\w+)", text)) <= set(STARTED)
