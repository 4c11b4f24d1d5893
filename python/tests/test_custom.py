"""Operators of models that functions in Python compute."""

import numpy as np
import pytest

import tenon

onnx = pytest.importorskip("onnx")
from onnx import TensorProto, helper  # noqa: E402

X = np.arange(6, dtype="float32").reshape(3, 2) - 2


def model_of(operator, inputs=("a",), outputs=("b",), **attributes):
    """y = neg(OPERATOR(relu(x))), in the domain test.acme"""
    nodes = [
        helper.make_node("Relu", ["x"], ["a"], name="/relu"),
        helper.make_node(operator, inputs, outputs, name="/custom", domain="test.acme", **attributes),
        helper.make_node("Neg", ["b"], ["y"], name="/neg"),
    ]
    value = lambda name: helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", 2])
    graph = helper.make_graph(nodes, "g", [value("x")], [helper.make_empty_tensor_value_info("y")])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("test.acme", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def test_attributes_are_keywords_with_defaults(tmp_path):
    @tenon.register_op("test.acme:Scale", "(tensor[n, m; f32]) -> tensor[n, m; f32]")
    def scale(x, *, factor=2.0, mode="up", exact=False, count=3):
        assert (mode, exact, count) == ("up", False, 3)
        return np.asarray(x) * np.float32(factor)

    exe = tenon.compile(model_of("Scale", factor=3.0))
    assert exe.signature().results[0].dims == ("n", 2)
    np.testing.assert_array_equal(exe(X), -3 * np.maximum(X, 0))
    np.testing.assert_array_equal(tenon.compile(model_of("Scale"))(X), -2 * np.maximum(X, 0))
    exe = tenon.compile(model_of("Scale", factor=3.0), keep_computes=True)
    exe.save(tmp_path / "m.tnx")
    np.testing.assert_array_equal(tenon.load(tmp_path / "m.tnx")(X), -3 * np.maximum(X, 0))
    with pytest.raises(tenon.UnsupportedError, match="test.acme:Scale"):
        tenon.load(tmp_path / "m.tnx", untrusted=True)


def test_attributes_may_be_positional_in_the_order_of_their_names():
    @tenon.register_op("test.acme:Affine", "(tensor[n, m; f32], f32, f32) -> tensor[n, m; f32]")
    def affine(x, offset, scale):
        return np.asarray(x) * np.float32(scale) + np.float32(offset)

    y = tenon.compile(model_of("Affine", scale=2.0, offset=1.0))(X)
    np.testing.assert_array_equal(y, -(2 * np.maximum(X, 0) + 1))


def test_lists_and_tensors_arrive_as_tensors():
    seen = {}

    @tenon.register_op("test.acme:Lists", "(tensor[n, m; f32]) -> tensor[n, m; f32]")
    def lists(x, *, axes, rates, table):
        seen.update(axes=axes.tolist(), rates=rates.tolist(), table=table.tolist())
        return x

    table = onnx.numpy_helper.from_array(np.array([[1, 2]], "int32"))
    tenon.compile(model_of("Lists", axes=[0, -1], rates=[0.5, 2.0], table=table))(X)
    assert seen == {"axes": [0, -1], "rates": [0.5, 2.0], "table": [[1, 2]]}


def test_several_inputs_and_outputs():
    @tenon.register_op("test.acme:MinMax", "(tensor[n, m; f32], tensor[n, m; f32]) -> (tensor[n, m; f32], tensor[n; f32])")
    def minmax(a, x):
        return np.minimum(a, x), np.maximum(a, x).max(axis=1)

    y = tenon.compile(model_of("MinMax", inputs=["a", "x"], outputs=["b", "unused"]))(X)
    np.testing.assert_array_equal(y, -np.minimum(np.maximum(X, 0), X))


def test_sizes_may_be_known_only_after_the_call():
    @tenon.register_op("test.acme:Positive", "(tensor[n, m; f32]) -> tensor[k, m; f32]")
    def positive(x):
        return np.asarray(x)[np.asarray(x).sum(axis=1) > 0]

    np.testing.assert_array_equal(tenon.compile(model_of("Positive"))(X), -X[1:])


def test_a_function_may_state_the_types():
    def signature(types, attributes):
        assert str(types[0]) == "tensor[n, 2; f32]"
        return f"(tensor[n, m; f32]) -> tensor[{attributes['times']} * n, m; f32]"

    @tenon.register_op("test.acme:Repeat", signature)
    def repeat(x, *, times):
        return np.tile(x, (times, 1))

    exe = tenon.compile(model_of("Repeat", times=2))
    assert exe(X).shape == (6, 2)
    assert exe.signature().results[0].type == "tensor[2*n, 2; f32]"

    @tenon.register_op("test.acme:Same", lambda types, attributes: types[0])
    def same(x, *, unused=1):
        return x

    np.testing.assert_array_equal(tenon.compile(model_of("Same"))(X), -np.maximum(X, 0))


@pytest.mark.parametrize(
    "wrong",
    [
        lambda x: np.asarray(x, dtype="float64"),
        lambda x: np.zeros((3, 3), "float32"),
        lambda x: np.zeros(3, "float32"),
        lambda x: "text",
        lambda x: None,
    ],
)
def test_a_wrong_result_is_caught_when_it_returns(wrong):
    tenon.register_op("test.acme:Wrong", "(tensor[n, m; f32]) -> tensor[n, m; f32]", wrong, override=True)
    with pytest.raises(tenon.Error, match="at main at /custom"):
        tenon.compile(model_of("Wrong"))(X)


def test_an_exception_comes_out_as_itself():
    @tenon.register_op("test.acme:Raise", "(tensor[n, m; f32]) -> tensor[n, m; f32]")
    def fail(x):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        tenon.compile(model_of("Raise"))(X)


def test_ordered_calls_are_neither_joined_nor_dropped():
    calls = []
    for name, effect in (("Once", "pure"), ("Twice", "ordered")):
        tenon.register_op(
            f"test.acme:{name}",
            "(tensor[n, m; f32]) -> tensor[n, m; f32]",
            lambda x: calls.append(1) or np.asarray(x),
            effect=effect,
        )
        model = model_of(name)
        model.graph.node.insert(1, helper.make_node(name, ["a"], ["unused"], name="/twin", domain="test.acme"))
        tenon.compile(model)(X)
        assert len(calls) == (1 if effect == "pure" else 2)
        calls.clear()


def test_what_is_wrong_with_a_binding_is_told():
    with pytest.raises(ValueError, match="an operator's name has its domain: 'com.acme:Scale', not 'Scale'"):
        tenon.register_op("Scale", "() -> tensor[f32]", lambda: None)
    with pytest.raises(TypeError, match="the default of 'axes' can't be an attribute's"):
        tenon.register_op("test.acme:Bad", "() -> tensor[f32]", lambda *, axes=(1, 2): None)
    with pytest.raises(tenon.UnsupportedError, match="docs/custom-operators.md"):
        tenon.compile(model_of("Unbound"))
    tenon.register_op("test.acme:One", "(tensor[n, m; f32]) -> tensor[n, m; f32]", lambda x: x)
    with pytest.raises(tenon.UsageError, match="the node does not fit the signature of test.acme:One"):
        tenon.compile(model_of("One", inputs=["a", "x"]))
    with pytest.raises(tenon.UsageError, match="this is not a signature"):
        tenon.register_op("test.acme:Text", "(tensor", lambda x: x)
        tenon.compile(model_of("Text"))
    with pytest.raises(ValueError, match="libtenon_NAME.so"):
        tenon.compile(model_of("One"), custom=["acme.so"])


def test_attributes_are_stated_in_one_place():
    stated = "(tensor[n; f32]; factor = 1.0) -> tensor[n; f32]"

    def scale(x, *, factor=2.0):
        raise AssertionError

    with pytest.raises(TypeError, match=r"lists attributes \(factor = 1.0\), and so does the function .*\(factor\)"):
        tenon.register_op("test.custom:Clash", stated, scale)
    tenon.register_op("test.custom:Ordered", stated, lambda x, factor: x, effect="ordered")  # by position
    signature = tenon.get_func("test.custom:Ordered.signature")([], {})
    assert signature == '(tensor[n; f32]; factor = 1.0, effect = "ordered") -> tensor[n; f32]'
