#!/usr/bin/env python3
"""Writes the small models of onnx/, the seeds of onnx_mutants and onnx_fuzzer.

Each model covers one part of the format or of the importer; together they have a few KB. The tests use
the committed files; after a change, run this with the packages of test/requirements.txt.
"""

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto as T
from onnx import helper as h
from onnx import numpy_helper

HERE = Path(__file__).resolve().parent / "onnx"
RNG = np.random.default_rng(7)


def value(name, shape, dtype=T.FLOAT):
    return h.make_tensor_value_info(name, dtype, shape)


def const(name, array):
    return numpy_helper.from_array(np.asarray(array), name)


def weights(name, *shape):
    return const(name, RNG.normal(0, 0.5, shape).astype(np.float32))


def save(name, nodes, inputs, outputs, initializers=(), opset=17, functions=(), domains=()):
    graph = h.make_graph(nodes, name, inputs, outputs, initializers)
    opsets = [h.make_opsetid("", opset), *(h.make_opsetid(d, 1) for d in domains)]
    model = h.make_model(graph, opset_imports=opsets, functions=functions)
    model.ir_version, model.producer_name = 8, ""
    (HERE / f"{name}.onnx").write_bytes(model.SerializeToString(deterministic=True))


def if_and_loop():
    """Both branches see the outer names; the loop carries a value and stacks its yields."""
    then = h.make_graph([h.make_node("Add", ["x", "x"], ["t"])], "then", [], [value("t", ["n"])])
    other = h.make_graph([h.make_node("Neg", ["x"], ["e"])], "else", [], [value("e", ["n"])])
    body = h.make_graph(
        [
            h.make_node("Mul", ["s", "y"], ["s2"]),
            h.make_node("ReduceSum", ["s2"], ["total"], keepdims=0),
            h.make_node("Less", ["total", "most"], ["go"]),
            h.make_node("Identity", ["s2"], ["row"]),
        ],
        "body",
        [value("i", [], T.INT64), value("c", [], T.BOOL), value("s", ["n"])],
        [value("go", [], T.BOOL), value("s2", ["n"]), value("row", ["n"])],
    )
    save(
        "if_and_loop",
        [
            h.make_node("If", ["flag"], ["y"], then_branch=then, else_branch=other, name="/if"),
            h.make_node("Loop", ["trips", "", "x"], ["last", "rows"], body=body, name="/loop"),
        ],
        [value("x", ["n"]), value("flag", [], T.BOOL), value("trips", [], T.INT64)],
        [value("last", ["n"]), value("rows", None)],
        [const("most", np.float32(9))],
    )


def scan():
    body = h.make_graph(
        [h.make_node("Add", ["s", "e"], ["s2"]), h.make_node("Tanh", ["s2"], ["o"])],
        "body",
        [value("s", [2]), value("e", [2])],
        [value("s2", [2]), value("o", [2])],
    )
    node = h.make_node(
        "Scan", ["init", "x"], ["last", "all"], body=body, num_scan_inputs=1, scan_input_directions=[1]
    )
    outputs = [value("last", [2]), value("all", ["seq", 2])]
    save("scan", [node], [value("init", [2]), value("x", ["seq", 2])], outputs)


def unrolled_loop():
    """A constant trip count: the importer unrolls it."""
    body = h.make_graph(
        [h.make_node("Add", ["s", "one"], ["s2"]), h.make_node("Identity", ["c"], ["c2"])],
        "body",
        [value("i", [], T.INT64), value("c", [], T.BOOL), value("s", [3])],
        [value("c2", [], T.BOOL), value("s2", [3])],
        [const("one", np.float32([1]))],
    )
    node = h.make_node("Loop", ["trips", "", "x"], ["y"], body=body)
    save("unrolled_loop", [node], [value("x", [3])], [value("y", [3])], [const("trips", np.int64(3))])


