"""Comparison with a reference, and reduction of models."""

import json
import sys

import numpy as np
import pytest

import tenon
from tenon import testing

onnx = pytest.importorskip("onnx")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402


def float_value(name, shape):
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)


def model_of(nodes, inputs, outputs, weights=()):
    weights = [numpy_helper.from_array(array, name) for name, array in weights]
    values = [float_value(name, shape) for name, shape in inputs]
    results = [float_value(name, shape) for name, shape in outputs]
    graph = helper.make_graph(nodes, "g", values, results, weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.fixture
def model():
    """x -> MatMul -> Relu -> Softmax -> y"""
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["/product"], name="/MatMul"),
        helper.make_node("Relu", ["/product"], ["positive"], name="/Relu"),
        helper.make_node("Softmax", ["positive"], ["y"], name="/Softmax"),
    ]
    weight = np.random.default_rng(0).normal(size=(4, 8)).astype("float32")
    return model_of(nodes, [("x", ["batch", 4])], [("y", ["batch", 8])], [("w", weight)])


@pytest.fixture
def inputs():
    return {"x": np.random.default_rng(1).normal(size=(3, 4)).astype("float32")}


@pytest.fixture
def expected(model, inputs):
    """The values of the model's nodes, worked out by NumPy."""
    product = inputs["x"] @ numpy_helper.to_array(model.graph.initializer[0])
    positive = np.maximum(product, 0)
    powers = np.exp(positive)
    return {"/product": product, "positive": positive, "y": powers / powers.sum(axis=1, keepdims=True)}


def test_every_value_is_compared_with_onnxruntime(model, inputs, tmp_path):
    pytest.importorskip("onnxruntime")
    comparison = testing.compare(model, inputs, with_="onnxruntime", save=tmp_path)
    assert comparison.equal and comparison.first is None
    assert comparison.values == ("/product", "positive", "y")
    assert str(comparison).startswith("3 values agree with onnxruntime; the greatest difference is ")
    for side in ("expected", "found"):
        index = json.loads((tmp_path / side / "values.json").read_text())
        assert list(index) == ["/product", "positive", "y"]
        assert np.load(tmp_path / side / index["/product"]).shape == (3, 8)


def test_a_path_with_external_data_is_compared(model, inputs, tmp_path):
    pytest.importorskip("onnxruntime")
    path = tmp_path / "m.onnx"
    onnx.save(model, path, save_as_external_data=True, location="m.data", size_threshold=0)
    assert testing.compare(path, [inputs["x"]]).equal


def test_the_first_value_that_differs_is_named(model, inputs, expected):
    expected["positive"][1, 2] += 0.5
    expected["y"] = expected["y"] + 1
    comparison = testing.compare(model, inputs, with_=expected)
    assert not comparison.equal and [d.name for d in comparison.differences] == ["positive", "y"]
    first = comparison.first
    assert (first.node, first.op, first.place, first.count) == ("/Relu", "Relu", (1, 2), 1)
    assert first.greatest == pytest.approx(0.5, rel=1e-5)
    assert str(comparison).startswith(
        "2 of 3 values differ from the given values; the first:\n'positive' of node '/Relu' (Relu) differs\n  found     "
    )
    assert "1 of 24 elements differ beyond the tolerance, by at most 0.5" in str(comparison)


def test_values_may_be_left_out(model, inputs, expected):
    del expected["y"]
    assert testing.compare(model, inputs, with_=expected).values == ("/product", "positive")


def test_differences_of_dtype_and_shape_are_told(model, inputs, expected):
    expected["positive"] = expected["positive"].astype("float64")
    first = testing.compare(model, inputs, with_=expected).first
    assert first.name == "positive" and first.place is None
    assert "found     tensor[3, 8; f32]\n  expected  tensor[3, 8; f64]" in str(first)
    expected["positive"] = expected["positive"].astype("float32")[:2]
    assert "expected  tensor[2, 8; f32]" in str(testing.compare(model, inputs, with_=expected).first)


@pytest.mark.parametrize("wrong, equal", [(np.nan, False), (np.inf, False), (None, True)])
def test_nan_equals_only_nan(wrong, equal):
    model = model_of([helper.make_node("Sqrt", ["x"], ["y"], name="root")], [("x", [2])], [("y", [2])])
    expected = np.array([np.nan, 2 if wrong is None else wrong], "float32")
    comparison = testing.compare(model, [np.array([-1, 4], "float32")], with_={"y": expected})
    assert comparison.equal == equal
    if not equal:
        assert comparison.first.place == (1,)


def test_numbers_are_compared_as_well():
    model = model_of([helper.make_node("ReduceSum", ["x"], ["y"], keepdims=0)], [("x", [2])], [("y", [])])
    x = np.array([1, 2], "float32")
    assert testing.compare(model, x, with_={"y": np.float32(3)}).equal
    first = testing.compare(model, x, with_={"y": np.float32(4)}).first
    assert first.place == () and first.greatest == 1 and "found     3.0 at []" in str(first)


