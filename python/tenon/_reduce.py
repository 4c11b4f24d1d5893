"""Shrinking a model while a check of it behaves the same."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from . import _reference, ir
from ._errors import UsageError, usage
from ._executable import _is_executable

def reduce(model: Any, check: Callable[[Any], Any]) -> Any:
    """The smallest model found for which ``check(model)`` does the same as for ``model``.

    What it does is what it returns, as true or false, or the class of the exception that it raises. So
    ``lambda m: tenon.compile(m)`` keeps the error of a model that can't be compiled, and
    ``lambda m: tenon.testing.compare(m, tenon.testing.random_inputs(m)).equal`` keeps a difference. The check must make
    inputs for whatever inputs a model has, as ``random_inputs`` does, and be repeatable: the search is.

    ``model`` is the path of an ONNX model, an ``onnx.ModelProto``, its bytes, or a ``tenon.ir.Module``; an
    ``onnx.ModelProto`` or a module is returned. Tried are: fewer outputs, values in the middle as the only outputs or as
    inputs, nodes left out, zeros for weights, and smaller sizes, as long as any of these succeeds.

    >>> module = tenon.ir.parse('''
    ... fn @main(%x: tensor[8; f32]) -> tensor[8; f32] {
    ...   %y = exp(%x)
    ...   %z = mul(%y, %y)
    ...   tanh(%z)
    ... }
    ... ''')
    >>> print(tenon.testing.reduce(module, lambda m: "mul" in str(m)))
    fn @main(%y: tensor[1; f32]) -> tensor[1; f32] {
      %z: tensor[1; f32] = mul(%y, %y)
      %z
    }
    <BLANKLINE>
    """
    if isinstance(model, ir.Module):
        return _search(model, check, _smaller_modules)
    return _search(proto_of(model), check, _smaller_protos)


def random_inputs(model: Any, seed: int = 0, size: int = 2) -> dict[str, Any]:
    """Inputs for an ONNX model or a ``tenon.ir.Module``'s main, by name: floats from -1 to 1, integers 0 or 1. Sizes
    that the model doesn't fix are ``size``."""
    import numpy as np

    generator = np.random.default_rng(seed)
    inputs = {}
    for name, dtype, shape in _inputs_of(model):
        sizes = [size if d is None else d for d in shape]
        is_float = np.dtype(dtype).kind in "fV"
        values = generator.uniform(-1, 1, sizes) if is_float else generator.integers(0, 2, sizes)
        inputs[name] = np.asarray(values).astype(dtype)
    return inputs


def _search(model: Any, check: Callable[[Any], Any], smaller: Callable[[Any], Iterator[Any]]) -> Any:
    """Takes the first smaller model that keeps the outcome, until none does."""
    wanted = _outcome(check, model)
    while True:
        for candidate in smaller(model):
            if _outcome(check, candidate) == wanted:
                model = candidate
                break
        else:
            return model


def _outcome(check: Callable[[Any], Any], model: Any) -> Any:
    try:
        return bool(check(model))
    except Exception as error:
        return type(error)


# ---- ONNX ----


