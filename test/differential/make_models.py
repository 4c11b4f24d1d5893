"""Random valid ONNX models of one operator or a chain of them, each from a number.

A model starts from one of ONNX's own test cases of an operator, or from a line of ../onnx_page/nodes.txt, and changes the
version of the operator, element types, sizes (with 0 and 1 among them), ranks, attributes, values, and which operands are
left out, are constants, or have symbolic sizes. What an operator takes comes from its schema (onnx.defs), and values of
attributes from all of its cases, so there is no list of operators here. ONNX's checker and shape inference must accept
the model; whether sizes fit that they can't see, the reference says.
"""

from __future__ import annotations

import collections
import copy
import dataclasses
import functools
import pathlib
import random
import sys
import warnings
from typing import Any

import numpy as np
import onnx
from onnx import AttributeProto, TensorProto, helper, numpy_helper

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "onnx_page"))
import probes  # noqa: E402

NEWEST = {"": 25, "ai.onnx.ml": 5}  # the newest opsets that ONNX Runtime has
SIZES = [0, 1, 1, 2, 3, 4, 5, 7, 8, 17]
MOST_ELEMENTS = 20000  # of an operand
NUMPY_TYPES = {"float32", "float64", "float16", "bool", "complex64", "complex128"} | {
    f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)
}


@dataclasses.dataclass
class Model:
    proto: onnx.ModelProto
    inputs: dict[str, Any]
    operators: list[tuple[str, str, int]]  # domain, name and version of each node under test
    text: str  # for people


class Invalid(Exception):
    """The changes made no valid model; another number may."""


@functools.cache
def cases() -> dict[tuple[str, str], list[probes.Case]]:
    """By domain and operator, in an order that doesn't change."""
    probes.MOST_CASES = 200
    found = probes.recorded_cases()
    listed = {}
    for key, all_of_it in found.items():
        usable = [
            case
            for case in all_of_it
            if not any(isinstance(value, onnx.TypeProto) for value in case.operands)
            and sum(np.size(value) for value in case.operands if isinstance(value, np.ndarray)) <= MOST_ELEMENTS
        ]
        if usable:
            listed[key] = usable
    for key, texts in probes.own_cases(HERE.parent / "onnx_page/nodes.txt").items():
        if key not in listed and (made := [case for text in texts if (case := case_of(key, text))]):
            listed[key] = made
    return dict(sorted(listed.items()))


def case_of(key: tuple[str, str], text: probes.Text) -> probes.Case | None:
    """A line of nodes.txt with values that are drawn."""
    schema = onnx.defs.get_schema(key[1], NEWEST[key[0]], key[0])
    kinds = {c.type_param_str: [probes.Type(t) for t in sorted(c.allowed_type_strs)] for c in schema.type_constraints}
    types = {
        name: next((t for t in listed if t.text in ("tensor(float)", text.kind)), listed[0]) for name, listed in kinds.items()
    }
    if text.variable:
        types[text.variable] = probes.Type(text.kind)
    graph = probes.parsed(text.graph, types, schema, schema.since_version)
    if graph is None or len(graph.node) != 1:
        return None
    values = {t.name: numpy_helper.to_array(t) for t in graph.initializer}
    rng = np.random.default_rng(0)
    for value in graph.input:
        if not value.type.HasField("tensor_type"):
            return None
        shape = [d.dim_value for d in value.type.tensor_type.shape.dim]
        dtype = helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
        values[value.name] = (rng.normal(size=shape) * 2).astype(dtype) if dtype != object else np.full(shape, "a", object)
    node = graph.node[0]
    if not all(not name or name in values for name in node.input):
        return None
    return probes.Case(node, [values[name] if name else None for name in node.input])


@functools.cache
def schemas() -> dict[tuple[str, str], list[onnx.defs.OpSchema]]:
    """All versions of each operator, oldest first."""
    found = collections.defaultdict(list)
    for schema in onnx.defs.get_all_schemas_with_history():
        found[schema.domain, schema.name].append(schema)
    return {key: sorted(listed, key=lambda s: s.since_version) for key, listed in found.items()}


