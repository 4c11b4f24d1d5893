"""One-node models of ONNX's operators, with each element type that ONNX allows, and which of them Tenon imports.

A node comes from ONNX's own test cases, or from `nodes.txt` where there are none. A probe is such a node in one version
of its operator, with one type for one of the operator's type variables. Probes of one opset are the nodes of one model,
of which `tenon inspect` lists those that can't be imported.
"""

import concurrent.futures
import dataclasses
import itertools
import json
import pathlib
import re
import subprocess
import tempfile
import warnings
from collections.abc import Iterator

import numpy as np
import onnx
import onnx.parser
from onnx import AttributeProto, TensorProto, helper, numpy_helper

LEAST = {"": 7, "ai.onnx.ml": 1}  # the first opset that is imported
MOST_CASES, MOST_WAYS = 4, 2  # of an operator, and of those to put other types into
MOST_NODES = 40  # of a model


def element_of(name):
    """The TensorProto.DataType of ONNX's name in a type: "float", "float8e4m3fn"."""
    return TensorProto.DataType.Value(name.upper())


@dataclasses.dataclass(frozen=True)
class Type:
    """A type that ONNX allows: "seq(tensor(float))" is of the kind "seq" and of float."""

    text: str

    @property
    def kind(self):
        return self.text[: self.text.rindex("(")].removesuffix("tensor").replace("(", " ").strip() or "tensor"

    @property
    def element(self):
        return re.fullmatch(r".*\((.*?)\)+", self.text)[1]


# ---- nodes to start from ----


@dataclasses.dataclass
class Case:
    """A node, and its operands in the order of its inputs: arrays, lists of arrays, or types without values."""

    node: onnx.NodeProto
    operands: list


def recorded_cases():
    """ONNX's test cases by domain and operator, those of few elements first."""
    import onnx.backend.test.case.node as cases
    from onnx.backend.test.case.utils import import_recursive

    found = {}

    def record(node, inputs, outputs, name, **options):
        types = options.get("input_type_protos", [None] * len(inputs))
        given = iter([value if value is not None else kind for value, kind in zip(inputs, types)])
        operands = [next(given, None) if name else None for name in node.input]
        copy = onnx.NodeProto.FromString(node.SerializeToString())
        found.setdefault((node.domain, node.op_type), []).append(Case(copy, operands))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cases.expect = record
        import_recursive(cases)
    return {key: varied(listed) for key, listed in found.items()}


def varied(cases):
    """A few of the cases, which differ in attributes and number of operands."""
    cases = sorted(cases, key=lambda case: sum(np.size(x) for x in case.operands if isinstance(x, np.ndarray)))
    chosen = {}
    for case in cases:
        form = tuple(sorted(a.name for a in case.node.attribute)), tuple(map(bool, case.node.input))
        chosen.setdefault(form, case)
    rest = [case for case in cases if not any(case is c for c in chosen.values())]
    return (list(chosen.values()) + rest)[:MOST_CASES]


@dataclasses.dataclass
class Text:
    """A line of `nodes.txt`: a graph in ONNX's textual form, for one type of a variable or for all of those that it names."""

    graph: str
    variable: str
    kind: str

    def is_for(self, variable, kind):
        if self.variable:
            return (self.variable, self.kind) == (variable, kind.text)
        return re.search(rf"\${variable}\b", self.graph) is not None


def own_cases(path):
    """The lines of `nodes.txt` by domain and operator."""
    found = {}
    for line in path.read_text().splitlines():
        if line and not line.startswith("#"):
            name, variable, kind, graph = re.fullmatch(r"([\w.]+)(?: (\w+)=(\S+))?: (.*)", line).groups()
            domain, _, operator = name.rpartition(".")
            found.setdefault((domain, operator), []).append(Text(graph, variable or "", kind or ""))
    return found


# ---- probes ----


@dataclasses.dataclass
class Probe:
    domain: str
    opset: int
    kind: Type
    graphs: Iterator  # of different ways to make the probe, of which one has to be imported
    accepted: bool = False
    rounds: int = 0  # how many graphs were made
    reasons: list = dataclasses.field(default_factory=list)

    def next_graph(self):
        for graph in self.graphs:
            self.rounds += 1
            if graph is not None:
                return graph
        return None


