"""Finding out what is wrong with a model: comparing every value with a reference, and shrinking a model.

>>> comparison = tenon.testing.compare("model.onnx", {"x": x}, with_={"y": np.maximum(x, 0)})
>>> print(comparison)
1 value agrees with the given values; the greatest difference is 0
"""

from __future__ import annotations

import dataclasses
import json
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

from . import _compiler, _files, _reference
from ._compile import compile
from ._errors import usage
from ._model_inputs import inputs_of, proto_of, random_inputs
from ._reduce import reduce

__all__ = ["Comparison", "Difference", "compare", "random_inputs", "reduce"]


@dataclasses.dataclass(frozen=True)
class Difference:
    """A value of a model that Tenon computes differently from the reference.

    - ``name``: the value's ONNX name; ``node`` and ``op`` are those of the node that computes it
    - ``expected``, ``found``: the arrays
    - ``greatest``: the greatest absolute difference, ``place`` its indices; NaN and None if dtypes or shapes differ
    - ``count``: how many elements differ beyond the tolerance
    - ``fused``: whether the value differs only where the compiler joins it with the operators before it
    """

    name: str
    node: str
    op: str
    expected: Any
    found: Any
    greatest: float
    place: tuple[int, ...] | None
    count: int
    fused: bool = False

    def __str__(self) -> str:
        lines = [f"'{self.name}' of node '{self.node}' ({self.op}) differs"]
        if self.place is None:
            lines.append(f"  found     {_type_of(self.found)}")
            lines.append(f"  expected  {_type_of(self.expected)}")
        else:
            lines.append(f"  found     {self.found[self.place]!s} at {list(self.place)}")
            lines.append(f"  expected  {self.expected[self.place]!s}")
            lines.append(
                f"  {self.count} of {self.expected.size} elements differ beyond the tolerance, "
                f"by at most {self.greatest:.3g}"
            )
        if self.fused:
            lines.append("  only fused with the operators before it; alone it agrees")
        return "\n".join(lines)


@dataclasses.dataclass(frozen=True)
class Comparison:
    """The result of ``compare``: ``first`` is the first value that differs in the order of the model's nodes, and
    ``differences`` has all of them. ``greatest`` is the greatest difference of the values that agree."""

    reference: str
    values: tuple[str, ...]
    differences: tuple[Difference, ...]
    greatest: float

    @property
    def equal(self) -> bool:
        return not self.differences

    @property
    def first(self) -> Difference | None:
        return self.differences[0] if self.differences else None

    def __str__(self) -> str:
        count = f"{len(self.values)} value{'s' if len(self.values) > 1 else ''}"
        if self.first is None:
            agrees = "agree" if len(self.values) > 1 else "agrees"
            return f"{count} {agrees} with {self.reference}; the greatest difference is {self.greatest:.3g}"
        return f"{len(self.differences)} of {count} differ from {self.reference}; the first:\n{self.first}"

    __repr__ = __str__