@functools.cache
def attribute_values(key: tuple[str, str]) -> dict[str, list[AttributeProto]]:
    """Those that each attribute has in some case of the operator."""
    found: dict[str, list[AttributeProto]] = {}
    for case in cases()[key]:
        for attribute in case.node.attribute:
            found.setdefault(attribute.name, []).append(attribute)
    return found


class Draw(random.Random):
    def chance(self, p: float) -> bool:
        return self.random() < p

    def array(self) -> np.random.Generator:
        return np.random.default_rng(self.getrandbits(63))


# ---- One node -----------------------------------------------------------------------------------------------------------


class Node:
    """A case that is being changed."""

    def __init__(self, draw: Draw, key: tuple[str, str], newest: dict[str, int]) -> None:
        self.draw, self.key = draw, key
        case = draw.choice(cases()[key])
        self.node = onnx.NodeProto.FromString(case.node.SerializeToString())
        self.operands = [copy.deepcopy(as_array(value)) for value in case.operands]
        self.operands += [None] * (len(self.node.input) - len(self.operands))
        versions = [s for s in schemas()[key] if not s.deprecated and s.since_version <= newest[key[0]]]
        if not versions:
            raise Invalid("no version")
        fitting = [s for s in versions if self.fits(s)]
        self.schema = draw.choice(fitting) if fitting else versions[-1]
        later = [s.since_version for s in schemas()[key] if s.since_version > self.schema.since_version]
        last = min([*(v - 1 for v in later), newest[key[0]]])
        least = max(self.schema.since_version, probes.LEAST[key[0]])
        if least > last:
            raise Invalid("no opset")
        self.opset = draw.choice([least, last, draw.randint(least, last)])
        self.move_operands()

    def fits(self, schema: onnx.defs.OpSchema) -> bool:
        """Whether the node is one of that version, once operands are attributes where it has these."""
        names = {a.name for a in self.node.attribute}
        moved = sum(1 for name in self.formal_names() if name in schema.attributes)
        return names <= set(schema.attributes) and schema.min_input <= len(self.node.input) - moved <= schema.max_input

    def formal_names(self) -> list[str]:
        newest = schemas()[self.key][-1]
        return [newest.inputs[min(i, len(newest.inputs) - 1)].name for i in range(len(self.node.input))] if newest.inputs else []

    def move_operands(self) -> None:
        """Operands that were attributes of the same name in the version: axes, pads, steps, k."""
        names = self.formal_names()
        for i in reversed(range(len(self.node.input))):
            known = self.schema.attributes.get(names[i]) if names[i] not in [f.name for f in self.schema.inputs] else None
            if known is None or self.operands[i] is None:
                continue
            value = np.asarray(self.operands[i])
            kind = known.type
            plain = value.ravel().tolist() if kind in (kind.INTS, kind.FLOATS) else value.ravel().tolist()[0]
            self.node.attribute.append(helper.make_attribute(names[i], plain))
            del self.node.input[i], self.operands[i]
        while self.node.input and not self.node.input[-1]:
            del self.node.input[-1]
            del self.operands[-1]

    def variable(self, i: int) -> str:
        return probes.variable_of(self.schema.inputs, i)

    def arrays(self) -> list[int]:
        return [i for i, value in enumerate(self.operands) if isinstance(value, np.ndarray)]

    def is_data(self, i: int) -> bool:
        """Whether an operand is of a type variable with floats: no indices, sizes or counts."""
        allowed = {c.type_param_str: c.allowed_type_strs for c in self.schema.type_constraints}
        return "tensor(float)" in allowed.get(self.variable(i), [])

    # Changes.

    def change(self) -> None:
        draw = self.draw
        if draw.chance(0.5):
            self.change_types()
        for _ in range(draw.choice([0, 1, 1, 2])):
            self.change_sizes()
        if draw.chance(0.15):
            self.change_rank()
        if draw.chance(0.5):
            self.change_attributes()
        if draw.chance(0.8):
            self.change_values()
        if draw.chance(0.15):
            self.leave_out()

    def change_types(self) -> None:
        variables = [c for c in self.schema.type_constraints if any(self.variable(i) == c.type_param_str for i in self.arrays())]
        if not variables:
            return
        chosen = self.draw.choice(variables)
        kinds = [probes.Type(t) for t in sorted(chosen.allowed_type_strs)]
        kinds = [k for k in kinds if k.kind == "tensor"]
        if not kinds:
            return
        element = probes.element_of(self.draw.choice(kinds).element)
        for i in self.arrays():
            if self.variable(i) == chosen.type_param_str:
                self.operands[i] = probes.converted(self.operands[i], element)
        if self.draw.chance(0.3):  # attributes that state a type, to one of another variable
            for a in self.node.attribute:
                if probes.is_type_attribute(a.name) and a.type == a.INT:
                    a.i = self.draw.choice([1, 2, 3, 5, 6, 7, 9, 10, 11, 12, 13, 16])

    def change_sizes(self) -> None:
        """Another size wherever one stands: in operands, sometimes in attributes and in values that may be sizes."""
        sizes = sorted({n for i in self.arrays() for n in self.operands[i].shape})
        if not sizes:
            return
        old, new = self.draw.choice(sizes), self.draw.choice(SIZES)
        in_numbers, in_indices = self.draw.chance(0.5), self.draw.chance(0.3)
        for i in self.arrays():
            value = self.operands[i]
            if not self.is_data(i) and not in_indices:
                if in_numbers and value.dtype == np.int64 and value.ndim == 1:
                    self.operands[i] = np.where(value == old, new, value)
                continue
            shape = tuple(new if n == old else n for n in value.shape)
            if np.prod(shape, dtype=float) > MOST_ELEMENTS:
                raise Invalid("too large")
            if shape != value.shape:
                self.operands[i] = np.resize(value, shape) if value.size else np.zeros(shape, value.dtype)
        if in_numbers:
            for a in self.node.attribute:
                if a.type == a.INT and a.i == old:
                    a.i = new
                elif a.type == a.INTS:
                    a.ints[:] = [new if n == old else n for n in a.ints]

    def change_rank(self) -> None:
        size = self.draw.choice([1, 1, 2, 3])
        if self.draw.chance(0.6):
            for i in self.arrays():
                if self.is_data(i) and (self.operands[i].ndim or self.draw.chance(0.5)):
                    self.operands[i] = np.repeat(self.operands[i][None], size, 0)
        else:
            for i in self.arrays():
                if self.is_data(i) and self.operands[i].ndim > 1 and self.operands[i].shape[0] > 0:
                    self.operands[i] = self.operands[i][0]

    def change_attributes(self) -> None:
        known = attribute_values(self.key)
        kept = []
        for attribute in self.node.attribute:
            described = self.schema.attributes.get(attribute.name)
            if described is not None and not described.required and self.draw.chance(0.15):
                continue
            if attribute.name in known and self.draw.chance(0.25):
                attribute = self.draw.choice(known[attribute.name])
            elif self.draw.chance(0.4):
                attribute = self.changed(attribute)
            kept.append(attribute)
        for name, described in self.schema.attributes.items():
            if name not in {a.name for a in kept} and name in known and self.draw.chance(0.25):
                attribute = self.draw.choice(known[name])
                if int(described.type) == attribute.type:
                    kept.append(attribute)
        kept = [AttributeProto.FromString(a.SerializeToString()) for a in kept]
        del self.node.attribute[:]
        self.node.attribute.extend(kept)

    def changed(self, attribute: AttributeProto) -> AttributeProto:
        a = AttributeProto.FromString(attribute.SerializeToString())
        draw = self.draw
        if a.type == a.INT and not probes.is_type_attribute(a.name):
            a.i = draw.choice([a.i + 1, a.i - 1, 0, 1, -1, 2, -a.i])
        elif a.type == a.INTS and a.ints:
            if draw.chance(0.5):
                at = draw.randrange(len(a.ints))
                a.ints[at] = draw.choice([a.ints[at] + 1, a.ints[at] - 1, 0, 1, 2, -a.ints[at]])
            else:
                shuffled = list(a.ints)
                draw.shuffle(shuffled)
                a.ints[:] = shuffled
        elif a.type == a.FLOAT:
            a.f = draw.choice([0.0, 1.0, a.f * draw.uniform(0.2, 2), -a.f, draw.uniform(-2, 2)])
        return a

    def change_values(self) -> None:
        for i in self.arrays():
            if self.draw.chance(0.8 if self.is_data(i) else 0.2):
                self.operands[i] = drawn_like(self.draw, self.operands[i])

    def leave_out(self) -> None:
        optional = onnx.defs.OpSchema.FormalParameterOption.Optional
        for i in reversed(range(len(self.node.input))):
            formal = self.schema.inputs[min(i, len(self.schema.inputs) - 1)]
            if formal.option == optional and self.draw.chance(0.3):
                self.node.input[i] = ""
                self.operands[i] = None
        while self.node.input and not self.node.input[-1]:
            del self.node.input[-1]
            del self.operands[-1]
        for i in range(1, len(self.node.output)):
            if self.schema.outputs[min(i, len(self.schema.outputs) - 1)].option == optional and self.draw.chance(0.4):
                self.node.output[i] = ""
        while len(self.node.output) > 1 and not self.node.output[-1]:
            del self.node.output[-1]


