"""Complex numbers: elements that are moved, from every border to every border."""

import pickle

import numpy as np
import pytest
import tenon

DTYPES = ["complex64", "complex128"]
NAMES = {"complex64": "c64", "complex128": "c128"}
MODES = ["compiled", "bytecode", "interpret"]


def numbers(shape, dtype, seed=0):
    """Random numbers, with NaNs, infinities and both zeros among them."""
    random = np.random.default_rng(seed)
    x = (random.standard_normal(shape) + 1j * random.standard_normal(shape)).astype(dtype)
    flat = x.reshape(-1)
    for i, special in enumerate([complex(np.nan, 1), complex(1, -np.inf), complex(-0.0, 0.0), complex(0.0, -0.0)]):
        if i < flat.size - 2:
            flat[i] = special
    return x


def assert_same_bits(found, expected):
    found, expected = np.ascontiguousarray(found), np.ascontiguousarray(expected)
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    np.testing.assert_array_equal(found.view("uint8"), expected.view("uint8"))


def identity(dtype):
    text = f"fn @main(%x: tensor[n, m; {NAMES[dtype]}]) -> tensor[m, n; {NAMES[dtype]}] {{\n  transpose(%x, perm=[1, 0])\n}}\n"
    return tenon.ir.parse(text)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_arrays_cross_the_border(dtype, mode):
    x = numbers((5, 7), dtype)
    if mode == "interpret":
        y = identity(dtype).interpret("main", x)
    else:
        y = tenon.compile(identity(dtype), mode=mode)(x)
    assert y.dtype == dtype
    assert_same_bits(y.numpy(), x.T)


@pytest.mark.parametrize("dtype", DTYPES)
def test_views_and_lists(dtype):
    exe = tenon.compile(identity(dtype))
    x = numbers((9, 8), dtype)
    assert_same_bits(exe(x[::2, ::-3]).numpy(), x[::2, ::-3].T)
    # At an address that is a multiple of the parts' size only.
    part = np.dtype(dtype).itemsize // 2
    loose = np.frombuffer(b"\0" * part + x.tobytes(), "uint8")[part:].view(dtype).reshape(x.shape)
    assert_same_bits(exe(loose).numpy(), x.T)
    assert_same_bits(exe([[1 + 2j, 3], [True, 0.5]]).numpy(), np.array([[1 + 2j, 1], [3, 0.5]], dtype))
    assert exe([[1 + 2j]]).tolist() == [[1 + 2j]]
    y = np.empty((8, 9), dtype)
    exe(x, out=y)
    assert_same_bits(y, x.T)


def test_other_dtypes_dont_fit():
    exe = tenon.compile(identity("complex64"))
    with pytest.raises(tenon.Error, match="does not fit"):
        exe(np.zeros((1, 1), "complex128"))
    with pytest.raises(tenon.Error, match="does not fit"):
        exe(np.zeros((1, 1), "float32"))
    real = tenon.compile(tenon.ir.parse("fn @main(%x: tensor[n; f32]) -> tensor[n; f32] {\n  %x\n}\n"))
    with pytest.raises(TypeError, match="complex numbers such as .* can't become a tensor of float32"):
        real([1j])


@pytest.mark.parametrize("dtype", DTYPES)
def test_dlpack_and_buffers(dtype):
    x = numbers((3, 4), dtype)
    t = tenon.Tensor(x)
    assert t.dtype == dtype
    assert_same_bits(np.from_dlpack(t), x)
    assert_same_bits(np.asarray(memoryview(t)), x)
    assert_same_bits(pickle.loads(pickle.dumps(t)).numpy(), x)
    assert f"tensor[3, 4; {NAMES[dtype]}]" in repr(t)
    torch = pytest.importorskip("torch")
    y = tenon.compile(identity(dtype))(torch.from_numpy(x))
    assert_same_bits(torch.from_dlpack(y).numpy(), x.T)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("count", [3, 200])  # in the text, or in a weight file where safetensors have the type
