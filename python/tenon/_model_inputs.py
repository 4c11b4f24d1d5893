"""ONNX models in the forms in which users give them, and inputs for models."""

from __future__ import annotations

import os
from typing import Any

from . import ir
from ._errors import usage
from ._executable import _is_executable


def proto_of(model: Any) -> Any:
    """The onnx.ModelProto of a path, a ModelProto or its bytes."""
    try:
        import onnx
    except ImportError as error:
        raise ImportError("this needs the package onnx: pip install onnx") from error
    if _is_executable(model):
        raise usage(
            "a compiled program has no ONNX values to look at",
            found="an executable",
            expected="the ONNX model that it was compiled from",
        )
    try:
        if isinstance(model, (str, os.PathLike)):
            return onnx.load(os.fspath(model))
        if isinstance(model, (bytes, bytearray, memoryview)):
            return onnx.load_from_string(bytes(model))
    except OSError:
        raise
    except Exception as error:  # whatever protobuf raises
        name = os.fspath(model) if isinstance(model, (str, os.PathLike)) else "these bytes"
        raise usage(f"{name!s} can't be read as an ONNX model", found=str(error)) from error
    if isinstance(model, onnx.ModelProto):
        return model
    raise TypeError(f"not an ONNX model (a path, an onnx.ModelProto or its bytes) but a {type(model).__name__}")


def inputs_of(model: Any) -> list[tuple[str, Any, list[int | None]]]:
    """The name, dtype and sizes of each input; None for sizes that the model doesn't fix."""
    if isinstance(model, ir.Module):
        constant = 0  # the kind of a size that is a number
        return [
            (p.name, str(p.type.dtype), [d.value if d.kind == constant else None for d in p.type.dims])
            for p in model.functions["main"].params
        ]
    import onnx

    proto = proto_of(model)
    constants = {c.name for c in proto.graph.initializer}
    return [
        (
            i.name,
            onnx.helper.tensor_dtype_to_np_dtype(i.type.tensor_type.elem_type),
            [d.dim_value if d.HasField("dim_value") else None for d in i.type.tensor_type.shape.dim],
        )
        for i in proto.graph.input
        if i.name not in constants
    ]


def random_inputs(model: Any, seed: int = 0, size: int = 2) -> dict[str, Any]:
    """Inputs for an ONNX model or a ``tenon.ir.Module``'s main, by name: floats from -1 to 1, integers 0 or 1. Sizes
    that the model doesn't fix are ``size``."""
    import numpy as np

    generator = np.random.default_rng(seed)
    inputs = {}
    for name, dtype, shape in inputs_of(model):
        sizes = [size if d is None else d for d in shape]
        is_float = np.dtype(dtype).kind in "fV"
        values = generator.uniform(-1, 1, sizes) if is_float else generator.integers(0, 2, sizes)
        inputs[name] = np.asarray(values).astype(dtype)
    return inputs
