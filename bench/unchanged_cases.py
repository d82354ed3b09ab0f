"""What `bench.unchanged` does: policies of every mechanism, and all that can be done with their releases.

Everything goes through the public functions of `dalenius` and its command line, so that it can be done by any
build. A case is a name and a piece of work that gives what is to stay as it is: a text, bytes, or plain data.
"""

from __future__ import annotations

import contextlib
import io
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache, partial
from importlib import import_module
from itertools import pairwise
from operator import itemgetter
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

import dalenius
from bench.unchanged_inputs import COMMANDS, MADE, WRITES, WRONG
from bench.unchanged_tables import COLUMNS, FILES
from dalenius.cli import main as command_line

Case = tuple[str, Callable[[], Any]]
KEPT = Path(__file__).parents[1] / "tests" / "releases"

LINEAR = {"kind": "f-privacy", "default": {"times": 3, "plus": "0.02"}}
NAMED = {**LINEAR, "values": {"HIV": "0.12", "NULL": "0.15", "Cold": 1}}
EACH = {"kind": "f-privacy", "default": "0.45"}
COMPOUND = {**LINEAR, "values": [{"disease": "HIV", "ward": 1, "at_most": "0.2"}]}
RHO = {"kind": "rho-privacy", "rho1": "max", "rho2": "1/2"}
RHO_NUMBER = {"kind": "rho-privacy", "rho1": "1/20", "rho2": "2/5"}
DISTINCT = {"kind": "alpha-beta", "duplicates": "distinct"}
ACTIVE = {**DISTINCT, "domains": "active"}
FRAPP = {"kind": "alpha-beta", "method": "frapp", "domains": "active"}
DOMAINS = {
    "age": "20..60",
    "sex": "sexes.csv",
    "region": ["north", "south", "east", "west", "centre", "NULL"],
    "disease": ["Flu", "Cold", "Gout", "Asthma", "Ulcer", "Angina", "HIV", "Plague"],
}


def _diverse(number: int) -> dict[str, Any]:
    return {"kind": "l-diversity", "l": number}


def _gamma(gamma: str, **more: Any) -> dict[str, Any]:
    return {"kind": "d-gamma-privacy", "gamma": gamma, **more}


def _buckets(method: str = "optimal", **more: Any) -> dict[str, Any]:
    return {"kind": "bucketize", "method": method, **more}


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A table, and how it is published."""

    name: str
    table: str
    promise: dict[str, Any]
    mechanism: dict[str, Any]
    more: dict[str, Any] = field(default_factory=dict)
    """Other sections of the policy."""
    seeds: tuple[int, ...] = (1, 2)
    sources: tuple[str, ...] = ()
    """What each run publishes where the release is a series; by default the table."""

    def policy(self, seed: int, source: Any = None) -> dalenius.Policy:
        """The policy of one run; another source can stand in for the table's file."""
        return dalenius.Policy.from_dict(
            {
                "source": FILES[self.table] if source is None else source,
                "release": f"{self.name}-{seed}",
                "columns": COLUMNS[self.table],
                "promise": self.promise,
                "mechanism": self.mechanism,
                **self.more,
            }
        )

    def publish(self, seed: int) -> Path:
        """The folder of the release, or of the series."""
        for i, source in enumerate(self.sources or (FILES[self.table],)):
            dalenius.publish(self.policy(seed, source), seed=seed + 100 * i, yes=True)
        return Path(f"{self.name}-{seed}")


def _subject(
    name: str, table: str, promise: dict[str, Any], mechanism: dict[str, Any], **more: Any
) -> Subject:
    own = {key: more.pop(key) for key in ("seeds", "sources") if key in more}
    return Subject(name=name, table=table, promise=promise, mechanism=mechanism, more=more, **own)


