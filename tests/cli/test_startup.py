"""What each command loads: nothing that it does not run.

Modules are counted, not seconds; `python -m bench.startup` has the seconds.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import sqlglot

RELEASES = Path(__file__).parents[1] / "releases"
HEAVY = {
    "pandas",
    "scipy",
    "jsonschema",
    "highspy",
    "sqlglot",
    "rich",
    "altair",
    "narwhals",
    "randomgen",
    "pyspark",
    "opt_einsum",
    "typer",
    "duckdb",
    "pydantic",
}
NOT_ASKED = {
    "numpy.ma",
    "pydoc",
    "email.message",
    "dalenius.release.verify",
    "dalenius.release.ledger",
    "dalenius.release.dates",
    "dalenius.tables.uniqueness",
    "dalenius.tables.sketch",
    "dalenius.mechanisms.stages",
    "dalenius.mechanisms.bucketize.estimate.regression",
    "dalenius.mechanisms.bucketize.estimate.shrinkage",
    "dalenius.mechanisms.bucketize.estimate.separate",
    "dalenius.mechanisms.bucketize.estimate.regions",
}
"""What a question to the default estimator does without."""
RUN = """
import json, sys
from dalenius.cli import main
try:
    main()
finally:
    loaded = sorted(set(sys.modules) & set(json.loads(sys.stdin.read())))
    print(json.dumps(loaded), file=sys.stderr)
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("startup")
    rows = (f"{20 + i % 40},{i % 2},{('flu', 'cold', 'cough')[i % 3]}" for i in range(300))
    (folder / "t.csv").write_text("\n".join(["age,sex,disease", *rows]))
    (folder / "policy.toml").write_text(
        'source = "t.csv"\nrelease = "made"\n[columns]\nquasi = ["age", "sex"]\nsensitive = ["disease"]\n'
        '[promise]\nkind = "f-privacy"\ndefault = 0.5\n[mechanism]\nkind = "bucketize"\n'
    )
    return folder


def loaded(folder: Path, *arguments: str, among: set[str] = HEAVY) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", RUN, *arguments],
        input=json.dumps(sorted(HEAVY | NOT_ASKED)),
        capture_output=True,
        text=True,
        cwd=folder,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return among & set(json.loads(done.stderr.splitlines()[-1]))


def test_publishing_planning_verifying_and_asking_load_what_they_run(home: Path) -> None:
    assert loaded(home, "plan", "policy.toml", "--json") == {"duckdb"}
    assert loaded(home, "publish", "policy.toml", "--seed", "1") <= {"duckdb", "randomgen"}
    assert loaded(home, "verify", "made") == {"duckdb"}
    question = "SELECT COUNT(*) FROM t WHERE age > 30 AND disease = 'flu'"
    assert loaded(home, "ask", "made", question) <= {"sqlglot"}
    grouped = "SELECT disease, AVG(age) FROM t GROUP BY disease"
    assert loaded(home, "ask", "made", grouped) <= {"sqlglot", "duckdb"}


def test_the_default_estimator_of_a_release_large_enough_for_it_needs_no_scipy(home: Path) -> None:
    rows = (f"{20 + i % 40},{i % 2},{('flu', 'cold', 'cough')[i % 3]}" for i in range(1_200))
    (home / "more.csv").write_text("\n".join(["age,sex,disease", *rows]))
    policy = (home / "policy.toml").read_text().replace("t.csv", "more.csv").replace("made", "more")
    (home / "more.toml").write_text(policy)
    loaded(home, "publish", "more.toml", "--seed", "1")
    question = "SELECT COUNT(*) FROM t WHERE age > 30 AND disease = 'flu'"
    found = loaded(home, "ask", "more", question, "--estimator", "matching", among=HEAVY | NOT_ASKED)
    assert found <= {"sqlglot", "randomgen"}


