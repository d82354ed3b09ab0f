"""Policy files and commands that `bench.unchanged` gives to the command line, right ones and wrong ones."""

from __future__ import annotations

_ROLES = '[columns]\nquasi = ["age", "sex", "region"]\nsensitive = ["disease"]\n'
_LINEAR = '[promise]\nkind = "f-privacy"\ndefault = { times = 3, plus = 0.02 }\n'
_DIVERSE = '[promise]\nkind = "l-diversity"\nl = 2\n'
_SKEWED = 'source = "skewed.parquet"\nrelease = "made-out"\n'
_VOTES = 'source = "votes.parquet"\nrelease = "made-out"\n'
_GAMMA = '[promise]\nkind = "d-gamma-privacy"\nd = 0.01\ngamma = 0.3\n'

MADE: dict[str, str] = {
    "diverse": f'source = "skewed.parquet"\nrelease = "made-diverse"\n{_ROLES}{_DIVERSE}',
    "suppress": (
        f'source = "skewed.parquet"\nrelease = "made-suppress"\n{_ROLES}'
        '[promise]\nkind = "l-diversity"\nl = 4\n[suppress]\nmethod = "randomized"\n'
    ),
    "perturb": (
        f'source = "skewed.parquet"\nrelease = "made-perturb"\n{_ROLES}'
        '[promise]\nkind = "rho-privacy"\nrho1 = "max"\nrho2 = "3/5"\n'
    ),
    "view": (
        f'source = "votes.parquet"\nrelease = "made-view"\n{_ROLES}{_GAMMA}[mechanism]\ndomains = "active"\n'
    ),
}
"""By name: published with a seed as `made-NAME`, without as `NAME-first`; `NAME-second` would be one more."""
WRITES = ("--out", "--output", "--to", "--chart")
"""Options that name what a command writes."""

COMMANDS: dict[str, list[str]] = {
    "inspect-people": ["inspect", "people.csv", "--sensitive", "disease", "--json"],
    "inspect-skewed": ["inspect", "skewed.parquet", "--sensitive", "disease"],
    "inspect-wards": ["inspect", "wards.parquet", "--sensitive", "disease", "--sensitive", "ward"],
    "inspect-guess": ["inspect", "votes.parquet", "--json"],
    "init-people": ["init", "people.csv", "--out", "init-people.toml", "--sensitive", "disease"],
    "init-again": ["init", "people.csv", "--out", "init-people.toml"],
    "init-wide": ["init", "wide.parquet", "--out", "init-wide.toml", "--json"],
    "plan-init": ["plan", "init-wide.toml", "--json"],
    "publish-init": ["publish", "init-wide.toml", "--seed", "4", "--json"],
    "publish-exists": ["publish", "init-wide.toml", "--seed", "4"],
    "verify": ["verify", "wide.release", "--json"],
    "verify-strict": ["verify", "wide.release", "--strict"],
    "ask": ["ask", "wide.release", "SELECT disease, COUNT(*) FROM t WHERE age < 30 GROUP BY 1", "--explain"],
    "ask-json": ["ask", "wide.release", "SELECT AVG(age) FROM t WHERE hours > 40", "--json", "--explain"],
    "ask-table": [
        "ask", "made-diverse", "SELECT COUNT(*) FROM t WHERE region IN (SELECT region FROM r WHERE rank < 3)",
        "--table", "r=regions.csv",
    ],
    "audit": ["audit", "wide.release", "--original", "wide.parquet", "--seed", "2"],
    "export": ["export", "wide.release", "--to", "wide-csv", "--column", "age", "--column", "disease"],
    "export-duckdb": ["export", "wide.release", "--to", "wide.duckdb", "--json"],
    "report": ["report", "wide.release", "--output", "wide.txt"],
    "report-json": ["report", "wide.release", "--original", "wide.parquet", "--seed", "3", "--json"],
    "plan-chart": ["plan", "diverse.toml", "--chart", "plan.svg"],
    **{f"publish-{name}-twice": ["publish", f"{name}-second.toml"] for name in MADE},
    # the other two say how many rows their coins gave
    "publish-diverse-again": ["publish", "diverse-second.toml", "--again"],
    "publish-perturb-again": ["publish", "perturb-second.toml", "--again"],
    "version": ["--version"],
    "help": ["--help"],
    "help-publish": ["publish", "--help"],
    "help-ask": ["ask", "--help"],
    "reproduce-list": ["reproduce", "--list"],
}  # fmt: skip
"""Right ones, each after those before it."""


