"""The notebook, run as a person runs it: what it prints is what stands in it. UPDATE=1 rewrites that, and the picture."""

import os
import shutil
from pathlib import Path

import pytest

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")
pytest.importorskip("matplotlib")
pytest.importorskip("polars")


def printed(notebook):
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    return "".join(output["text"] for output in outputs if output.output_type == "stream")


def test_the_notebook_prints_what_stands_in_it(tmp_path):
    root = os.environ.get("ANNALS_ROOT")
    if root is None:
        pytest.skip("ANNALS_ROOT isn't set: it is the folder of the repository")
    path = Path(root) / "python/examples/airports.ipynb"
    notebook = nbformat.read(path, as_version=4)
    expected = printed(notebook)
    client = nbclient.NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(tmp_path)}})
    client.execute()
    picture = tmp_path / "runways.png"
    assert picture.read_bytes().startswith(b"\x89PNG") and 20_000 < picture.stat().st_size < 100_000
    if os.environ.get("UPDATE"):
        for cell in notebook.cells:
            # Times, which differ in each run.
            cell.metadata.clear()
        notebook.metadata.pop("language_info", None)
        nbformat.write(notebook, path)
        shutil.copy(picture, Path(root) / "docs/guide/src/runways.png")
    else:
        assert printed(notebook) == expected
        assert expected.count("\n") > 15
    assert path.stat().st_size < 20_000
