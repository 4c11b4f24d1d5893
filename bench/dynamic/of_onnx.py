"""The rows as ONNX models, in ONNX Runtime with one thread: what an export of the loops gives."""

from collections.abc import Callable

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

import workloads

VERSION = onnxruntime.__version__
FLOAT, INT, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
Call = Callable[[], np.ndarray]
value, node = helper.make_tensor_value_info, helper.make_node


def model(nodes, inputs, outputs, constants: dict[str, np.ndarray]) -> onnx.ModelProto:
    initializers = [numpy_helper.from_array(np.asarray(a), name) for name, a in constants.items()]
    graph = helper.make_graph(nodes, "main", inputs, outputs, initializers)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(made, full_check=True)
    return made


def session(source: onnx.ModelProto | str) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = workloads.threads, 1
    options.log_severity_level = 3
    given = source if isinstance(source, str) else source.SerializeToString()
    return onnxruntime.InferenceSession(given, options, providers=["CPUExecutionProvider"])


def gates(names: dict[str, str], of: str, prefix: str) -> list[onnx.NodeProto]:
    """`of` split into gates: activations by name."""
    parts = [f"{prefix}{name}_in" for name in names]
    return [node("Split", [of], parts, axis=1)] + [
        node(kind, [part], [prefix + name]) for part, (name, kind) in zip(parts, names.items())
    ]


def lstm_scan(hidden: int, layers: int) -> onnx.ModelProto:
    """A Scan over the words whose body is a loop of LSTM cells."""
    body, states, following, constants = [], [], [], {}
    below = "word"
    for i in range(layers):
        p = f"layer_{i}_"
        body += [
            node("Gemm", [below, f"w_{i}", f"b_{i}"], [p + "product"]),
            node("Gemm", [p + "h", f"r_{i}"], [p + "recurrent"]),
            node("Add", [p + "product", p + "recurrent"], [p + "gates"]),
            *gates({"i": "Sigmoid", "f": "Sigmoid", "g": "Tanh", "o": "Sigmoid"}, p + "gates", p),
            node("Mul", [p + "f", p + "c"], [p + "kept"]),
            node("Mul", [p + "i", p + "g"], [p + "new"]),
            node("Add", [p + "kept", p + "new"], [p + "c_next"]),
            node("Tanh", [p + "c_next"], [p + "seen"]),
            node("Mul", [p + "o", p + "seen"], [p + "h_next"]),
        ]
        below = p + "h_next"
        states += [p + "h", p + "c"]
        following += [p + "h_next", p + "c_next"]
    state = lambda name: value(name, FLOAT, [1, hidden])
    word = value("word", FLOAT, [1, workloads.INPUT])
    scanned = helper.make_graph(body, "body", [*map(state, states), word], [*map(state, following)])
    constants |= {"zero": np.zeros((1, hidden), "float32")} | workloads.lstm_weights(hidden)
    constants = {name: a for name, a in constants.items() if layers == 2 or not name.endswith("_1")}
    last = [f"last_{name}" for name in states]
    scan = node("Scan", [*["zero"] * len(states), "x"], last, num_scan_inputs=1, body=scanned)
    inputs = [value("x", FLOAT, ["words", 1, workloads.INPUT])]
    return model([scan], inputs, [state(last[-2])], constants)


def lstm_operator(hidden: int, layers: int) -> onnx.ModelProto:
    """ONNX's LSTM, whose gates are in the order input, output, forget, cell."""
    weights = workloads.lstm_weights(hidden)
    order = lambda a: np.concatenate([np.split(a, 4, -1)[k] for k in (0, 3, 1, 2)], -1)
    nodes, constants = [], {"axis": np.array([1], "int64"), "first": np.array([0], "int64")}
    below = "x"
    for i in range(layers):
        constants[f"w_{i}"] = order(weights[f"w_{i}"]).T[None].copy()
        constants[f"r_{i}"] = order(weights[f"r_{i}"]).T[None].copy()
        b = order(weights[f"b_{i}"])
        constants[f"b_{i}"] = np.concatenate([b, np.zeros_like(b)])[None]
        operands = [below, f"w_{i}", f"r_{i}", f"b_{i}"]
        nodes.append(node("LSTM", operands, [f"all_{i}", f"last_{i}"], hidden_size=hidden))
        nodes.append(node("Squeeze", [f"all_{i}", "axis"], [f"y_{i}"]))
        below = f"y_{i}"
    nodes.pop()
    del nodes[-1].output[0]
    nodes[-1].output.insert(0, "")
    nodes.append(node("Squeeze", [f"last_{layers - 1}", "first"], ["last"]))
    if layers == 1:
        del constants["axis"]
    inputs = [value("x", FLOAT, ["words", 1, workloads.INPUT])]
    return model(nodes, inputs, [value("last", FLOAT, [1, hidden])], constants)


def lstm(made: onnx.ModelProto, sentences: list[np.ndarray]) -> list[Call]:
    run = session(made).run
    return [lambda x=s[:, None]: run(None, {"x": x})[0] for s in sentences]