def variable_of(formal, index):
    return formal[min(index, len(formal) - 1)].type_str if formal else ""


def fits(case, schema):
    """Whether the node is one of that version: its attributes and numbers of operands and results are."""
    node, known = case.node, schema.attributes
    required = {name for name, a in known.items() if a.required}
    names = {a.name for a in node.attribute}
    if not required <= names <= set(known):
        return False
    if any(int(known[a.name].type) != a.type for a in node.attribute):
        return False
    return schema.min_input <= len(node.input) <= schema.max_input and len(node.output) <= schema.max_output


def converted(value, element):
    """The array, with elements of a TensorProto.DataType; None if there is none."""
    if element == TensorProto.STRING:
        return np.vectorize(str, otypes=[object])(value) if value.size else value.astype(object)
    dtype = helper.tensor_dtype_to_np_dtype(element)
    if value.dtype.kind in "OUS":
        return np.ones(value.shape, dtype)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return value.astype("complex128" if value.dtype.kind == "c" else "float64").astype(dtype) if (
            value.dtype.kind not in "biu" or np.dtype(dtype).kind not in "biu"
        ) else value.astype(dtype)


def tensor_of(value, element, name):
    if isinstance(value, TensorProto):
        value = numpy_helper.to_array(value)
    return numpy_helper.from_array(np.asarray(converted(np.asarray(value), element)), name)


def element_in(value):
    if isinstance(value, TensorProto):
        return value.data_type
    if isinstance(value, onnx.TypeProto):
        while not value.HasField("tensor_type"):
            value = value.sequence_type.elem_type if value.HasField("sequence_type") else value.optional_type.elem_type
        return value.tensor_type.elem_type
    if isinstance(value, list):
        return element_in(value[0]) if value else TensorProto.FLOAT
    value = np.asarray(value)
    return TensorProto.STRING if value.dtype.kind in "OUS" else helper.np_dtype_to_tensor_dtype(value.dtype)


def kind_of(value):
    if isinstance(value, onnx.TypeProto):
        inner = value.sequence_type.elem_type if value.HasField("sequence_type") else value.optional_type.elem_type
        kind = "seq" if value.HasField("sequence_type") else "optional" if value.HasField("optional_type") else "tensor"
        return kind if kind == "tensor" or inner.HasField("tensor_type") else f"{kind} {kind_of(inner)}"
    return "seq" if isinstance(value, list) else "tensor"


def input_of(value, element, name):
    if isinstance(value, onnx.TypeProto):
        kind = onnx.TypeProto.FromString(value.SerializeToString())
        inner = kind
        while not inner.HasField("tensor_type"):
            inner = inner.sequence_type.elem_type if inner.HasField("sequence_type") else inner.optional_type.elem_type
        inner.tensor_type.elem_type = element
        return helper.make_value_info(name, kind)
    if isinstance(value, list):
        shape = list(np.shape(value[0])) if value else None
        return helper.make_tensor_sequence_value_info(name, element, shape)
    shape = list(value.dims) if isinstance(value, TensorProto) else list(np.shape(value))
    return helper.make_tensor_value_info(name, element, shape)


def is_type_attribute(name):
    return name == "to" or name.endswith(("dtype", "datatype"))


def with_result_type(node, schema, element):
    """The node with the attribute that states its result's element type; None if no attribute does."""
    names = [name for name, a in schema.attributes.items() if is_type_attribute(name) and a.type == a.type.INT]
    node = onnx.NodeProto.FromString(node.SerializeToString())
    if names:
        kept = [a for a in node.attribute if a.name != names[0]]
        del node.attribute[:]
        node.attribute.extend([*kept, helper.make_attribute(names[0], element)])
        return node
    for a in node.attribute:
        if a.type == AttributeProto.TENSOR:
            a.t.CopyFrom(tensor_of(a.t, element, a.t.name))
            return node
    return None


