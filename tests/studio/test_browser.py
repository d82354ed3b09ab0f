"""The whole job in a real browser, with wrong input on the way; and what screen readers stumble over."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any

import pytest

from dalenius.release.folder import StoredRelease
from dalenius.release.verify import verify_release
from tests.reporting.test_browser import BROWSER, FLAGS
from tests.studio.test_pages import DISEASES, write_table
from tests.tables.files.messy import workbook

playwright = pytest.importorskip("playwright.sync_api")
axe = pytest.importorskip("axe_playwright_python.sync_playwright")
pytestmark = pytest.mark.skipif(
    BROWSER is None, reason="no chromium is installed: `make services` installs it, where root and apt exist"
)
MARKUP = "<img src=x onerror=alert(1)>"
PATIENCE = 600_000
"""Milliseconds: machines are busy, and no test is about speed."""


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    (tmp_path / "project").mkdir()
    (tmp_path / "private").mkdir()
    command = [sys.executable, "-m", "dalenius", "studio", "--project", str(tmp_path / "project"), "--json"]
    own = {**os.environ, "TMPDIR": str(tmp_path / "private")}
    started = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=own, text=True)
    assert started.stdout is not None
    told = ""
    while not told.rstrip().endswith("}"):
        line = started.stdout.readline()
        assert line, "it ended before it said where it is"
        told += line
    yield json.loads(told)["url"]
    started.terminate()
    said, errors = started.communicate()
    for logged in ("Traceback", "SELECT", "GET", "POST", "token", "nothing was published"):
        assert logged not in said + errors
    assert not list((tmp_path / "private").glob("dalenius-studio-*")), "uploads are gone with the studio"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as started:
        flags = [flag for flag in FLAGS if flag != "--headless"]
        launched = started.chromium.launch(executable_path=BROWSER, args=flags)
        yield launched
        launched.close()


@pytest.fixture
def page(browser: Any, address: str) -> Iterator[Any]:
    opened = browser.new_page(viewport={"width": 1280, "height": 900})
    opened.set_default_timeout(PATIENCE)
    opened.goto(address)
    yield opened
    opened.close()


def check_access(page: Any) -> None:
    """Nothing serious for who cannot see the page, in light and in dark."""
    colours = {"runOnly": ["color-contrast"]}
    for scheme, options in (("light", None), ("dark", colours)):
        page.emulate_media(color_scheme=scheme)
        serious = _serious(page, options)
        for _ in range(5):  # a part that is being loaded anew is looked at again
            if serious:
                page.wait_for_timeout(500)
                serious = _serious(page, options)
        assert not serious, [(one["id"], one["nodes"][0]["html"]) for one in serious]


def _serious(page: Any, options: dict[str, Any] | None) -> list[Any]:
    found = axe.Axe().run(page, options=options).response["violations"]
    return [one for one in found if one["impact"] in ("serious", "critical")]


def fits(page: Any) -> bool:
    """Whether a phone shows the page without scrolling sideways."""
    page.set_viewport_size({"width": 390, "height": 800})
    wide = page.evaluate("document.documentElement.scrollWidth")
    for _ in range(5):  # the browser lays the page out when it comes to it
        if wide > 390:
            page.wait_for_timeout(500)
            wide = page.evaluate("document.documentElement.scrollWidth")
    page.set_viewport_size({"width": 1280, "height": 900})
    return bool(wide <= 390)


def test_from_a_dropped_file_to_a_report(page: Any, tmp_path: Path) -> None:
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    assert "token" not in page.url
    bad = tmp_path / "bad.parquet"
    bad.write_bytes(b"this is no table")
    page.set_input_files("#field-file", bad)
    page.click("text=Take this file")
    page.wait_for_selector("text=This table cannot be read")
    page.set_input_files("#field-file", write_table(tmp_path / "people.csv"))
    page.click("text=Take this file")
    page.wait_for_selector("th:has-text('disease')")
    check_access(page)
    assert fits(page)

    page.click("text=Next: Roles")
    page.wait_for_selector("text=Keep these roles")
    assert page.locator("a:has-text('Next: Promise')").count() == 0, "shut until every role is chosen"
    for step in ("choose", "publish"):  # nor does an address lead past it
        page.goto(page.url.replace("/roles", f"/{step}"))
        page.wait_for_url("**/roles")
        page.wait_for_selector("text=Keep these roles")
    for name, role in {"name": "identifiers", "age": "quasi", "sex": "quasi", "disease": "sensitive"}.items():
        page.select_option(f"select[aria-label='role of {name}']", role)
    page.wait_for_selector("#rare .notice:has-text('alone')")
    assert not page.is_visible("input[aria-label='edges, or the limit, of age']")
    page.select_option("select[aria-label='coarser values of age']", label="bins with these edges")
    page.fill("input[aria-label='edges, or the limit, of age']", "0, 40, 100")
    page.press("input[aria-label='edges, or the limit, of age']", "Tab")
    page.wait_for_selector("#rare .notice:has-text('nobody')")
    page.select_option("select[aria-label='coarser values of age']", label="to 10s")
    check_access(page)
    assert fits(page)
    page.click("text=Keep these roles")

    page.click("a:has-text('Next: Promise')")
    page.fill("#field-sentence-limit", "1 in 5000")
    page.select_option("#field-sentence-value", label="HIV")
    page.click("text=Keep this promise")
    page.wait_for_selector("text=This promise cannot be kept")
    page.wait_for_selector("text=everybody can guess the share")
    assert page.locator("a:has-text('Next: Choose')").count() == 0
    page.fill("input[aria-label='limit of HIV']", "1")
    page.click("text=Keep this promise")
    page.wait_for_selector("a:has-text('Next: Choose')")
    page.fill("input[aria-label='limit of HIV']", "")
    page.click("text=Keep this promise")
    page.wait_for_selector("text=Nobody is published outright")
    check_access(page)
    assert fits(page)

    page.click("a:has-text('Next: Choose')")
    page.check("label:has-text('sex') input")
    page.fill("#field-questions", "SELECT COUNT(*) FROM t WHERE age > 30")
    page.click("text=Measure all ways")
    page.click("text=Cancel")
    page.wait_for_selector("text=it was cancelled")
    assert page.is_checked("label:has-text('sex') input"), "what was asked is in the address"
    check_access(page)
    page.click("article[aria-label='bucketize'] button")

    page.click("button:has-text('Rehearse')")
    page.wait_for_selector("a:has-text('Next: Publish')")
    check_access(page)
    page.click("a:has-text('Next: Publish')")
    page.fill("#field-signed", "Ada")
    page.fill("#field-phrase", "something else")
    page.click("text=Publish, for good")
    page.wait_for_selector("text=Not confirmed")
    page.fill("#field-signed", "Ada")
    page.fill("#field-phrase", "people.release")
    check_access(page)
    page.click("text=Publish, for good")
    page.click("a:has-text('Next: Ask')")
    release = tmp_path / "project" / "people.release"
    assert verify_release(StoredRelease.open(release), strict=True).ok

    page.fill("#field-sql", "SELECT nothing FROM t")
    page.click("button:has-text('Ask')")
    page.wait_for_selector("text=This cannot be answered")
    page.fill("#field-sql", "")
    page.select_option("#field-by", "disease")
    page.click("button:has-text('Ask')")
    page.wait_for_selector("figcaption:has-text('Answer')")
    check_access(page)
    assert fits(page)

    page.click("nav >> text=Audit")
    page.click("text=Attack it")
    page.wait_for_selector("text=Attacks and how far they got")
    check_access(page)
    assert fits(page)

    page.click("nav >> text=Report")
    page.wait_for_selector("text=The release itself")
    check_access(page)
    with page.expect_download() as zipped:
        page.click("text=The release itself")
    assert Path(zipped.value.path()).stat().st_size > 0
    (release.parent / "people.release.private-report.html").unlink()
    page.click("text=Write both reports")
    page.click("text=Show private")
    page.wait_for_selector("text=Signed off by Ada")
    assert "PRIVATE" in page.title()
    assert "PRIVATE" in page.evaluate("getComputedStyle(document.body, '::before').content"), "a watermark"
    assert not errors, errors


def give_roles(page: Any, roles: dict[str, str]) -> None:
    page.click("text=Next: Roles")
    for name, role in roles.items():
        page.select_option(f"select[aria-label='role of {name}']", role)


def rehearse_and_publish(page: Any, release: str) -> None:
    """From the cards on; the release is confirmed by its name."""
    page.click("a:has-text('Next: Choose')")
    page.click("article[aria-label='bucketize'] button")
    page.click("button:has-text('Rehearse')")
    page.click("a:has-text('Next: Publish')")
    page.fill("#field-signed", "Ada")
    page.fill("#field-phrase", release)
    page.click("text=Publish, for good")


def download_report(page: Any) -> str:
    page.click("nav >> text=Report")
    page.click("text=The report for everybody")
    page.wait_for_url("**/download/report")
    return str(page.content())


def test_names_with_diagnoses_cannot_be_published_by_going_on(page: Any, tmp_path: Path) -> None:
    """Names published as they are, every value called no secret: the red count stands before the end.

    The file is as an office writes it: latin-1, decimal commas. With a promise it goes on to its report.
    """
    rows = [
        f"Jürgen {i};{20 + i % 50};1,{50 + i % 40};{DISEASES[(i // 2 + i // 50) % 4]}" for i in range(200)
    ]
    table = tmp_path / "größen.csv"
    table.write_bytes("\n".join(["name;alter;größe;disease", *rows]).encode("latin-1"))
    page.set_input_files("#field-file", table)
    page.click("text=Take this file")
    page.wait_for_selector("th:has-text('größe')")
    page.fill("#field-decimal", ",")
    page.click("text=Read it this way")
    page.wait_for_selector("td:has-text('1.75')")
    give_roles(page, {"name": "quasi", "alter": "quasi", "größe": "quasi", "disease": "sensitive"})
    page.wait_for_selector("#rare .notice:has-text('200 of 200 people')")
    page.click("text=Keep these roles")
    page.click("a:has-text('Next: Promise')")
    for disease in DISEASES:
        page.fill(f"input[aria-label='limit of {disease}']", "1")
    page.click("text=Keep this promise")
    red = page.wait_for_selector(".notice.bad")
    assert re.search(r"200 people", red.inner_text())
    rehearse_and_publish(page, "größen.release")
    page.wait_for_selector("text=which was not accepted")
    page.wait_for_selector(".notice.bad:has-text('200 people')")
    assert not (tmp_path / "project" / "größen.release").exists()
    page.click("nav >> text=Promise")
    for disease in DISEASES:
        page.fill(f"input[aria-label='limit of {disease}']", "")
    page.click("text=Keep this promise")
    page.wait_for_selector("text=Nobody is published outright")
    rehearse_and_publish(page, "größen.release")
    page.wait_for_selector("a:has-text('Next: Ask')")
    assert "größe" in download_report(page)


def test_a_workbook_of_markup_goes_to_its_report(page: Any, tmp_path: Path) -> None:
    """A value called `<img …>` is a value, on every page and in the report; nothing of it runs."""
    ran: list[Any] = []

    def note(dialog: Any) -> None:
        ran.append(dialog.message)
        dialog.dismiss()

    page.on("dialog", note)
    _, *rows = [line.split(",") for line in write_table(tmp_path / "t.csv").read_text().splitlines()]
    cells: list[list[Any]] = [
        ["name", "age", escape(MARKUP), "disease"],
        *([name, int(age), sex, disease.replace("Cold", escape(MARKUP))] for name, age, sex, disease in rows),
    ]
    book = tmp_path / "people.xlsx"
    book.write_bytes(workbook({"2023": [["x"], [1]], "2024": cells}))
    page.set_input_files("#field-file", book)
    page.click("text=Take this file")
    page.wait_for_selector("text=has 2 sheets with cells")
    book.write_bytes(workbook({"2024": cells}))
    page.set_input_files("#field-file", book)
    page.click("text=Take this file")
    page.wait_for_selector("th:has-text('disease')")
    give_roles(page, {"name": "identifiers", "age": "quasi", MARKUP: "quasi", "disease": "sensitive"})
    page.click("text=Keep these roles")
    page.click("a:has-text('Next: Promise')")
    page.click("text=Keep this promise")
    page.wait_for_selector("text=Nobody is published outright")
    rehearse_and_publish(page, "people.release")
    page.click("a:has-text('Next: Ask')")
    page.select_option("#field-by", "disease")
    page.click("button:has-text('Ask')")
    page.wait_for_selector(f"figure :text('{MARKUP}')")
    assert "&lt;img src=x" in download_report(page)
    assert page.locator("img").count() == 0
    assert not ran
