"""Models of string tensors: every operator that takes them, against ONNX's reference evaluator and, where it has a
kernel, ONNX Runtime; and how strings enter and leave Python."""

import copy
import pickle

import numpy as np
import pytest

import tenon

onnx = pytest.importorskip("onnx")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402
from onnx.reference import ReferenceEvaluator  # noqa: E402

ALPHABET = ["a", "B", "z", "é", "É", "ß", "漢", "😀", " ", ".", "1"]


@pytest.fixture
def random():
    return np.random.default_rng(11)


def words(random, *shape):
    """Random strings, among them empty and equal ones."""
    count = int(np.prod(shape))
    out = np.empty(count, dtype=object)
    for i in range(count):
        out[i] = "".join(random.choice(ALPHABET, random.integers(0, 5)))
    return out.reshape(shape)


def element_type(x):
    return TensorProto.STRING if x.dtype.kind in "OU" else helper.np_dtype_to_tensor_dtype(x.dtype)


def model_of(nodes, inputs, outputs, opset=20, symbolic=True):
    """`inputs`: arrays by name, whose sizes are symbols; `outputs`: names."""

    def dims(name, x):
        return [f"{name}_{i}" for i in range(x.ndim)] if symbolic else list(x.shape)

    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info(name, element_type(x), dims(name, x)) for name, x in inputs.items()],
        [helper.make_empty_tensor_value_info(name) for name in outputs],
    )
    opsets = [("", opset), ("ai.onnx.ml", 3), ("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=[helper.make_opsetid(*each) for each in opsets], ir_version=8)


def with_output_types(model, results):
    """ONNX Runtime wants the types of outputs stated."""
    model = onnx.ModelProto.FromString(model.SerializeToString())
    for value, result in zip(model.graph.output, results):
        value.CopyFrom(helper.make_tensor_value_info(value.name, element_type(result), None))
    return model


def assert_same(found, expected):
    assert len(found) == len(expected)
    for x, y in zip(found, expected):
        y = np.asarray(y)
        assert x.shape == y.shape
        if y.dtype.kind in "OU":
            assert x.tolist() == y.tolist()
        else:
            assert x.dtype == y.dtype
            np.testing.assert_array_equal(x, y)


def run(model, inputs):
    return tenon.InferenceSession(model).run(None, inputs)


def check(nodes, inputs, outputs, runtime=True, reference=True, **rest):
    """The results, compared with both others' where they have the operator."""
    model = model_of(nodes if isinstance(nodes, list) else [nodes], inputs, outputs, **rest)
    found = run(model, inputs)
    if reference:
        assert_same(found, ReferenceEvaluator(model).run(None, inputs))
    if runtime:
        onnxruntime = pytest.importorskip("onnxruntime")
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        stated = with_output_types(model, found)
        session = onnxruntime.InferenceSession(
            stated.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
        assert_same(found, session.run(None, inputs))
    return found


def node(op, inputs, outputs=("y",), **attributes):
    return helper.make_node(op, list(inputs), list(outputs), **attributes)


SHAPES = [(0,), (1,), (5,), (2, 3), (2, 0, 3), ()]


# ---- operators that move elements ----


@pytest.mark.parametrize("shape", [(4,), (2, 3), (2, 3, 2), (0, 3)])
def test_moves(random, shape):
    x = words(random, *shape)
    rank = x.ndim
    shape_node = node("Shape", ["x"], ["s"])
    check(node("Transpose", ["x"], perm=list(range(rank))[::-1]), {"x": x}, ["y"])
    check(node("Identity", ["x"]), {"x": x}, ["y"])
    check(node("Flatten", ["x"], axis=1), {"x": x}, ["y"], reference=x.size > 0)
    check([shape_node, node("Size", ["x"], ["n"])], {"x": x}, ["s", "n"])
    check(node("Unsqueeze", ["x", "axes"]), {"x": x, "axes": np.array([0])}, ["y"], symbolic=False)
    check(node("Tile", ["x", "r"]), {"x": x, "r": np.full(rank, 2)}, ["y"], symbolic=False)
    flat = np.array([-1])
    if x.size:
        check(node("Reshape", ["x", "to"]), {"x": x, "to": flat}, ["y"], symbolic=False)
    check(node("Concat", ["x", "x2"], axis=rank - 1), {"x": x, "x2": words(random, *shape)}, ["y"], symbolic=False)


def test_expand_and_where_broadcast(random):
    x, y = words(random, 3, 1), words(random, 1, 4)
    condition = random.integers(0, 2, (3, 4)).astype(bool)
    check(node("Expand", ["x", "s"]), {"x": x, "s": np.array([2, 3, 4])}, ["y"], symbolic=False)
    check(node("Where", ["c", "x", "z"]), {"c": condition, "x": x, "z": y}, ["y"], symbolic=False)


def test_gathers(random):
    x = words(random, 4, 3)
    for axis in (0, 1):
        check(
            node("Gather", ["x", "i"], axis=axis),
            {"x": x, "i": random.integers(-3, 3, (2, 2))},
            ["y"],
            runtime=False,  # its Gather loses strings
        )
    inputs = {"x": x, "i": random.integers(0, 4, (2, 3))}
    check(node("GatherElements", ["x", "i"], axis=0), inputs, ["y"], symbolic=False)
    check(node("GatherND", ["x", "i"]), {"x": x, "i": random.integers(0, 3, (2, 2))}, ["y"], symbolic=False)


def test_slices_and_splits(random):
    x = words(random, 6, 3)
    bounds = {"x": x, "starts": np.array([4, 0]), "ends": np.array([0, 2])}
    bounds |= {"axes": np.array([0, 1]), "steps": np.array([-2, 1])}
    check(node("Slice", list(bounds)), bounds, ["y"], symbolic=False)
    check(node("Split", ["x"], ["a", "b"], axis=0, num_outputs=2), {"x": x}, ["a", "b"], symbolic=False)
    condition = np.array([True, False, True, True, False, True])
    check(node("Compress", ["x", "c"], axis=0), {"x": x, "c": condition}, ["y"])
    check(node("Compress", ["x", "c"]), {"x": x, "c": condition}, ["y"])


def test_scatters(random):
    x = words(random, 4, 3)
    inputs = {"x": x, "i": np.array([[3, 0, 1]]), "u": words(random, 1, 3)}
    check(node("ScatterElements", list(inputs), axis=0), inputs, ["y"], symbolic=False)
    inputs = {"x": x, "i": np.array([[3], [0]]), "u": words(random, 2, 3)}
    check(node("ScatterND", list(inputs)), inputs, ["y"], symbolic=False)


def test_pad_fills_with_empty_strings(random):
    x = words(random, 2, 3)
    pads = np.array([1, 0, 0, 2])
    found = run(model_of([node("Pad", ["x", "p"])], {"x": x, "p": pads}, ["y"], symbolic=False), {"x": x, "p": pads})
    expected = np.full((3, 5), "", dtype=object)
    expected[1:, :3] = x
    assert_same(found, [expected])


def test_reverse_one_hot_and_constants(random):
    inputs = {"i": np.array([0, 2, 5]), "d": np.array(3), "v": np.array(["off", "on"], dtype=object)}
    check(node("OneHot", list(inputs)), inputs, ["y"], reference=False, symbolic=False)
    texts = node("Constant", [], ["y"], value_strings=["a", "é"])
    check(texts, {}, ["y"], runtime=False)
    text = node("Constant", [], ["y"], value_string="é")
    assert run(model_of([text], {}, ["y"]), {})[0].item() == "é"
    filled = node("ConstantOfShape", ["s"], value=helper.make_tensor("v", TensorProto.STRING, [1], [b"x"]))
    sizes = {"s": np.array([2, 2])}
    assert run(model_of([filled], sizes, ["y"], symbolic=False), sizes)[0].tolist() == [["x", "x"], ["x", "x"]]


# ---- operators that read strings ----


@pytest.mark.parametrize("shape", SHAPES)
def test_equal(random, shape):
    x, y = words(random, *shape), words(random, *shape)
    if x.size:
        y.flat[0] = x.flat[0]
    check(node("Equal", ["x", "z"]), {"x": x, "z": y}, ["y"])


def test_equal_broadcasts(random):
    x = words(random, 5, 1)
    check(node("Equal", ["x", "z"]), {"x": x, "z": x.reshape(1, 5)}, ["y"])


@pytest.mark.parametrize("order", [0, 1])
def test_unique(random, order):
    x = np.array(["b", "a", "b", "", "é", "a"], dtype=object)
    model = model_of([node("Unique", ["x"], ["v", "f", "i", "c"], sorted=order)], {"x": x}, ["v", "f", "i", "c"])
    values, first, inverse, counts = run(model, {"x": x})
    assert values.tolist() == (["", "a", "b", "é"] if order else ["b", "a", "", "é"])
    assert values[inverse].tolist() == x.tolist()
    assert x[first].tolist() == values.tolist()
    assert counts.tolist() == [x.tolist().count(v) for v in values]


@pytest.mark.parametrize("shape", SHAPES)
def test_concat(random, shape):
    check(node("StringConcat", ["x", "z"]), {"x": words(random, *shape), "z": words(random, *shape)}, ["y"])


def test_concat_broadcasts(random):
    check(node("StringConcat", ["x", "z"]), {"x": words(random, 3, 1), "z": words(random, 4)}, ["y"])


@pytest.mark.parametrize("attributes", [{}, {"delimiter": "."}, {"delimiter": "a", "maxsplit": 1}, {"maxsplit": 2}])
def test_split(random, attributes):
    x = words(random, 6, 2)
    model = model_of([node("StringSplit", ["x"], ["y", "n"], **attributes)], {"x": x}, ["y", "n"])
    parts, counts = run(model, {"x": x})
    for text, row, count in zip(x.flat, parts.reshape(12, -1), counts.flat):
        expected = text.split(attributes.get("delimiter"), attributes.get("maxsplit", -1))
        assert row[:count].tolist() == expected
        assert row[count:].tolist() == [""] * (len(row) - count)
    assert parts.shape[-1] == counts.max()


def test_regular_expressions(random):
    x = np.array([["a1", "b", ""], ["éa", "a\n", "A1"]], dtype=object)
    for pattern in ["[a-z][0-9]", ".*", "(?i)a1|b", "\\pL+"]:
        check(node("RegexFullMatch", ["x"], pattern=pattern), {"x": x}, ["y"], reference="\\p" not in pattern)


def test_a_pattern_that_is_none_is_refused():
    x = np.array(["a"], dtype=object)
    model = model_of([node("RegexFullMatch", ["x"], pattern="a(")], {"x": x}, ["y"])
    with pytest.raises(tenon.Error, match="not a valid RE2 expression"):
        run(model, {"x": x})


TEXTS = [["to be, or", "Not  to-be É漢", ""], [" ", "x", "a\nb,,c"]]
PATTERNS = [
    {"tokenexp": "[a-zA-Z0-9_]+"},
    {"tokenexp": "[^ ]+", "mincharnum": 2},
    {"tokenexp": "o|[a-z]*"},
    {"tokenexp": r"\b[a-z]"},
    {"tokenexp": ".."},
    {"tokenexp": "."},
    {"separators": [""]},
    {"separators": [" "]},
    {"separators": [" ", ",", "^.-"]},
    {"separators": ["[, ]+|-"], "mincharnum": 2},
    {"separators": ["x*"]},
    {"separators": [".*"]},
    {"separators": ["o"], "tokenexp": "o"},
]


@pytest.mark.parametrize("mark", [0, 1])
@pytest.mark.parametrize("patterns", PATTERNS)
def test_tokenizer(patterns, mark):
    x = np.array(TEXTS, dtype=object)
    attributes = {"mark": mark, "pad_value": "#", "mincharnum": 1} | patterns
    tokenizer = node("Tokenizer", ["x"], domain="com.microsoft", **attributes)
    for texts in (x, x[0], x[1, :1]):
        check(tokenizer, {"x": texts}, ["y"], reference=False)


def test_tokenizer_pads_and_marks():
    x = np.array(["a b", "c"], dtype=object)
    attributes = {"pad_value": "#", "mincharnum": 1, "separators": [" "]}
    for mark, expected in [(0, [["a", "b"], ["c", "#"]]), (1, [["\2", "a", "b", "\3"], ["\2", "c", "\3", "#"]])]:
        tokenizer = node("Tokenizer", ["x"], domain="com.microsoft", mark=mark, **attributes)
        (y,) = run(model_of([tokenizer], {"x": x}, ["y"]), {"x": x})
        assert y.tolist() == expected
        (empty,) = run(model_of([tokenizer], {"x": x}, ["y"]), {"x": np.array(["", " "], dtype=object)})
        assert empty.shape == (2, 0)


@pytest.mark.parametrize("action", ["NONE", "LOWER", "UPPER"])
@pytest.mark.parametrize("sensitive", [0, 1])
def test_normalizer(action, sensitive):
    x = np.array(["Monday", "friday", "FRIDAY", "Ärger", "été"], dtype=object)
    for stopwords in ([], ["monday", "friday"], ["Monday", "friday", "FRIDAY", "Ärger", "été"]):
        attributes = {"case_change_action": action, "is_case_sensitive": sensitive}
        if stopwords:
            attributes["stopwords"] = stopwords
        make = node("StringNormalizer", ["x"], **attributes)
        fold = (lambda s: s) if sensitive else str.lower
        kept = [s for s in x if fold(s) not in {fold(w) for w in stopwords}] or [""]
        change = {"NONE": str, "LOWER": str.lower, "UPPER": str.upper}[action]
        expected = np.array([change(s) for s in kept], dtype=object)
        assert_same(run(model_of([make], {"x": x}, ["y"]), {"x": x}), [expected])
        row = x.reshape(1, -1)
        assert_same(run(model_of([make], {"x": row}, ["y"], symbolic=False), {"x": row}), [expected.reshape(1, -1)])


def cast(x, to):
    return run(model_of([node("Cast", ["x"], to=to)], {"x": x}, ["y"]), {"x": x})[0]


CASTS = ["1", "-2", "1000000", "+3", "7.0", "1e-7", "NaN", "INF", "+INF", "-INF"]


@pytest.mark.parametrize("to", ["float32", "float64", "float16"])
def test_cast_to_floats(to):
    x = np.array(CASTS, dtype=object)
    y = cast(x, helper.np_dtype_to_tensor_dtype(np.dtype(to)))
    np.testing.assert_array_equal(y, np.array([float(s) for s in CASTS]).astype(to))


@pytest.mark.parametrize("to", ["int8", "int32", "int64", "uint8", "uint64"])
def test_cast_to_integers(to):
    x = np.array(["1", "100", "+3"], dtype=object)
    y = cast(x, helper.np_dtype_to_tensor_dtype(np.dtype(to)))
    np.testing.assert_array_equal(y, np.array([1, 100, 3], to))


def test_a_cast_of_other_text_is_an_error():
    x = np.array(["1", "one"], dtype=object)
    model = model_of([node("Cast", ["x"], to=TensorProto.FLOAT)], {"x": x}, ["y"])
    with pytest.raises(tenon.Error, match="the string can't be read as f32"):
        run(model, {"x": x})


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8", "int64", "uint64", "bool"])
def test_cast_from_numbers_is_numpys_text(random, dtype):
    x = (random.standard_normal(200) * 10.0 ** random.integers(-8, 20, 200)).astype("float64")
    if dtype == "bool":
        x = x > 0
    elif not dtype.startswith("float"):
        x = random.integers(0, 100, 200)
    with np.errstate(over="ignore"):
        x = x.astype(dtype)
    y = cast(x, TensorProto.STRING)
    assert y.tolist() == x.astype(np.str_).tolist()


# ---- n-grams ----


@pytest.mark.parametrize("mode", ["TF", "IDF", "TFIDF"])
@pytest.mark.parametrize("rows", [None, 3])
@pytest.mark.parametrize("text", [False, True])
def test_tf_idf(random, mode, rows, text):
    numbers = [2, 3, 5, 4, 5, 6, 7, 8, 6, 7]
    shape = (12,) if rows is None else (rows, 12)
    x = random.integers(0, 10, shape).astype("int64")
    attributes = dict(
        mode=mode,
        min_gram_length=1,
        max_gram_length=2,
        max_skip_count=3,
        ngram_counts=[0, 4],
        ngram_indexes=[0, 1, 2, 3, 4, 5, 6],
        weights=[float(w) for w in random.random(7).astype("float32")],
    )
    if text:
        attributes["pool_strings"] = [f"w{n}" for n in numbers]
        x = np.vectorize(lambda n: f"w{n}", otypes=[object])(x)
    else:
        attributes["pool_int64s"] = numbers
    found = check(node("TfIdfVectorizer", ["x"], **attributes), {"x": x}, ["y"], reference=False)
    assert found[0].shape == (*shape[:-1], 7)


# ---- models trained on tables ----


def ml(op, inputs, outputs=("y",), **attributes):
    return helper.make_node(op, list(inputs), list(outputs), domain="ai.onnx.ml", **attributes)


def test_label_encoder():
    x = np.array(["a", "é", "z", ""], dtype=object)
    numbers = ml("LabelEncoder", ["x"], keys_strings=["a", "", "é"], values_int64s=[5, 6, 7], default_int64=-3)
    assert check(numbers, {"x": x}, ["y"], reference=False)[0].tolist() == [5, 7, -3, 6]
    texts = ml("LabelEncoder", ["x"], keys_strings=["a", "é"], values_strings=["A", "E"], default_string="?")
    assert check(texts, {"x": x}, ["y"], reference=False)[0].tolist() == ["A", "E", "?", "?"]
    back = ml("LabelEncoder", ["x"], keys_int64s=[1, 2], values_strings=["one", "two"])
    n = np.array([2, 9, 1])
    assert check(back, {"x": n}, ["y"], reference=False)[0].tolist() == ["two", "_Unused", "one"]
    floats = ml("LabelEncoder", ["x"], keys_strings=["a"], values_floats=[0.5])
    assert check(floats, {"x": x}, ["y"], reference=False)[0].tolist() == [0.5, 0, 0, 0]


def test_category_mapper():
    make = ml("CategoryMapper", ["x"], cats_strings=["a", "b"], cats_int64s=[10, 20])
    x = np.array(["b", "z"], dtype=object)
    assert check(make, {"x": x}, ["y"], reference=False)[0].tolist() == [20, -1]
    n = np.array([10, 11])
    assert check(make, {"x": n}, ["y"], reference=False)[0].tolist() == ["a", "_Unused"]


def test_one_hot_encoder():
    make = ml("OneHotEncoder", ["x"], cats_strings=["a", "b", "é"])
    x = np.array([["é"], ["a"], ["z"]], dtype=object)
    found = check(make, {"x": x}, ["y"], reference=False)[0]
    assert found.tolist() == [[[0, 0, 1]], [[1, 0, 0]], [[0, 0, 0]]]


def test_classes_that_are_strings(random):
    x = random.standard_normal((6, 3)).astype("float32")
    make = ml(
        "LinearClassifier",
        ["x"],
        ["label", "scores"],
        coefficients=[float(c) for c in random.standard_normal(9).astype("float32")],
        intercepts=[0.1, 0.2, 0.3],
        classlabels_strings=["cat", "dog", "é"],
    )
    labels, scores = run(model_of([make], {"x": x}, ["label", "scores"]), {"x": x})
    assert labels.tolist() == [["cat", "dog", "é"][i] for i in scores.argmax(1)]


# ---- control flow and containers ----


def test_if_loop_and_sequences():
    text = TensorProto.STRING
    body = helper.make_graph(
        [
            node("Identity", ["go"], ["again"]),
            node("StringConcat", ["s", "x"], ["longer"]),
            node("Identity", ["longer"], ["kept"]),
        ],
        "body",
        [
            helper.make_tensor_value_info("i", TensorProto.INT64, []),
            helper.make_tensor_value_info("go", TensorProto.BOOL, []),
            helper.make_tensor_value_info("s", text, ["n"]),
        ],
        [
            helper.make_tensor_value_info("again", TensorProto.BOOL, []),
            helper.make_tensor_value_info("longer", text, ["n"]),
            helper.make_tensor_value_info("kept", text, ["n"]),
        ],
    )
    nodes = [
        helper.make_node("Constant", [], ["times"], value_int=3),
        helper.make_node("Loop", ["times", "", "x"], ["last", "all"], body=body),
        helper.make_node("SequenceConstruct", ["x", "last"], ["seq"]),
        helper.make_node("Constant", [], ["one"], value_int=1),
        helper.make_node("SequenceAt", ["seq", "one"], ["second"]),
        helper.make_node("ConcatFromSequence", ["seq"], ["joined"], axis=0),
    ]
    x = np.array(["a", "é"], dtype=object)
    last, rows, second, joined = run(model_of(nodes, {"x": x}, ["last", "all", "second", "joined"]), {"x": x})
    assert last.tolist() == ["aaaa", "éééé"]
    assert rows.tolist() == [["aa", "éé"], ["aaa", "ééé"], ["aaaa", "éééé"]]
    assert second.tolist() == last.tolist()
    assert joined.tolist() == ["a", "é", "aaaa", "éééé"]


# ---- in and out of Python ----


IDENTITY = "fn @main(%x: tensor[n; string]) -> tensor[n; string] { transpose(%x, perm=[0]) }"


@pytest.fixture(scope="module")
def identity():
    return tenon.compile(tenon.ir.parse(IDENTITY))


def test_what_python_passes(identity):
    expected = ["a", "", "é😀"]
    for x in (
        np.array(expected),
        np.array(expected, dtype=object),
        np.array([s.encode() for s in expected]),
        expected,
        tuple(expected),
        tenon.Tensor(np.array(expected)),
        np.array(["é😀", "", "a"])[::-1],
    ):
        y = identity(x)
        assert y.tolist() == expected
        assert y.shape == (3,)
        assert y.dtype == "string"
        assert y.read_only
    if hasattr(np.dtypes, "StringDType"):
        assert identity(np.array(expected, dtype=np.dtypes.StringDType())).tolist() == expected


def test_what_python_gets(identity):
    y = identity(["a", "é"])
    assert y.numpy().dtype == object
    assert np.asarray(y).tolist() == ["a", "é"]
    assert y[1] == "é"
    assert (y == np.array(["a", "b"], dtype=object)).tolist() == [True, False]
    assert "tensor[2; string]" in repr(y)
    assert pickle.loads(pickle.dumps(y)).tolist() == ["a", "é"]
    assert copy.deepcopy(y).tolist() == ["a", "é"]
    assert identity([]).tolist() == []
    for export in (lambda: y.__dlpack__(), lambda: memoryview(y)):
        with pytest.raises(BufferError):
            export()


def test_methods_of_a_subclass_are_not_trusted(identity):
    class Odd(np.ndarray):
        shape = (100_000,)

        def ravel(self):
            return self

        def tolist(self):
            return 5

    given = np.array(["é", "b"], dtype=object)
    assert identity(given.view(Odd)).tolist() == ["é", "b"]


def test_what_is_refused(identity):
    with pytest.raises(TypeError, match="unless each element is a str, or bytes of UTF-8; this one holds 1"):
        identity(np.array(["a", 1], dtype=object))
    with pytest.raises(tenon.Error, match="element 1 of the tensor is not valid UTF-8"):
        identity(np.array([b"a", b"\xff"]))
    with pytest.raises((tenon.Error, UnicodeEncodeError)):
        identity(["\ud800"])
    with pytest.raises((TypeError, ValueError, tenon.Error)):
        identity(np.zeros(2, "float32"))
    numbers = tenon.compile(tenon.ir.parse("fn @main(%x: tensor[n; f32]) -> tensor[n; f32] { add(%x, %x) }"))
    with pytest.raises((TypeError, ValueError, tenon.Error)):
        numbers(np.array(["a"]))


def test_a_model_with_text_that_is_no_utf8_is_refused():
    bad = helper.make_tensor("v", TensorProto.STRING, [1], [b"\xff"])
    model = model_of([node("Constant", [], ["y"], value=bad)], {}, ["y"])
    with pytest.raises(tenon.Error, match="is not valid UTF-8"):
        tenon.InferenceSession(model)


def test_files_hold_strings(tmp_path):
    table = [f"word {i} é" for i in range(200)]
    x = np.array([3, 199, 0])
    values = numpy_helper.from_array(np.array(table, dtype=object), "t")
    graph = helper.make_graph(
        [node("Gather", ["t", "x"])],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.INT64, ["n"])],
        [helper.make_tensor_value_info("y", TensorProto.STRING, ["n"])],
        [values],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=8)
    path = tmp_path / "m.tnx"
    tenon.compile(model).save(str(path))
    assert tenon.load(str(path))(x).tolist() == [table[i] for i in x]