def graph_of(case, schema, variable, kind, constants, together):
    """The node's graph with `kind` for the variable; `constants` says of an operand's index whether it is one."""
    element, node = element_of(kind.element), case.node
    formal = [variable_of(schema.inputs, i) for i in range(len(node.input))]
    allowed = {c.type_param_str: {Type(t).element for t in c.allowed_type_strs} for c in schema.type_constraints}
    changed = {v for v, elements in allowed.items() if v == variable or (together and kind.element in elements)}
    if together and len(changed) == 1:
        return None
    if variable not in formal:
        node = with_result_type(node, schema, element)
        if node is None:
            return None
    inputs, initializers = [], []
    for i, (name, value) in enumerate(zip(node.input, case.operands)):
        if not name:
            continue
        if formal[i] == variable and kind_of(value) != kind.kind:
            return None
        own = element if formal[i] in changed else element_in(value)
        if isinstance(value, (np.ndarray, np.generic, TensorProto)) and constants(i):
            initializers.append(tensor_of(value, own, name))
        else:
            inputs.append(input_of(value, own, name))
    return helper.make_graph([node], "probe", inputs, [onnx.ValueInfoProto(name=n) for n in node.output if n], initializers)


def text_of(kind, shape):
    """The type as ONNX's textual form has it, of tensors of that shape, "[2, 3]" or ""."""
    return re.sub(r"tensor\((\w+)\)", rf"\1{shape}", kind.text)


def parsed(text, types, schema, opset):
    """The graph of a text of `nodes.txt`; None if its node is of another version of the operator."""

    def replaced(match):
        kind = types[match[1]]
        return str(element_of(kind.element)) if match[2] == ".number" else text_of(kind, match[2] or "")

    text = re.sub(r"\$(\w+)(\.number|\[[^\]]*\])?", replaced, text)
    imports = f'"" : {21 if schema.domain else opset}, "ai.onnx.ml" : {opset if schema.domain else 3}'
    try:
        graph = onnx.parser.parse_model(f"<ir_version: 10, opset_import: [{imports}]> probe {text}").graph
    except onnx.parser.ParseError:
        return None  # a value that isn't of the type, such as a number of strings
    return graph if fits(Case(graph.node[-1], []), schema) else None


@dataclasses.dataclass(frozen=True)
class Variable:
    """A type variable of a version of an operator."""

    schema: onnx.defs.OpSchema
    name: str

    @property
    def opset(self):
        return max(self.schema.since_version, LEAST[self.schema.domain])

    @property
    def kinds(self):
        return [Type(t) for c in self.schema.type_constraints if c.type_param_str == self.name for t in c.allowed_type_strs]

    def probe(self, kind, graphs):
        return Probe(self.schema.domain, self.opset, kind, graphs)

    def own_kind(self, case):
        """The type that the variable has in the case; a type of it where none of the case's operands has that type."""
        for i, value in enumerate(case.operands):
            if variable_of(self.schema.inputs, i) == self.name and value is not None:
                element = TensorProto.DataType.Name(element_in(value)).lower()
                return next((k for k in self.kinds if (k.kind, k.element) == (kind_of(value), element)), None)
        return next((k for k in self.kinds if k.element == "float"), self.kinds[0])

    def forms(self):
        """Functions that say of an operand's index whether it is a constant."""
        return [
            lambda i: i > 0 and variable_of(self.schema.inputs, i) != self.name,
            lambda i: i > 0,
            lambda i: True,
            lambda i: False,
        ]

    def graphs(self, kind, ways, together):
        for case, constants in ways:
            yield graph_of(case, self.schema, self.name, kind, constants, together)

    def texts_of(self, texts, kind):
        first = {c.type_param_str: Type(sorted(c.allowed_type_strs)[0]) for c in self.schema.type_constraints}
        same = first | {
            c.type_param_str: Type(t)
            for c in self.schema.type_constraints
            for t in c.allowed_type_strs
            if Type(t).element == kind.element
        }
        for text in texts:
            if text.is_for(self.name, kind):
                for types in (same, first):
                    yield parsed(text.graph, types | {self.name: kind}, self.schema, self.opset)