def tree_model() -> onnx.ModelProto:
    """A Loop over the nodes of a tree, children first, whose states are rows of two tensors."""
    h = workloads.TREE_HIDDEN
    row = lambda name: value(name, FLOAT, [1, h])
    leaf = [
        node("Gather", ["words", "word"], ["x"], axis=0),
        node("Gemm", ["x", "leaf", "leaf_bias"], ["leaf_gates"]),
        *gates({"i": "Sigmoid", "o": "Sigmoid", "u": "Tanh"}, "leaf_gates", "leaf_"),
        node("Mul", ["leaf_i", "leaf_u"], ["leaf_c"]),
        node("Tanh", ["leaf_c"], ["leaf_seen"]),
        node("Mul", ["leaf_o", "leaf_seen"], ["leaf_h"]),
    ]
    names = {"i": "Sigmoid", "f_left": "Sigmoid", "f_right": "Sigmoid", "o": "Sigmoid", "u": "Tanh"}
    inner = [
        *(node("Gather", [f"{s}s", side], [f"{s}_{side}"], axis=0) for s in "hc" for side in ("left", "right")),
        node("Concat", ["h_left", "h_right"], ["both"], axis=1),
        node("Gemm", ["both", "node", "node_bias"], ["gates"]),
        *gates(names, "gates", ""),
        node("Mul", ["i", "u"], ["new"]),
        node("Mul", ["f_left", "c_left"], ["kept_left"]),
        node("Mul", ["f_right", "c_right"], ["kept_right"]),
        node("Add", ["kept_left", "kept_right"], ["kept"]),
        node("Add", ["new", "kept"], ["inner_c"]),
        node("Tanh", ["inner_c"], ["seen"]),
        node("Mul", ["o", "seen"], ["inner_h"]),
    ]
    arms = {
        "then_branch": helper.make_graph(leaf, "leaf_arm", [], [row("leaf_h"), row("leaf_c")]),
        "else_branch": helper.make_graph(inner, "inner_arm", [], [row("inner_h"), row("inner_c")]),
    }
    states = lambda name: value(name, FLOAT, ["nodes", h])
    body = helper.make_graph(
        [
            node("Gather", ["plan", "k"], ["entry"], axis=0),
            node("Split", ["entry"], ["word", "left", "right"], axis=0),
            node("GreaterOrEqual", ["word", "none"], ["is_leaf"]),
            node("If", ["is_leaf"], ["h", "c"], **arms),
            node("Unsqueeze", ["k", "axes"], ["at"]),
            node("ScatterND", ["hs", "at", "h"], ["hs_next"]),
            node("ScatterND", ["cs", "at", "c"], ["cs_next"]),
            node("Identity", ["go"], ["go_next"]),
        ],
        "body",
        [value("k", INT, []), value("go", BOOL, []), states("hs"), states("cs")],
        [value("go_next", BOOL, []), states("hs_next"), states("cs_next")],
    )
    nodes = [
        node("Shape", ["plan"], ["count_1"], end=1),
        node("Squeeze", ["count_1"], ["count"]),
        node("Concat", ["count_1", "width"], ["shape"], axis=0),
        node("ConstantOfShape", ["shape"], ["zero"]),
        node("Loop", ["count", "", "zero", "zero"], ["hs_last", "cs_last"], body=body),
        node("Gather", ["hs_last", "last"], ["result"], axis=0),
    ]
    constants = workloads.tree_weights() | {
        "none": np.array([0], "int64"),
        "axes": np.array([0, 1], "int64"),
        "width": np.array([h], "int64"),
        "last": np.array([-1], "int64"),
    }
    inputs = [value("words", FLOAT, ["n", workloads.INPUT]), value("plan", INT, ["nodes", 3])]
    return model(nodes, inputs, [row("result")], constants)


def tree_lstm(trees: list[tuple[workloads.Tree, np.ndarray]]) -> list[Call]:
    run = session(tree_model()).run
    plans = [(words, np.array(workloads.post_order(tree), "int64")) for tree, words in trees]
    return [lambda w=w, p=p: run(None, {"words": w, "plan": p})[0] for w, p in plans]


def loop(kind: str, turns: int, times: int = 1) -> onnx.ModelProto:
    """A Loop whose body adds to a counter, or scales 64 floats and takes their tanh; or does so several times."""
    shape, dtype = ([], INT) if kind == "counter" else ([64], FLOAT)
    step = []
    for i in range(times):
        before, after = f"state_{i}" if i else "state", f"state_{i + 1}" if i + 1 < times else "next"
        if kind == "counter":
            step.append(node("Add", [before, "one"], [after]))
        else:
            step += [node("Mul", [before, "factor"], [f"scaled_{i}"]), node("Tanh", [f"scaled_{i}"], [after])]
    constants = {"one": np.int64(1)} if kind == "counter" else {"factor": np.float32(1.01)}
    body = helper.make_graph(
        [*step, node("Identity", ["go"], ["go_next"])],
        "body",
        [value("i", INT, []), value("go", BOOL, []), value("state", dtype, shape)],
        [value("go_next", BOOL, []), value("next", dtype, shape)],
    )
    nodes = [node("Loop", ["turns", "", "x"], ["last"], body=body)]
    inputs = [value("x", dtype, shape)]
    return model(nodes, inputs, [value("last", dtype, shape)], constants | {"turns": np.int64(turns)})