def as_array(value: Any) -> Any:
    if isinstance(value, TensorProto):
        value = numpy_helper.to_array(value)
    if isinstance(value, (np.generic, int, float)):
        value = np.asarray(value)
    if isinstance(value, np.ndarray) and value.dtype.kind in "US":
        value = value.astype(str).astype(object)
    return value


def drawn_like(draw: Draw, value: np.ndarray) -> np.ndarray:
    """Other elements in the same range: indices stay indices, and probabilities positive."""
    rng = draw.array()
    if value.size == 0:
        return value
    if value.dtype == object:
        return rng.choice(value.ravel(), value.shape)
    if value.dtype == bool:
        return rng.random(value.shape) < 0.5
    if value.dtype.kind == "c":
        return (rng.normal(size=value.shape) + 1j * rng.normal(size=value.shape)).astype(value.dtype)
    wide = value.astype("float64")
    finite = wide[np.isfinite(wide)]
    if finite.size == 0:
        return value
    low, high = finite.min(), finite.max()
    if value.dtype.kind in "iu":
        return rng.integers(int(low), int(high), value.shape, endpoint=True).astype(value.dtype) if abs(high) < 2**62 else value
    spread = draw.choice([0, 0, 0.5, 3]) * (high - low) if low < 0 else 0
    out = rng.uniform(low - spread, high + spread, value.shape)
    if draw.chance(0.1):  # ties, and halves to round
        out = np.round(out * 2) / 2
    if draw.chance(0.05) and low < 0:
        out.ravel()[rng.integers(out.size)] = draw.choice([0.0, -0.0, np.inf, -np.inf, 1e30, -1e30])
    with np.errstate(all="ignore"):
        return out.astype(value.dtype)