def external():
    data = RNG.normal(0, 1, 12).astype(np.float32)
    (HERE / "external.bin").write_bytes(b"\0" * 16 + data.tobytes())
    w = T(name="w", data_type=T.FLOAT, dims=[3, 4], data_location=T.EXTERNAL)
    for key, text in (("location", "external.bin"), ("offset", "16"), ("length", "48")):
        w.external_data.add(key=key, value=text)
    graph = h.make_graph(
        [h.make_node("MatMul", ["x", "w"], ["y"])], "external", [value("x", ["n", 3])], [value("y", ["n", 4])], [w]
    )
    model = h.make_model(graph, opset_imports=[h.make_opsetid("", 17)])
    model.ir_version, model.producer_name = 8, ""
    (HERE / "external.onnx").write_bytes(model.SerializeToString(deterministic=True))


def functions():
    """A function with an attribute that its nodes refer to, called by another function."""
    leaky = h.make_node("LeakyRelu", ["a"], ["b"])
    leaky.attribute.add(name="alpha", ref_attr_name="slope", type=onnx.AttributeProto.FLOAT)
    opsets = [h.make_opsetid("", 17), h.make_opsetid("my", 1)]
    inner = h.make_function("my", "Bend", ["a"], ["b"], [leaky], opsets, ["slope"])
    outer = h.make_function(
        "my",
        "Twice",
        ["a"],
        ["c"],
        [h.make_node("Bend", ["a"], ["b"], domain="my", slope=0.5), h.make_node("Add", ["b", "a"], ["c"])],
        opsets,
    )
    nodes = [h.make_node("Twice", ["x"], ["t"], domain="my"), h.make_node("Bend", ["t"], ["y"], domain="my", slope=0.1)]
    save("functions", nodes, [value("x", [2, "n"])], [value("y", [2, "n"])], functions=[inner, outer], domains=["my"])


def quantized():
    save(
        "quantized",
        [
            h.make_node("QuantizeLinear", ["x", "sx", "zx"], ["qx"]),
            h.make_node("DequantizeLinear", ["qx", "sx", "zx"], ["dx"]),
            h.make_node("DequantizeLinear", ["qw", "sw", "zw"], ["dw"], axis=0),
            h.make_node("Conv", ["dx", "dw"], ["c"], kernel_shape=[2, 2], pads=[0, 1, 1, 0]),
            h.make_node("DynamicQuantizeLinear", ["c"], ["qc", "sc", "zc"]),
            h.make_node("DequantizeLinear", ["qc", "sc", "zc"], ["y"]),
        ],
        [value("x", ["n", 2, 4, 4])],
        [value("y", ["n", 2, 4, 4])],
        [
            const("sx", np.float32(0.1)),
            const("zx", np.uint8(128)),
            const("qw", RNG.integers(-100, 100, (2, 2, 2, 2)).astype(np.int8)),
            const("sw", np.float32([0.02, 0.03])),
            const("zw", np.int8([0, 3])),
        ],
    )


def quantized_products():
    save(
        "quantized_products",
        [
            h.make_node("MatMulInteger", ["a", "b", "za"], ["p"]),
            h.make_node("QLinearMatMul", ["a", "sa", "za", "b", "sa", "za", "sa", "za"], ["q"]),
            h.make_node("Cast", ["p"], ["pf"], to=T.FLOAT),
        ],
        [value("a", ["n", 3], T.UINT8)],
        [value("pf", ["n", 2]), value("q", ["n", 2], T.UINT8)],
        [const("b", np.uint8([[1, 2], [3, 4], [5, 255]])), const("za", np.uint8(3)), const("sa", np.float32(0.5))],
    )


