"""The example notebook of each role runs from its first cell to its last, in a folder of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

NOTEBOOKS = sorted((Path(__file__).parent.parent / "docs" / "notebooks").glob("*.ipynb"))


def test_every_role_has_one() -> None:
    assert [path.stem for path in NOTEBOOKS] == ["analyst", "publisher", "reviewer"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_runs_and_was_saved_as_it_runs(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nbclient = pytest.importorskip("nbclient")
    nbformat = pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent.parent / "src"))
    book = nbformat.read(path, as_version=4)
    saved = [len(cell.outputs) for cell in book.cells if cell.cell_type == "code"]
    client = nbclient.NotebookClient(book, timeout=300, resources={"metadata": {"path": str(tmp_path)}})
    client.execute()
    assert [len(cell.outputs) for cell in book.cells if cell.cell_type == "code"] == saved
    text = path.read_text(encoding="utf-8")
    assert "site-packages" not in text
    assert '"output_type": "error"' not in text