# ---- Models -------------------------------------------------------------------------------------------------------------


class Builder:
    """A graph that grows by nodes."""

    def __init__(self, draw: Draw) -> None:
        self.draw = draw
        self.nodes: list[onnx.NodeProto] = []
        self.inputs: list[onnx.ValueInfoProto] = []
        self.initializers: list[TensorProto] = []
        self.values: dict[str, Any] = {}
        self.operators: list[tuple[str, str, int]] = []
        self.opsets: dict[str, int] = {}
        self.symbolic = draw.choice([None, None, "size", "axis"])

    def operand(self, value: Any, name: str, constant: bool, is_data: bool) -> None:
        if isinstance(value, np.ndarray) and value.dtype.name not in NUMPY_TYPES | {"object"}:
            # Of a type that NumPy lacks: a float32 that is cast, where the type can be cast from one.
            element = helper.np_dtype_to_tensor_dtype(value.dtype)
            if constant or self.opsets.get("", 0) < 19 or np.dtype(value.dtype).itemsize == 0 or "int" in value.dtype.name:
                self.initializers.append(numpy_helper.from_array(value, name))
                return
            self.nodes.append(helper.make_node("Cast", [f"{name}_f32"], [name], to=element))
            value, name = value.astype("float32"), f"{name}_f32"
        if constant and isinstance(value, np.ndarray):
            self.initializers.append(numpy_helper.from_array(value, name))
            return
        info = probes.input_of(value, probes.element_in(value), name)
        if isinstance(value, list) and len({np.shape(item) for item in value}) > 1:
            info.type.sequence_type.elem_type.tensor_type.ClearField("shape")
        if self.symbolic and is_data and isinstance(value, np.ndarray):  # sizes of indices are ranks
            for axis, dim in enumerate(info.type.tensor_type.shape.dim):
                symbol = f"n{dim.dim_value}" if self.symbolic == "size" else f"{name}_{axis}"
                dim.Clear()
                dim.dim_param = symbol
        self.inputs.append(info)
        self.values[name] = value

    def add(self, node: Node, first: str | None = None) -> list[str]:
        """Adds the node, whose operand that `first` names has a value already. Returns its results."""
        prefix = f"v{len(self.nodes)}_"
        made = onnx.NodeProto.FromString(node.node.SerializeToString())
        form = self.draw.choice([lambda i: i > 0 and not node.is_data(i), lambda i: i > 0, lambda i: False, lambda i: False])
        seen: dict[str, str] = {}
        for i, name in enumerate(node.node.input):
            if not name:
                continue
            if first is not None and i == 0:
                made.input[i] = first
                continue
            if name not in seen:
                seen[name] = f"{prefix}x{i}"
                self.operand(node.operands[i], seen[name], form(i), node.is_data(i))
            made.input[i] = seen[name]
        for i, name in enumerate(node.node.output):
            made.output[i] = f"{prefix}y{i}" if name else ""
        made.name = f"{prefix}{made.op_type}"
        self.nodes.append(made)
        self.operators.append((*node.key, node.schema.since_version))
        return [name for name in made.output if name]

    def model(self, outputs: list[str]) -> onnx.ModelProto:
        graph = helper.make_graph(
            self.nodes, "g", self.inputs, [onnx.ValueInfoProto(name=name) for name in outputs], self.initializers
        )
        imports = [helper.make_opsetid(domain, version) for domain, version in {"": 21, **self.opsets}.items()]
        return helper.make_model(graph, opset_imports=imports, ir_version=10)


