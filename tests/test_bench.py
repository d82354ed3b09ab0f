"""Every benchmark starts in the one way that its docstring says, with the options that it names."""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

from bench.mutating import apply, find_mutants, take_on

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


def test_a_mutant_sees_what_a_test_sets_also_through_a_dict_of_functions(tmp_path: Path) -> None:
    source = "LIMIT = 7\n\ndef plan(n):\n    return n < LIMIT\n\nMETHODS = {'plan': plan, 'any': bool}\n"
    module = ModuleType("planned")
    module.__file__ = str(tmp_path / "planned.py")
    exec(source, module.__dict__)  # noqa: S102
    assert take_on(module, source) == 0
    [mutant] = [mutant for mutant in find_mutants("planned", source) if mutant.what == "Lt -> LtE"]
    assert take_on(module, apply(source, mutant)) == 1
    module.__dict__["LIMIT"] = 5
    assert [module.METHODS["plan"](n) for n in (5, 6)] == [module.plan(n) for n in (5, 6)] == [True, False]
