"""The examples in docstrings run, and the annotations are consistent."""

import doctest
import importlib
import os
import pathlib
import pkgutil
import subprocess
import sys

import numpy as np
import pytest

import tenon

MODULES = ["tenon"] + [f"tenon.{m.name}" for m in pkgutil.iter_modules(tenon.__path__)]


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings(name, relu_model, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pathlib.Path("model.onnx").write_bytes(relu_model.SerializeToString())
    module = tenon.ir.parse("fn @main(%x: tensor[n; f32]) -> tensor[n; f32] { relu(%x) }")
    names = {
        "np": np,
        "tenon": tenon,
        "module": module,
        "exe": tenon.compile(module),
        "x": np.zeros((1, 3), "float32"),
    }
    failed, _ = doctest.testmod(importlib.import_module(name), extraglobs=names)
    assert failed == 0


def test_annotations_and_stubs_agree(tmp_path):
    pytest.importorskip("mypy")
    folder = pathlib.Path(tenon.__file__).parents[1]
    # mypy finds installed packages by itself, and refuses their folder in its path.
    path = {} if folder.name == "site-packages" else {"MYPYPATH": str(folder)}
    mypy = [sys.executable, "-m", "mypy", "--strict", "--no-warn-return-any", "--ignore-missing-imports"]
    mypy += ["--cache-dir=/dev/null", "-p", "tenon"]
    run = subprocess.run(mypy, cwd=tmp_path, env=os.environ | path, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr


def test_errors_reported_together_have_their_own_parts():
    from tenon import _errors

    parts = [("span", "a.tn:1:1", ""), ("found", "1", ""), ("error", "no b", ""), ("span", "a.tn:2:1", "")]
    error = _errors._make(0, "no a", "error: a.tn:1:1: no a\n  found 1", tuple(parts))
    assert isinstance(error, tenon.UsageError) and error.message == "no a" and error.found == "1"
    assert error.spans == ("a.tn:1:1", "a.tn:2:1")
    assert [e.message for e in error.also] == ["no b"] and error.also[0].found is None