def test_a_difference_that_only_fusion_has_is_found(model, inputs, expected):
    @tenon.transform.module_pass(name="test.break_when_fused")
    def wrong(module, context):
        exposed = module.functions["main"].result_type.type_key == "graph.TupleType"
        return module if exposed else tenon.ir.parse(str(module).replace("relu(", "abs("))

    passes = [wrong, *tenon.transform.passes()]
    first = testing.compare(model, inputs, with_=expected, passes=passes).first
    assert first.name == "positive" and first.fused
    assert "only fused with the operators before it" in str(first)


def test_what_is_missing_is_named(model, inputs, expected, monkeypatch):
    with pytest.raises(ValueError, match="the model has no input z; no value is given for x; its inputs are x"):
        testing.compare(model, {"z": inputs["x"]}, with_=expected)
    with pytest.raises(ValueError, match="no node of the model computes 'other'"):
        testing.compare(model, inputs, with_={"other": expected["y"]})
    with pytest.raises(ValueError, match="no values to compare"):
        testing.compare(model, inputs, with_={})
    with pytest.raises(ValueError, match="there is no reference 'tvm'"):
        testing.compare(model, inputs, with_="tvm")
    with pytest.raises(TypeError, match="an ONNX model"):
        testing.compare(3, inputs, with_=expected)
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(ImportError, match="pip install onnx onnxruntime"):
        testing.compare(model, inputs)


def test_a_model_is_reduced_to_what_fails(model):
    def fails(m):
        """Stands for a wrong Relu."""
        testing.random_inputs(m)
        return all(node.op_type != "Relu" for node in m.graph.node)

    reduced = testing.reduce(model, fails)
    assert [node.op_type for node in reduced.graph.node] == ["Relu"]
    assert not reduced.graph.initializer
    assert [d.dim_value for d in reduced.graph.input[0].type.tensor_type.shape.dim] == [1, 1]
    assert reduced == testing.reduce(model, fails)


def test_weights_and_sizes_are_reduced(model, inputs):
    def check(m):
        return any(node.op_type == "MatMul" for node in m.graph.node) and tenon.compile(m) is not None

    reduced = testing.reduce(model, check)
    assert [node.op_type for node in reduced.graph.node] == ["MatMul"]
    assert all(not numpy_helper.to_array(w).any() and w.dims == [1, 1] for w in reduced.graph.initializer)


def test_a_node_of_which_one_result_is_used_is_left_out():
    nodes = [
        helper.make_node("Split", ["x"], ["a", "b"], axis=0),
        helper.make_node("Neg", ["a"], ["c"]),
        helper.make_node("Add", ["c", "b"], ["y"]),
    ]
    model = model_of(nodes, [("x", [4])], [("y", [2])])
    model.opset_import[0].version = 13
    reduced = testing.reduce(model, lambda m: {"Split", "Add"} <= {node.op_type for node in m.graph.node})
    assert [node.op_type for node in reduced.graph.node] == ["Split", "Add"]


def test_an_error_is_kept_by_its_class(model):
    model.graph.node.append(helper.make_node("Unknown", ["y"], ["z"], name="bad", domain="com.acme"))
    model.graph.output[0].name = "z"
    model.opset_import.append(helper.make_opsetid("com.acme", 1))
    reduced = testing.reduce(model, tenon.compile)
    assert [node.op_type for node in reduced.graph.node] == ["Unknown"]
    with pytest.raises(tenon.UnsupportedError):
        tenon.compile(reduced)


def test_inner_graphs_keep_what_they_read():
    then = helper.make_graph([helper.make_node("Neg", ["a"], ["t"])], "then", [], [float_value("t", [2])])
    other = helper.make_graph([helper.make_node("Abs", ["x"], ["e"])], "else", [], [float_value("e", [2])])
    nodes = [
        helper.make_node("Exp", ["x"], ["a"]),
        helper.make_node("If", ["c"], ["y"], then_branch=then, else_branch=other),
    ]
    model = model_of(nodes, [("x", [2])], [("y", [2])])
    model.graph.input.append(helper.make_tensor_value_info("c", TensorProto.BOOL, []))

    def check(m):
        has = {node.op_type for node in m.graph.node}
        return {"Exp", "If"} <= has and tenon.compile(m) is not None

    assert [node.op_type for node in testing.reduce(model, check).graph.node] == ["Exp", "If"]


def test_a_module_is_reduced(tmp_path):
    (tmp_path / "m.tn").write_text("""
fn @unused(%n: i64) -> i64 { %n }
fn @main(%x: tensor[4, 8; f32], %y: tensor[4, 8; f32]) -> tensor[4, 8; f32] {
  %a = add(%x, %y)
  %b = if true { exp(%a) } else { tanh(%a) }
  %c = softmax(%b, axis=1)
  mul(%c, %c)
}
""")
    module = tenon.ir.open(tmp_path / "m.tn")
    reduced = testing.reduce(module, lambda m: "softmax(" in str(m))
    assert str(reduced) == (
        "fn @main(%b: tensor[1, 1; f32]) -> tensor[1, 1; f32] {\n"
        "  %c: tensor[1, 1; f32] = softmax(%b, axis=1)\n  %c\n}\n"
    )