def symbols():
    """Shapes computed as data from symbolic sizes."""
    save(
        "symbols",
        [
            h.make_node("Shape", ["x"], ["s"]),
            h.make_node("Gather", ["s", "zero"], ["n"], axis=0),
            h.make_node("Concat", ["n", "minus"], ["to"], axis=0),
            h.make_node("Reshape", ["x", "to"], ["r"]),
            h.make_node("Expand", ["one", "s"], ["e"]),
            h.make_node("Slice", ["x", "zero", "n", "one_i"], ["c"]),
            h.make_node("Add", ["x", "e"], ["y"]),
            h.make_node("ConstantOfShape", ["n"], ["z"], value=const("", np.int32([5]))),
            h.make_node("Range", ["z0", "n0", "z1"], ["i"]),
            h.make_node("NonZero", ["x"], ["k"]),
            h.make_node("Squeeze", ["n"], ["n0"]),
        ],
        [value("x", ["batch", "seq", 2])],
        [value("r", None), value("y", None), value("c", None), value("z", None, T.INT32)]
        + [value("i", None, T.INT64), value("k", None, T.INT64)],
        [
            const("zero", np.int64([0])),
            const("one_i", np.int64([1])),
            const("minus", np.int64([-1])),
            const("one", np.float32([1])),
            const("z0", np.int64(0)),
            const("z1", np.int64(1)),
        ],
    )


def initializers():
    """Every field and type that elements of a tensor may have."""
    arrays = {
        T.FLOAT: [1.5, -0.0], T.DOUBLE: [1e300, 2], T.INT64: [-1, 2**40], T.INT32: [7, -7], T.UINT64: [1, 2**63],
        T.UINT32: [1, 2**31], T.INT16: [-5, 5], T.UINT16: [5, 65535], T.INT8: [-128, 127], T.UINT8: [0, 255],
        T.BOOL: [True, False], T.FLOAT16: [0.5, 65504],
    }  # fmt: skip
    tensors, nodes, outputs = [], [], []
    for dtype, values in arrays.items():
        name = T.DataType.Name(dtype).lower()
        tensors.append(h.make_tensor(f"{name}_field", dtype, [2], values))
        raw = np.array(values).astype(h.tensor_dtype_to_np_dtype(dtype)).tobytes()
        tensors.append(h.make_tensor(f"{name}_raw", dtype, [1, 2], raw, raw=True))
        nodes.append(h.make_node("Concat", [f"{name}_flat", f"{name}_field"], [name], axis=0))
        nodes.append(h.make_node("Reshape", [f"{name}_raw", "flat"], [f"{name}_flat"]))
        outputs.append(value(name, [4], dtype))
    tensors.append(const("flat", np.int64([-1])))
    tensors.append(h.make_tensor("empty", T.FLOAT, [0, 3], []))
    nodes.append(h.make_node("Add", ["x", "empty"], ["nothing"]))
    save("initializers", nodes, [value("x", [])], [*outputs, value("nothing", [0, 3])], tensors)


def attributes():
    """Strings, lists, tensors and defaults as attributes."""
    save(
        "attributes",
        [
            h.make_node("Constant", [], ["k"], value_floats=[1.0, 2.0]),
            h.make_node("Constant", [], ["t"], value=const("", np.float32([[1, 2], [3, 4]]))),
            h.make_node("Gemm", ["x", "t", "k"], ["g"], alpha=0.5, transB=1),
            h.make_node("Einsum", ["g", "t"], ["s"], equation="ij,jk->ik"),
            h.make_node("Pad", ["s", "pads"], ["p"], mode="reflect"),
            h.make_node("Unsqueeze", ["p", "axes"], ["u"]),
            h.make_node("Resize", ["u", "", "scales"], ["r"], mode="linear", coordinate_transformation_mode="asymmetric"),
            h.make_node("AveragePool", ["r"], ["a"], kernel_shape=[2, 2], auto_pad="SAME_UPPER", count_include_pad=1),
            h.make_node("Transpose", ["a"], ["y"], perm=[1, 0, 3, 2]),
        ],
        [value("x", ["n", 2])],
        [value("y", None)],
        [
            const("pads", np.int64([0, 1, 0, 1])),
            const("axes", np.int64([0, 1])),
            const("scales", np.float32([1, 1, 2, 1.5])),
        ],
    )


