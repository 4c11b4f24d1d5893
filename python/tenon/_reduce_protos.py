"""ONNX models that are smaller than a given one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from . import _reference
from ._reduce_order import spread


def smaller_protos(proto: Any) -> Iterator[Any]:
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
    for name in spread(values):
        if name not in outputs:
            yield _with_outputs(proto, [name])
    types = _types(proto)
    used = {name for node in proto.graph.node for name in _names_used(node)}
    for name in spread([v for v in values if v in types and v in used and v not in outputs]):
        yield _from_input(proto, name, types[name])
    for node in range(len(proto.graph.node)):
        yield from _bypassed(proto, node, types)
    for weight in range(len(proto.graph.initializer)):
        yield _zeroed(proto, weight)
    yield from _resized(proto)


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
