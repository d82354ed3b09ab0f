"""The report in a real browser: it fits phones and desks, is silent on the console, and fetches nothing."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from dalenius.pages.html import render_html
from dalenius.reporting.build import build_report
from tests.reporting.pages import DIVERSE, VIEW, policy, published
from tests.reporting.test_pages import nasty


def find_browser() -> str | None:
    """The first browser that starts; some systems have a stub under its name."""
    for name in ("chromium", "chromium-browser", "google-chrome"):
        found = shutil.which(name)
        if found and subprocess.run([found, "--version"], capture_output=True, check=False).returncode == 0:
            return found
    return None


BROWSER = find_browser()
pytestmark = pytest.mark.skipif(
    BROWSER is None, reason="no chromium is installed: `make services` installs it, where root and apt exist"
)
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--hide-scrollbars",
    "--allow-file-access-from-files",
    "--enable-logging=stderr",
    "--virtual-time-budget=4000",
    "--dump-dom",
]
OWN_HOSTS = re.compile(r"https?://([a-z0-9.-]+\.)?(google\.com|googleapis\.com|gvt1\.com|gstatic\.com)[/:]")
"""Where the browser itself calls; names are not resolved, so that it gets no answer."""
FRAME = """<!DOCTYPE html><body><iframe id="f" width="{width}" height="900"></iframe><script>
const frame = document.getElementById("f");
frame.onload = () => {{
  const page = frame.contentDocument.documentElement;
  document.title = "width " + page.scrollWidth + " of " + frame.contentWindow.innerWidth;
}};
frame.src = "{page}";
</script></body>"""


@dataclass(frozen=True, kw_only=True)
class Seen:
    width: int
    window: int
    console: list[str]
    fetched: set[str]


def look(html: str, width: int, folder: Path) -> Seen:
    """Open a page in a frame of that width."""
    (folder / "page.html").write_text(html, encoding="utf-8")
    (folder / "frame.html").write_text(FRAME.format(width=width, page="page.html"), encoding="utf-8")
    log = folder / "net.json"
    own = [f"--user-data-dir={folder / 'profile'}", f"--log-net-log={log}", f"--window-size={width + 40},900"]
    assert BROWSER is not None
    done = subprocess.run(
        [BROWSER, *FLAGS, "--host-resolver-rules=MAP * ~NOTFOUND", *own, f"file://{folder / 'frame.html'}"],
        check=True,
        capture_output=True,
        text=True,
        timeout=120,
    )
    measured = re.search(r"<title>width (\d+) of (\d+)</title>", done.stdout)
    assert measured, done.stdout[:500]
    urls = set(re.findall(r'"url":"([^"]*)"', log.read_text(encoding="utf-8", errors="replace")))
    return Seen(
        width=int(measured[1]),
        window=int(measured[2]),
        console=[line for line in done.stderr.splitlines() if "CONSOLE" in line],
        fetched={url for url in urls if url.startswith("http") and not OWN_HOSTS.match(url)},
    )


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """A private report on buckets and one on a view, of names that want to be markup, and a long one."""
    folder = tmp_path_factory.mktemp("reports")
    table = nasty()
    long = table.append_column("x" * 60, table.column(0))
    quasi, *sensitive = table.column_names
    columns = {"quasi": [quasi, "x" * 60], "sensitive": sensitive}
    made = []
    for name, how in (
        ("b", {"promise": DIVERSE}),
        ("v", {"promise": {"kind": "d-gamma-privacy", "gamma": 0.3, "d": 0.05}, "mechanism": VIEW}),
    ):
        release = published(policy(folder / name, long, columns=columns, **how))
        made.append(render_html(build_report(release, long, seed=1)))
    return made


@pytest.mark.parametrize("width", [390, 1280])
def test_reports_fit_and_are_silent(width: int, pages: list[str], tmp_path: Path) -> None:
    for page in pages:
        seen = look(page, width, tmp_path)
        assert seen.window == width
        assert seen.width <= width
        assert seen.console == []
        assert seen.fetched == set()


def test_the_browser_would_notice(tmp_path: Path) -> None:
    """The control: a page that is too wide, complains and fetches."""
    bad = (
        "<!DOCTYPE html><body><div style='width:2000px'>wide</div>"
        "<img src='http://somewhere.invalid/pixel.png'><script>console.error('trouble')</script></body>"
    )
    seen = look(bad, 390, tmp_path)
    assert seen.width == 2008
    assert any("trouble" in line for line in seen.console)
    assert seen.fetched == {"http://somewhere.invalid/pixel.png"}