def vision():
    save(
        "vision",
        [
            h.make_node("Conv", ["x", "w", "b"], ["c"], pads=[1, 1, 1, 1], group=2, dilations=[1, 1], strides=[2, 1]),
            h.make_node("BatchNormalization", ["c", "s", "b", "b", "s"], ["n"]),
            h.make_node("Relu", ["n"], ["r"]),
            h.make_node("MaxPool", ["r"], ["m"], kernel_shape=[2, 2], ceil_mode=1),
            h.make_node("ConvTranspose", ["m", "w2"], ["d"], output_padding=[0, 0]),
            h.make_node("GlobalAveragePool", ["d"], ["g"]),
            h.make_node("Flatten", ["g"], ["f"]),
            h.make_node("Softmax", ["f"], ["y"], axis=-1),
        ],
        [value("x", ["n", 4, 6, "w"])],
        [value("y", ["n", 2])],
        [weights("w", 4, 2, 3, 3), weights("b", 4), const("s", np.float32([1, 2, 1, 2])), weights("w2", 4, 2, 2, 2)],
    )


def encoder():
    """A layer like BERT's: embeddings, attention, normalisation, an activation."""
    size, heads = 8, 2
    dense = lambda x, w, y: [h.make_node("MatMul", [x, w], [f"{y}_p"]), h.make_node("Add", [f"{y}_p", "b"], [y])]
    split = lambda x, y, perm: [
        h.make_node("Reshape", [x, "heads"], [f"{y}_r"]),
        h.make_node("Transpose", [f"{y}_r"], [y], perm=perm),
    ]
    nodes = [
        h.make_node("Gather", ["table", "ids"], ["e"]),
        h.make_node("LayerNormalization", ["e", "s", "b"], ["x"], epsilon=1e-5),
        *dense("x", "wq", "q"), *dense("x", "wk", "k"), *dense("x", "wv", "v"),
        *split("q", "qh", [0, 2, 1, 3]), *split("k", "kh", [0, 2, 3, 1]), *split("v", "vh", [0, 2, 1, 3]),
        h.make_node("MatMul", ["qh", "kh"], ["scores"]),
        h.make_node("Div", ["scores", "root"], ["scaled"]),
        h.make_node("Cast", ["mask"], ["mask_f"], to=T.FLOAT),
        h.make_node("Unsqueeze", ["mask_f", "middle"], ["mask_4"]),
        h.make_node("Sub", ["one", "mask_4"], ["masked"]),
        h.make_node("Mul", ["masked", "low"], ["bias"]),
        h.make_node("Add", ["scaled", "bias"], ["biased"]),
        h.make_node("Softmax", ["biased"], ["p"], axis=-1),
        h.make_node("MatMul", ["p", "vh"], ["a"]),
        h.make_node("Transpose", ["a"], ["a_t"], perm=[0, 2, 1, 3]),
        h.make_node("Reshape", ["a_t", "joined"], ["a_j"]),
        h.make_node("Add", ["a_j", "x"], ["sum"]),
        h.make_node("LayerNormalization", ["sum", "s", "b"], ["n"]),
        h.make_node("Div", ["n", "root2"], ["g0"]),
        h.make_node("Erf", ["g0"], ["g1"]),
        h.make_node("Add", ["g1", "one"], ["g2"]),
        h.make_node("Mul", ["g2", "n"], ["y"]),
    ]  # fmt: skip
    save(
        "encoder",
        nodes,
        [value("ids", ["batch", "seq"], T.INT64), value("mask", ["batch", "seq"], T.INT64)],
        [value("y", ["batch", "seq", size])],
        [
            weights("table", 10, size), weights("wq", size, size), weights("wk", size, size), weights("wv", size, size),
            weights("s", size), weights("b", size), const("heads", np.int64([0, 0, heads, size // heads])),
            const("joined", np.int64([0, 0, size])), const("middle", np.int64([1, 2])),
            const("root", np.float32(2)), const("root2", np.float32(1.4142135)), const("one", np.float32(1)),
            const("low", np.float32(-1e4)),
        ],
    )  # fmt: skip


def recurrent():
    save(
        "recurrent",
        [
            h.make_node("LSTM", ["x", "w", "r", "b"], ["all", "h"], hidden_size=2, direction="bidirectional"),
            h.make_node("GRU", ["x", "gw", "gr"], ["", "g"], hidden_size=2, linear_before_reset=1),
        ],
        [value("x", ["seq", "batch", 3])],
        [value("all", ["seq", 2, "batch", 2]), value("h", [2, "batch", 2]), value("g", [1, "batch", 2])],
        [weights("w", 2, 8, 3), weights("r", 2, 8, 2), weights("b", 2, 16), weights("gw", 1, 6, 3), weights("gr", 1, 6, 2)],
    )


def indexing():
    save(
        "indexing",
        [
            h.make_node("TopK", ["x", "k"], ["v", "i"], axis=-1),
            h.make_node("GatherElements", ["x", "i"], ["g"], axis=1),
            h.make_node("ScatterElements", ["x", "i", "v"], ["s"], axis=1, reduction="add"),
            h.make_node("GatherND", ["x", "nd"], ["d"]),
            h.make_node("Split", ["s"], ["a", "b"], axis=1, num_outputs=2),
            h.make_node("OneHot", ["i", "depth", "hot"], ["o"], axis=0),
            h.make_node("CumSum", ["a", "axis"], ["c"], reverse=1),
            h.make_node("Where", ["mask", "c", "b"], ["w"]),
            h.make_node("Greater", ["a", "b"], ["mask"]),
            h.make_node("Tile", ["w", "times"], ["t"]),
            h.make_node("ArgMax", ["t"], ["m"], axis=1, keepdims=0),
        ],
        [value("x", ["n", 4])],
        [value("g", None), value("d", None), value("o", None), value("t", None), value("m", None, T.INT64)],
        [
            const("k", np.int64([2])),
            const("nd", np.int64([[0, 1], [0, -1]])),
            const("depth", np.int64([4])),
            const("hot", np.float32([0, 1])),
            const("axis", np.int64(1)),
            const("times", np.int64([2, 1])),
        ],
        opset=18,
    )


def refused():
    """Models that can't be imported, with the tables of reasons."""
    sparse = h.make_sparse_tensor(const("v", np.float32([1])), const("i", np.int64([3])), [8])
    nodes = [
        h.make_node("StringNormalizer", ["s"], ["n"], stopwords=["a", "the"]),
        h.make_node("Constant", [], ["c"], sparse_value=sparse),
        h.make_node("Identity", ["words"], ["y"]),
        h.make_node("SequenceConstruct", ["x", "x"], ["q"]),
        h.make_node("Cast", ["x"], ["b"], to=T.BFLOAT16),
    ]
    outputs = [value("n", None, T.STRING), value("c", [8]), value("y", [2], T.STRING), value("b", [2], T.BFLOAT16)]
    outputs.append(h.make_tensor_sequence_value_info("q", T.FLOAT, None))
    words = h.make_tensor("words", T.STRING, [2], [b"one", b"\xff\0two"])
    save("refused", nodes, [value("s", ["n"], T.STRING), value("x", [2])], outputs, [words])


def main():
    HERE.mkdir(exist_ok=True)
    for write in (
        if_and_loop, scan, unrolled_loop, external, functions, quantized, quantized_products, symbols, initializers,
        attributes, vision, encoder, recurrent, indexing, refused,
    ):  # fmt: skip
        write()


if __name__ == "__main__":
    main()