def proto_of(model: Any) -> Any:
    """The onnx.ModelProto of a path, a ModelProto or its bytes."""
    try:
        import onnx
    except ImportError as error:
        raise ImportError("this needs the package onnx: pip install onnx") from error
    if _is_executable(model):
        raise usage(
            "a compiled program has no ONNX values to look at",
            found="a .tnx file",
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


def _inputs_of(model: Any) -> list[tuple[str, Any, list[int | None]]]:
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


def _smaller_protos(proto: Any) -> Iterator[Any]:
    """Models that are smaller by one step, the boldest first. Types that don't fit are left out, unless the model's own
    don't."""
    validates = _is_valid(proto)
    before = proto.SerializeToString(deterministic=True)
    for candidate in _candidates(proto):
        candidate = _without_unused(candidate)
        if candidate.SerializeToString(deterministic=True) != before and (not validates or _is_valid(candidate)):
            yield candidate


def _is_valid(proto: Any) -> bool:
    import onnx

    try:
        onnx.shape_inference.infer_shapes(proto, check_type=True, strict_mode=True)
    except Exception:  # onnx raises several, some of its own
        return False
    return True


def _candidates(proto: Any) -> Iterator[Any]:
    outputs = [output.name for output in proto.graph.output]
    if len(outputs) > 1:
        yield from (_with_outputs(proto, [name]) for name in outputs)
    # Ends in the middle, then begins there.
    values = _reference.node_values(proto)
    for name in _spread(values):
        if name not in outputs:
            yield _with_outputs(proto, [name])
    types = _types(proto)
    used = {name for node in proto.graph.node for name in _names_used(node)}
    for name in _spread([v for v in values if v in types and v in used and v not in outputs]):
        yield _from_input(proto, name, types[name])
    for node in range(len(proto.graph.node)):
        yield from _bypassed(proto, node, types)
    for weight in range(len(proto.graph.initializer)):
        yield _zeroed(proto, weight)
    yield from _resized(proto)


def _spread(items: Sequence[Any]) -> list[Any]:
    """The items in the order in which bisection visits them: the middle, then those of the halves."""
    order, ranges = [], [(0, len(items))]
    for low, high in ranges:
        if low < high:
            middle = (low + high) // 2
            order.append(items[middle])
            ranges += [(low, middle), (middle + 1, high)]
    return order


def _copy(proto: Any) -> Any:
    copy = type(proto)()
    copy.CopyFrom(proto)
    return copy


def _types(proto: Any) -> dict[str, Any]:
    """The types of values whose element type and sizes are known, by name."""
    import onnx

    try:
        graph = onnx.shape_inference.infer_shapes(proto, data_prop=True).graph
    except Exception:
        return {}
    known = {}
    for value in [*graph.value_info, *graph.output, *graph.input]:
        tensor = value.type.tensor_type
        if tensor.elem_type and tensor.HasField("shape"):
            known[value.name] = value.type
    return known


def _with_outputs(proto: Any, names: list[str]) -> Any:
    types = _types(proto)
    out = _copy(proto)
    del out.graph.output[:]
    for name in names:
        value = out.graph.output.add(name=name)
        if name in types:
            value.type.CopyFrom(types[name])
    return out


def _from_input(proto: Any, name: str, type: Any) -> Any:
    """The model with an input in place of the node that computes the value."""
    out = _copy(proto)
    for node in out.graph.node:
        for i, output in enumerate(node.output):
            if output == name:
                node.output[i] = f"{name}_unused"
    out.graph.input.add(name=name).type.CopyFrom(type)
    return out


def _bypassed(proto: Any, index: int, types: dict[str, Any]) -> Iterator[Any]:
    """The model without the node: users of its first output get one of its inputs of the same type."""
    import onnx

    node = proto.graph.node[index]
    if not node.output:
        return
    for name in node.input:
        if name in types and types[name] == types.get(node.output[0]):
            out = _copy(proto)
            out.graph.node[index].CopyFrom(onnx.helper.make_node("Identity", [name], [node.output[0]], name=node.name))
            yield _without_identity(out, index)


def _without_identity(proto: Any, index: int) -> Any:
    """Without an Identity, unless it makes an output."""
    source, target = proto.graph.node[index].input[0], proto.graph.node[index].output[0]
    if target in {output.name for output in proto.graph.output}:
        return proto
    del proto.graph.node[index]
    for node in proto.graph.node:
        for i, name in enumerate(node.input):
            if name == target:
                node.input[i] = source
    return proto


def _zeroed(proto: Any, index: int) -> Any:
    """The model with zeros for the elements of a float initializer."""
    import numpy as np
    import onnx

    out = _copy(proto)
    weight = out.graph.initializer[index]
    array = onnx.numpy_helper.to_array(weight)
    if array.dtype.kind in "fV" and array.size > 1:
        weight.CopyFrom(onnx.numpy_helper.from_array(np.zeros_like(array), weight.name))
    return out


def _resized(proto: Any) -> Iterator[Any]:
    """The model with one size, wherever it stands in inputs and weights, replaced by a smaller one."""
    sizes = {d.dim_value for i in proto.graph.input for d in i.type.tensor_type.shape.dim if d.HasField("dim_value")}
    sizes |= {d for weight in proto.graph.initializer for d in weight.dims}
    for size in sorted(sizes, reverse=True):
        for smaller in dict.fromkeys([1, 2, size // 2]):
            if 0 < smaller < size:
                yield _with_size(proto, size, smaller)
    symbols = {d.dim_param for i in proto.graph.input for d in i.type.tensor_type.shape.dim if d.dim_param}
    for symbol in sorted(symbols):
        out = _copy(proto)
        for value in [*out.graph.input, *out.graph.output]:
            for d in value.type.tensor_type.shape.dim:
                if d.dim_param == symbol:
                    d.dim_value = 1
        yield _with_inferred_shapes(out)


def _with_size(proto: Any, size: int, smaller: int) -> Any:
    import numpy as np
    import onnx

    out = _copy(proto)
    for value in out.graph.input:
        for d in value.type.tensor_type.shape.dim:
            if d.dim_value == size:
                d.dim_value = smaller
    for weight in out.graph.initializer:
        array = onnx.numpy_helper.to_array(weight)
        array = array[tuple(slice(smaller) if d == size else slice(None) for d in array.shape)]
        if array.dtype == "int64" and array.ndim <= 1:  # it may be a shape
            array = np.where(array == size, smaller, array)
        weight.CopyFrom(onnx.numpy_helper.from_array(np.ascontiguousarray(array).reshape(array.shape), weight.name))
    return _with_inferred_shapes(out)


def _with_inferred_shapes(proto: Any) -> Any:
    """Replaces shapes of outputs and other values that may no longer hold."""
    del proto.graph.value_info[:]
    for output in proto.graph.output:
        output.type.tensor_type.ClearField("shape")
    types = _types(proto)
    for output in proto.graph.output:
        if output.name in types:
            output.type.CopyFrom(types[output.name])
    return proto


def _without_unused(proto: Any) -> Any:
    """Without nodes, inputs and initializers that no output needs."""
    out = _copy(proto)
    graph = out.graph
    needed = {output.name for output in graph.output}
    kept = []
    for node in reversed(graph.node):
        if needed.intersection(node.output):
            kept.append(node)
            needed.update(_names_used(node))
    kept.reverse()
    nodes = [_copy(node) for node in kept]
    del graph.node[:]
    graph.node.extend(nodes)
    for values in (graph.input, graph.initializer, graph.sparse_initializer):
        for i in reversed(range(len(values))):
            name = values[i].values.name if values is graph.sparse_initializer else values[i].name
            if name not in needed:
                del values[i]
    computed = set(_reference.node_values(out))
    for i in reversed(range(len(graph.value_info))):
        if graph.value_info[i].name not in computed:
            del graph.value_info[i]
    return out


def _names_used(node: Any) -> Iterator[str]:
    """The names that a node reads, those that its inner graphs read included."""
    yield from node.input
    for attribute in node.attribute:
        for graph in [attribute.g, *attribute.graphs]:
            yield from (output.name for output in graph.output)
            for inner in graph.node:
                yield from _names_used(inner)


# ---- Modules ----

_HEAD = re.compile(r"fn @(\S+)\((.*)\) -> (.*?)( attrs\(.*\))? \{")
_BINDING = re.compile(r"  (%\S+): (.*?) = ", re.DOTALL)


def _smaller_modules(module: ir.Module) -> Iterator[ir.Module]:
    """Modules that are smaller by one step; only those that parse, which checks them."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "module.tn")
        module.save(path)  # with weights, which candidates refer to
        with open(path, encoding="utf-8") as file:
            text = file.read()
        for candidate in _smaller_texts(text):
            try:
                parsed = ir.parse(candidate, path)
            except UsageError:
                continue
            if parsed != module:
                yield parsed


def _smaller_texts(text: str) -> Iterator[str]:
    """Each function without itself, ending at one of its bindings, beginning at one, and without one; then with smaller
    sizes."""
    parts = re.split(r"(?m)^(?=\S)(?!\})", text)  # what stands at the top level
    for i, part in enumerate(parts):
        head = _HEAD.match(part)
        if head is None:
            continue
        yield "".join(parts[:i] + parts[i + 1 :])
        for smaller in _smaller_functions(head, part[head.end() :]):
            yield "".join([*parts[:i], smaller, *parts[i + 1 :]])
    sizes = {int(n) for n in re.findall(r"(?<=[\[ ])\d+(?=[,;\]])", text)}
    for size in sorted(sizes, reverse=True):
        for smaller_size in dict.fromkeys([1, 2, size // 2]):
            if 0 < smaller_size < size:
                yield re.sub(rf"(?<=[\[ ]){size}(?=[,;\]])", str(smaller_size), text)


def _smaller_functions(head: re.Match[str], body: str) -> Iterator[str]:
    name, result = head[1], head[3]
    params = _split(head[2])
    bindings = re.split(r"(?m)^(?=  \S)(?!  [\])}])", body.rpartition("}")[0].strip("\n") + "\n")
    bindings, last = bindings[:-1], bindings[-1].strip()

    def function(params: list[str], bindings: list[str], last: str, result: str) -> str:
        used = "".join(bindings) + last
        kept = [p for p in params if re.search(re.escape(p.partition(":")[0]) + r"(?![\w.])", used)]
        return f"fn @{name}({', '.join(kept)}) -> {result} {{\n{''.join(bindings)}  {last}\n}}\n\n"

    named = [(i, m[1], m[2]) for i, b in enumerate(bindings) if (m := _BINDING.match(b))]
    for i, variable, type in _spread(named):
        if variable != last:
            yield function(params, bindings[: i + 1], variable, type)
    for i, variable, type in _spread(named):
        yield function([*params, f"{variable}: {type}"], bindings[:i] + bindings[i + 1 :], last, result)
    types = dict(p.split(": ", 1) for p in params) | {variable: type for _, variable, type in named}
    for i, variable, type in named:
        yield function(params, bindings[:i] + bindings[i + 1 :], last, result)
        for operand in dict.fromkeys(re.findall(r"%[\w.]+", bindings[i])):
            if operand != variable and types.get(operand) == type:
                use = re.compile(re.escape(variable) + r"(?![\w.])")
                after = [use.sub(operand, b) for b in bindings[i + 1 :]]
                yield function(params, bindings[:i] + after, use.sub(operand, last), result)


def _split(params: str) -> list[str]:
    """Splits at commas outside of brackets."""
    parts, depth = [""], 0
    for c in params:
        depth += (c in "([") - (c in ")]")
        if c == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += c
    return [part.strip() for part in parts if part.strip()]