def compare(
    model: Any,
    inputs: Mapping[str, Any] | Sequence[Any] | None = None,
    with_: str | Mapping[str, Any] = "onnxruntime",
    *,
    rtol: float | None = None,
    atol: float | None = None,
    save: str | os.PathLike[str] | None = None,
    **options: Any,
) -> Comparison:
    """Compares every value in an ONNX model's graph with those of a reference.

    ``model`` is a path, an ``onnx.ModelProto`` or its bytes, and ``inputs`` its inputs by name or in order, by default those
    of ``random_inputs``. ``with_`` is
    "onnxruntime", which runs the model there without optimizations, or arrays by ONNX name from any other reference.

    Values are compared in the order of the nodes, as Tenon computes them without fusing their operators. If all of them
    agree, the compiled model's outputs are compared, and a difference is traced to the first value that differs in a
    model that ends there. Elements agree if ``|found - expected| <= atol + rtol * |expected|``; dtypes and shapes must
    be equal. Without ``rtol`` and ``atol``, values are compared as ``tenon compare`` does, which allows more to 16-bit
    floats and to what nodes that quantize compute ("When results agree" in docs/semantics.md).

    With ``save``, the values are written as ``expected/*.npy`` and ``found/*.npy`` in that folder, with an index from
    ONNX's names to files in ``expected/values.json`` and ``found/values.json``. ``options`` are those of
    ``tenon.compile``.

    Raises ``ImportError`` with what to install if a package is missing.
    """
    proto = proto_of(model)
    arrays = _arrays(proto, random_inputs(proto) if inputs is None else inputs)
    if not isinstance(with_, Mapping):
        if with_ != "onnxruntime":
            raise ValueError(f"there is no reference {with_!r}: with_ is 'onnxruntime' or arrays by ONNX name")
        reference, expected = "onnxruntime", _run_onnxruntime(proto, arrays)
    else:
        import numpy as np

        reference, expected = "the given values", {name: np.asarray(value) for name, value in with_.items()}
    names = _compared(proto, expected)
    agreement = _Agreement(proto, rtol, atol)
    found = _values(proto, names, arrays, options)
    if save is not None:
        _save(os.path.join(save, "expected"), names, expected)
        _save(os.path.join(save, "found"), names, found)
    differences = agreement.differences(names, found, expected)
    outputs = [output.name for output in proto.graph.output if output.name in names]
    if not differences and outputs:
        compiled = _values(proto, [], arrays, options)
        fused = [d for name in outputs if (d := agreement.difference(name, compiled[name], expected[name]))]
        if fused:
            first = _first_fused(proto, names, expected, arrays, options, agreement) or fused[0]
            differences = [dataclasses.replace(first, fused=True)]
    return Comparison(reference, tuple(names), tuple(differences), agreement.greatest)


def _type_of(array: Any) -> str:
    """In the language's notation: tensor[2, 3; f32]."""
    dtype = re.sub(r"^(bf|f|i|u|c)(?:loat|nt|int|omplex)(?=\d)", r"\1", array.dtype.name)
    dtype = "string" if dtype == "object" else dtype
    sizes = ", ".join(map(str, array.shape))
    return f"tensor[{sizes}; {dtype}]" if sizes else f"tensor[{dtype}]"


class _Agreement:
    """Compares the values of a model's nodes, in their order, and keeps the greatest difference of those that agree."""

    def __init__(self, proto: Any, rtol: float | None, atol: float | None) -> None:
        nodes = list(proto.graph.node)
        criteria = _compiler.call("tenon.list_criteria", [node.op_type for node in nodes], rtol, atol)
        # Of each value: its node, and how close it must be.
        self.nodes = {name: (node, c) for node, c in zip(nodes, criteria) for name in node.output}
        self.greatest = self.noise = 0.0

    def differences(self, names: list[str], found: Mapping[str, Any], expected: Mapping[str, Any]) -> list[Difference]:
        differences = []
        for name in names:
            self.nodes[name][1]["noise_before"] = self.noise
            if (difference := self.difference(name, found[name], expected[name])) is not None:
                differences.append(difference)
        return differences

    def difference(self, name: str, found: Any, expected: Any) -> Difference | None:
        import numpy as np

        node, criterion = self.nodes[name]
        if found.dtype != expected.dtype or found.shape != expected.shape:
            return Difference(name, node.name, node.op_type, expected, found, float("nan"), None, expected.size)
        result = _compiler.call("tenon.compare_tensors", found, expected, criterion)
        greatest = result["greatest"]
        if result["equal"]:
            self.greatest = max(self.greatest, greatest)
            self.noise = max(self.noise, result["noise"])
            return None
        place = tuple(int(i) for i in np.unravel_index(result["index"], expected.shape))
        return Difference(name, node.name, node.op_type, expected, found, greatest, place, result["count"])


def _first_fused(
    proto: Any,
    names: list[str],
    expected: Mapping[str, Any],
    arrays: Mapping[str, Any],
    options: Mapping[str, Any],
    agreement: _Agreement,
) -> Difference | None:
    """The first value that differs when the model ends at it, by bisection; None if the last doesn't."""

    def difference(name: str) -> Difference | None:
        cut = type(proto)()
        cut.CopyFrom(proto)
        del cut.graph.output[:]
        found = _values(cut, [name], arrays, options)[name]
        return agreement.difference(name, found, expected[name])

    low, high = 0, len(names) - 1
    while low < high:
        middle = (low + high) // 2
        if difference(names[middle]):
            high = middle
        else:
            low = middle + 1
    return difference(names[low])


