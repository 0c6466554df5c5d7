"""Notebooks without Jupyter: ``python -m tests.helpers.notebooks NOTEBOOK`` renews the outputs."""

from __future__ import annotations

import io
import json
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any


def code_cells(notebook: dict[str, Any]) -> list[dict[str, Any]]:
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def run(notebook: dict[str, Any]) -> list[str]:
    """Run the code cells in one namespace, in order, and give what each printed."""
    namespace: dict[str, Any] = {"__name__": "__main__"}
    printed = []
    for number, cell in enumerate(code_cells(notebook)):
        with redirect_stdout(io.StringIO()) as said:
            exec(compile("".join(cell["source"]), f"cell {number}", "exec"), namespace)
        printed.append(said.getvalue())
    return printed


def stored(cell: dict[str, Any]) -> str:
    """Give what a cell printed when the notebook was saved."""
    return "".join(line for output in cell["outputs"] for line in output["text"])


def renew(path: Path) -> None:
    notebook = json.loads(path.read_text(encoding="utf-8"))
    for number, (cell, said) in enumerate(zip(code_cells(notebook), run(notebook), strict=True)):
        output = {"name": "stdout", "output_type": "stream", "text": said.splitlines(keepends=True)}
        cell["outputs"] = [output] if said else []
        cell["execution_count"] = number + 1
    path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    for name in sys.argv[1:]:
        renew(Path(name))