def _bad(text: str, command: str = "plan") -> tuple[str | None, list[str]]:
    return text, [command, "wrong.toml"]


def _run(*arguments: str) -> tuple[str | None, list[str]]:
    return None, list(arguments)


WRONG: dict[str, tuple[str | None, list[str]]] = {
    "no-policy": _run("plan", "nowhere.toml"),
    "not-toml": _bad("source = \n"),
    "no-source": _bad(_ROLES + _LINEAR),
    "missing-source": _bad('source = "gone.csv"\n' + _ROLES + _LINEAR),
    "unknown-section": _bad(_SKEWED + _ROLES + _LINEAR + "[promises]\n"),
    "no-columns": _bad(_SKEWED + _LINEAR),
    "no-promise": _bad(_SKEWED + _ROLES),
    "unknown-column": _bad(_SKEWED + _ROLES.replace('"age"', '"agee"') + _LINEAR),
    "forgotten-column": _bad(_SKEWED + _ROLES.replace('"age", ', "") + _LINEAR),
    "column-twice": _bad(_SKEWED + _ROLES.replace('"age"', '"disease"') + _LINEAR),
    "no-sensitive": _bad(_SKEWED + '[columns]\nquasi = ["age", "sex", "region", "disease"]\n' + _LINEAR),
    "reserved-name": _bad(
        'source = "reserved.csv"\n[columns]\nquasi = ["bucket"]\nsensitive = ["disease"]\n' + _LINEAR
    ),
    "unknown-promise": _bad(_SKEWED + _ROLES + '[promise]\nkind = "k-anonymity"\nk = 5\n'),
    "unknown-key": _bad(_SKEWED + _ROLES + _LINEAR + "[mechanism]\nmax_buckets = 5\n"),
    "unknown-kind": _bad(_SKEWED + _ROLES + _LINEAR + '[mechanism]\nkind = "bucketise"\n'),
    "unknown-method": _bad(_SKEWED + _ROLES + _LINEAR + '[mechanism]\nmethod = "optimum"\n'),
    "wrong-mechanism": _bad(_SKEWED + _ROLES + _LINEAR + '[mechanism]\nkind = "perturb"\n'),
    "unknown-value": _bad(_SKEWED + _ROLES + _LINEAR + "values = { HIVV = 0.1 }\n"),
    "below-frequency": _bad(_SKEWED + _ROLES + _LINEAR + "values = { Flu = 0.1 }\n"),
    "not-a-number": _bad(_SKEWED + _ROLES + '[promise]\nkind = "f-privacy"\ndefault = "a lot"\n'),
    "l-too-large": _bad(_SKEWED + _ROLES + '[promise]\nkind = "l-diversity"\nl = 4\n'),
    "l-too-large-publish": _bad(_SKEWED + _ROLES + '[promise]\nkind = "l-diversity"\nl = 4\n', "publish"),
    "l-missing": _bad(_SKEWED + _ROLES + '[promise]\nkind = "l-diversity"\n'),
    "anatomy-linear": _bad(_SKEWED + _ROLES + _LINEAR + '[mechanism]\nmethod = "anatomy"\n'),
    "suppress-linear": _bad(_SKEWED + _ROLES + _LINEAR + '[suppress]\nmethod = "safe"\n'),
    "suppress-fakes": _bad(_SKEWED + _ROLES + _DIVERSE + "[mechanism]\nfakes = 1\n[suppress]\n"),
    "regions-fakes": _bad(_SKEWED + _ROLES + _LINEAR + "[mechanism]\nfakes = 1\nregions = true\n"),
    "max-bucket": _bad(_SKEWED + _ROLES + _LINEAR + "[mechanism]\nmax_bucket = 1\n"),
    "rho-order": _bad(_SKEWED + _ROLES + '[promise]\nkind = "rho-privacy"\nrho1 = 0.5\nrho2 = 0.4\n'),
    "rho-low": _bad(_SKEWED + _ROLES + '[promise]\nkind = "rho-privacy"\nrho1 = "max"\nrho2 = 0.3\n'),
    "gamma-low": _bad(_VOTES + _ROLES + _GAMMA.replace("0.3", "0.005") + '[mechanism]\ndomains = "active"\n'),
    "no-domains": _bad(_VOTES + _ROLES + _GAMMA),
    "outside-domain": _bad(
        _VOTES
        + _ROLES
        + _GAMMA
        + '[domains]\nage = "30..40"\n[mechanism]\ndomains = ["sex", "region", "disease"]\n'
    ),
    "frapp-views": _bad(_VOTES + _ROLES + _GAMMA + '[mechanism]\nmethod = "frapp"\nviews = 2\n'),
    "duplicates": _bad(
        _VOTES.replace("votes", "copies") + _ROLES + _GAMMA + '[mechanism]\ndomains = "active"\n'
    ),
    "no-noise-file": _bad(
        _VOTES + _ROLES + _GAMMA + '[mechanism]\ndomains = "active"\nnoise = "gone.toml"\n'
    ),
    "series-views": _bad(_VOTES + _ROLES + _GAMMA + '[series]\nkind = "batches"\n'),
    "recode-unknown": _bad(_SKEWED + _ROLES + _LINEAR + "[recode]\nage = { bin = 5 }\n"),
    "recode-outside": _bad(_SKEWED + _ROLES + _LINEAR + "[recode]\nage = { bins = [0, 40] }\n"),
    "recode-text": _bad(_SKEWED + _ROLES + _LINEAR + "[recode]\nsex = { round = 5 }\n"),
    "unit-twice": _bad(
        'source = "twice.csv"\n[columns]\nunit = "uid"\nquasi = ["age"]\nsensitive = ["disease"]\n' + _DIVERSE
    ),
    "empty-table": _bad(
        'source = "empty.csv"\n[columns]\nquasi = ["age"]\nsensitive = ["disease"]\n' + _DIVERSE
    ),
    "latin": _run("inspect", "latin.csv"),
    "ragged": _run("inspect", "ragged.csv"),
    "inspect-column": _run("inspect", "skewed.parquet", "--sensitive", "diseaze"),
    "ask-no-release": _run("ask", "nowhere", "SELECT COUNT(*) FROM t"),
    "ask-not-a-release": _run("ask", "nothing", "SELECT COUNT(*) FROM t"),
    "ask-confidence": _run("ask", "made-diverse", "SELECT COUNT(*) FROM t", "--confidence", "1.5"),
    "ask-estimator": _run("ask", "made-diverse", "SELECT COUNT(*) FROM t", "--estimator", "shrinkag"),
    "ask-table": _run("ask", "made-diverse", "SELECT COUNT(*) FROM t", "--table", "regions.csv"),
    "verify-damaged": _run("verify", "damaged"),
    "ask-damaged": _run("ask", "damaged", "SELECT COUNT(*) FROM t WHERE disease = 'Flu' AND age > 40"),
    "audit-original": _run("audit", "made-diverse", "--original", "votes.parquet", "--seed", "1"),
    "export-exists": _run("export", "made-diverse", "--to", "made-view"),
    "export-ending": _run("export", "made-diverse", "--to", "out.xlsx"),
    "report-ending": _run("report", "made-diverse", "--output", "out.pdf"),
    "report-inside": _run("report", "made-diverse", "--output", "made-diverse/report.html"),
    "compare-workload": _run("compare", "diverse.toml", "--workload", "anatomie"),
    "compare-metric": _run("compare", "diverse.toml", "--metric", "rmsee"),
    "unknown-command": _run("pulbish", "x.toml"),
    "unknown-option": _run("plan", "diverse.toml", "--sead", "1"),
    "missing-argument": _run("ask", "made-diverse"),
    "unknown-engine": _run("publish", "diverse.toml", "--engine", "cluster"),
    "reproduce-unknown": _run("reproduce", "figure-99"),
}
"""By name: what `wrong.toml` then holds, and the command."""