def _arrays(proto: Any, inputs: Mapping[str, Any] | Sequence[Any]) -> dict[str, Any]:
    import numpy as np

    constants = {c.name for c in proto.graph.initializer}
    names = [i.name for i in proto.graph.input if i.name not in constants]
    if not isinstance(inputs, Mapping):
        inputs = inputs if isinstance(inputs, (list, tuple)) else [inputs]
        if len(inputs) != len(names):
            raise ValueError(f"{len(inputs)} inputs for {len(names)}: {', '.join(names)}")
        inputs = dict(zip(names, inputs))
    unknown, missing = [n for n in inputs if n not in names], [n for n in names if n not in inputs]
    if unknown or missing:
        problems = [f"the model has no input {', '.join(unknown)}"] if unknown else []
        problems += [f"no value is given for {', '.join(missing)}"] if missing else []
        raise ValueError(f"{'; '.join(problems)}; its inputs are {', '.join(names)}")
    arrays = {name: np.asarray(value) for name, value in inputs.items()}
    for name, dtype, sizes in inputs_of(proto):
        found = arrays[name]
        # A model may leave out a rank, and has no sizes then.
        fits = not sizes or len(sizes) == found.ndim and all(size in (None, n) for size, n in zip(sizes, found.shape))
        if not fits or np.dtype(dtype).kind != "O" and found.dtype != np.dtype(dtype):
            expected = ", ".join("?" if size is None else str(size) for size in sizes)
            raise usage(
                f"input '{name}' does not fit the model",
                found=f"{found.dtype}[{', '.join(map(str, found.shape))}]",
                expected=f"{np.dtype(dtype)}[{expected}]",
            )
    return arrays


def _run_onnxruntime(proto: Any, arrays: Mapping[str, Any]) -> dict[str, Any]:
    try:
        import onnxruntime  # noqa: F401
    except ImportError as error:
        raise ImportError(_reference.MISSING) from error
    try:
        return _reference.run(proto, arrays)
    except Exception as error:  # onnxruntime's have no common class
        raise usage(
            "onnxruntime can't run the model",
            found=str(error).strip().splitlines()[0],
            help="give the values of another reference: with_={name: array}",
        ) from error


def _compared(proto: Any, expected: Mapping[str, Any]) -> list[str]:
    """The values of nodes that the reference has, in the order of the nodes."""
    values = _reference.node_values(proto)
    names = [name for name in values if name in expected]
    unknown = [name for name in expected if name not in values]
    if unknown:
        raise ValueError(f"no node of the model computes {', '.join(map(repr, unknown[:5]))}")
    if not names:
        raise ValueError("the reference has no values to compare")
    return names


def _values(proto: Any, names: list[str], arrays: Mapping[str, Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """What a compiled model returns that returns these values besides its outputs."""
    import numpy as np

    exposed = _reference.expose(proto, names)
    results = compile(exposed, **options)(**arrays)
    outputs = [output.name for output in exposed.graph.output]
    results = results if len(outputs) > 1 else (results,)
    return {name: np.asarray(result) for name, result in zip(outputs, results)}


def _save(folder: str, names: list[str], values: Mapping[str, Any]) -> None:
    import io

    import numpy as np

    os.makedirs(folder, exist_ok=True)
    index = {}
    for number, name in enumerate(names):
        index[name] = f"{number:04}_{re.sub(r'[^A-Za-z0-9]', '_', name)[:200]}.npy"
        buffer = io.BytesIO()
        value = values[name]
        np.save(buffer, value.astype(str) if value.dtype == object else value)  # no pickles
        _files.write_whole(os.path.join(folder, index[name]), buffer.getvalue())
    _files.write_whole(os.path.join(folder, "values.json"), json.dumps(index, indent=1).encode() + b"\n")
