"""Runs examples/tour.ipynb and writes its outputs anew: ``python tools/run_tour.py``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

TOUR = Path(__file__).resolve().parent.parent / "examples" / "tour.ipynb"
# A value as Python writes it takes pages; a notebook shows its table.
MOST_CHARACTERS = 200


def executed(path: Path) -> Any:
    """The notebook with its outputs, warnings left out; its folder is where it runs.

    Raises:
        CellExecutionError: a cell fails; holds its traceback.
    """
    notebook = nbformat.reads(path.read_text(), as_version=4)
    resources = {"metadata": {"path": str(path.parent)}}
    client = NotebookClient(
        notebook,
        timeout=300,
        kernel_name="python3",
        resources=resources,
        extra_arguments=["--log-level=ERROR"],
        coalesce_streams=True,
    )
    client.execute()
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.metadata = {}
            cell.outputs = [_short(output) for output in cell.outputs if output.get("name") != "stderr"]
    return notebook


def _short(output: Any) -> Any:
    plain = output.get("data", {}).get("text/plain", "")
    if len(plain) > MOST_CHARACTERS:
        output["data"]["text/plain"] = f"{plain[:MOST_CHARACTERS]}..."
    return output


if __name__ == "__main__":
    nbformat.write(executed(TOUR), TOUR)
