"""Operators of com.microsoft, with symbolic sizes of batch and sequence, against ONNX Runtime's results.

Without ONNX Runtime, those that are compared with NumPy remain.
"""

import collections

import numpy as np
import pytest

import tenon

onnx = pytest.importorskip("onnx")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402


@pytest.fixture
def random():
    return np.random.default_rng(7)


def floats(random, *shape, dtype="float32"):
    return random.normal(size=shape).astype(dtype)


def integers(random, dtype, *shape):
    return random.integers(np.iinfo(dtype).min, np.iinfo(dtype).max, shape, endpoint=True).astype(dtype)


def value_info(name, array):
    """With symbolic sizes where batch and sequence may be: all axes of integers, two of floats."""
    dims = list(array.shape)
    symbolic = {0: [], 1: [], 2: [0], 5: [1]}.get(array.ndim, [0, array.ndim - 2])
    for axis in range(array.ndim) if array.dtype.kind == "i" else symbolic:
        dims[axis] = f"{name}_{axis}"
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), dims)


def model_of(op, operands, results, constants, domain, attributes):
    """A model of one node. An operand is an array or None; those at `constants` are initializers, others inputs."""
    names = ["" if x is None else f"x{i}" for i, x in enumerate(operands)]
    given = [(name, x, i in constants) for i, (name, x) in enumerate(zip(names, operands)) if name]
    node = helper.make_node(op, names, results, domain=domain, **attributes)
    outputs = [helper.make_empty_tensor_value_info(name) for name in results if name]
    if outputs[-1].name == "qk":  # whose type ONNX Runtime doesn't infer
        outputs[-1] = helper.make_tensor_value_info("qk", TensorProto.FLOAT, None)
    graph = helper.make_graph(
        [node],
        "g",
        [value_info(name, x) for name, x, constant in given if not constant],
        outputs,
        [numpy_helper.from_array(x, name) for name, x, constant in given if constant],
    )
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
    return model, {name: x for name, x, constant in given if not constant}


def ours(op, *operands, results=("y",), constants=(), domain="com.microsoft", **attributes):
    """The results of Tenon, as NumPy's arrays."""
    model, inputs = model_of(op, operands, results, constants, domain, attributes)
    return tenon.InferenceSession(model).run(None, inputs)


def theirs(op, *operands, results=("y",), constants=(), domain="com.microsoft", **attributes):
    """The results of ONNX Runtime."""
    model, inputs = model_of(op, operands, results, constants, domain, attributes)
    return session(model).run(None, inputs)


def session(model, path=None, level="ALL"):
    """ONNX Runtime's session, which writes the optimised model to `path`."""
    onnxruntime = pytest.importorskip("onnxruntime")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, f"ORT_ENABLE_{level}")
    if path:
        options.optimized_model_filepath = str(path)
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def assert_close(found, expected, tolerance):
    assert len(found) == len(expected)
    for x, y in zip(found, expected):
        x, y = np.asarray(x), np.asarray(y)
        assert (x.shape, x.dtype) == (y.shape, y.dtype)
        if x.dtype.kind in "fV":  # V: bfloat16
            np.testing.assert_allclose(x.astype("float64"), y.astype("float64"), rtol=tolerance, atol=tolerance)
        else:
            assert np.abs(x.astype("int64") - y.astype("int64")).max(initial=0) <= tolerance


def check(op, *operands, tolerance=2e-5, **rest):
    assert_close(ours(op, *operands, **rest), theirs(op, *operands, **rest), tolerance)


def f16(*arrays):
    return [x.astype("float16") if x is not None and x.dtype == "float32" else x for x in arrays]


# ---- normalisations ----


@pytest.mark.parametrize("dtype, tolerance", [("float32", 2e-5), ("float16", 4e-3)])
@pytest.mark.parametrize("skip", [(2, 3, 8), (1, 3, 8), (3, 8)])
def test_skip_layer_normalization(random, skip, dtype, tolerance):
    operands = [floats(random, *shape, dtype=dtype) for shape in [(2, 3, 8), skip, (8,), (8,), (8,)]]
    check("SkipLayerNormalization", *operands, results=["y", "", "", "sum"], epsilon=1e-3, tolerance=tolerance)
    check("SkipLayerNormalization", *operands[:3], results=["y"], tolerance=tolerance)
    check("SkipLayerNormalization", *operands[:3], None, operands[4], tolerance=tolerance)


def test_skip_layer_normalization_returns_statistics(random):
    operands = [floats(random, *shape) for shape in [(2, 3, 8), (2, 3, 8), (8,), (8,), (8,)]]
    check("SkipLayerNormalization", *operands, results=["y", "mean", "inverse", "sum"])
    (y, mean, inverse, total) = ours("SkipLayerNormalization", *f16(*operands), results=["y", "m", "i", "s"])
    assert [x.dtype for x in (y, mean, inverse, total)] == ["float16", "float32", "float32", "float16"]


@pytest.mark.parametrize("dtype, tolerance", [("float32", 2e-5), ("float16", 4e-3)])
@pytest.mark.parametrize("shape", [(2, 3, 8), (5, 8)])
def test_skip_simplified_layer_normalization(random, shape, dtype, tolerance):
    operands = [floats(random, *s, dtype=dtype) for s in [shape, shape, (8,), (8,)]]
    op = "SkipSimplifiedLayerNormalization"
    check(op, *operands, results=["y", "", "", "sum"], epsilon=1e-3, tolerance=tolerance)
    check(op, *operands[:3], tolerance=tolerance)


def test_simplified_layer_normalization_returns_the_inverse_root(random):
    x, scale, skip = floats(random, 2, 3, 8), floats(random, 8), floats(random, 2, 3, 8)
    check("SimplifiedLayerNormalization", x, scale, results=["y", "inverse"], domain="", epsilon=1e-3)
    y, inverse = ours("SkipSimplifiedLayerNormalization", x, skip, scale, results=["y", "", "inverse"])
    np.testing.assert_allclose(y, (x + skip) * inverse * scale, rtol=1e-5, atol=1e-5)


def embedding(random, batch, steps):
    ids = random.integers(0, 11, (batch, steps), dtype="int32")
    segments = random.integers(0, 2, (batch, steps), dtype="int32")
    tables = [floats(random, rows, 8) for rows in (11, 16, 2)]
    mask = random.integers(0, 2, (batch, steps), dtype="int32")
    return ids, segments, tables, [floats(random, 8), floats(random, 8)], mask


@pytest.mark.parametrize("batch, steps", [(1, 5), (3, 16)])
def test_embed_layer_normalization(random, batch, steps):
    ids, segments, (words, positions, segment_table), scale, mask = embedding(random, batch, steps)
    rest = {"constants": (2, 3, 4, 5, 6), "results": ["y", "kept", "sum"], "epsilon": 1e-5}
    op = "EmbedLayerNormalization"
    check(op, ids, segments, words, positions, segment_table, *scale, mask, **rest)
    check(op, ids, segments, words, positions, segment_table, *scale, **rest)
    check(op, ids, None, words, positions, None, *scale, mask, **rest)
    for given in (random.integers(0, 16, (batch, steps), dtype="int32"), np.arange(steps, dtype="int32")[None]):
        check(op, ids, segments, words, positions, segment_table, *scale, mask, given, **rest)


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
def test_quantized_embed_layer_normalization(random, dtype):
    ids, segments, tables, _, mask = embedding(random, 3, 5)
    eight_bit = [integers(random, dtype, *shape) for shape in (*(table.shape for table in tables), (8,), (8,))]
    scales = [np.array(random.uniform(0.01, 0.1), "float32") for _ in range(5)]
    zeros = [np.array(random.integers(0, 9), dtype) for _ in range(5)]
    rest = {"constants": (2, 3, 4, 5, 6), "results": ["y", "kept"], "epsilon": 1e-5, "tolerance": 2e-4}
    check("QEmbedLayerNormalization", ids, segments, *eight_bit, mask, *scales, *zeros, **rest)
    for group in (eight_bit, scales, zeros):
        group[2] = None
    check("QEmbedLayerNormalization", ids, None, *eight_bit, None, *scales, *zeros, **rest)


