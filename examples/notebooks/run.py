"""Runs notebooks: python run.py [--write] NOTEBOOK.ipynb...

Runs the code cells of each notebook in order, in its folder, and compares what they print and return with the outputs
in the file; --write stores them. Needs no Jupyter. Exits with 1 after a line for each cell that differs, and with 77 if
a package is missing that a notebook imports."""

import ast
import contextlib
import io
import json
import os
import sys


def run_cell(source: str, names: dict) -> str:
    """What the cell prints, and the representation of its last expression as Jupyter's plain text."""
    tree = ast.parse(source)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, "<cell>", "exec"), names)
        value = eval(compile(ast.Expression(last.value), "<cell>", "eval"), names) if last else None
        if value is not None:
            print(repr(value))
    return printed.getvalue()


def stored(cell: dict) -> str:
    return "".join("".join(output["text"]) for output in cell["outputs"])


def run(path: str, write: bool) -> bool:
    """Whether every cell gives its stored output."""
    with open(path, encoding="utf-8") as file:
        notebook = json.load(file)
    names, same = {"__name__": "__main__"}, True
    before = os.getcwd()
    os.chdir(os.path.dirname(os.path.abspath(path)))
    try:
        for number, cell in enumerate(c for c in notebook["cells"] if c["cell_type"] == "code"):
            text = run_cell("".join(cell["source"]), names)
            if write:
                lines = text.splitlines(keepends=True)
                cell["outputs"] = [{"name": "stdout", "output_type": "stream", "text": lines}] if text else []
            elif text != stored(cell):
                print(f"{path}: code cell {number} gives\n{text}instead of\n{stored(cell)}")
                same = False
    finally:
        os.chdir(before)
    if write:
        with open(path, "w", encoding="utf-8") as file:
            file.write(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n")
    return same


def main(arguments: list[str]) -> int:
    write = "--write" in arguments
    try:
        results = [run(path, write) for path in arguments if path != "--write"]
    except ModuleNotFoundError as e:
        if e.name == "tenon":
            raise
        print(f"skipped: there is no Python package {e.name}")
        return 77
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