def test_releases_of_every_mechanism_are_verified_without_what_plans_and_asks() -> None:
    releases = sorted(str(path.parent) for path in RELEASES.glob("*/manifest.json"))
    code = (
        "import sys; from dalenius.cli.main import _keep_pandas_out, run; _keep_pandas_out();"
        "assert all(run(['verify', release, '--json']) == 0 for release in sys.argv[2:]);"
        "heavy = set(sys.argv[1].split(',')) & set(sys.modules) - {'duckdb'}; assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code, ",".join(HEAVY), *releases], check=True)


def test_a_data_frame_can_still_be_made() -> None:
    code = (
        "import sys; from dalenius.cli.main import _keep_pandas_out; _keep_pandas_out();"
        "import pyarrow as pa; assert 'pandas' not in sys.modules;"
        "assert pa.table({'a': [1, 2]}).to_pandas()['a'].sum() == 3"
    )
    pytest.importorskip("pandas")
    subprocess.run([sys.executable, "-c", code], check=True)


def test_masked_arrays_are_loaded_when_somebody_makes_one_and_known_by_all() -> None:
    code = (
        "import sys; from dalenius.cli.main import _keep_masks_out; _keep_masks_out();"
        "import numpy as np, pyarrow as pa; from numpy import ma;"
        "assert pa.array(np.arange(3)).to_pylist() == [0, 1, 2] and 'numpy.ma' not in sys.modules;"
        "assert np.unique([2, 1, 2]).tolist() == [1, 2] and 'numpy.ma' not in sys.modules;"
        "assert not isinstance(np.arange(3), ma.MaskedArray) and not ma.is_masked(np.arange(3));"
        "made = ma.masked_array([1, 2], mask=[False, True]);"
        "assert pa.array(made).to_pylist() == [1, None] and 'numpy.ma' in sys.modules;"
        "assert isinstance(made, ma.MaskedArray) and isinstance(made, np.ma.MaskedArray);"
        "assert ma.is_masked(made) and not ma.is_masked(made[:1]) and np.unique(made).tolist() == [1, None];"
        "assert not isinstance(made.data, ma.MaskedArray)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_documents_and_installed_packages_are_looked_up_when_somebody_wants_them() -> None:
    code = """
import sys
from dalenius.cli.main import _keep_documents_out
_keep_documents_out()
import pyarrow.compute as pc, sqlglot
assert not {'pydoc', 'email.message'} & set(sys.modules)
assert pc.sum([1, 2], min_count=3).as_py() is None and pc.sum([1, 2]).as_py() == 3
from importlib.metadata import entry_points
assert len(entry_points(group='console_scripts')) > 0 and 'email.message' in sys.modules
import importlib.metadata
assert importlib.metadata.version('pyarrow') == pc.pa.__version__
from pyarrow.vendored import docscrape
assert docscrape.FunctionDoc(sorted)['Summary'] and 'pydoc' in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_methods_of_dataclasses_that_are_compiled_later_are_the_same() -> None:
    code = """
import dataclasses, inspect
from dalenius.cli.main import _write_methods_later

def make():
    @dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
    class Pair:
        a: int
        b: object = dataclasses.field(default=None, repr=False)

    @dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
    class Triple(Pair):
        'Without a document Python would look at __init__ for one.'
        c: int = 3

    @dataclasses.dataclass
    class Odd:
        self: int
        name: str = 'x'

    class Child(Odd):
        def __init__(self):
            super().__init__(self=5)

    return Pair, Triple, Odd, Child

before, before_triple, before_odd, before_child = make()
_write_methods_later()
after, after_triple, after_odd, after_child = make()
later = vars(after_triple)['__init__']
assert (after_triple(a=1, c=4).c, after_triple(a=1).c) == (4, 3) and after_triple.__init__ is not later
assert vars(after_triple)['__init__'] is after_triple.__init__
assert after_triple(a=1) == after_triple(a=1, c=3) != after(a=1) and hash(after(a=1)) == hash(before(a=1))
assert repr(after_triple(a=1)) == repr(before_triple(a=1))
for kind in (before, after):
    try:
        kind(1)
    except TypeError as error:
        assert str(error).startswith('make.<locals>.Pair.__init__() takes 1 positional argument')
    else:
        raise AssertionError
assert inspect.signature(after) == inspect.signature(before) and after_odd.__doc__ == before_odd.__doc__
assert after_triple.__eq__.__qualname__ == before_triple.__eq__.__qualname__
assert repr(after_odd(self=3)) == repr(before_odd(self=3)) and after_child() == after_child()
assert repr(after_child()) == repr(before_child())
compiled = []
dataclasses.exec = lambda *how: compiled.append(how) or exec(*how)

@dataclasses.dataclass(frozen=True)
class Told:
    'It has a document too.'
    a: int

assert not compiled
assert {repr(Told(k)) for k in (1, 2, 2)} == {'Told(a=1)', 'Told(a=2)'} and len(compiled) == 2
assert repr(after(a=1, b=2)) == repr(before(a=1, b=2)) == 'make.<locals>.Pair(a=1)' == repr(after(a=1))
for pair in (before(a=1), after(a=1), after(a=1)):
    for change in (lambda: setattr(pair, 'a', 2), lambda: delattr(pair, 'a')):
        try:
            change()
        except dataclasses.FrozenInstanceError as error:
            assert "field 'a'" in str(error)
        else:
            raise AssertionError
    assert pair.a == 1 and pair == type(pair)(a=1) and len({pair, type(pair)(a=1)}) == 1
"""
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("words", [["inspect", "nowhere.csv"], ["plan", "policy.toml"]])
def test_a_command_ends_with_its_own_words_and_no_others(home: Path, words: list[str]) -> None:
    """What is not cleared away when the process ends, DuckDB's bindings call leaked on the terminal."""
    command = [sys.executable, "-c", "from dalenius.cli import main; main()", *words]
    ended = subprocess.run(command, cwd=home, capture_output=True, text=True, check=False)
    assert [line.partition(":")[0] for line in ended.stderr.splitlines()] in ([], ["error", "hint"])


def test_a_template_that_sqlglot_has_not_parsed_is_parsed_when_it_is_wanted() -> None:
    question = "SELECT RANDSTR(5, 3), SPLIT_PART(a, ',', 2) FROM t"
    asked = f"""
from dalenius.cli.reader.ask import _load_dialect
_load_dialect()
import sqlglot
from sqlglot.dialects.duckdb import DuckDB
print(type(DuckDB.Generator.RANDSTR_TEMPLATE).__name__)
print(sqlglot.transpile({question!r}, 'snowflake', 'duckdb')[0])
"""
    done = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["ParsedLater", *sqlglot.transpile(question, "snowflake", "duckdb")]
