"""ONNX's operators that draw random numbers, by their distributions and seeds."""

import math

import numpy as np
import pytest

import tenon

onnx = pytest.importorskip("onnx")
from onnx import TensorProto, helper  # noqa: E402

COUNT = 40000


def model_of(op, *inputs, results=("y",), opset=22, **attributes):
    """A model of one node. `inputs` are arrays, whose first size is symbolic."""
    names = [f"x{i}" for i in range(len(inputs))]
    infos = []
    for name, x in zip(names, inputs):
        dims = ["n", *x.shape[1:]] if x.ndim else []
        infos.append(helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(x.dtype), dims))
    outputs = [helper.make_empty_tensor_value_info(name) for name in results]
    graph = helper.make_graph([helper.make_node(op, names, results, **attributes)], "g", infos, outputs)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)
    return model, dict(zip(names, inputs))


def draw(op, *inputs, runs=1, **options):
    """The results of so many runs of one session."""
    model, inputs = model_of(op, *inputs, **options)
    session = tenon.InferenceSession(model)
    return [session.run(None, inputs) for _ in range(runs)]


def assert_distributed(x, cdf):
    """By Kolmogorov and Smirnov: a chance of 1e-6 to fail."""
    x = np.sort(x.astype("float64").ravel())
    places = np.arange(1, x.size + 1) / x.size
    assert np.abs(cdf(x) - places).max() < 2.7 / np.sqrt(x.size)


def normal_cdf(x):
    return (1 + np.vectorize(math.erf)(x / np.sqrt(2))) / 2


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_uniform(dtype):
    number = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    (y,) = draw("RandomUniform", shape=[COUNT // 4, 4], low=-2.0, high=6.0, dtype=number)[0]
    assert (y.shape, y.dtype) == ((COUNT // 4, 4), dtype)
    assert y.min() >= -2 and y.max() <= 6
    assert_distributed(y, lambda x: np.clip((x + 2) / 8, 0, 1))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_normal(dtype):
    number = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    (y,) = draw("RandomNormal", shape=[COUNT], mean=3.0, scale=0.5, dtype=number)[0]
    assert (y.shape, y.dtype) == ((COUNT,), dtype)
    assert_distributed(y, lambda x: normal_cdf((x - 3) / 0.5))
    assert abs(np.corrcoef(y[::2], y[1::2])[0, 1]) < 0.04


def test_like():
    x = np.zeros((COUNT, 1), "float64")
    for op in ("RandomUniformLike", "RandomNormalLike"):
        (y,) = draw(op, x)[0]
        assert (y.shape, y.dtype) == (x.shape, x.dtype)
        assert np.unique(y).size > COUNT - 10
    (y,) = draw("RandomNormalLike", np.zeros((3, 2), "int64"))[0]
    assert (y.shape, y.dtype) == ((3, 2), "float32")


def test_seeds():
    first, second = draw("RandomNormal", shape=[8], seed=3.0, runs=2)
    np.testing.assert_array_equal(first, second)
    (other,) = draw("RandomNormal", shape=[8], seed=4.0)
    assert not np.array_equal(first, other)
    first, second = draw("RandomNormal", shape=[8], runs=2)
    assert not np.array_equal(first, second)


def test_two_nodes_draw_apart():
    nodes = [helper.make_node("RandomUniform", [], [name], shape=[4]) for name in "ab"]
    outputs = [helper.make_empty_tensor_value_info(name) for name in "ab"]
    graph = helper.make_graph(nodes, "g", [], outputs)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)], ir_version=10)
    a, b = tenon.InferenceSession(model).run(None, {})
    assert not np.array_equal(a, b)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_bernoulli(dtype):
    p = np.tile(np.array([0, 0.25, 0.9, 1], dtype), (COUNT // 4, 1))
    (y,) = draw("Bernoulli", p, dtype=TensorProto.BOOL)[0]
    assert (y.shape, y.dtype) == (p.shape, "bool")
    np.testing.assert_allclose(y.mean(axis=0), p[0], atol=5 / np.sqrt(COUNT))
    assert y[:, 0].sum() == 0 and y[:, 3].all()
    (y,) = draw("Bernoulli", p)[0]
    assert y.dtype == dtype and set(np.unique(y)) == {0, 1}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_multinomial(dtype):
    with np.errstate(divide="ignore"):
        logits = np.log(np.array([[0, 0.2, 0, 0.5, 0.3, 0], [1, 0, 0, 0, 0, 1]], dtype)) + 5
    (y,) = draw("Multinomial", logits, sample_size=COUNT, dtype=TensorProto.INT64)[0]
    assert (y.shape, y.dtype) == ((2, COUNT), "int64")
    for row, p in zip(y, [[0, 0.2, 0, 0.5, 0.3, 0], [0.5, 0, 0, 0, 0, 0.5]]):
        found = np.bincount(row, minlength=6) / COUNT
        np.testing.assert_allclose(found, p, atol=5 / np.sqrt(COUNT))
        assert all(f == 0 for f, expected in zip(found, p) if expected == 0)


@pytest.mark.parametrize("training", [True, False])
def test_dropout(training):
    x = np.ones((COUNT // 4, 4), "float32")
    y, mask = draw(
        "Dropout", x, np.array(0.2, "float32"), np.array(training), results=("y", "mask"), opset=13
    )[0]
    if not training:
        np.testing.assert_array_equal(y, x)
        assert mask.all()
        return
    np.testing.assert_allclose(y, np.where(mask, x / 0.8, 0), rtol=1e-6)
    assert abs(mask.mean() - 0.8) < 5 / np.sqrt(COUNT)


def test_in_a_compiled_file(tmp_path):
    """Seeded numbers are the same at every level and in every mode."""
    model, _ = model_of("RandomNormal", shape=[5], seed=1.5)
    path = tmp_path / "m.onnx"
    onnx.save(model, path)
    expected = tenon.InferenceSession(path).run(None, {})[0]
    for level in range(3):
        vm = tenon.VirtualMachine(tenon.compile(path, level=level))
        np.testing.assert_allclose(np.asarray(vm["main"]()), expected, rtol=1e-6)