_RECODE = {
    "age": {"round": 5},
    "kilos": {"bins": [0, 60, 75, 90, 200]},
    "zip": {"map": "zips.csv"},
}
SUBJECTS = (
    _subject("optimal", "people", NAMED, _buckets(), seeds=(1, 2, 3)),
    _subject("optimal-each", "numbers", EACH, _buckets(max_bucket=12)),
    _subject("optimal-diverse", "wide", _diverse(8), _buckets()),
    _subject("optimal-compound", "wards", COMPOUND, _buckets()),
    _subject("two-size", "people", LINEAR, _buckets("two-size")),
    _subject("two-size-diverse", "skewed", _diverse(2), _buckets("two-size")),
    _subject("multi-size", "wide", LINEAR, _buckets("multi-size", max_bucket=30)),
    _subject("multi-size-compound", "wards", LINEAR, _buckets("multi-size")),
    _subject("anatomy", "people", _diverse(3), _buckets("anatomy")),
    _subject("anatomy-wide", "wide", _diverse(5), _buckets("anatomy")),
    _subject("recoded", "people", LINEAR, _buckets(), recode=_RECODE),
    _subject("recoded-top", "numbers", LINEAR, _buckets(), recode={"age": {"top": 65}}),
    _subject("fakes-1", "wide", LINEAR, _buckets(fakes=1)),
    _subject("fakes-2", "people", _diverse(3), _buckets("two-size", fakes=2)),
    _subject("regions", "wide", LINEAR, _buckets(regions=True)),
    _subject("regions-120", "numbers", LINEAR, _buckets("two-size", regions=120)),
    _subject("regions-diverse", "people", _diverse(3), _buckets(regions=100)),
    _subject("suppress-safe", "skewed", _diverse(4), _buckets(), suppress={"method": "safe"}),
    _subject("suppress-randomized", "skewed", _diverse(3), _buckets(), suppress={"method": "randomized"}),
    _subject("suppress-exact", "skewed", _diverse(4), _buckets("two-size"), suppress={"method": "exact"}),
    _subject("suppress-nothing", "people", _diverse(2), _buckets("anatomy"), suppress={"method": "safe"}),
    _subject("small-domain", "wide", RHO, {"kind": "perturb", "method": "small-domain"}),
    _subject("small-domain-number", "wide", RHO_NUMBER, {"kind": "perturb"}),
    _subject("least-variance", "numbers", RHO, {"kind": "perturb", "method": "least-variance"}),
    _subject("least-variance-wards", "wards", RHO, {"kind": "perturb", "method": "least-variance"}),
    _subject("uniform", "people", RHO, {"kind": "perturb", "method": "uniform"}),
    _subject("view", "votes", _gamma("0.3", d="0.01"), DISTINCT, domains=DOMAINS),
    _subject("view-active", "votes", _gamma("0.4", k="1/4"), ACTIVE, seeds=(1, 2, 3)),
    _subject("view-distinct", "copies", _gamma("0.4", k="1/4"), ACTIVE),
    _subject("view-copies", "copies", _gamma("0.3", d="0.01"), {**ACTIVE, "duplicates": "copies"}),
    _subject("view-exclusive", "votes", _gamma("0.3", d="0.01"), {**ACTIVE, "exclusive": True}),
    _subject(
        "view-noise", "votes", _gamma("0.3", d="0.01"), {**DISTINCT, "noise": "noise.toml"},
        domains={**DOMAINS, "disease": DOMAINS["disease"][:-1]},
    ),
    _subject(
        "views", "votes", _gamma("0.3", d="0.01"), {**ACTIVE, "views": 3}, sources=(FILES["votes"],) * 3
    ),
    _subject(
        "views-2", "copies", _gamma("0.4", d="0.02"), {**ACTIVE, "views": 2}, sources=(FILES["copies"],) * 2
    ),
    _subject("frapp", "votes", _gamma("0.3", d="0.01"), FRAPP),
    _subject("frapp-distinct", "copies", _gamma("0.4", d="0.02"), {**FRAPP, "duplicates": "distinct"}),
    _subject(
        "batches", "people", _diverse(3), _buckets(), series={"kind": "batches"},
        sources=("day-1.csv", "day-2.csv", "day-3.csv"),
    ),
)  # fmt: skip

