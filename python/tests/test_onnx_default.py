"""Operators of ONNX's own domain of which ONNX publishes no cases, against ONNX Runtime or formulas."""

import numpy as np
import pytest

import tenon

onnx = pytest.importorskip("onnx")
from onnx import helper  # noqa: E402


def model_of(op, *inputs, opset=22, **attributes):
    """A model of one node. `inputs` are arrays, whose first size is symbolic."""
    names = [f"x{i}" for i in range(len(inputs))]
    infos = [
        helper.make_tensor_value_info(
            name, helper.np_dtype_to_tensor_dtype(x.dtype), [f"n{i}", *x.shape[1:]]
        )
        for i, (name, x) in enumerate(zip(names, inputs))
    ]
    graph = helper.make_graph(
        [helper.make_node(op, names, ["y"], **attributes)], "g", infos, [helper.make_empty_tensor_value_info("y")]
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)
    return model, dict(zip(names, inputs))


def ours(model, inputs):
    return tenon.InferenceSession(model).run(None, inputs)[0]


@pytest.mark.parametrize("pooled", [(1, 1), (2, 3), (7, 7)])
@pytest.mark.parametrize("scale", [1.0, 0.4])
def test_max_roi_pool(pooled, scale):
    onnxruntime = pytest.importorskip("onnxruntime")
    random = np.random.default_rng(7)
    x = random.normal(size=(2, 3, 9, 11)).astype("float32")
    corners = random.uniform(-3, 14, size=(20, 2, 2)).astype("float32")
    corners.sort(axis=1)
    image = random.integers(0, 2, size=(20, 1)).astype("float32")
    rois = np.concatenate([image, corners.reshape(20, 4)], axis=1)
    model, inputs = model_of("MaxRoiPool", x, rois, opset=17, pooled_shape=pooled, spatial_scale=scale)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    np.testing.assert_array_equal(ours(model, inputs), session.run(None, inputs)[0])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_statistics_of_layer_normalization_have_their_own_type(dtype):
    x = np.arange(6, dtype=dtype).reshape(2, 3)
    model, inputs = model_of("LayerNormalization", x, np.ones(3, dtype), opset=17)
    for name in ("mean", "inv_std_dev"):
        model.graph.node[0].output.append(name)
        model.graph.output.append(helper.make_empty_tensor_value_info(name))
    y, mean, inverse = tenon.InferenceSession(model).run(None, inputs)
    assert (y.dtype, mean.dtype, inverse.dtype) == (dtype, "float32", "float32")
    np.testing.assert_allclose(mean, [[1], [4]], rtol=1e-6)


@pytest.mark.parametrize("alpha", [1.0, 1.7])
def test_swiglu(alpha):
    random = np.random.default_rng(7)
    a, b = random.normal(size=(2, 4, 5)).astype("float32")
    model, inputs = model_of("SwiGLU", a, b, opset=28, alpha=alpha)
    np.testing.assert_allclose(ours(model, inputs), a / (1 + np.exp(-alpha * a)) * b, rtol=2e-6)
    model, inputs = model_of("SwiGLU", a, b[:1], opset=28)
    with pytest.raises(tenon.Error, match="size of A and B on axis 0"):
        ours(model, inputs)


@pytest.mark.parametrize("op", ["MaxPool", "AveragePool"])
@pytest.mark.parametrize("size", [(1, 1), (2, 1), (3, 2)])
def test_windows_that_are_larger_than_the_image_count_what_is_there(op, size):
    x = np.arange(2 * size[0] * size[1], dtype="float32").reshape(1, 2, *size)
    model, inputs = model_of(op, x, kernel_shape=[2, 2], strides=[2, 2], ceil_mode=1)
    for axis in (2, 3):  # sizes that only a call tells
        model.graph.input[0].type.tensor_type.shape.dim[axis].dim_param = f"n{axis}"
    reduced = np.max if op == "MaxPool" else np.mean
    rows, columns = ((n + 1) // 2 for n in size)
    expected = [
        [reduced(x[0, c, 2 * i : 2 * i + 2, 2 * j : 2 * j + 2]) for i in range(rows) for j in range(columns)]
        for c in range(2)
    ]
    np.testing.assert_allclose(ours(model, inputs), np.reshape(expected, (1, 2, rows, columns)))


# Each operand's size is its own; those beyond 128 operands are joined in groups.
@pytest.mark.parametrize("count", [60, 140])
@pytest.mark.parametrize("options", [{}, {"level": 0}])
def test_concat_of_many_sizes_that_only_a_call_tells(count, options):
    random = np.random.default_rng(3)
    parts = [random.normal(size=(random.integers(0, 4), 3)).astype("float32") for _ in range(count)]
    model, inputs = model_of("Concat", *parts, axis=0)
    program = tenon.compile(model, **options)
    np.testing.assert_array_equal(np.asarray(program(**inputs)), np.concatenate(parts))


@pytest.mark.parametrize("pads", [[1, 2, 1, -1], [0, -1, 0, -1], [-1, 1, 0, 0], [0, 0, 0, 0]])
@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "wrap"])
def test_pads_that_only_a_call_tells_may_be_negative(mode, pads):
    x = np.arange(12, dtype="float32").reshape(3, 4)
    model, inputs = model_of("Pad", x, np.array(pads), opset=19, mode=mode)
    before, after = pads[:2], pads[2:]
    rows, columns = (slice(max(-b, 0), n - max(-a, 0)) for b, a, n in zip(before, after, x.shape))
    added = [(max(b, 0), max(a, 0)) for b, a in zip(before, after)]
    np.testing.assert_array_equal(ours(model, inputs), np.pad(x[rows, columns], added, mode=mode))


def test_operands_whose_length_onnx_says_may_have_an_unknown_one():
    x = np.arange(12, dtype="float32").reshape(3, 4)
    for op, operand, expected in (
        ("TopK", [2], x[:, :1:-1]),
        ("Tile", [2, 1], np.tile(x, (2, 1))),
        ("CenterCropPad", [1, 2], x[1:2, 1:3]),
    ):
        model, inputs = model_of(op, x, np.array(operand))
        if op == "TopK":
            model.graph.node[0].output.append("indices")
        np.testing.assert_array_equal(ours(model, inputs), expected)
    model, inputs = model_of("Split", x, np.array([2, 1]), axis=0)
    model.graph.node[0].output.append("rest")
    np.testing.assert_array_equal(ours(model, inputs), x[:2])
    columns = np.ones((1, 4, 4), "float32")
    model, inputs = model_of("Col2Im", columns, np.array([3, 3]), np.array([2, 2]))
    model.graph.input[2].type.tensor_type.shape.dim[0].dim_value = 2
    np.testing.assert_array_equal(ours(model, inputs), [[[[1, 2, 1], [2, 4, 2], [1, 2, 1]]]])
    with pytest.raises(tenon.Error):
        tenon.InferenceSession(model_of("TopK", x, np.array([1]))[0]).run(None, {"x0": x, "x1": np.array([1, 2])})


def test_sum_of_many_operands_that_are_broadcast_against_each_other():
    sizes = [1, 3] * 20
    operands = [np.full(size, i, "float32") for i, size in enumerate(sizes)]
    model, inputs = model_of("Sum", *operands)
    np.testing.assert_array_equal(ours(model, inputs), np.full(3, sum(range(40)), "float32"))
