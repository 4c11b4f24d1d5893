"""ONNX Runtime's interface over an executable."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping, Sequence
from typing import Any

from ._compile import compile
from ._executable import Executable, Parameter, _is_executable, load

# ONNX's names of dtypes, where they differ.
_ONNX_NAMES = {"float32": "float", "float64": "double"}


@dataclasses.dataclass(frozen=True)
class NodeArg:
    """An input or output: its name, type ("tensor(float)") and shape (numbers, and strings for symbols)."""

    name: str
    type: str
    shape: list[int | str]


def _node_arg(p: Parameter) -> NodeArg:
    return NodeArg(p.name, f"tensor({_ONNX_NAMES.get(p.dtype or '', p.dtype)})", list(p.dims or ()))


class InferenceSession:
    """A compiled model with the methods of ``onnxruntime.InferenceSession``; ``run`` may be called from any thread.

    >>> session = tenon.InferenceSession("model.onnx")
    >>> outputs = session.run(None, {"x": x})
    """

    def __init__(self, model: Any, **options: Any) -> None:
        """``model`` is what ``tenon.compile`` takes, with its options, an executable's file (by its
        content, whatever its name) or an ``Executable``."""
        if isinstance(model, Executable):
            self.executable = model
        elif isinstance(model, (str, os.PathLike)) and _is_executable(model):
            self.executable = load(model, **options)
        else:
            self.executable = compile(model, **options)
        self._function = self.executable["main"]
        signature = self.executable.signature("main")
        self._inputs = [_node_arg(p) for p in signature.params]
        self._outputs = [_node_arg(r) for r in signature.results]
        self._places = {output.name: i for i, output in enumerate(self._outputs)}

    def get_inputs(self) -> list[NodeArg]:
        return list(self._inputs)

    def get_outputs(self) -> list[NodeArg]:
        return list(self._outputs)

    def run(self, output_names: Sequence[str] | None, input_feed: Mapping[str, Any]) -> list[Any]:
        """The outputs of those names, by default all, as NumPy arrays that share the results' memory."""
        results = self._function(**input_feed)
        if len(self._outputs) == 1:
            results = (results,)
        if output_names is not None:
            unknown = [name for name in output_names if name not in self._places]
            if unknown:
                raise ValueError(f"no output is named {', '.join(unknown)}; the outputs are: {', '.join(self._places)}")
            results = [results[self._places[name]] for name in output_names]
        return [r.numpy() if hasattr(r, "numpy") else r for r in results]