QUESTIONS: dict[str, str] = {
    "everybody": "SELECT COUNT(*) FROM t",
    "between": "SELECT COUNT(*) FROM t WHERE age BETWEEN 30 AND 45 AND disease = 'Flu'",
    "sums": "SELECT SUM(age) AS s, AVG(age) AS a, COUNT(age) AS n FROM t WHERE disease IN ('Flu', 'Cold')",
    "by-sex": "SELECT sex, COUNT(*) AS n, AVG(age) AS mean FROM t WHERE disease <> 'Flu' GROUP BY sex",
    "by-disease": "SELECT disease, COUNT(*) AS n FROM t WHERE age >= 40 GROUP BY disease ORDER BY disease",
    "having": (
        "SELECT sex, disease, COUNT(*) AS n FROM t GROUP BY sex, disease "
        "HAVING COUNT(*) > 20 ORDER BY n DESC, 1, 2 LIMIT 5"
    ),
    "share": "SELECT 100.0 * COUNT(*) FILTER (WHERE disease = 'Gout') / COUNT(*) AS p FROM t WHERE age < 50",
    "arithmetic": "SELECT SUM(age) / COUNT(*) - AVG(age) FILTER (WHERE disease = 'Cold') AS gap FROM t",
    "like": "SELECT COUNT(*) FROM t WHERE lower(disease) LIKE 'a%' OR (sex = 'M' AND NOT disease LIKE '%o%')",
    "null": "SELECT COUNT(*) FROM t WHERE disease IS NULL OR age IS NULL OR disease NOT IN ('Flu', 'HIV')",
    "case": (
        "SELECT CASE WHEN age < 35 THEN 'young' WHEN disease = 'Flu' THEN 'flu' ELSE 'other' END AS who, "
        "COUNT(*) AS n, SUM(CASE WHEN sex = 'F' THEN age ELSE 0 END) AS years FROM t GROUP BY who ORDER BY n"
    ),
    "nobody": "SELECT COUNT(*) AS n, SUM(age) AS s FROM t WHERE age > 500",
}
OF_TABLE: dict[str, str] = {
    "people": "SELECT smoker, AVG(kilos) AS w FROM t WHERE born < DATE '1970-01-01' GROUP BY smoker",
    "wards": "SELECT ward, SUM(ward * age) AS s FROM t WHERE disease = 'Gout' GROUP BY ward ORDER BY ward",
    "wide": "SELECT hours > 38 AND disease LIKE 'D%' AS rare, COUNT(*) AS n FROM t GROUP BY 1",
    "numbers": "SELECT disease, AVG(income) AS i, SUM(income) / SUM(age) AS r FROM t GROUP BY ALL ORDER BY i",
    "skewed": "SELECT region, COUNT(*) AS n FROM t WHERE disease = 'Flu' GROUP BY region ORDER BY n DESC",
    "votes": "SELECT COUNT(*) FROM t WHERE region = 'north' OR (age + 5 > 40 AND disease > 'C')",
    "copies": "SELECT region, disease, COUNT(*) AS n FROM t WHERE sex = 'F' GROUP BY ALL ORDER BY 1, 2",
}
"""One more question of each table's own columns."""
REFUSED: dict[str, str] = {
    "rows": "SELECT * FROM t",
    "median": "SELECT MEDIAN(age) FROM t",
    "unknown-column": "SELECT COUNT(*) FROM t WHERE agee > 3",
    "syntax": "SELECT COUNT(* FROM t WHERE",
    "join": "SELECT COUNT(*) FROM t JOIN u USING (age)",
}
ESTIMATORS = {
    "bucketize": ("shrinkage", "regression", "anatomy"),
    "perturb": ("reconstruction", "hoeffding"),
    "alpha-beta": ("combined", "last-view", "unbiased", "inverse"),
}


def all_cases() -> Iterator[Case]:
    """Every case, in an order in which each can be done."""
    for subject in SUBJECTS:
        yield from _of_subject(subject)
    if KEPT.is_dir():
        for folder in sorted(KEPT.iterdir()):
            yield from _of_kept(folder)
    yield from _of_sources()
    yield from _together()
    made = cache(_publish_all)
    for name in MADE:
        yield f"made/{name}", partial(_after, made, itemgetter(name))
    for name, arguments in COMMANDS.items():
        yield f"cli/{name}", partial(_after, made, partial(_command, arguments))
    for name, (text, arguments) in WRONG.items():
        yield f"wrong/{name}", partial(_after, made, partial(_wrong, text, arguments))


def _after(before: Callable[[], Any], work: Callable[[Any], Any]) -> Any:
    return work(before())


