"""Skills of one's own: name this file in the settings, `skills = ["examples/custom_skills.py"]`.

Every public function is a skill. It runs in the sandbox's notebook, so it imports what is installed there; its first
paragraph is its description for the model.
"""

import json
from pathlib import Path


def show_notebook(path: str) -> None:
    """Print the cells of a Jupyter notebook (.ipynb) without their outputs."""
    for number, cell in enumerate(json.loads(Path(path).read_text())["cells"], 1):
        print(f"== Cell {number}, {cell['cell_type']} ==\n{_text(cell['source'])}")


def count_lines(directory: str = ".") -> dict[str, int]:
    """Return the number of lines of the directory's text files, by suffix."""
    counts: dict[str, int] = {}
    for path in Path(directory).rglob("*.*"):
        if path.is_file() and b"\0" not in (data := path.read_bytes()):
            counts[path.suffix] = counts.get(path.suffix, 0) + data.count(b"\n")
    return counts


def _text(source: str | list[str]) -> str:
    return source if isinstance(source, str) else "".join(source)
