"""The pictures of docs/studio.md: the studio on the demo's table, page by page, on a desk and on a phone.

`python docs/screenshots.py`, with Chromium installed; they are written to docs/figures/studio.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

TARGET = Path(__file__).parent / "figures" / "studio"
ROLES = {"patient_id": "unit", "name": "identifiers", "disease": "sensitive"}
PATIENCE = 600_000
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-sync",
    "--no-first-run",
]


def start(folder: str) -> tuple[subprocess.Popen[str], str]:
    """The studio, and where it is."""
    command = [sys.executable, "-m", "dalenius", "studio", "--project", folder, "--json"]
    studio = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)  # noqa: S603  (ourselves)
    assert studio.stdout is not None  # noqa: S101  (it is a pipe)
    told = ""
    while not told.rstrip().endswith("}"):
        told += studio.stdout.readline()
    return studio, json.loads(told)["url"]


def take(page: Any, name: str, first: str = "h1") -> None:
    """The page as a desk and a phone show it, from an element on."""
    for width, height in ((1280, 900), (390, 800)):
        page.set_viewport_size({"width": width, "height": height})
        page.evaluate("window.scrollTo(0, 0)")
        if first != "h1":
            page.evaluate(f"document.querySelector('{first}').scrollIntoView()")
        page.screenshot(path=TARGET / f"{name}-{width}.png")
    page.set_viewport_size({"width": 1280, "height": 900})


def walk(page: Any) -> None:
    """From the table to the report."""
    page.click("text=Take the demo")
    page.wait_for_selector("text=The first 50 rows")
    take(page, "data")
    page.click("text=Next: Roles")
    page.wait_for_selector("text=Keep these roles")
    for control in page.query_selector_all("select.role"):
        column = control.get_attribute("aria-label").removeprefix("role of ")
        control.select_option(ROLES.get(column, "quasi"))
    page.wait_for_selector("#rare .notice:has-text('alone')")
    take(page, "roles")
    page.click("text=Keep these roles")
    page.click("a:has-text('Next: Promise')")
    page.fill("input[aria-label='limit of HIV']", "0.03")
    page.click("text=Keep this promise")
    page.wait_for_selector("text=Nobody is published outright")
    take(page, "promise")
    page.click("a:has-text('Next: Choose')")
    page.check("label:has-text('district') input")
    page.click("text=Measure all ways")
    page.wait_for_selector("text=Answers are off")
    take(page, "choose", ".frontier")
    page.click("article[aria-label='bucketize'] button")
    page.click("button:has-text('Rehearse')")
    page.wait_for_selector("a:has-text('Next: Publish')")
    take(page, "rehearse")
    page.click("a:has-text('Next: Publish')")
    page.wait_for_selector("text=Publish, for good")
    take(page, "publish")
    page.fill("#field-signed", "Ada")
    page.fill("#field-phrase", "patients.release")
    page.click("text=Publish, for good")
    page.click("a:has-text('Next: Ask')")
    page.select_option("#field-by", "disease")
    page.click("button:has-text('Ask')")
    page.wait_for_selector("figcaption:has-text('Answer')")
    take(page, "ask")
    page.click("nav >> text=Audit")
    page.click("text=Attack it")
    page.wait_for_selector("text=Attacks and how far they got")
    take(page, "audit")
    page.click("nav >> text=Report")
    take(page, "report")


def main() -> None:
    """Make them all."""
    TARGET.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        studio, url = start(folder)
        try:
            browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
            page = browser.new_page()
            page.set_default_timeout(PATIENCE)
            page.goto(url)
            walk(page)
            browser.close()
        finally:
            studio.terminate()
            studio.wait()


if __name__ == "__main__":
    main()