def _of_subject(subject: Subject) -> Iterator[Case]:
    name = subject.name
    released = cache(subject.publish)
    part = cache(lambda seed: next(released(seed).glob("*-1"), released(seed)))  # the first of a series
    audited = part if subject.name == "batches" else released
    first, second = subject.seeds[:2]
    opened = cache(lambda: dalenius.open_release(released(first)))
    original = cache(lambda: subject.policy(first, source=(*subject.sources, None)[0]))
    yield f"{name}/plan", partial(_plan, subject)
    for seed in subject.seeds:
        yield f"{name}/release-{seed}", partial(_after, partial(released, seed), files_of)
    yield f"{name}/verify", lambda: dalenius.verify(released(first)).to_dict()
    yield f"{name}/verify-strict", lambda: dalenius.verify(released(first), strict=True).to_dict()
    yield from _asked(name, opened, OF_TABLE[subject.table])
    for estimator in ESTIMATORS[subject.mechanism["kind"]]:
        case = partial(_answer, opened, QUESTIONS["case"], estimator=estimator)
        yield f"{name}/ask/estimator-{estimator}", case
    yield f"{name}/audit", lambda: dalenius.audit(audited(first), original(), seed=5).to_dict()
    yield (
        f"{name}/audit-also",
        lambda: dalenius.audit(part(first), original(), also=[part(second)], seed=6).to_dict(),
    )
    yield f"{name}/export", lambda: _export(dalenius.open_release(part(first)), f"{name}-csv")
    for ending in ("html", "txt", "json"):
        case = partial(_report, partial(released, first), f"{name}.{ending}")
        yield f"{name}/report.{ending}", case
    private = partial(_report, partial(audited, first), f"{name}-private.html", original)
    yield f"{name}/report-private", private


def _of_kept(folder: Path) -> Iterator[Case]:
    """An old release, in a folder whose name says nothing of where it is kept."""
    name = f"kept-{folder.name}"
    copied = cache(lambda: Path(shutil.copytree(folder, name)))
    opened = cache(lambda: dalenius.open_release(copied()))
    yield f"{name}/verify", lambda: dalenius.verify(copied()).to_dict()
    renamed = {"alpha-beta": ("disease", "ill"), "perturb": ("sex", "ward")}.get(folder.name, ("", ""))
    for key, sql in QUESTIONS.items():
        yield f"{name}/ask/{key}", partial(_answer, opened, sql.replace(*renamed))
    yield f"{name}/export", lambda: _export(opened(), f"{name}-csv")
    yield f"{name}/report", partial(_report, copied, f"{name}.html")


def _of_sources() -> Iterator[Case]:
    """One table as files and data frames of several kinds."""
    sources: dict[str, Callable[[], Any]] = {
        "arrow": lambda: pq.read_table("skewed.parquet"),
        "pandas": lambda: pq.read_table("skewed.parquet").to_pandas(),
        "polars": lambda: import_module("polars").from_arrow(pq.read_table("skewed.parquet")),
        "duckdb": lambda: import_module("duckdb").read_parquet("skewed.parquet"),
        "tsv": lambda: "skewed.tsv",
        "gzip": lambda: "skewed.csv.gz",
        "folder": lambda: "skewed.parts",
    }
    for name, source in sources.items():
        for mechanism, promise in (
            (_buckets(), LINEAR),
            ({"kind": "perturb"}, RHO),
            (ACTIVE, _gamma("0.3", d="0.01")),
        ):
            kind = mechanism["kind"]
            subject = _subject(f"source-{name}-{kind}", "skewed", promise, mechanism)
            yield f"source/{name}-{kind}", partial(_publish_from, subject, source)


def _publish_from(subject: Subject, source: Callable[[], Any]) -> Any:
    return files_of(dalenius.publish(subject.policy(3, source()), seed=3, yes=True).path)


def _together() -> Iterator[Case]:
    """Policies side by side."""
    by_name = {subject.name: subject for subject in SUBJECTS}
    groups = {
        "people": ("optimal", "anatomy", "uniform"),
        "wide": ("multi-size", "regions", "small-domain"),
        "copies": ("view-distinct", "view-copies"),
    }
    options: dict[str, dict[str, Any]] = {
        "people": {"workload": "anatomy", "metrics": ("relative-error", "rmse")},
        "wide": {"workload": "equality"},
        "copies": {"workload": "workload.sql"},
    }
    for table, names in groups.items():
        chosen = [by_name[name] for name in names]
        yield f"compare/{table}", partial(_compare, chosen, options[table])


def _plan(subject: Subject) -> Any:
    plan = dalenius.plan(subject.policy(0))
    return {**plan.to_dict(), "text": str(plan)}