def test_random_inputs_fit_the_model(model):
    inputs = testing.random_inputs(model, size=5)
    assert list(inputs) == ["x"] and inputs["x"].shape == (5, 4) and inputs["x"].dtype == "float32"
    assert np.array_equal(inputs["x"], testing.random_inputs(model, size=5)["x"])
    module = tenon.ir.parse("fn @main(%n: tensor[k, 3; i64]) -> tensor[k, 3; i64] { %n }")
    assert testing.random_inputs(module)["n"].shape == (2, 3)


def test_inputs_are_random_by_default(model):
    pytest.importorskip("onnxruntime")
    assert testing.compare(model).equal


def test_what_cannot_be_compared_is_told(model, inputs, expected, tmp_path):
    exe = tenon.compile(model)
    exe.save(tmp_path / "m.tnx")
    for program in (tmp_path / "m.tnx", exe.to_bytes()):
        with pytest.raises(tenon.UsageError, match="no ONNX values") as caught:
            testing.compare(program, inputs, with_=expected)
        assert caught.value.found == "an executable"
    with pytest.raises(tenon.UsageError, match="can't be read as an ONNX model"):
        testing.compare(b"no model", inputs, with_=expected)
    with pytest.raises(ValueError, match="no reference None"):
        testing.compare(model, inputs, with_=None)
    with pytest.raises(tenon.UsageError, match="input 'x' does not fit the model") as caught:
        testing.compare(model, {"x": np.zeros((3, 4))}, with_=expected)
    assert caught.value.found == "float64[3, 4]" and caught.value.expected == "float32[?, 4]"
    with pytest.raises(tenon.UsageError, match="does not fit"):
        testing.compare(model, {"x": np.zeros((3, 5), "float32")}, with_=expected)


def test_an_operator_that_onnxruntime_lacks_is_told():
    pytest.importorskip("onnxruntime")
    model = model_of([helper.make_node("Mine", ["x"], ["y"], domain="com.acme")], [("x", [2])], [("y", [2])])
    model.opset_import.append(helper.make_opsetid("com.acme", 1))
    with pytest.raises(tenon.UsageError, match="onnxruntime can't run the model") as caught:
        testing.compare(model)
    assert "Mine" in caught.value.found and "with_=" in caught.value.help


@pytest.mark.parametrize("share, equal", [(0.9e-4, True), (1.1e-4, False)])
def test_the_default_tolerance_is_a_share_of_the_greatest_magnitude(share, equal):
    model = model_of([helper.make_node("Neg", ["x"], ["y"])], [("x", [2])], [("y", [2])])
    expected = np.array([1000, 1000 * share], "float32")
    assert testing.compare(model, [np.array([-1000, 0], "float32")], with_={"y": expected}, rtol=0).equal == equal


@pytest.mark.parametrize("name, steps, equal", [("float16", 15, True), ("float16", 17, False), ("bfloat16", 15, True)])
def test_narrow_floats_may_differ_by_16_steps(name, steps, equal):
    dtype = np.dtype(getattr(pytest.importorskip("ml_dtypes"), name) if name == "bfloat16" else name)
    to = getattr(TensorProto, name.upper())
    model = model_of([helper.make_node("Cast", ["x"], ["y"], to=to)], [("x", [2])], [("y", [2])])
    model.graph.output[0].type.tensor_type.elem_type = to
    step = 2.0 ** (-10 if name == "float16" else -7)
    expected = np.array([1, steps * step], dtype)
    assert testing.compare(model, [np.array([1, 0], "float32")], with_={"y": expected}, rtol=0).equal == equal


@pytest.mark.parametrize("share, equal", [(0.4, True), (30, False)])
def test_quantized_values_may_be_rounded_to_the_neighbour(share, equal):
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "scale", "zero"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "scale", "zero"], ["y"]),
    ]
    scale = np.float32(0.02)
    model = model_of(nodes, [("x", [200])], [("y", [200])], [("scale", scale), ("zero", np.uint8(128))])
    x = np.random.default_rng(0).uniform(-1, 1, 200).astype("float32")
    q = np.rint((x + scale * np.float32(share)) / scale) + 128
    expected = {"q": q.astype("uint8"), "y": ((q - 128) * scale).astype("float32")}
    assert not np.array_equal(q, np.rint(x / scale) + 128)
    comparison = testing.compare(model, [x], with_=expected)
    assert comparison.equal == equal
    assert not testing.compare(model, [x], with_=expected, atol=1e-5).equal


def test_strings_and_strided_arrays_are_compared():
    model = model_of([helper.make_node("Transpose", ["x"], ["y"])], [("x", [2, 3])], [("y", [3, 2])])
    x = np.array([["a", "b", "c"], ["d", "e", "f"]], object)
    for value in (*model.graph.input, *model.graph.output):
        value.type.tensor_type.elem_type = TensorProto.STRING
    assert testing.compare(model, [x], with_={"y": x.T}).equal
    wrong = x.T.copy()
    wrong[2, 0] = "other"
    first = testing.compare(model, [x], with_={"y": wrong}).first
    assert (first.place, first.count) == ((2, 0), 1)
