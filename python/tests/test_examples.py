"""The examples in Python run, and give what they show."""

import os
import pathlib
import subprocess
import sys

import pytest

import tenon

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples"
NOTEBOOKS = sorted((EXAMPLES / "notebooks").glob("*.ipynb"))


def run(*command):
    # The tests' own tenon, wherever pytest found it.
    path = os.pathsep.join([str(pathlib.Path(tenon.__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": path, "PYTHONIOENCODING": "utf-8"}
    return subprocess.run([sys.executable, *map(str, command)], env=environment, capture_output=True, text=True)


def test_there_are_five_notebooks():
    assert len(NOTEBOOKS) == 5


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook(notebook):
    done = run(EXAMPLES / "notebooks" / "run.py", notebook)
    if done.returncode == 77:
        pytest.skip(done.stdout.strip())
    assert done.returncode == 0, done.stdout + done.stderr


def test_another_output_of_a_notebook_is_noticed(tmp_path):
    text = NOTEBOOKS[0].read_text().replace("right 385 of 397", "right 397 of 397")
    copy = tmp_path / "notebooks" / NOTEBOOKS[0].name
    copy.parent.mkdir()
    copy.write_text(text)
    (tmp_path / "digits").symlink_to(EXAMPLES / "digits")
    done = run(EXAMPLES / "notebooks" / "run.py", copy)
    assert done.returncode == 1
    assert "right 385 of 397\ninstead of" in done.stdout


def test_digits():
    done = run(EXAMPLES / "digits" / "digits.py")
    assert done.returncode == 0, done.stderr
    assert "385 right  96.98%" in done.stdout
    assert "The same machine still works: all 397 results as before" in done.stdout