def _asked(name: str, opened: Callable[[], dalenius.Release], own: str) -> Iterator[Case]:
    for key, sql in {**QUESTIONS, "own": own}.items():
        yield f"{name}/ask/{key}", partial(_answer, opened, sql)
    yield f"{name}/ask/own-consistent", partial(_answer, opened, own, consistent=True)
    yield f"{name}/ask/confidence", partial(_answer, opened, QUESTIONS["between"], confidence=0.9)
    yield f"{name}/ask/consistent", partial(_answer, opened, QUESTIONS["by-disease"], consistent=True)
    yield f"{name}/ask/explain", lambda: opened().ask(QUESTIONS["having"]).explain
    yield f"{name}/ask/many", lambda: [a.to_dict() for a in opened().ask_many(list(QUESTIONS.values())[:5])]
    for key, sql in REFUSED.items():
        yield f"{name}/refused/{key}", partial(_answer, opened, sql)


def _answer(opened: Callable[[], dalenius.Release], sql: str, **options: Any) -> Any:
    answer = opened().ask(sql, **options)
    return {**answer.to_dict(), "status": [row.status for row in answer.rows]}


def _export(release: dalenius.Release, target: str) -> Any:
    exported = release.export(target).to_dict()
    return {**exported, "files": files_of(Path(target))}


def _report(release: Callable[[], Path], output: str, original: Callable[[], Any] = lambda: None) -> str:
    dalenius.report(release(), original(), output=output, seed=7)
    return Path(output).read_text(encoding="utf-8")


def _compare(subjects: list[Subject], options: dict[str, Any]) -> Any:
    """Without what depends on the noise of OpenDP, which has no seed."""
    policies = {subject.name: subject.policy(0) for subject in subjects}
    found = dalenius.compare(policies, queries=40, seeds=2, seed=3, **options).to_dict()
    for part in ("policies", "results", "by_selectivity"):
        found[part] = [row for row in found[part] if not row["policy"].startswith("Laplace")]
    for row in found["policies"]:
        del row["frontier"]
    for best in found["best"]:
        parts = [part for part in best["reason"].split("; ") if "Laplace" not in part]
        best["reason"] = "; ".join(part for part in parts if "no baseline keeps" not in part)
    return found


def _publish_all() -> dict[str, Any]:
    """Policy files: plan, release and verdict by the command line alone; and a release that is damaged."""
    found = {}
    for name, text in MADE.items():
        Path(f"{name}.toml").write_text(text, encoding="utf-8")
        plan = run(["plan", f"{name}.toml"])
        published = run(["publish", f"{name}.toml", "--seed", "9"])
        found[name] = {"plan": plan, "publish": published, "verify": run(["verify", f"made-{name}"])}
        for which in ("first", "second"):
            other = text.replace(f"made-{name}", f"{name}-{which}") + f'[ledger]\npath = "{name}.ledger"\n'
            Path(f"{name}-{which}.toml").write_text(other, encoding="utf-8")
        run(["publish", f"{name}-first.toml"])  # by chance: only that there is one matters
    shutil.copytree("made-diverse", "damaged")
    shutil.copyfile("made-suppress/qit.parquet", "damaged/qit.parquet")
    return found


def _command(arguments: list[str], _: Any) -> dict[str, Any]:
    """What a command printed, and what it wrote."""
    done = run(arguments)
    for option, name in pairwise(arguments):
        path = Path(name)
        if option in WRITES and path.is_file() and path.suffix != ".duckdb":
            done["written"] = path.read_bytes()
        elif option in WRITES and path.is_dir():
            done["written"] = files_of(path)
    return done


def _wrong(text: str | None, arguments: list[str], _: Any) -> Any:
    if text is not None:
        Path("wrong.toml").write_text(text, encoding="utf-8")
    return {"plain": run(arguments), "json": run([*arguments, "--json"])}


def run(arguments: list[str]) -> dict[str, Any]:
    """A command in this process: its exit code and what it printed."""
    out, err = io.StringIO(), io.StringIO()
    before, sys.argv = sys.argv, ["dalenius", *arguments]
    code: Any = None
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            command_line()
    except SystemExit as stopped:
        code = stopped.code
    finally:
        sys.argv = before
    return {"code": code, "out": out.getvalue(), "err": err.getvalue()}


def files_of(folder: Path) -> dict[str, bytes]:
    """Every file under a folder."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}
