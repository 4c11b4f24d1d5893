#!/usr/bin/env python3
"""Compares a model's values with ONNX Runtime's by `tenon compare`.

Usage: compare_with_onnxruntime.py --tenon PROGRAM

Skipped (exit code 77) without the packages onnx and onnxruntime.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

try:
    import numpy as np
    import onnx
    import onnxruntime  # noqa: F401
    from onnx import TensorProto, helper, numpy_helper
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)


def model() -> onnx.ModelProto:
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["/product"], name="/MatMul"),
        helper.make_node("Relu", ["/product"], ["positive"], name="/Relu"),
        helper.make_node("Softmax", ["positive"], ["y"], name="/Softmax"),
    ]
    value = lambda name, size: helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", size])
    weight = numpy_helper.from_array(np.random.default_rng(0).normal(size=(4, 8)).astype("float32"), "w")
    graph = helper.make_graph(nodes, "g", [value("x", 4)], [value("y", 8)], [weight])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tenon", type=Path, required=True)
    tenon = parser.parse_args().tenon.resolve()
    with tempfile.TemporaryDirectory() as folder:
        # External data, which ONNX Runtime finds beside the model.
        onnx.save(model(), f"{folder}/m.onnx", save_as_external_data=True, location="m.data", size_threshold=0)
        # Python imports nothing from there.
        for module in ("typing", "numpy", "onnx", "onnxruntime"):
            Path(folder, f"{module}.py").write_text("raise SystemExit('the code of a model\'s folder ran')")
        command = [tenon, "compare", "m.onnx", "--with", "onnxruntime", "--python", sys.executable]
        command += ["--dim", "batch=3", "--save-values", "saved", "--json"]
        run = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=200)
        assert run.returncode == 0, run.stdout + run.stderr
        found = json.loads(run.stdout)
        assert (found["values"], found["differing"], found["reference"]) == (3, 0, "onnxruntime"), found
        index = json.loads(Path(folder, "saved/expected/values.json").read_text())
        assert list(index) == ["/product", "positive", "y"], index
        assert np.load(f"{folder}/saved/found/{index['/product']}").shape == (3, 8)


if __name__ == "__main__":
    main()