def test_constants_print_and_parse(dtype, count, tmp_path):
    x, name = numbers(count, dtype), NAMES[dtype]
    part = "float32" if dtype == "complex64" else "float64"
    elements = ", ".join(f"({text(z.real, part)}, {text(z.imag, part)})" for z in x)
    module = tenon.ir.parse(f"fn @main() -> tensor[{count}; {name}] {{\n  tensor[{count}; {name}]{{{elements}}}\n}}\n")
    path = tmp_path / "constant.tn"
    module.save(path)
    again = tenon.ir.open(path)
    np.testing.assert_array_equal(tenon.compile(again)().numpy(), x)
    assert tenon.ir.from_json(module.to_json()) == module
    exe = tenon.compile(module)
    exe.save(tmp_path / "constant.tnx")
    np.testing.assert_array_equal(tenon.load(tmp_path / "constant.tnx")().numpy(), x)


def text(number, part):
    if np.isnan(number):
        return "nan"
    if np.isinf(number):
        return "inf" if number > 0 else "-inf"
    return repr(float(np.dtype(part).type(number)))


onnx = pytest.importorskip("onnx")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402


def model_of(nodes, inputs, outputs, initializers=(), opset=21):
    def info(name, x):
        return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)

    graph = helper.make_graph(
        nodes,
        "g",
        [info(name, x) for name, x in inputs.items()],
        [helper.make_tensor_value_info(name, kind, None) for name, kind in outputs.items()],
        [numpy_helper.from_array(np.asarray(x), name) for name, x in dict(initializers).items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)


def i64(*values):
    return np.array(values, "int64")


# Operator, constant operands, attributes, and what it makes of x of shape [4, 6].
MOVES = [
    ("Identity", {}, {}, lambda x: x),
    ("Reshape", {"s": i64(3, -1)}, {}, lambda x: x.reshape(3, -1)),
    ("Transpose", {}, {"perm": [1, 0]}, lambda x: x.T),
    ("Concat", {"c": np.ones((1, 6))}, {"axis": 0}, lambda x: np.concatenate([x, np.ones((1, 6), x.dtype)])),
    ("Slice", {"a": i64(1), "b": i64(4)}, {}, lambda x: x[1:4]),
    ("Gather", {"i": i64(3, -4, 0)}, {}, lambda x: x[[3, 0, 0]]),
    ("GatherElements", {"i": i64([0] * 6, [3] * 6)}, {}, lambda x: x[[0, 3]]),
    ("GatherND", {"i": i64([0, 5], [3, 1])}, {}, lambda x: np.array([x[0, 5], x[3, 1]])),
    ("Expand", {"s": i64(2, 4, 6)}, {}, lambda x: np.broadcast_to(x, (2, 4, 6))),
    ("Unsqueeze", {"a": i64(0)}, {}, lambda x: x[None]),
    ("Flatten", {}, {"axis": 0}, lambda x: x.reshape(1, -1)),
    ("Pad", {"p": i64(1, 0, 0, 2)}, {}, lambda x: np.pad(x, ((1, 0), (0, 2)))),
    ("Pad", {"p": i64(0, 1, 0, 1)}, {"mode": "reflect"}, lambda x: np.pad(x, ((0, 0), (1, 1)), "reflect")),
    ("Tile", {"r": i64(2, 1)}, {}, lambda x: np.tile(x, (2, 1))),
    ("Compress", {"c": np.array([True, False, True])}, {"axis": 0}, lambda x: x[[0, 2]]),
    ("Shape", {}, {}, lambda x: i64(4, 6)),
    ("Size", {}, {}, lambda x: np.array(24)),
    ("Trilu", {}, {"upper": 1}, np.triu),
    ("ReverseSequence", {"n": i64(4, 4, 4, 4, 4, 4)}, {}, lambda x: x[::-1]),
    ("NonZero", {}, {}, lambda x: np.array(np.nonzero(x))),
    ("CenterCropPad", {"s": i64(2, 8)}, {}, lambda x: np.pad(x[1:3], ((0, 0), (1, 1)))),
    ("ScatterND", {"i": i64([1], [3]), "u": np.full((2, 6), 2 - 3j)}, {}, lambda x: scattered(x, [1, 3])),
    ("ScatterElements", {"i": i64([2] * 6), "u": np.full((1, 6), 2 - 3j)}, {}, lambda x: scattered(x, [2])),
]


def scattered(x, rows):
    y = x.copy()
    y[rows] = 2 - 3j
    return y


def constants_of(given, dtype):
    return {
        name: np.asarray(c).astype(dtype) if np.asarray(c).dtype.kind in "fc" else np.asarray(c) for name, c in given.items()
    }


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("op, given, attributes, expected", MOVES, ids=lambda v: v if isinstance(v, str) else "")
def test_operators_that_move_elements(op, given, attributes, expected, dtype, tmp_path):
    x = numbers((4, 6), dtype)
    constants = constants_of(given, dtype)
    node = helper.make_node(op, ["x", *constants], ["y"], **attributes)
    counts = op in ("Shape", "Size", "NonZero")
    kind = TensorProto.INT64 if counts else helper.np_dtype_to_tensor_dtype(x.dtype)
    model = model_of([node], {"x": x}, {"y": kind}, constants)
    for options in ({}, {"level": 0}, {"mode": "bytecode"}):
        found = tenon.compile(model, **options)(x).numpy()
        assert_same_bits(found, np.asarray(expected(x)).astype("int64" if counts else dtype))
    onnx.save(model, tmp_path / "m.onnx")
    found = np.asarray(tenon.ir.open(tmp_path / "m.onnx").interpret("main", x))
    assert_same_bits(found, np.asarray(expected(x)).astype("int64" if counts else dtype))


@pytest.mark.parametrize("dtype", DTYPES)
def test_where_split_one_hot_unique(dtype):
    x, y = numbers((4, 6), dtype), numbers((4, 6), dtype, 1)
    where = model_of(
        [helper.make_node("Where", ["c", "x", "y"], ["z"])],
        {"c": x.real > 0, "x": x, "y": y},
        {"z": helper.np_dtype_to_tensor_dtype(x.dtype)},
    )
    assert_same_bits(tenon.compile(where)(x.real > 0, x, y).numpy(), np.where(x.real > 0, x, y))
    kind = helper.np_dtype_to_tensor_dtype(x.dtype)
    split = model_of([helper.make_node("Split", ["x"], ["a", "b"], axis=1, num_outputs=2)], {"x": x}, {"a": kind, "b": kind})
    a, b = tenon.compile(split)(x)
    assert_same_bits(a.numpy(), x[:, :3])
    assert_same_bits(b.numpy(), x[:, 3:])
    hot = model_of(
        [helper.make_node("OneHot", ["i", "d", "v"], ["y"])],
        {"i": i64(0, 2)},
        {"y": kind},
        {"d": i64(3)[0], "v": np.array([1j, 2 + 1j], dtype)},
    )
    assert_same_bits(
        tenon.compile(hot)(i64(0, 2)).numpy(), np.array([[2 + 1j, 1j, 1j], [1j, 1j, 2 + 1j]], dtype)
    )
    z = np.array([2 + 1j, 1 + 5j, 2, 1 + 5j, 1 - 1j], dtype)
    unique = model_of([helper.make_node("Unique", ["x"], ["y"])], {"x": z}, {"y": kind})
    assert_same_bits(tenon.compile(unique)(z).numpy(), np.unique(z))


@pytest.mark.parametrize("dtype", DTYPES)
def test_sequences_optionals_and_control_flow(dtype):
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    x, y = numbers((3,), dtype), numbers((3,), dtype, 1)
    nodes = [
        helper.make_node("SequenceConstruct", ["x", "y"], ["s"]),
        helper.make_node("SequenceInsert", ["s", "x"], ["t"]),
        helper.make_node("ConcatFromSequence", ["t"], ["z"], axis=0),
        helper.make_node("Optional", ["y"], ["o"]),
        helper.make_node("OptionalGetElement", ["o"], ["w"]),
    ]
    z, w = tenon.compile(model_of(nodes, {"x": x, "y": y}, {"z": kind, "w": kind}))(x, y)
    assert_same_bits(z.numpy(), np.concatenate([x, y, x]))
    assert_same_bits(w.numpy(), y)

    def branch(name):
        return helper.make_graph(
            [helper.make_node("Identity", [name], ["r"])], "b", [], [helper.make_tensor_value_info("r", kind, [3])]
        )

    chosen = model_of(
        [helper.make_node("If", ["c"], ["z"], then_branch=branch("x"), else_branch=branch("y"))],
        {"c": np.array(True), "x": x, "y": y},
        {"z": kind},
    )
    assert_same_bits(tenon.compile(chosen)(np.array(False), x, y).numpy(), y)
    body = helper.make_graph(
        [
            helper.make_node("Identity", ["go"], ["go_on"]),
            helper.make_node("Gather", ["v", "turn"], ["next"]),
            helper.make_node("Identity", ["v"], ["row"]),
        ],
        "body",
        [
            helper.make_tensor_value_info("i", TensorProto.INT64, []),
            helper.make_tensor_value_info("go", TensorProto.BOOL, []),
            helper.make_tensor_value_info("v", kind, [3]),
        ],
        [
            helper.make_tensor_value_info("go_on", TensorProto.BOOL, []),
            helper.make_tensor_value_info("next", kind, [3]),
            helper.make_tensor_value_info("row", kind, [3]),
        ],
    )
    loop = model_of(
        [helper.make_node("Loop", ["n", "", "x"], ["last", "rows"], body=body)],
        {"n": np.array(4, "int64"), "x": x},
        {"last": kind, "rows": kind},
        {"turn": i64(1, 2, 0)},
    )
    last, rows = tenon.compile(loop)(np.array(4, "int64"), x)
    expected = [np.roll(x, -k) for k in range(5)]
    assert_same_bits(last.numpy(), expected[4])
    assert_same_bits(rows.numpy(), np.stack(expected[:4]))


def test_bits_of_complex_numbers():
    x = numbers((5,), "complex64")
    for to, dtype in ((TensorProto.DOUBLE, "float64"), (TensorProto.INT64, "int64"), (TensorProto.COMPLEX64, "complex64")):
        model = model_of([helper.make_node("BitCast", ["x"], ["y"], to=to)], {"x": x}, {"y": to}, opset=26)
        assert_same_bits(tenon.compile(model)(x).numpy(), x.view(dtype))
        back = model_of(
            [helper.make_node("BitCast", ["x"], ["y"], to=TensorProto.COMPLEX64)],
            {"x": x.view(dtype)},
            {"y": TensorProto.COMPLEX64},
            opset=26,
        )
        assert_same_bits(tenon.compile(back)(x.view(dtype)).numpy(), x)


@pytest.mark.parametrize("op", ["Add", "Mul", "Equal", "Relu", "MatMul", "ReduceSum", "Softmax", "Abs", "IsNaN"])
def test_operators_that_compute_refuse_them(op):
    x = np.zeros((2, 2), "complex64")
    names = ["x", "x"] if op in ("Add", "Mul", "Equal", "MatMul") else ["x"]
    model = model_of([helper.make_node(op, names, ["y"])], {"x": x}, {"y": TensorProto.COMPLEX64})
    with pytest.raises(tenon.Error, match="c64"):
        tenon.compile(model)


def test_sessions_name_the_types():
    x = numbers((2, 3), "complex128")
    model = model_of([helper.make_node("Identity", ["x"], ["y"])], {"x": x}, {"y": TensorProto.COMPLEX128})
    session = tenon.InferenceSession(model)
    assert session.get_inputs()[0].type == "tensor(complex128)"
    (y,) = session.run(None, {"x": x})
    assert_same_bits(y, x)