def grouped(x, gamma, beta, groups, epsilon):
    """Group normalisation of [N, H, W, C]."""
    rows = x.reshape(len(x), -1, groups, x.shape[-1] // groups)
    mean, variance = rows.mean((1, 3), keepdims=True), rows.var((1, 3), keepdims=True)
    return ((rows - mean) / np.sqrt(variance + epsilon)).reshape(x.shape) * gamma + beta


@pytest.mark.parametrize("activation", [0, 1])
@pytest.mark.parametrize("last", [0, 1])
def test_group_norm(random, last, activation):
    """Not in ONNX Runtime's library for CPUs."""
    x, gamma, beta, bias = floats(random, 2, 3, 4, 8), floats(random, 8), floats(random, 8), floats(random, 8)
    silu = lambda y: y / (1 + np.exp(-y)) if activation else y
    order = lambda y: y if last or y.ndim != 4 else np.ascontiguousarray(y.transpose(0, 3, 1, 2))
    rest = {"groups": 4, "activation": activation, "channels_last": last, "epsilon": 1e-3}
    normal = lambda y: order(silu(grouped(y, gamma, beta, 4, 1e-3)))
    assert_close(ours("GroupNorm", order(x), gamma, beta, **rest), [normal(x)], 1e-5)
    for skip in (floats(random, 2, 3, 4, 8), floats(random, 2, 8)):
        total = x + (skip if skip.ndim == 4 else skip[:, None, None]) + bias
        found = ours("SkipGroupNorm", order(x), gamma, beta, order(skip), bias, results=["y", "sum"], **rest)
        assert_close(found, [normal(total), order(total)], 1e-5)


# ---- fused operators ----


@pytest.mark.parametrize("trans_a, trans_b", [(0, 0), (1, 0), (0, 1), (1, 1)])
def test_fused_matmul(random, trans_a, trans_b):
    a = floats(random, *((2, 5, 4) if trans_a else (2, 4, 5)))
    b = floats(random, *((2, 6, 5) if trans_b else (2, 5, 6)))
    rest = {"transA": trans_a, "transB": trans_b, "alpha": 0.5}
    check("FusedMatMul", a, b, **rest)
    check("FusedMatMul", a[0], b[0], **rest)
    check("TransposeMatMul", a, b, **rest)


@pytest.mark.parametrize("trans_a, trans_b", [(0, 0), (1, 0), (0, 1), (1, 1)])
def test_fused_matmul_with_rows_before_the_batch(random, trans_a, trans_b):
    a = floats(random, *((5, 2, 3, 4) if trans_a else (4, 2, 3, 5)))  # [rows, batch..., columns]
    b = floats(random, *((6, 2, 3, 5) if trans_b else (5, 2, 3, 6)))
    rest = {"transA": trans_a, "transB": trans_b, "alpha": 2.0}
    plain = floats(random, 2, 3, 6, 5) if trans_b else floats(random, 2, 3, 5, 6)
    check("FusedMatMul", a, b, transBatchA=1, transBatchB=1, **rest)
    check("FusedMatMul", a, plain, transBatchA=1, **rest)


CONV_ACTIVATIONS = [("Relu", []), ("Sigmoid", []), ("Tanh", []), ("LeakyRelu", [0.3]), ("Clip", [-0.5, 0.25])]
CONV_ACTIVATIONS += [("HardSigmoid", [0.3, 0.4])]


@pytest.mark.parametrize("activation, numbers", CONV_ACTIVATIONS)
def test_fused_conv(random, activation, numbers):
    x, w, b = floats(random, 2, 4, 6, 6), floats(random, 8, 2, 3, 3), floats(random, 8)
    rest = {"activation": activation, "group": 2, "pads": [1, 1, 1, 1], "constants": (1, 2)}
    if numbers:
        rest["activation_params"] = numbers
    check("FusedConv", x, w, b, **rest)
    check("FusedConv", x, w, b, floats(random, 2, 8, 6, 6), **rest)
    check("FusedConv", x, w, strides=[2, 2], **{**rest, "constants": (1,)})


GEMM_ACTIVATIONS = [("Relu", {}), ("Sigmoid", {}), ("Tanh", {}), ("Softplus", {}), ("Softsign", {})]
GEMM_ACTIVATIONS += [("LeakyRelu", {"alpha": 0.3}), ("Elu", {"alpha": 0.5}), ("ThresholdedRelu", {"alpha": 0.2})]
GEMM_ACTIVATIONS += [("HardSigmoid", {"alpha": 0.3, "beta": 0.4})]


@pytest.mark.parametrize("activation, numbers", GEMM_ACTIVATIONS)
def test_fused_gemm(random, activation, numbers):
    a, b, c = floats(random, 4, 5), floats(random, 6, 5), floats(random, 6)
    rest = {f"activation_{name}": value for name, value in numbers.items()}
    check("FusedGemm", a, b, c, transB=1, alpha=0.5, beta=2.0, activation=activation, **rest)
    check("FusedGemm", np.ascontiguousarray(a.T), b, transA=1, transB=1, activation=activation, **rest)


def nhwc(x):
    return np.ascontiguousarray(np.moveaxis(x, 1, -1))


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_channels_last_convolutions(random, rank):
    """Not in ONNX Runtime's library for CPUs: its Conv, with axes moved."""
    x, w, b = floats(random, 2, 4, *[6] * rank), floats(random, 8, 2, *[3] * rank), floats(random, 8)
    rest = {"group": 2, "pads": [1] * 2 * rank, "strides": [2] * rank, "constants": (1, 2)}
    (y,) = theirs("Conv", x, w, b, domain="", **rest)
    assert_close(ours("NhwcConv", nhwc(x), w, b, **rest), [nhwc(y)], 2e-5)
    z = floats(random, *y.shape)
    found = ours("NhwcFusedConv", nhwc(x), w, b, nhwc(z), activation="Relu", **rest)
    assert_close(found, [nhwc(np.maximum(y + z, 0))], 2e-5)


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_channels_last_max_pool(random, dtype):
    x = integers(random, dtype, 2, 7, 6, 3)
    check("NhwcMaxPool", x, kernel_shape=[3, 2], strides=[2, 2], pads=[1, 0, 1, 0], tolerance=0)
    check("NhwcMaxPool", x, kernel_shape=[2, 2], auto_pad="SAME_UPPER", tolerance=0)


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def test_bias_softmax(random):
    """Not in ONNX Runtime's library for CPUs."""
    x, inner, outer = floats(random, 2, 3, 4, 5), floats(random, 2, 1, 1, 5), floats(random, 4, 5)
    assert_close(ours("BiasSoftmax", x, inner, axis=3, is_inner_broadcast=1), [softmax(x + inner)], 1e-6)
    expected = softmax((x + outer).reshape(2, 3, 20)).reshape(x.shape)
    assert_close(ours("BiasSoftmax", x, outer, axis=2, is_inner_broadcast=0), [expected], 1e-6)


def test_sums_with_a_bias(random):
    """Not in ONNX Runtime's library for CPUs."""
    x, bias, skip = floats(random, 2, 3, 8), floats(random, 8), floats(random, 2, 3, 8)
    assert_close(ours("BiasAdd", x, bias, skip), [x + bias + skip], 1e-6)
    left, right = np.split(x + bias, 2, axis=-1)
    (gelu,) = theirs("Gelu", right)
    assert_close(ours("BiasSplitGelu", x, bias), [left * gelu], 1e-5)
    w = floats(random, 8, 4)
    assert_close(ours("GemmFastGelu", x, w, bias[:4]), theirs("FastGelu", x @ w, bias[:4]), 1e-5)
    assert_close(ours("GemmFastGelu", x, w), theirs("FastGelu", x @ w), 1e-5)


GELUS = [("Gelu", 1), ("BiasGelu", 2), ("FastGelu", 1), ("FastGelu", 2), ("QuickGelu", 1)]


@pytest.mark.parametrize("op, operands", GELUS)
def test_gelu(random, op, operands):
    check(op, *[floats(random, 2, 3, 8), floats(random, 8)][:operands])


def test_quick_gelu_takes_alpha(random):
    check("QuickGelu", floats(random, 2, 3), alpha=0.7)


# ---- attention ----


def attended(q, k, v, allowed):
    """Attention of [batch, heads, rows, size], where k and v may have fewer heads: [batch, rows, heads * size]."""
    k, v = (np.repeat(x, q.shape[1] // x.shape[1], axis=1) for x in (k, v))
    scores = q @ k.swapaxes(2, 3) / np.sqrt(np.float32(q.shape[3]))
    y = softmax(np.where(allowed, scores, -np.inf)) @ v
    return y.transpose(0, 2, 1, 3).reshape(len(y), y.shape[2], -1).astype("float32")


def test_multi_head_attention_by_its_formula(random):
    q, k, v, b = (floats(random, *s) for s in [(2, 4, 16), (2, 4, 16), (2, 4, 16), (48,)])
    mask = np.array([[1, 1, 1, 1], [1, 1, 1, 0]], "int32")
    allowed = np.tril(mask[:, None, None].astype(bool) | np.zeros((2, 1, 4, 4), bool))
    expected = attended(*(by_heads(x + y, 2) for x, y in zip((q, k, v), np.split(b, 3))), allowed)
    found = ours("MultiHeadAttention", q, k, v, b, mask, num_heads=2, unidirectional=1, mask_filter_value=-1e30)
    assert_close(found, [expected], 2e-5)


def masks_of_attention(batch, steps, keys):
    """By what they are."""
    ends = np.minimum(np.arange(batch, dtype="int32") + 1, keys)
    starts = np.arange(batch, dtype="int32") % 2
    by_key = (np.arange(keys) >= starts[:, None]).astype("int32")
    by_query = (np.arange(batch * steps * keys).reshape(batch, steps, keys) % 3 != 1).astype("int32")
    packed = np.concatenate([ends, np.arange(2 * batch + 2, dtype="int32")])
    return {
        "none": None,
        "ends": ends,
        "ends and starts": np.concatenate([np.full(batch, keys, "int32"), starts]),
        "packed": packed,
        "by key": by_key,
        "dummy": np.zeros((batch, 1), "int32"),
        "by query": by_query,
    }


MASKS = list(masks_of_attention(1, 1, 1))


@pytest.mark.parametrize("unidirectional", [0, 1])
@pytest.mark.parametrize("mask", MASKS)
def test_attention(random, mask, unidirectional):
    x, w, b = floats(random, 2, 4, 10), floats(random, 10, 48) / 3, floats(random, 48)
    past, extra = floats(random, 2, 2, 2, 3, 8), floats(random, 1, 2, 4, 4)
    rest = {"num_heads": 2, "unidirectional": unidirectional, "results": ["y", "present"]}
    rest["constants"] = (1, 2, 3) if mask == "dummy" else (1, 2)
    given = masks_of_attention(2, 4, 4)[mask]
    check("Attention", x, w, b, given, **rest)
    check("Attention", x, w, b, given, None, extra, scale=0.7, **rest)
    check("Attention", x, w, b, masks_of_attention(2, 4, 7)[mask], past, mask_filter_value=-100.0, **rest)


def test_attention_with_values_of_another_size(random):
    x, w, b = floats(random, 2, 4, 10), floats(random, 10, 40), floats(random, 40)
    rest = {"num_heads": 2, "qkv_hidden_sizes": [16, 16, 8]}
    check("Attention", x, w, b, **rest)
    assert_close(ours("Attention", x, w, **rest), theirs("Attention", x, w, b * 0, **rest), 2e-5)


def test_attention_with_a_mask_of_all_positions(random):
    """Not in ONNX Runtime's library for CPUs: the same mask by query."""
    x, w, b, past = floats(random, 2, 4, 10), floats(random, 10, 48), floats(random, 48), floats(random, 2, 2, 2, 3, 8)
    mask = random.integers(0, 2, (2, 1, 9, 9), dtype="int32")
    rest = {"num_heads": 2, "results": ["y", "present"]}
    expected = theirs("Attention", x, w, b, np.ascontiguousarray(mask[:, 0, 3:7, :7]), past, **rest)
    assert_close(ours("Attention", x, w, b, mask, past, **rest), expected, 2e-5)


def test_attention_in_a_shared_cache(random):
    """Not in ONNX Runtime's library for CPUs: the same with the cache's rows in use only."""
    x, w, b, past = floats(random, 2, 4, 10), floats(random, 10, 48), floats(random, 48), floats(random, 2, 2, 2, 9, 8)
    rest = {"num_heads": 2, "unidirectional": 1, "results": ["y", "present"]}
    used = np.array([3], "int32")
    y, present = ours("Attention", x, w, b, None, past, None, used, past_present_share_buffer=1, **rest)
    expected = theirs("Attention", x, w, b, None, np.ascontiguousarray(past[..., :3, :]), **rest)
    assert_close([y, np.ascontiguousarray(present[..., :7, :])], expected, 2e-5)
    assert_close([present[..., 7:, :]], [past[..., 7:, :]], 0)


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
@pytest.mark.parametrize("columns", [(), (48,)])
@pytest.mark.parametrize("mask", ["none", "ends", "by key"])
def test_quantized_attention(random, mask, columns, dtype):
    x, w, b = integers(random, "uint8", 2, 4, 10), integers(random, dtype, 10, 48), floats(random, 48)
    scales = np.array(0.01, "float32"), np.asarray(random.uniform(0.001, 0.01, columns), "float32")
    zeros = np.array(100, "uint8"), np.asarray(random.integers(0, 9, columns), dtype)
    past, rest = floats(random, 2, 2, 2, 3, 8), {"num_heads": 2, "results": ["y", "present"], "unidirectional": 1}
    given = masks_of_attention(2, 4, 7)[mask]
    check("QAttention", x, w, b, *scales, given, *zeros, past, **rest)
    check("QAttention", x, w, b, *scales, **rest)


def by_heads(x, heads):
    return np.ascontiguousarray(x.reshape(*x.shape[:2], heads, -1).transpose(0, 2, 1, 3))


@pytest.mark.parametrize("unidirectional", [0, 1])
@pytest.mark.parametrize("mask", [m for m in MASKS if m not in ("ends and starts", "dummy")])
def test_multi_head_attention(random, mask, unidirectional):
    q, k, v, b = (floats(random, *s) for s in [(2, 4, 16), (2, 4, 16), (2, 4, 16), (48,)])
    past, extra = [floats(random, 2, 2, 3, 8), floats(random, 2, 2, 3, 8)], floats(random, 1, 2, 4, 7)
    rest = {"num_heads": 2, "unidirectional": unidirectional, "results": ["y", "present_key", "present_value", "qk"]}
    check("MultiHeadAttention", q, k, v, b, masks_of_attention(2, 4, 4)[mask], **rest)
    given = masks_of_attention(2, 4, 7)[mask]
    check("MultiHeadAttention", q, k, v, None, given, None, *past, scale=0.3, mask_filter_value=-50.0, **rest)
    check("MultiHeadAttention", q, k, v, b, given, extra, *past, **rest)


@pytest.mark.parametrize("keys", [1, 6])
def test_multi_head_attention_to_another_sequence(random, keys):
    q, k, v, b = (floats(random, *s) for s in [(2, 4, 16), (2, keys, 16), (2, keys, 16), (56,)])
    mask, wide = masks_of_attention(2, 4, keys)["by key"], floats(random, 2, keys, 24)
    check("MultiHeadAttention", q, k, wide, b, mask, num_heads=2)
    check("MultiHeadAttention", q, k, wide, num_heads=2)
    results = ["y", "present_key", "present_value"]
    check("MultiHeadAttention", q, by_heads(k, 2), by_heads(v, 2), None, mask, num_heads=2, results=results)
    check("MultiHeadAttention", q, by_heads(k, 2), by_heads(v, 2), b[:48].copy(), num_heads=2)


def test_multi_head_attention_with_packed_operands(random):
    """Not in ONNX Runtime's library for CPUs: the same unpacked."""
    q, k, v, b = (floats(random, *s) for s in [(2, 4, 16), (2, 4, 16), (2, 4, 16), (48,)])
    each = [x.reshape(2, 4, 2, 8) for x in (q, k, v)]
    expected = theirs("MultiHeadAttention", q, k, v, b, num_heads=2)
    assert_close(ours("MultiHeadAttention", np.stack(each, 3), None, None, b, num_heads=2), expected, 2e-5)
    expected = theirs("MultiHeadAttention", q, k, v, num_heads=2)
    assert_close(ours("MultiHeadAttention", q, np.stack(each[1:], 3), num_heads=2), expected, 2e-5)


def test_multi_head_attention_in_a_shared_cache(random):
    q, k, v = (floats(random, 2, 1, 16) for _ in range(3))
    past = [floats(random, 2, 2, 9, 8), floats(random, 2, 2, 9, 8)]
    rest = {"num_heads": 2, "results": ["y", "present_key", "present_value"]}
    found = ours("MultiHeadAttention", q, k, v, None, None, None, *past, np.array([3], "int32"), **rest)
    used = [np.ascontiguousarray(x[:, :, :3]) for x in past]
    expected = theirs("MultiHeadAttention", q, k, v, None, None, None, *used, **rest)
    assert_close([found[0], *(x[:, :, :4] for x in found[1:])], expected, 2e-5)
    assert_close([x[:, :, 4:] for x in found[1:]], [x[:, :, 4:] for x in past], 0)


@pytest.mark.parametrize("dtype, tolerance", [("float16", 4e-3), ("bfloat16", 4e-2)])
def test_narrow_floats(random, dtype, tolerance):
    """ONNX Runtime's library for CPUs has these operators in float32, some in float16."""
    narrow = np.dtype(getattr(pytest.importorskip("ml_dtypes"), dtype, dtype))

    def compare(op, *operands, **rest):
        given = [x.astype(narrow) if x is not None and x.dtype == "float32" else x for x in operands]
        wide = [x.astype("float32") if x is not None and x.dtype == narrow else x for x in given]
        expected = [x.astype(narrow) for x in theirs(op, *wide, **rest)]
        assert_close(ours(op, *given, **rest), expected, tolerance)

    q, k, v, b = (floats(random, *s) for s in [(2, 4, 16), (2, 4, 16), (2, 4, 16), (48,)])
    compare("MultiHeadAttention", q, k, v, b, num_heads=2)
    compare("Attention", q, floats(random, 16, 48) / 4, b, num_heads=2)
    compare("RotaryEmbedding", q, np.array([1]), floats(random, 9, 4), floats(random, 9, 4))
    compare("SkipLayerNormalization", q, k, b[:16], b[16:32], results=["y", "", "", "sum"])
    compare("FusedGemm", q[0], floats(random, 16, 4), activation="Tanh")
    packed, scales, zeros, _ = blocked(random, 6, 16, 16, 4)
    compare("MatMulNBits", q, packed, scales, zeros, K=16, N=6, bits=4, block_size=16, constants=(1, 2, 3))
    prompt = [floats(random, 2, 4, 32), q, v, None, None, np.array([3, 3], "int32"), np.array([4], "int32")]
    compare("GroupQueryAttention", *prompt, num_heads=4, kv_num_heads=2, results=RESULTS)


# ---- decoders ----


@pytest.mark.parametrize("dtype, tolerance", [("float32", 2e-5), ("float16", 4e-3)])
@pytest.mark.parametrize("interleaved", [0, 1])
@pytest.mark.parametrize("positions", [np.array([3]), np.array([[0, 1, 2], [7, 5, 6]])])
def test_rotary_embedding(random, positions, interleaved, dtype, tolerance):
    x, tables = floats(random, 2, 3, 32, dtype=dtype), [floats(random, 20, 8, dtype=dtype) for _ in range(2)]
    rest = {"interleaved": interleaved, "tolerance": tolerance}
    check("RotaryEmbedding", x, positions, *tables, **rest)
    check("RotaryEmbedding", by_heads(x, 2), positions, *tables, **rest)
    partial = [np.ascontiguousarray(table[:, :4]) for table in tables]
    check("RotaryEmbedding", x, positions, *partial, num_heads=2, rotary_embedding_dim=8, **rest)


HEADS, GROUPS, SIZE = 4, 2, 32
SIZES = {"query": HEADS, "key": GROUPS, "value": GROUPS}
RESULTS = ["y", "present_key", "present_value"]


def group_query(check=check, results=RESULTS, **rest):
    """`check` of GroupQueryAttention, by the names of its operands."""
    names = ["query", "key", "value", "past_key", "past_value", "seqlens_k", "total", "cos", "sin", "positions"]
    names += ["attention_bias", "head_sink", "k_scale", "v_scale", "q_norm", "k_norm", "query_seqlens"]
    operands = [rest.pop(name, None) for name in names]
    while operands[-1] is None:
        operands.pop()
    return check("GroupQueryAttention", *operands, num_heads=HEADS, kv_num_heads=GROUPS, results=results, **rest)


def tokens(random, batch, steps, dtype="float32"):
    return {name: floats(random, batch, steps, heads * SIZE, dtype=dtype) for name, heads in SIZES.items()}


def cache(random, batch, rows, dtype="float32"):
    return {name: floats(random, batch, GROUPS, rows, SIZE, dtype=dtype) for name in ("past_key", "past_value")}


def lengths(*each, total=None):
    return {"seqlens_k": np.array(each, "int32") - 1, "total": np.array([total or max(each)], "int32")}


def tables(random, rows=32, columns=SIZE // 2):
    return {name: floats(random, rows, columns) for name in ("cos", "sin")}


@pytest.mark.parametrize("rows", [5, 9])
def test_group_query_attention_by_its_formula(random, rows):
    """A step after 5 and 3 tokens, in a window of 4."""
    given, past = tokens(random, 2, 1), cache(random, 2, rows)
    expected = []
    for batch, length in enumerate((6, 4)):
        q, k, v = (by_heads(given[name][batch : batch + 1], heads) for name, heads in SIZES.items())
        k, v = (
            np.concatenate([past[name][batch : batch + 1, :, : length - 1], x], axis=2)
            for name, x in (("past_key", k), ("past_value", v))
        )
        expected.append((attended(q, k, v, np.arange(length) >= length - 4), k, v))
    found = group_query(ours, **given, **past, **lengths(6, 4), local_window_size=4)
    for batch, (length, results) in enumerate(zip((6, 4), expected)):
        one = found[0][batch : batch + 1], *(x[batch : batch + 1, :, :length] for x in found[1:])
        assert_close(one, results, 2e-5)


OPTIONS = [
    {},
    {"scale": 0.7},
    {"softcap": 1.5},
    {"local_window_size": 2},
    {"local_window_size": 3, "softcap": 2.0},
    {"smooth_softmax": 1},
    {"causal": 0},
]


@pytest.mark.parametrize("options", OPTIONS)
def test_group_query_attention_of_a_prompt(random, options):
    group_query(**tokens(random, 1, 5), **lengths(5), **options)
    group_query(**tokens(random, 2, 5), **lengths(5, 5), **options)


@pytest.mark.parametrize("options", OPTIONS)
def test_group_query_attention_of_a_step(random, options):
    group_query(**tokens(random, 2, 1), **cache(random, 2, 9), **lengths(6, 4), **options)
    group_query(**tokens(random, 1, 3), **cache(random, 1, 4), **lengths(7), **options)


@pytest.mark.parametrize("rows, each, later", [(5, (6, 6), 8), (5, (6, 4), 8), (12, (2, 9), 7)])
def test_group_query_attention_with_caches_of_other_sizes(random, rows, each, later):
    """As many rows as tokens before the step, or room for more than all."""
    group_query(**tokens(random, 2, 1), **cache(random, 2, rows), **lengths(*each))
    group_query(**tokens(random, 1, 3), **cache(random, 1, rows), **lengths(later))


def test_group_query_attention_of_a_padded_prompt(random):
    """What padding gives is not specified."""
    given = {**tokens(random, 2, 5), **lengths(5, 3)}
    found, expected = group_query(ours, **given), group_query(theirs, **given)
    assert_close(found[1:], expected[1:], 0)
    assert_close([found[0][0], found[0][1, :3]], [expected[0][0], expected[0][1, :3]], 2e-5)


@pytest.mark.parametrize("interleaved", [0, 1])
@pytest.mark.parametrize("columns", [SIZE // 2, SIZE // 4])
def test_group_query_attention_rotates(random, columns, interleaved):
    rest = {**tables(random, columns=columns), "do_rotary": 1, "rotary_interleaved": interleaved}
    group_query(**tokens(random, 2, 5), **lengths(5, 5), **rest)
    group_query(**tokens(random, 2, 1), **cache(random, 2, 9), **lengths(6, 4), **rest)
    group_query(**tokens(random, 1, 3), **cache(random, 1, 4), **lengths(7), **rest)


def test_group_query_attention_rotates_by_positions(random):
    rest = {**tables(random), "do_rotary": 1}
    given = np.array([[9, 11, 12, 13], [3, 5, 8, 4]], "int64")
    group_query(**tokens(random, 2, 4), **lengths(4, 4), positions=given, **rest)
    group_query(**tokens(random, 2, 1), **cache(random, 2, 9), **lengths(6, 4), positions=given[:, 1:2].copy(), **rest)


def test_group_query_attention_of_packed_operands(random):
    each = tokens(random, 2, 4)
    packed = np.concatenate(list(each.values()), axis=-1)
    group_query(query=packed, **lengths(4, 4))
    group_query(query=packed[:1], **cache(random, 1, 3), **lengths(7), **tables(random), do_rotary=1)


@pytest.mark.parametrize("heads", [1, HEADS])
def test_group_query_attention_adds_a_bias(random, heads):
    bias = floats(random, 1, heads, 5, 5)
    group_query(**tokens(random, 2, 5), **lengths(5, 5), attention_bias=bias, softcap=1.0)
    bias = floats(random, 2, heads, 1, 6)
    group_query(**tokens(random, 2, 1), **cache(random, 2, 9), **lengths(6, 4), attention_bias=bias)


@pytest.mark.parametrize("smooth", [-1, 1])
def test_group_query_attention_with_sinks(random, smooth):
    group_query(**tokens(random, 2, 5), **lengths(5, 5), head_sink=floats(random, HEADS), smooth_softmax=smooth)


@pytest.mark.parametrize("mode", [1, 2])
@pytest.mark.parametrize("options", OPTIONS)
def test_group_query_attention_returns_its_scores(random, options, mode):
    results = [*RESULTS, "qk"]
    group_query(**tokens(random, 1, 5), **lengths(5), qk_output=mode, results=results, **options)
    given = {**tokens(random, 2, 1), **cache(random, 2, 5), **lengths(6, 6)}
    group_query(**given, qk_output=mode, results=results, **options)


def test_group_query_attention_of_padded_chunks(random):
    """What padding gives is not specified."""
    given = {**tokens(random, 2, 3), **cache(random, 2, 9), **lengths(6, 4, total=9)}
    given["query_seqlens"] = np.array([3, 1], "int32")
    rest = {**tables(random), "do_rotary": 1}
    found, expected = group_query(ours, **given, **rest), group_query(theirs, **given, **rest)
    assert_close([found[0][0], found[0][1, :1]], [expected[0][0], expected[0][1, :1]], 2e-5)
    for x, y in zip(found[1:], expected[1:]):
        assert_close([x[0, :, :6], x[1, :, :4]], [y[0, :, :6], y[1, :, :4]], 2e-5)


def test_group_query_attention_normalises_heads(random):
    """Not in ONNX Runtime's library for CPUs: its normalisation before."""
    given, norms = tokens(random, 2, 5), {"q_norm": floats(random, SIZE), "k_norm": floats(random, SIZE)}
    found = group_query(ours, **given, **lengths(5, 5), **norms, qk_norm_epsilon=1e-3, k_norm_epsilon=1e-2)
    for name, scale, epsilon in (("query", norms["q_norm"], 1e-3), ("key", norms["k_norm"], 1e-2)):
        heads = given[name].reshape(2, 5, -1, SIZE)
        (normal,) = theirs("SimplifiedLayerNormalization", heads, scale, domain="", epsilon=epsilon)
        given[name] = normal.reshape(given[name].shape)
    assert_close(found, group_query(theirs, **given, **lengths(5, 5)), 2e-5)


def test_group_query_attention_of_narrow_floats(random):
    def narrow(given):
        return {name: f16(x)[0] for name, x in given.items()}

    rest = {**narrow(tables(random)), "do_rotary": 1, "tolerance": 8e-3}
    group_query(**narrow(tokens(random, 2, 5)), **lengths(5, 5), **rest)
    group_query(**narrow(tokens(random, 2, 1)), **narrow(cache(random, 2, 9)), **lengths(6, 4), **rest)


@pytest.mark.parametrize("kind, shape", [("PER_TENSOR", (1,)), ("PER_CHANNEL", (1, GROUPS, 1, SIZE))])
@pytest.mark.parametrize("bits", [4, 8])
def test_group_query_attention_with_a_quantised_cache(random, bits, kind, shape):
    dtype, size = ("int8", SIZE) if bits == 8 else ("uint8", SIZE // 2)
    past = {name: integers(random, dtype, 2, GROUPS, 9, size) for name in ("past_key", "past_value")}
    greatest = 128 if bits == 8 else 8
    rest = {name: np.asarray(random.uniform(2, 3, shape) / greatest, "float32") for name in ("k_scale", "v_scale")}
    rest |= {"k_quant_type": kind, "v_quant_type": kind, "kv_cache_bit_width": bits}
    group_query(**tokens(random, 2, 1), **past, **lengths(6, 4), **rest)
    one = {name: x[:1] for name, x in past.items()}
    group_query(**tokens(random, 1, 3), **one, **lengths(6), **rest, **tables(random), do_rotary=1)


@pytest.mark.parametrize("options", [{}, {"softcap": 1.5}, {"smooth_softmax": 1}])
@pytest.mark.parametrize("rows", [6, 8])
def test_group_query_attention_with_a_sliding_cache(random, rows, options):
    """Rows behind those in use are not specified."""
    rest = {"local_window_size": 6, "sliding_window_cache": 1, **tables(random), "do_rotary": 1, **options}
    for each, steps in (((9, 4), 1), ((20, 3), 1), ((9,), 3), ((20,), 10), ((3,), 3)):
        given = {**tokens(random, len(each), steps), **cache(random, len(each), rows), **lengths(*each)}
        found, expected = group_query(ours, **given, **rest), group_query(theirs, **given, **rest)
        assert_close(found[:1], expected[:1], 2e-5)
        for batch, length in enumerate(each):
            group = rows - 6 + 1
            used = length - group * -(-max(length - rows, 0) // group)
            assert_close([x[batch, :, :used] for x in found[1:]], [x[batch, :, :used] for x in expected[1:]], 2e-5)


@pytest.mark.parametrize("each, message", [((11, 4), "seqlens_k"), ((10, 4), "past_key")])
def test_group_query_attention_checks_its_lengths(random, each, message):
    given = {**tokens(random, 2, 1), **cache(random, 2, 8), **lengths(*each, total=10)}
    with pytest.raises(tenon.ExecutionError, match=message):
        group_query(ours, **given)


# ---- 8-bit numbers ----


def scalar(value, dtype="float32"):
    return np.array(value, dtype)


QUANTIZED = [("uint8", (120, 3)), ("int8", (-7, 90)), ("uint8", (None, None)), ("int8", (None, None))]


def parameters(dtype, zeros, scales=(0.05, 0.004)):
    """x's scale and zero point, and y's."""
    zeros = [None if z is None else scalar(z, dtype) for z in zeros]
    return scalar(scales[0]), zeros[0], scalar(scales[1]), zeros[1]


@pytest.mark.parametrize("dtype, zeros", QUANTIZED)
def test_quantized_activations(random, dtype, zeros):
    x = np.arange(256).astype(dtype).reshape(16, 16)
    every = tuple(range(1, 5))
    check("QLinearSigmoid", x, *parameters(dtype, zeros), tolerance=0, constants=every)
    check("QLinearSigmoid", x, *parameters(dtype, zeros), tolerance=0)
    check("QLinearLeakyRelu", x, *parameters(dtype, zeros, (0.05, 0.03)), tolerance=0, constants=every, alpha=0.3)
    check("QLinearLeakyRelu", x, *parameters(dtype, zeros, (0.05, 0.03)), tolerance=0)


@pytest.mark.parametrize("opset", [12, 13])
@pytest.mark.parametrize("axis", [-1, 1])
@pytest.mark.parametrize("dtype, zero", [("uint8", 0), ("int8", -128)])
def test_quantized_softmax(random, dtype, zero, axis, opset):
    x = integers(random, dtype, 3, 4, 5)
    zeros = scalar(11, dtype), scalar(zero, dtype)
    for x_zero in (zeros[0], None):
        operands = x, scalar(0.05), x_zero, scalar(1 / 256), zeros[1]
        check("QLinearSoftmax", *operands, axis=axis, opset=opset, tolerance=1, constants=(1, 2, 3, 4))


@pytest.mark.parametrize("last", [0, 1])
@pytest.mark.parametrize("dtype, zeros", QUANTIZED[:2])
def test_quantized_pools(random, dtype, zeros, last):
    x = integers(random, dtype, 2, 6, 7, 6)
    given = parameters(dtype, zeros, (0.05, 0.04))
    rest = {"channels_last": last, "tolerance": 1, "constants": (1, 2, 3, 4)}
    check("QLinearGlobalAveragePool", x, *given, **rest)
    rest["kernel_shape"] = [3, 2]
    check("QLinearAveragePool", x, *given, **rest)
    check("QLinearAveragePool", x, *given, **rest, pads=[1, 1, 1, 0], strides=[2, 1])
    check("QLinearAveragePool", x, *given, **rest, pads=[1, 1, 1, 0], count_include_pad=1)
    check("QLinearAveragePool", x, *given, **rest, strides=[2, 2], ceil_mode=1)


def quantize(x, scale, zero, dtype):
    limits = np.iinfo(dtype)
    return np.clip(np.rint(x / np.float32(scale)) + zero, limits.min, limits.max).astype(dtype)


@pytest.mark.parametrize("keepdims", [0, 1])
def test_quantized_mean(random, keepdims):
    """No longer in ONNX Runtime."""
    x = integers(random, "uint8", 2, 3, 4)
    found = ours("QLinearReduceMean", x, *parameters("uint8", (9, 20), (0.5, 0.3)), axes=[-1, 0], keepdims=keepdims)
    real = ((x.astype("float32") - 9) * np.float32(0.5)).mean((0, 2), keepdims=bool(keepdims))
    assert_close(found, [quantize(real, 0.3, 20, "uint8")], 1)


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
def test_quantized_concat_and_where(random, dtype):
    x, y = integers(random, dtype, 2, 3, 4), integers(random, dtype, 2, 5, 4)
    parts = [x, scalar(0.05), scalar(3, dtype), y, scalar(0.02), scalar(60, dtype)]
    check("QLinearConcat", scalar(0.04), scalar(7, dtype), *parts, axis=1, tolerance=1)
    check("QLinearConcat", scalar(0.04), scalar(7, dtype), *parts[:3], axis=-1, tolerance=1)
    condition = random.integers(0, 2, (2, 1, 4)).astype(bool)
    parts[3] = integers(random, dtype, 3, 1)
    constants = (2, 3, 5, 6, 7, 8)
    check("QLinearWhere", condition, *parts, scalar(0.04), scalar(7, dtype), tolerance=1, constants=constants)


@pytest.mark.parametrize("types", [("uint8", "uint8"), ("uint8", "int8"), ("int8", "int8")])
@pytest.mark.parametrize("columns", [(), (6,)])
def test_quantized_gemm(random, columns, types):
    a, b = integers(random, types[0], 4, 5), integers(random, types[1], 5, 6)
    c = random.integers(-9999, 9999, (6,), dtype="int32")
    given = [a, scalar(0.01), scalar(7, types[0]), b, np.asarray(random.uniform(0.01, 0.02, columns), "float32")]
    given += [np.asarray(random.integers(0, 9, columns), types[1])]
    check("QGemm", *given, c, alpha=0.5)
    check("QGemm", *given)
    check("QGemm", *given, c, scalar(0.1), scalar(20, types[0]), tolerance=1)
    given[0], given[3] = np.ascontiguousarray(a.T), np.ascontiguousarray(b.T)
    check("QGemm", *given, c, transA=1, transB=1)


@pytest.mark.parametrize("channels", [(), (8,)])
@pytest.mark.parametrize("rank", [1, 2])
def test_quantized_conv(random, rank, channels):
    x, w = integers(random, "uint8", 2, 4, *[6] * rank), integers(random, "int8", 8, 2, *[3] * rank)
    b = random.integers(-999, 999, (8,), dtype="int32")
    given = [scalar(0.01), scalar(7, "uint8"), w, np.asarray(random.uniform(0.01, 0.02, channels), "float32")]
    given += [np.zeros(channels, "int8"), scalar(0.5), scalar(20, "uint8"), b]
    rest = {"group": 2, "pads": [1] * 2 * rank, "strides": [2] * rank, "constants": range(1, 9), "tolerance": 1}
    check("QLinearConv", x, *given, **rest)
    if rank == 2:
        check("QLinearConv", nhwc(x), *given, channels_last=1, **rest)


@pytest.mark.parametrize("dtype, columns", [("uint8", ()), ("int8", (24,))])
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
def test_quantized_lstm(random, direction, columns, dtype):
    steps, batch, size, hidden = 5, 3, 4, 6
    directions = 2 if direction == "bidirectional" else 1
    x = floats(random, steps, batch, size)
    w, r = (integers(random, dtype, directions, rows, 4 * hidden) for rows in (size, hidden))
    b, p = floats(random, directions, 8 * hidden), floats(random, directions, 3 * hidden)
    h, c = (floats(random, directions, batch, hidden) for _ in range(2))
    each = []
    for _ in range(2):
        each.append(np.asarray(random.uniform(0.002, 0.004, (directions, *columns)), "float32"))
        # ONNX Runtime wants zeros of columns.
        each.append(random.integers(0, 1 if columns else 9, (directions, *columns)).astype(dtype))
    lengths = np.array([5, 2, 3], "int32")
    constants = (1, 2, 3, 7, 8, 9, 10, 11)
    rest = {"direction": direction, "hidden_size": hidden, "constants": constants, "results": ["y", "h", "c"]}
    check("DynamicQuantizeLSTM", x, w, r, None, None, None, None, None, *each, **rest)
    check("DynamicQuantizeLSTM", x, w, r, b, None, h, c, p, *each, **rest)
    check("DynamicQuantizeLSTM", x, w, r, b, lengths, h, c, None, *each, input_forget=1, **rest)


# ---- weights by blocks ----


def blocked(random, rows, columns, block, bits):
    """Bytes, scales, and zero points in bytes and as floats."""
    blocks = -(-columns // block)
    packed = integers(random, "uint8", rows, blocks, block * bits // 8)
    zeros = integers(random, "uint8", rows, -(-blocks * bits // 8))
    return packed, floats(random, rows, blocks) / 2**bits, zeros, floats(random, rows, blocks) + 2 ** (bits - 1)


def unpack(x, bits):
    parts = [(x >> shift) & (2**bits - 1) for shift in range(0, 8, bits)]
    return np.stack(parts, -1).reshape(*x.shape[:-1], -1)


@pytest.mark.parametrize("bits", [2, 4, 8])
@pytest.mark.parametrize("rows, columns, block", [(6, 40, 16), (5, 64, 32), (3, 16, 16)])
def test_matmul_n_bits(random, rows, columns, block, bits):
    packed, scales, zeros, real_zeros = blocked(random, rows, columns, block, bits)
    x, bias = floats(random, 2, 3, columns), floats(random, rows)
    rest = {"K": columns, "N": rows, "bits": bits, "block_size": block, "tolerance": 1e-4}
    constants = (1, 2, 3, 4, 5)
    check("MatMulNBits", x, packed, scales, **rest, constants=constants)
    check("MatMulNBits", x[0], packed, scales, zeros, **rest, constants=constants)
    check("MatMulNBits", x, packed, scales, zeros, None, bias, **rest, constants=constants, accuracy_level=1)
    check("MatMulNBits", x, packed, scales.ravel(), zeros.ravel(), **rest, constants=constants)
    check("MatMulNBits", x, packed, scales, zeros, **rest)  # computed at run time
    if bits != 8:
        check("MatMulNBits", x, packed, scales, real_zeros, **rest, constants=constants)


def test_matmul_n_bits_of_narrow_floats(random):
    packed, scales, zeros, _ = blocked(random, 6, 64, 32, 4)
    rest = {"K": 64, "N": 6, "bits": 4, "block_size": 32, "constants": (1, 2, 3)}
    check("MatMulNBits", *f16(floats(random, 3, 64), packed, scales, zeros), **rest, tolerance=2e-2)


def test_matmul_n_bits_with_groups(random):
    packed, scales, zeros, real_zeros = blocked(random, 6, 32, 16, 4)
    x, groups = floats(random, 3, 32), random.integers(0, 2, 32, dtype="int32")
    rest = {"K": 32, "N": 6, "bits": 4, "block_size": 16}
    # ONNX Runtime 1.32 reads other zero points here.
    numbers = unpack(packed, 4).reshape(6, 32).astype("float32")
    weights = (numbers - unpack(zeros, 4)[:, :2][:, groups]) * scales[:, groups]
    assert_close(ours("MatMulNBits", x, packed, scales, zeros, groups, **rest), [x @ weights.T], 1e-4)
    check("MatMulNBits", x, packed, scales, None, groups, **rest)
    check("MatMulNBits", x, packed, scales, real_zeros, groups, **rest)


def test_matmul_n_bits_without_weights(random):
    x, bias = floats(random, 2, 3, 32), floats(random, 6)
    none = np.zeros((0, 2, 8), "uint8"), np.zeros((0, 2), "float32")
    check("MatMulNBits", x, *none, None, None, bias, K=32, N=6, bits=4, block_size=16, constants=(1, 2))


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("bits", [2, 4, 8])
def test_gather_of_packed_bytes(random, bits, dtype):
    packed, scales, zeros, _ = blocked(random, 7, 48, 16, bits)
    packed, scales = packed.reshape(7, -1), scales.astype(dtype)
    rest = {"bits": bits, "block_size": 16, "constants": (0, 2, 3), "tolerance": 1e-3 if dtype == "float16" else 1e-6}
    indices = np.array([[0, 6, -1], [3, 9, -8]], "int64")  # two of which are out of range
    check("GatherBlockQuantized", packed, indices, scales, zeros, **rest)
    check("GatherBlockQuantized", packed, indices.astype("int32"), scales, **rest)
    check("GatherBlockQuantized", packed, scalar(2, "int64"), scales, **rest)


NARROW = ["int4", "uint4", "float8_e4m3fn", "float8_e5m2"]


@pytest.mark.parametrize("dtype", NARROW)
@pytest.mark.parametrize("gather_axis, quantize_axis", [(0, 2), (0, 1), (1, 1), (-1, 0)])
def test_gather_of_narrow_numbers(random, gather_axis, quantize_axis, dtype):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    table = random.integers(-8, 8, (18, 20, 17)) if dtype == "int4" else random.integers(0, 16, (18, 20, 17))
    table = table.astype(getattr(ml_dtypes, dtype))
    sizes = list(table.shape)
    sizes[quantize_axis] = 2
    scales, indices = floats(random, *sizes), np.array([[1, 5, -2]])
    rest = {"block_size": 16, "gather_axis": gather_axis, "quantize_axis": quantize_axis, "constants": (0, 2, 3)}
    check("GatherBlockQuantized", table, indices, scales, **rest)
    if dtype in ("int4", "uint4"):
        zeros = random.integers(0, 8, sizes).astype(table.dtype)
        check("GatherBlockQuantized", table, indices, scales, zeros, **rest)
    else:
        whole = floats(random, *[1 if axis == quantize_axis else size for axis, size in enumerate(sizes)])
        check("GatherBlockQuantized", table, indices, whole, **{**rest, "block_size": 0})
        check("GatherBlockQuantized", table, indices, floats(random, 1, 1, 1), **{**rest, "block_size": 0})


@pytest.mark.parametrize("kind", [0, 1])
@pytest.mark.parametrize("rows, columns, block", [(6, 64, 32), (5, 9, 16)])
def test_matmul_bnb4(random, rows, columns, block, kind):
    count = rows * columns
    packed, greatest = integers(random, "uint8", (count + 1) // 2), floats(random, -(-count // block))
    rest = {"K": columns, "N": rows, "block_size": block, "quant_type": kind, "constants": (1, 2)}
    check("MatMulBnb4", floats(random, 2, 3, columns), packed, greatest, **rest)
    # ONNX Runtime's library for CPUs does not transpose.
    (weights,) = theirs("MatMulBnb4", np.eye(columns, dtype="float32"), packed, greatest, **rest)
    x = floats(random, 2, 3, rows)
    assert_close(ours("MatMulBnb4", x, packed, greatest, transB=0, **rest), [x @ weights.T], 2e-5)


# ---- models that ONNX Runtime's tools wrote ----


def with_weights(text, random, sizes):
    model = onnx.parser.parse_model(text)
    for name, size in sizes.items():
        model.graph.initializer.append(numpy_helper.from_array(floats(random, *size) / 3, name))
    return model


def operators(model):
    return collections.Counter(node.op_type for node in model.graph.node if node.domain == "com.microsoft")


ENCODER = """
<ir_version: 8, opset_import: ["" : 17]>
g (float[batch, steps, 16] x) => (float[batch, steps, 16] y)
<int64[4] by_heads = {0, 0, 2, 8}, int64[3] flat = {0, 0, 16}, float root = {2.8}, float half = {0.5},
 float one = {1.0}, float two = {1.4142135}>
{
  q = MatMul(x, wq)
  qh = Reshape(q, by_heads)
  qt = Transpose<perm = [0, 2, 1, 3]>(qh)
  k = MatMul(x, wk)
  kh = Reshape(k, by_heads)
  kt = Transpose<perm = [0, 2, 3, 1]>(kh)
  v = MatMul(x, wv)
  vh = Reshape(v, by_heads)
  vt = Transpose<perm = [0, 2, 1, 3]>(vh)
  product = MatMul(qt, kt)
  scores = Div(product, root)
  weights = Softmax<axis = -1>(scores)
  attended = MatMul(weights, vt)
  back = Transpose<perm = [0, 2, 1, 3]>(attended)
  merged = Reshape(back, flat)
  output = MatMul(merged, wo)
  residual = Add(output, x)
  normal = LayerNormalization<axis = -1>(residual, gamma, beta)
  wide = MatMul(normal, w1)
  biased = Add(wide, b1)
  scaled = Div(biased, two)
  erf = Erf(scaled)
  shifted = Add(erf, one)
  gated = Mul(biased, shifted)
  gelu = Mul(gated, half)
  narrow = MatMul(gelu, w2)
  last = Add(narrow, normal)
  y = LayerNormalization<axis = -1>(last, gamma, beta)
}
"""


def test_models_that_the_optimiser_wrote(random, tmp_path):
    sizes = {name: (16, 16) for name in ("wq", "wk", "wv", "wo")}
    sizes |= {"gamma": (16,), "beta": (16,), "w1": (16, 32), "b1": (32,), "w2": (32, 16)}
    model = with_weights(ENCODER, random, sizes)
    x = floats(random, 2, 5, 16)
    expected = session(model, tmp_path / "m.onnx", "EXTENDED").run(None, {"x": x})
    written = operators(onnx.load(tmp_path / "m.onnx"))
    assert written["FusedMatMul"] and written["BiasGelu"], written
    assert_close(tenon.InferenceSession(tmp_path / "m.onnx").run(None, {"x": x}), expected, 2e-5)


IMAGE_CLASSIFIER = """
<ir_version: 8, opset_import: ["" : 13]>
g (float[n, 3, 12, 12] x) => (float[n, 5] y)
{
  a = Conv<pads = [1, 1, 1, 1]>(x, w1, b1)
  b = LeakyRelu<alpha = 0.2>(a)
  c = Conv<pads = [1, 1, 1, 1], group = 2>(b, w2)
  d = Add(b, c)
  e = Sigmoid(d)
  f = Mul(d, e)
  h = Concat<axis = 1>(f, b)
  i = AveragePool<kernel_shape = [2, 2], strides = [2, 2]>(h)
  j = MaxPool<kernel_shape = [2, 2], strides = [2, 2]>(i)
  k = GlobalAveragePool(j)
  l = Flatten(k)
  m = Gemm<transB = 1>(l, w3, b3)
  y = Softmax<axis = -1>(m)
}
"""


@pytest.mark.parametrize("level", ["EXTENDED", "ALL"])
@pytest.mark.parametrize("activations", ["QUInt8", "QInt8"])
def test_models_that_the_quantiser_wrote(random, tmp_path, activations, level):
    quantization = pytest.importorskip("onnxruntime.quantization")

    class Samples(quantization.CalibrationDataReader):
        given = [{"x": floats(random, 4, 3, 12, 12)} for _ in range(2)]

        def get_next(self):
            return self.given.pop() if self.given else None

    sizes = {"w1": (8, 3, 3, 3), "b1": (8,), "w2": (8, 4, 3, 3), "w3": (5, 16), "b3": (5,)}
    onnx.save(with_weights(IMAGE_CLASSIFIER, random, sizes), tmp_path / "m.onnx")
    quantization.quantize_static(
        tmp_path / "m.onnx",
        tmp_path / "q.onnx",
        Samples(),
        quant_format=quantization.QuantFormat.QOperator,
        activation_type=getattr(quantization.QuantType, activations),
        weight_type=quantization.QuantType.QInt8,
        per_channel=True,
    )
    x = floats(random, 2, 3, 12, 12)
    expected = session(onnx.load(tmp_path / "q.onnx"), tmp_path / "o.onnx", level).run(None, {"x": x})
    written = operators(onnx.load(tmp_path / "o.onnx"))
    assert written["QLinearConcat"] and written["QGemm"] and written["QLinearConv"] == (2 if level == "ALL" else 0)
    for name in ("q.onnx", "o.onnx"):
        assert_close(tenon.InferenceSession(tmp_path / name).run(None, {"x": x}), expected, 1 / 128)


DECODER = """
<ir_version: 8, opset_import: ["" : 17, "com.microsoft" : 1]>
g (float[batch, steps, 128] q, float[batch, steps, 64] k, float[batch, steps, 64] v, int64[batch, total] mask,
   float[batch, 2, past, 32] past_key, float[batch, 2, past, 32] past_value)
  => (float[batch, steps, 128] y, float[batch, 2, total, 32] present_key, float[batch, 2, total, 32] present_value)
<int64[1] columns = {1}, int64 one = {1}>
{
  sums = ReduceSum<keepdims = 0>(mask, columns)
  before = Sub(sums, one)
  lengths = Cast<to = 6>(before)
  shape = Shape(mask)
  size = Gather(shape, one)
  most = Cast<to = 6>(size)
  y, present_key, present_value = com.microsoft.GroupQueryAttention<num_heads = 4, kv_num_heads = 2, do_rotary = 1>(
    q, k, v, past_key, past_value, lengths, most, cos, sin)
}
"""


def test_decoders_whose_lengths_come_from_the_mask(random):
    """Two calls, the second one with the first one's cache, by one program."""
    model = with_weights(DECODER, random, {"cos": (64, 16), "sin": (64, 16)})
    found, expected = tenon.InferenceSession(model), session(model)
    past = {name: np.zeros((2, 2, 0, 32), "float32") for name in ("past_key", "past_value")}
    for steps, total in ((5, 5), (1, 6)):
        given = {name: floats(random, 2, steps, size) for name, size in (("q", 128), ("k", 64), ("v", 64))}
        given |= {"mask": np.ones((2, total), "int64"), **past}
        results = expected.run(None, given)
        assert_close(found.run(None, given), results, 2e-5)
        past = {"past_key": results[1], "past_value": results[2]}
