"""In a notebook values are shown whole, private ones only that they are private."""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import dalenius
from dalenius import display
from dalenius.demo_data import hospital
from dalenius.errors import InputError

DISEASES = ("Flu", "HIV", "Hypertension")

COINS = {
    "promise": {"kind": "rho-privacy", "rho1": "max", "rho2": "2/3"},
    "mechanism": {"kind": "perturb"},
}


def policy(folder: Path, parts: dict[str, Any] | None = None) -> dalenius.Policy:
    return dalenius.Policy.from_dict(
        {
            "source": hospital(600),
            "release": str(folder / "r"),
            "columns": {
                "unit": "patient_id",
                "identifiers": ["name"],
                "quasi": ["age", "sex"],
                "sensitive": ["disease"],
                "dropped": ["district", "insurance"],
            },
            "promise": {"kind": "l-diversity", "l": 3},
            **(parts or {}),
        }
    )


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> dalenius.Release:
    return dalenius.publish(policy(tmp_path_factory.mktemp("display")), seed=1)


def html_of(value: Any) -> str:
    text: str = value._repr_html_()
    assert "<script" not in text
    assert "http" not in text
    assert "prefers-color-scheme:dark" in text
    return text


@pytest.mark.parametrize(
    "parts",
    [
        {},
        COINS,
        {"promise": {"kind": "l-diversity", "l": 6}, "suppress": {"method": "safe"}},
    ],
    ids=["buckets", "coins", "suppressed"],
)
def test_a_plan_keeps_its_counts_to_itself_until_asked(tmp_path: Path, parts: dict[str, Any]) -> None:
    plan: Any = dalenius.plan(policy(tmp_path, parts))
    for text in (html_of(plan), repr(plan)):
        assert "private" in text.lower()
        assert not any(name in text for name in DISEASES)
        assert "600" not in text.replace("font-weight:600", "")
    assert "PRIVATE" in html_of(plan.show())
    assert str(plan) in str(plan.show())


def test_a_plan_is_drawn_where_it_has_a_picture(tmp_path: Path) -> None:
    pytest.importorskip("altair")
    plan: Any = dalenius.plan(policy(tmp_path))
    assert "HIV" in plan.plot().to_json()
    coins = {
        "promise": {"kind": "rho-privacy", "rho1": "max", "rho2": "2/3"},
        "mechanism": {"kind": "perturb"},
    }
    other: Any = dalenius.plan(policy(tmp_path, coins))
    with pytest.raises(InputError, match="only bucket plans"):
        other.plot()


def test_a_release_and_an_answer_show_themselves(release: dalenius.Release) -> None:
    assert "l-diversity" in html_of(release)
    answer = release.ask("SELECT sex, COUNT(*) FROM t WHERE disease = '<b>' GROUP BY sex")
    text = html_of(answer)
    assert "&lt;b&gt;" in text
    assert "<b>" not in text
    assert "95 %" in text
    frames = pytest.importorskip("polars").DataFrame(answer), answer.to_polars()
    assert frames[0].equals(frames[1])
    assert answer.to_pandas().shape == frames[0].shape
    pytest.importorskip("altair")
    assert answer.plot().to_dict()["layer"]


def test_an_audit_a_comparison_and_a_private_report_are_closed(
    release: dalenius.Release, tmp_path: Path
) -> None:
    audit = dalenius.audit(release.path, hospital(600), seed=1)
    assert "linking" not in html_of(audit)
    assert "linking" in html_of(audit.show())
    compared = dalenius.compare({"mine": policy(tmp_path)}, queries=5, seeds=1, seed=1)
    assert "mine" not in html_of(compared)
    assert "mine" in html_of(compared.show())
    assert not any(char in repr(value) for value in (audit, compared) for char in "0123456789")
    report = dalenius.report(release.path)
    assert "contents" in html_of(report)
    assert "PRIVATE" not in html_of(report)


def test_progress_is_shown_in_a_notebook_only_and_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not display.in_notebook()
    shown: list[str] = []
    handle = SimpleNamespace(update=shown.append)
    page = SimpleNamespace(HTML=str, display=lambda *_, **__: handle)
    shell = SimpleNamespace(get_ipython=lambda: SimpleNamespace(kernel=1), display=page)
    monkeypatch.setitem(sys.modules, "IPython", shell)
    monkeypatch.setitem(sys.modules, "IPython.display", page)
    assert display.in_notebook()
    with display.notebook_progress() as tell:
        tell("rows", 1, 2)
        tell("attacks", 3, None)
    assert shown == [
        'rows <progress value="1" max="2"></progress>',
        'attacks <progress value="3"></progress>',
        "",
    ]


def test_what_was_done_is_logged_without_a_cell(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="dalenius"):
        dalenius.publish(policy(tmp_path), seed=1)
    (record,) = [one for one in caplog.records if one.name == "dalenius.api"]
    assert record.getMessage().startswith("published ")
    assert not any(name in caplog.text for name in DISEASES)


def test_what_the_command_line_warns_of_is_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DALENIUS_LEDGER", str(tmp_path / "ledger"))
    houses = hospital(600).set_column(1, "name", [[f"house {i // 3}" for i in range(600)]])
    columns = {"identifiers": ["name"], "quasi": ["age", "sex"], "sensitive": ["disease"]}
    columns["dropped"] = ["patient_id", "district", "insurance"]
    sections = {"source": houses, "columns": columns}
    caplog.set_level(logging.WARNING, logger="dalenius")  # whatever other libraries have set
    dalenius.publish(policy(tmp_path, sections))
    assert [(one.levelname, one.getMessage()[:21]) for one in caplog.records] == [
        ("WARNING", "200 cells of 'name' s")
    ]
    caplog.clear()
    dalenius.publish(policy(tmp_path, {**sections, "release": str(tmp_path / "r2")}), again=True)
    assert [one.getMessage()[:16] for one in caplog.records] == ["200 cells of 'na", "published again:"]
    assert not any(name in caplog.text for name in (*DISEASES, "house 1"))


def test_a_policy_shows_no_record_of_its_data_frame(tmp_path: Path) -> None:
    shown = repr(policy(tmp_path))
    assert "'disease'" in shown
    names = hospital(600)["name"].to_pylist()
    assert not any(cell in shown for cell in (*DISEASES, *names))
