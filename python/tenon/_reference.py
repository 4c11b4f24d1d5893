"""Runs a model in ONNX Runtime and keeps every value by its ONNX name.

Also a program that needs nothing of Tenon, which the command ``tenon compare`` runs:

    python3 _reference.py MODEL.onnx INPUTS.npz VALUES.npz
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Any

MISSING = "comparing with onnxruntime needs the packages onnx and onnxruntime: pip install onnx onnxruntime"


def node_values(model: Any) -> list[str]:
    """The names of the values that the nodes of an onnx.ModelProto's graph compute, in the nodes' order."""
    return [name for node in model.graph.node for name in node.output if name]


def expose(model: Any, names: list[str]) -> Any:
    """A copy of an onnx.ModelProto that returns these values after its outputs, unless they are outputs already."""
    copy = type(model)()
    copy.CopyFrom(model)
    outputs = {output.name for output in copy.graph.output}
    for name in names:
        if name not in outputs:
            copy.graph.output.add().name = name
    return copy


def run(model: Any, inputs: Mapping[str, Any], folder: str = ".") -> dict[str, Any]:
    """The outputs of the model's nodes as NumPy arrays by name, from ONNX Runtime without graph optimizations. Values
    that aren't tensors are left out. ``folder`` has the model's external data."""
    import numpy as np
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    options.add_session_config_entry("session.model_external_initializers_file_folder_path", folder)
    exposed = expose(model, node_values(model))
    session = onnxruntime.InferenceSession(exposed.SerializeToString(), options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    results = session.run(names, dict(inputs))
    return {name: value for name, value in zip(names, results) if isinstance(value, np.ndarray)}


def main(arguments: list[str]) -> int:
    model_path, inputs_path, values_path = arguments
    try:
        import numpy as np
        import onnx
        import onnxruntime  # noqa: F401: so that its absence is reported before any work
    except ImportError:
        print(MISSING, file=sys.stderr)
        return 2
    try:
        with np.load(inputs_path) as file:
            inputs = {name: file[name] for name in file.files}
            inputs = {name: x.astype(object) if x.dtype.kind == "U" else x for name, x in inputs.items()}
        model = onnx.load(model_path, load_external_data=False)
        values = run(model, inputs, os.path.dirname(os.path.abspath(model_path)))
        # Strings, which come as objects, whose pickles nothing else reads.
        values = {name: x.astype(str) if x.dtype == object else x for name, x in values.items()}
    except Exception as error:  # whatever the packages raise
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 1
    np.savez(values_path, **values)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