def with_types(proto: onnx.ModelProto) -> onnx.ModelProto:
    """The model with the types of its outputs; Invalid if ONNX's rules say that it isn't valid."""
    try:
        inferred = onnx.shape_inference.infer_shapes(proto, check_type=True, strict_mode=True, data_prop=True)
        known = {value.name: value for value in [*inferred.graph.value_info, *inferred.graph.output]}
        for output in proto.graph.output:
            found = known.get(output.name)
            if found is None or not found.type.WhichOneof("value"):
                raise Invalid("no type")
            output.CopyFrom(found)
        onnx.checker.check_model(proto)
        for output in proto.graph.output:  # whose sizes the models' runs tell
            if output.type.HasField("tensor_type"):
                output.type.tensor_type.ClearField("shape")
    except Invalid:
        raise
    except Exception as error:  # of several classes
        raise Invalid(str(error).splitlines()[0]) from None
    return proto


def with_casts(proto: onnx.ModelProto) -> onnx.ModelProto:
    """The model with results of types that NumPy lacks as float32, or numbers of few bits as int8."""
    for output in proto.graph.output:
        if not output.type.HasField("tensor_type"):
            continue
        element = output.type.tensor_type.elem_type
        dtype = helper.tensor_dtype_to_np_dtype(element)
        if element == TensorProto.STRING or np.dtype(dtype).name in NUMPY_TYPES:
            continue
        to = TensorProto.INT8 if "int" in np.dtype(dtype).name else TensorProto.FLOAT
        proto.graph.node.append(helper.make_node("Cast", [output.name], [f"{output.name}_cast"], to=to))
        output.name = f"{output.name}_cast"
        output.type.tensor_type.elem_type = to
    return proto


