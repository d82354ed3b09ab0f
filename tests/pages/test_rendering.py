"""The renderers by themselves: scales, pictures, numbers, and texts that try to break out."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from dalenius.pages.document import (
    Bullets,
    Code,
    Column,
    Commands,
    Described,
    Estimate,
    Facts,
    Legend,
    Notice,
    Number,
    Paragraph,
    Picture,
    Report,
    Section,
    Table,
    Verdict,
)
from dalenius.pages.html import render_html
from dalenius.pages.pictures import Scale, describe, draw, scale_of
from dalenius.pages.words import write_number
from dalenius.pages.writing import default_path, render_text, to_json
from tests.reporting.pages import Page

texts = st.text(
    st.characters(codec="utf-8", exclude_categories=("Cs", "Cc")), min_size=1, max_size=30
) | st.sampled_from(
    ["</td><script>", "<!--", "]]>", "&lt;", '" onload="x', "</title>", "<svg/onload=x>", "'"]
)
LEGEND = Legend(bar="bar", point="point", limit="limit", reference="reference")


def report_of(text: str) -> Report:
    """A report in which the text stands wherever a text can stand."""
    picture = Picture(bar=1.0, point=2.0, low=1.0, high=3.0, limit=4.0, reference=0.5)
    cells = (text, picture, Code(text=text), Verdict(tone="bad", text=text), Described(name=text, text=text))
    columns = (
        Column(title=text),
        Column(title=text, legend=Legend(bar=text, point=text, limit=text, reference=text), style="count"),
        *(Column(title=text) for _ in range(3)),
    )
    return Report(
        title=text,
        private=False,
        ok=True,
        lead=(Notice(tone="note", title=text, text=text),),
        sections=(
            Section(
                id="one",
                title=text,
                blocks=(
                    Paragraph(text=text),
                    Bullets(title=text, items=(text,)),
                    Facts(items=((text, text), (text, Number(value=1.0)))),
                    Commands(lines=((text, text),)),
                    Table(caption=text, columns=columns, rows=(cells,), note=text),
                ),
            ),
        ),
    )


def shape(page: Page) -> list[tuple[str, tuple[str, ...]]]:
    return [(tag, tuple(attributes)) for tag, attributes in page.elements]


@given(texts)
def test_no_text_changes_the_shape_of_the_page(text: str) -> None:
    """Every text comes back as it was, and the elements are those of a harmless one."""
    page = Page.of(render_html(report_of(text)))
    assert shape(page) == shape(Page.of(render_html(report_of("plain"))))
    assert sum(found == text for _, found in page.texts) >= 20
    assert all(th["data-label"] == text for th in page.tags("td"))
    assert to_json(report_of(text)) == json.loads(json.dumps(to_json(report_of(text))))
    assert text in render_text(report_of(text))


def test_the_policy_allows_this_style_and_nothing_else() -> None:
    html = render_html(report_of("x"))
    (style,) = re.findall(r"<style>(.*?)</style>", html, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert f"default-src 'none'; style-src 'sha256-{digest}'" in html


@given(st.floats(1e-6, 1e9))
def test_scales_reach_what_is_drawn_in_few_round_steps(largest: float) -> None:
    scale = Scale.reaching(largest, "count")
    assert largest <= scale.end * (1 + 1e-6)
    assert scale.end <= 2.5 * largest * (1 + 1e-6)
    assert 1 <= scale.n_steps <= 4
    assert f"{scale.step:.1e}"[:3] in ("1.0", "2.0", "2.5", "5.0")


def test_a_picture_says_what_it_shows() -> None:
    picture = Picture(bar=0.25, point=-0.1, low=-0.2, high=0.5, limit=1 / 3)
    column = Column(title="share", legend=LEGEND)
    table = Table(caption="t", columns=(Column(title="value"), column), rows=(("Flu", picture),))
    scale = scale_of(table, 1)
    assert scale.ticks == (0.0, 0.2, 0.4, 0.6)
    assert describe(picture, scale, column, "Flu") == (
        "Flu: bar 25 %, point -10 %, limit 33.3 %, interval -20 % to 50 %"
    )
    drawn = {element.get("class"): element for element in draw(picture, scale, column, "Flu")}
    assert drawn["bar"].get("width") == "41.67%"
    assert drawn["point"].get("cx") == "0.00%"  # what is below 0 is drawn at 0
    assert drawn["limit"].get("x1") == "55.56%"
    assert "reference" not in drawn


@given(st.floats(-1e12, 1e12), st.sampled_from(["count", "share", "number"]))
def test_numbers_are_short_and_close(value: float, style: str) -> None:
    written = write_number(value, style)  # type: ignore[arg-type]
    number = float(written.removesuffix(" %").replace(",", "")) / (100 if style == "share" else 1)
    allowed = {"count": 0.05, "share": 0.05 * abs(value) + 1e-9, "number": 5e-4 * abs(value)}[style]
    assert abs(number - value) <= allowed + 1e-9 + 1e-12 * abs(value)


def test_estimates_without_an_interval_say_so() -> None:
    table = Table(
        caption="t",
        columns=(Column(title="a"), Column(title="b")),
        rows=(("x", Estimate(value=None, low=None, high=None)),),
    )
    section = Section(id="s", title="s", blocks=(table,))
    report = Report(title="r", private=True, ok=True, lead=(), sections=(section,))
    page = Page.of(render_html(report))
    assert "unknown" in page.text
    assert "PRIVATE – r" in page.text


def test_default_names(tmp_path: Path) -> None:
    assert default_path(tmp_path / "r", private=False) == tmp_path / "r.report.html"
    assert default_path(Path(), private=True).name == f"{Path.cwd().name}.private-report.html"