def tried(variables, cases, texts, tenon):
    """The probes of each variable, which have told whether its types are imported."""
    importer = Importer(tenon)
    # First, which cases are imported as they are, and with which operands as constants.
    known = {}
    for v in variables:
        for case in cases.get((v.schema.domain, v.schema.name), []):
            kind = v.own_kind(case) if fits(case, v.schema) else None
            if kind is not None:
                known.setdefault(v, []).append((case, v.probe(kind, v.graphs(kind, [(case, f) for f in v.forms()], False))))
    importer.run([probe for listed in known.values() for _, probe in listed])
    # Then the other types in place of theirs.
    probes = {}
    for v in variables:
        ways = [(case, v.forms()[probe.rounds - 1]) for case, probe in known.get(v, []) if probe.accepted][:MOST_WAYS]
        given = texts.get((v.schema.domain, v.schema.name), [])
        for kind in v.kinds:
            graphs = itertools.chain(v.texts_of(given, kind), v.graphs(kind, ways, False), v.graphs(kind, ways, True))
            probes.setdefault(v, []).append(v.probe(kind, graphs))
    importer.run([probe for listed in probes.values() for probe in listed])
    return probes


# ---- what Tenon says ----


def renamed(graph, prefix):
    """Gives everything in a graph of one node a name of its own; names in inner graphs are known outside them, too."""
    names = {v.name for v in [*graph.input, *graph.output, *graph.initializer]}
    names |= {name for node in graph.node for name in [*node.input, *node.output] if name}

    def rename(nodes):
        for node in nodes:
            node.name = prefix + node.op_type
            for field in (node.input, node.output):
                for i, name in enumerate(field):
                    if name in names:
                        field[i] = prefix + name
            for attribute in node.attribute:
                if attribute.type == AttributeProto.GRAPH:
                    rename(attribute.g.node)
                    for value in attribute.g.output:
                        if value.name in names:
                            value.name = prefix + value.name

    for value in [*graph.input, *graph.output, *graph.initializer]:
        value.name = prefix + value.name
    rename(graph.node)


def chunks(items, size):
    return [items[i : i + size] for i in range(0, len(items), size)]


class Importer:
    def __init__(self, tenon):
        self.tenon = tenon
        self.pool = concurrent.futures.ThreadPoolExecutor()

    def refused(self, graphs, domain, opset):
        """The reasons, by number, of those of the graphs that can't be imported."""
        reasons, left = {}, list(graphs)
        while left:
            whole = onnx.GraphProto()
            for number in left:
                whole.MergeFrom(graphs[number])
            whole.name = "probes"
            imports = [helper.make_opsetid("", opset if domain == "" else 21)]
            if domain:
                imports.append(helper.make_opsetid(domain, opset))
            found, problem = self.inspect(helper.make_model(whole, opset_imports=imports, ir_version=10))
            reasons |= found
            if problem is None:
                break
            # A node that breaks ONNX's rules ends the import: those after it are tried without it.
            at = re.search(r"\bp(\d+)_", problem)
            if not at or int(at[1]) not in left:
                raise RuntimeError(problem)
            reasons[int(at[1])] = problem
            left = left[left.index(int(at[1])) + 1 :]
        return reasons

    def run(self, probes):
        """Tries the graphs of all probes, in rounds, until one of each is imported or none is left."""
        pending = probes
        while pending:
            by_opset, left = {}, []
            for number, probe in enumerate(pending):
                graph = probe.next_graph()
                if graph is not None:
                    renamed(graph, f"p{number}_")
                    by_opset.setdefault((probe.domain, probe.opset), {})[number] = graph
            models = [
                (dict(items), domain, opset)
                for (domain, opset), graphs in by_opset.items()
                for items in chunks(list(graphs.items()), MOST_NODES)
            ]
            for graphs, reasons in zip((m[0] for m in models), self.pool.map(lambda m: self.refused(*m), models)):
                for number in graphs:
                    pending[number].accepted = number not in reasons
                    if number in reasons:
                        pending[number].reasons.append(reasons[number])
                        left.append(pending[number])
            pending = left

    def inspect(self, model):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "probes.onnx"
            path.write_bytes(model.SerializeToString())
            done = subprocess.run([self.tenon, "inspect", str(path), "--json"], capture_output=True, text=True)
        told = json.loads(done.stdout)
        found = {}
        for entry in told["unsupported"]:
            at = re.match(r"p(\d+)_", entry["node"])
            if not at:
                raise RuntimeError(str(entry))
            found.setdefault(int(at[1]), entry["reason"])
        problem = told.get("problem")
        return found, None if problem is None else problem if isinstance(problem, str) else json.dumps(problem)