def one_operator(draw: Draw, key: tuple[str, str], newest: dict[str, int]) -> Builder:
    builder = Builder(draw)
    node = Node(draw, key, newest)
    builder.opsets[key[0]] = node.opset
    if not draw.chance(0.05):  # a few cases stay as they are
        node.change()
    builder.outputs = builder.add(node)
    return builder


def chain(draw: Draw, keys: list[tuple[str, str]], newest: dict[str, int]) -> Builder:
    """Each operator takes the first result of the one before it, brought to the shape and type of its own operand."""
    builder = Builder(draw)
    opset = draw.randint(18, newest[""])
    length = draw.randint(2, 8)
    last = None
    builder.opsets[""] = opset
    for _ in range(200):
        if len(builder.operators) == length:
            break
        key = draw.choice(keys)
        if key[0] != "":
            continue
        try:
            node = Node(draw, key, newest)
            version = max((s for s in schemas()[key] if s.since_version <= opset), key=lambda s: s.since_version, default=None)
            if version is None or version.since_version != node.schema.since_version:
                continue
            if draw.chance(0.5):
                node.change()
        except Invalid:
            continue
        first = node.operands[0] if node.operands else None
        if not isinstance(first, np.ndarray) or first.dtype.name not in ("float32", "float64") or first.size == 0:
            continue
        if not node.is_data(0):
            continue
        kept = copy.copy(builder.__dict__) | {
            name: list(getattr(builder, name)) for name in ("nodes", "inputs", "initializers", "operators")
        }
        kept["values"] = dict(builder.values)
        given = None if last is None else adapt(builder, last, first, len(builder.nodes))
        results = builder.add(node, given)
        try:
            types = with_types(builder.model(results[:1]))
            output = types.graph.output[0].type
            if not output.HasField("tensor_type") or output.tensor_type.elem_type not in (1, 11):
                raise Invalid("no float")
        except Invalid:
            builder.__dict__.update(kept)
            continue
        last = results[0]
        builder.outputs = results
    if last is None or len(builder.operators) < 2:
        raise Invalid("no chain")
    return builder


def adapt(builder: Builder, name: str, like: np.ndarray, number: int) -> str:
    """Nodes that bring a value of any shape to another's shape and type: repeated, or cut off. NaN becomes 0."""
    prefix = f"a{number}_"

    def node(op: str, inputs: list[str], **attributes: Any) -> str:
        out = f"{prefix}{op}{len(builder.nodes)}"
        builder.nodes.append(helper.make_node(op, inputs, [out], **attributes))
        return out

    def constant(value: Any) -> str:
        name = f"{prefix}c{len(builder.initializers)}"
        builder.initializers.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    count = like.size
    flat = node("Reshape", [name, constant(np.array([-1], "int64"))])
    cast = node("Cast", [flat], to=helper.np_dtype_to_tensor_dtype(like.dtype))
    low, high = (float(v) for v in (np.nan_to_num(like).min(), np.nan_to_num(like).max()))
    clipped = node("Clip", [cast, constant(np.array(low, like.dtype)), constant(np.array(max(high, low), like.dtype))])
    padded = node("Concat", [clipped, constant(like.ravel())], axis=0)  # never fewer than are needed
    zero, one = constant(np.array([0], "int64")), constant(np.array([count], "int64"))
    cut = node("Slice", [padded, zero, one, zero])
    return node("Reshape", [cut, constant(np.array(like.shape, "int64"))])


def make(seed: int, attempt: int, keys: list[tuple[str, str]], newest: dict[str, int]) -> Model:
    """An attempt at the model of that number: every fourth one is a chain. Raises Invalid."""
    draw = Draw(seed * 1000 + attempt)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            builder = chain(draw, keys, newest) if seed % 4 == 3 else one_operator(draw, keys[(seed - seed // 4) % len(keys)], newest)
            proto = with_casts(with_types(builder.model(builder.outputs)))
        except (ValueError, TypeError, OverflowError, IndexError, KeyError, AttributeError) as error:
            raise Invalid(f"{type(error).__name__}: {error}") from None
    return Model(proto, builder.values, builder.operators, onnx.printer.to_text(proto))
