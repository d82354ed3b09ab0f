"""Whether a rebuild changed anything that anybody can see.

    python -m bench.unchanged record FILE.json [--only PREFIX] [--texts FOLDER]
    python -m bench.unchanged compare FILE.json [--only PREFIX] [--texts FOLDER]

Modules can be moved and rewritten at will as long as what they do stays as it is: plans, the bytes of
seeded releases, verdicts, answers with their error bars, refusals word by word, audits, exports, reports.
`record` does some 1,500 such things with small made-up tables and keeps a digest and the beginning of each;
`compare` does them again, perhaps with another build, lists those that came out differently, and exits with 1
if there are any. What differs from run to run by itself is taken out first: ids, today's date, seconds, the
name of the folder, and digits beyond the tenth of printed numbers. `--only` does the cases whose names begin
so; `--texts` also writes each of them out whole, one a file, so that two builds can be laid side by side.
"""

from __future__ import annotations

import argparse
import datetime
import hashlib
import json
import os
import re
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from bench.unchanged_cases import Case, all_cases
from bench.unchanged_tables import write_tables
from dalenius import DaleniusError

DIGITS = 10
"""Of printed numbers, so that the order of a sum does not matter."""
EXCERPT = 600
MOST_LISTED = 200

Record = dict[str, dict[str, str]]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("action", choices=["record", "compare"])
    parser.add_argument("file", type=Path, help="where the record is kept")
    parser.add_argument("--only", default="", metavar="PREFIX", help="the cases whose names begin so")
    parser.add_argument("--texts", type=Path, metavar="FOLDER", help="also write each case out whole")
    options = parser.parse_args()
    file, texts = options.file.absolute(), options.texts and options.texts.absolute()
    found = do_all(options.only, texts)
    if options.action == "record":
        file.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        print(f"{len(found)} cases recorded in {file}")
        return
    kept: Record = json.loads(file.read_text(encoding="utf-8"))
    kept = {name: entry for name, entry in kept.items() if name.startswith(options.only)}
    sys.exit(1 if say_differences(kept, found) else 0)


def do_all(only: str, texts: Path | None) -> Record:
    """Every case whose name begins so, done in a folder of its own."""
    found: Record = {}
    started = time.monotonic()
    here = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        write_tables(Path(folder))
        os.environ.update(DALENIUS_LEDGER="ledger", COLUMNS="120", LINES="40", NO_COLOR="1")
        os.chdir(folder)
        try:
            last = ""
            for name, work in all_cases():
                if not name.startswith(only):
                    continue
                text = as_text(outcome((name, work)))
                found[name] = {"digest": hashlib.sha256(text.encode()).hexdigest(), "excerpt": text[:EXCERPT]}
                if texts is not None:
                    _keep(texts / f"{name}.txt", text)
                group = name.partition("/")[0]
                if group != last:
                    print(f"{time.monotonic() - started:5.0f} s  {group}", file=sys.stderr, flush=True)
                last = group
        finally:
            os.chdir(here)
    print(f"{time.monotonic() - started:5.0f} s  {len(found)} cases", file=sys.stderr)
    return found


def outcome(case: Case) -> Any:
    """What a case gives; a refusal counts as well as an answer."""
    name, work = case
    try:
        return work()
    except DaleniusError as error:
        return {**error.to_dict(), "exit_code": error.exit_code}
    except Exception as error:
        print(f"{name}: {type(error).__name__}: {error}", file=sys.stderr)
        return {"crash": type(error).__name__, "message": str(error)}


def as_text(value: Any) -> str:
    """The outcome as a text that is the same whenever the outcome is."""
    if not isinstance(value, str):
        return _without_chance(json.dumps(_plain(value), indent=1, ensure_ascii=False))
    return _without_chance(_rounded(value))


def _plain(value: Any) -> Any:
    """Numbers with so many digits; files as texts or digests."""
    if isinstance(value, dict):
        return {str(key): _plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    if isinstance(value, bytes):
        return _file(value)
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}")
    if isinstance(value, str):
        return _rounded(value)
    return value if value is None or isinstance(value, bool | int) else str(value)


def _rounded(text: str) -> str:
    """Long decimals in a text, as in the JSON that commands print."""
    return re.sub(r"\d+\.\d{8,}(e[+-]\d+)?", lambda found: f"{float(found[0]):.{DIGITS}g}", text)


def _file(content: bytes) -> str:
    try:
        return _without_chance(content.decode()) if len(content) < 100_000 else _digest(content)
    except UnicodeDecodeError:
        return _digest(content)


def _digest(content: bytes) -> str:
    return f"sha256 {hashlib.sha256(content).hexdigest()}, {len(content)} bytes"


def _without_chance(text: str) -> str:
    """The text without ids, today's date, seconds, the name of the folder, and hashes of what has an id."""
    if "manifest.json" in text:
        for path in Path().rglob("manifest.json"):
            text = text.replace(hashlib.sha256(path.read_bytes()).hexdigest(), "HASH")
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    text = text.replace(str(Path.cwd()), "FOLDER").replace(today, "TODAY")
    text = re.sub(r"(?<![0-9a-f])[0-9a-f]{32}(?![0-9a-f])", "ID", text)
    return re.sub(r'(seconds\\?"?: |\bin )\d+\.\d+( s\b)?', r"\1SECONDS", text)


def _keep(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def say_differences(kept: Record, found: Record) -> int:
    """List them; how many there are."""
    names = sorted(kept.keys() | found.keys())
    differing = [name for name in names if kept.get(name) != found.get(name)]
    for name in differing[:MOST_LISTED]:
        before, after = (record.get(name, {}).get("excerpt", "(no such case)") for record in (kept, found))
        at = next((i for i, (a, b) in enumerate(zip(before, after, strict=False)) if a != b), None)
        if at is None:
            print(f"{name}: differs after the beginning that is kept (--texts keeps all)")
            continue
        start = max(0, at - 60)
        print(f"{name}:\n  was: {before[start : at + 120]!r}\n  is:  {after[start : at + 120]!r}")
    print(f"{len(differing)} of {len(names)} cases differ")
    return len(differing)


if __name__ == "__main__":
    main()
