"""Models of one operator each, and what they are given: everything is seeded."""

from dataclasses import dataclass, field

import numpy as np
import onnx
from onnx import helper, numpy_helper

OPSET, IR_VERSION = 21, 10
Array = np.ndarray


@dataclass
class Row:
    name: str
    operator: str
    inputs: list[Array]
    constants: list[Array | None] = field(default_factory=list)  # after the inputs; None for one left out
    attributes: dict = field(default_factory=dict)
    outputs: int = 1

    def model(self) -> bytes:
        inputs = [
            helper.make_tensor_value_info(f"x{i}", helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
            for i, x in enumerate(self.inputs)
        ]
        constants = [numpy_helper.from_array(c, f"c{i}") for i, c in enumerate(self.constants) if c is not None]
        names = [i.name for i in inputs] + ["" if c is None else f"c{i}" for i, c in enumerate(self.constants)]
        outputs = [onnx.ValueInfoProto(name=f"y{i}") for i in range(self.outputs)]
        node = helper.make_node(self.operator, names, [o.name for o in outputs], **self.attributes)
        graph = helper.make_graph([node], "one", inputs, outputs, constants)
        opsets = [helper.make_opsetid("", OPSET)]
        model = onnx.shape_inference.infer_shapes(helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION))
        return model.SerializeToString()


random = np.random.default_rng(1)


def floats(*shape: int) -> Array:
    return random.standard_normal(shape, dtype=np.float32)


def weights(rows: int, columns: int) -> Array:
    return floats(1, rows, columns) * np.float32(0.05)  # so that a state isn't chaotic


def ints(high: int, *shape: int) -> Array:
    return random.integers(0, high, shape)


def i64(*values: int) -> Array:
    return np.array(values, np.int64)


def window(*kernel: int, stride: int = 1, pad: int = 0, **more) -> dict:
    rank = len(kernel)
    return {"kernel_shape": kernel, "strides": [stride] * rank, "pads": [pad] * (2 * rank), **more}


def pools() -> list[Row]:
    image, video, sound = floats(1, 64, 112, 112), floats(1, 32, 16, 56, 56), floats(1, 64, 8000)
    small = floats(8, 256, 14, 14)
    return [
        Row("MaxPool 2x2/2", "MaxPool", [image], attributes=window(2, 2, stride=2)),
        Row("MaxPool 3x3/2", "MaxPool", [image], attributes=window(3, 3, stride=2, pad=1)),
        Row("MaxPool 3x3/1", "MaxPool", [image], attributes=window(3, 3, pad=1)),
        Row("MaxPool 5x5/1, 14x14", "MaxPool", [small], attributes=window(5, 5, pad=2)),
        Row("MaxPool 3x3x3/2", "MaxPool", [video], attributes=window(3, 3, 3, stride=2, pad=1)),
        Row("MaxPool 4/4, 1-D", "MaxPool", [sound], attributes=window(4, stride=4)),
        Row("AveragePool 2x2/2", "AveragePool", [image], attributes=window(2, 2, stride=2)),
        Row("AveragePool 3x3/1", "AveragePool", [image], attributes=window(3, 3, pad=1)),
        Row("AveragePool 3x3/2, 14x14", "AveragePool", [small], attributes=window(3, 3, stride=2, pad=1)),
        Row("GlobalAveragePool", "GlobalAveragePool", [image]),
        Row("GlobalMaxPool", "GlobalMaxPool", [image]),
        Row("LpPool 3x3/2", "LpPool", [image], attributes=window(3, 3, stride=2, pad=1)),
    ]


def convolutions() -> list[Row]:
    sound = floats(1, 64, 4000)
    return [
        Row("Conv1d k31, depthwise", "Conv", [sound], [floats(64, 1, 31)], window(31, pad=15, group=64)),
        Row("Conv1d k9", "Conv", [sound], [floats(64, 64, 9)], window(9, pad=4)),
        Row("Conv 3x3, depthwise", "Conv", [floats(1, 96, 56, 56)], [floats(96, 1, 3, 3)], window(3, 3, pad=1, group=96)),
        Row("Conv 3x3, 64 channels", "Conv", [floats(1, 64, 56, 56)], [floats(64, 64, 3, 3)], window(3, 3, pad=1)),
        Row("Conv 3x3, dilation 2", "Conv", [floats(1, 64, 56, 56)], [floats(64, 64, 3, 3)],
            window(3, 3, pad=2, dilations=[2, 2])),
        Row("ConvTranspose 2x2/2", "ConvTranspose", [floats(1, 64, 56, 56)], [floats(64, 32, 2, 2)], window(2, 2, stride=2)),
        Row("ConvTranspose 4x4/2", "ConvTranspose", [floats(1, 64, 28, 28)], [floats(64, 32, 4, 4)],
            window(4, 4, stride=2, pad=1)),
        Row("ConvTranspose 3x3/2, weights given", "ConvTranspose", [floats(1, 16, 28, 28), floats(16, 16, 3, 3)],
            attributes=window(3, 3, stride=2, pad=1)),
    ]  # fmt: skip


def resizes() -> list[Row]:
    image = floats(1, 32, 64, 64)

    def resize(name: str, factor: float, mode: str, **more) -> Row:
        scales = np.array([1, 1, factor, factor], np.float32)
        return Row(f"Resize {name}", "Resize", [image], [None, scales], {"mode": mode, **more})

    floor = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    return [
        resize("nearest x2, asymmetric", 2, "nearest", **floor),
        resize("nearest x2, half pixels", 2, "nearest"),
        resize("nearest x3, asymmetric", 3, "nearest", **floor),
        resize("nearest x1.5", 1.5, "nearest", **floor),
        resize("nearest x0.5", 0.5, "nearest", **floor),
        resize("linear x2", 2, "linear"),
        resize("linear x2, corners", 2, "linear", coordinate_transformation_mode="align_corners"),
        resize("linear x0.5", 0.5, "linear"),
        resize("cubic x2", 2, "cubic"),
    ]


def movements() -> list[Row]:
    image, matrix, tokens = floats(1, 32, 112, 112), floats(1024, 1024), floats(8, 128, 768)
    pads = i64(0, 0, 3, 3, 0, 0, 3, 3)
    table = floats(30000, 256)
    return [
        *(
            Row(f"Pad {mode}", "Pad", [image], [pads], {"mode": mode})
            for mode in ("constant", "reflect", "edge", "wrap")
        ),
        Row("Transpose 2-D", "Transpose", [matrix], attributes={"perm": [1, 0]}),
        Row("Transpose to channels last", "Transpose", [image], attributes={"perm": [0, 2, 3, 1]}),
        Row("Transpose heads", "Transpose", [floats(8, 128, 12, 64)], attributes={"perm": [0, 2, 1, 3]}),
        Row("Concat, axis 1", "Concat", [tokens, tokens], attributes={"axis": 1}),
        Row("Concat, last axis", "Concat", [tokens, tokens], attributes={"axis": 2}),
        Row("Split, last axis", "Split", [tokens], attributes={"axis": 2, "num_outputs": 3}, outputs=3),
        Row("Slice, step 2", "Slice", [tokens], [i64(0), i64(768), i64(2), i64(2)]),
        Row("Slice, step -1", "Slice", [tokens], [i64(-1), i64(-1000), i64(2), i64(-1)]),
        Row("Tile", "Tile", [floats(8, 128, 96)], [i64(1, 1, 8)]),
        Row("Expand", "Expand", [floats(8, 1, 768)], [i64(8, 128, 768)]),
        Row("Gather rows", "Gather", [table, ints(30000, 8, 128)]),
        Row("Gather columns", "Gather", [floats(1024, 512), ints(512, 256)], attributes={"axis": 1}),
        Row("GatherElements", "GatherElements", [matrix, ints(1024, 1024, 1024)], attributes={"axis": 1}),
        Row("GatherND", "GatherND", [floats(64, 64, 64), ints(64, 4096, 2)]),
        Row(
            "ScatterElements",
            "ScatterElements",
            [matrix, ints(1024, 1024, 64), floats(1024, 64)],
            attributes={"axis": 1},
        ),
        Row("ScatterND", "ScatterND", [floats(4096, 64), ints(4096, 512, 1), floats(512, 64)]),
        Row("OneHot", "OneHot", [ints(256, 4096)], [i64(256), np.array([0, 1], np.float32)]),
        Row("Where", "Where", [floats(8, 128, 768) > 0, tokens, tokens]),
        Row("DepthToSpace", "DepthToSpace", [floats(1, 64, 56, 56)], attributes={"blocksize": 2}),
        Row("DepthToSpace CRD", "DepthToSpace", [floats(1, 64, 56, 56)], attributes={"blocksize": 2, "mode": "CRD"}),
        Row("SpaceToDepth", "SpaceToDepth", [floats(1, 16, 112, 112)], attributes={"blocksize": 2}),
        Row("Trilu", "Trilu", [matrix]),
        Row("NonZero", "NonZero", [(floats(512, 512) > 1).astype(np.float32)]),
        Row("Compress", "Compress", [floats(4096, 64), floats(4096) > 0], attributes={"axis": 0}),
        Row("ReverseSequence", "ReverseSequence", [floats(128, 32, 64), np.full(32, 100, np.int64)]),
        Row("Cast f32 to f16", "Cast", [tokens], attributes={"to": onnx.TensorProto.FLOAT16}),
        Row("Cast f32 to i64", "Cast", [tokens], attributes={"to": onnx.TensorProto.INT64}),
        Row(
            "Cast u8 to f32",
            "Cast",
            [ints(256, 3, 512, 512).astype(np.uint8)],
            attributes={"to": onnx.TensorProto.FLOAT},
        ),
    ]


def reductions() -> list[Row]:
    logits, tokens, image = floats(64, 50257), floats(8, 128, 768), floats(1, 64, 56, 56)
    rows = [
        Row("TopK 50 of 50257", "TopK", [floats(1, 50257)], [i64(50)], outputs=2),
        Row("TopK 5 of 1000", "TopK", [floats(64, 1000)], [i64(5)], outputs=2),
        Row("TopK 1000 of 20000", "TopK", [floats(4, 20000)], [i64(1000)], outputs=2),
        Row("TopK, sorted whole", "TopK", [floats(64, 1024)], [i64(1024)], outputs=2),
        Row("ArgMax, last axis", "ArgMax", [logits], attributes={"axis": 1}),
        Row("ArgMax, channels", "ArgMax", [floats(1, 21, 256, 256)], attributes={"axis": 1}),
        Row("ArgMin, last of three", "ArgMin", [tokens], attributes={"axis": 2, "select_last_index": 1}),
        Row("CumSum, last axis", "CumSum", [floats(1024, 1024)], [np.array(1)]),
        Row("CumSum, first axis", "CumSum", [floats(1024, 1024)], [np.array(0)]),
        Row("Softmax, 50257", "Softmax", [logits]),
        Row("Softmax, 128", "Softmax", [floats(96, 128, 128)]),
        Row("Softmax, channels", "Softmax", [floats(1, 21, 128, 128)], attributes={"axis": 1}),
        Row("LogSoftmax", "LogSoftmax", [floats(128, 1000)]),
        Row("Hardmax", "Hardmax", [floats(128, 1000)]),
    ]
    for name in ("Sum", "Mean", "Max", "Prod", "L2", "LogSumExp", "SumSquare"):
        rows.append(Row(f"Reduce{name}, last axis", f"Reduce{name}", [tokens], [i64(2)]))
    for name in ("Sum", "Max"):
        rows.append(Row(f"Reduce{name}, middle axis", f"Reduce{name}", [tokens], [i64(1)]))
        rows.append(Row(f"Reduce{name}, two last", f"Reduce{name}", [image], [i64(2, 3)]))
        rows.append(Row(f"Reduce{name}, first and last", f"Reduce{name}", [tokens], [i64(0, 2)]))
    return rows


def norms() -> list[Row]:
    image, tokens, channels = floats(4, 64, 56, 56), floats(8, 128, 768), floats(64)
    return [
        Row("LayerNormalization", "LayerNormalization", [tokens], [floats(768), floats(768)]),
        Row("InstanceNormalization", "InstanceNormalization", [image], [channels, channels]),
        Row("GroupNormalization", "GroupNormalization", [image], [channels, channels], {"num_groups": 8}),
        Row("BatchNormalization", "BatchNormalization", [image], [channels, channels, channels, channels * channels]),
        Row("LpNormalization", "LpNormalization", [tokens]),
        Row("LRN", "LRN", [image], attributes={"size": 5}),
        Row("MeanVarianceNormalization", "MeanVarianceNormalization", [image]),
    ]


def elementwise() -> list[Row]:
    x, positive = floats(8, 128, 768), np.abs(floats(8, 128, 768)) + 0.1
    activations = "Relu LeakyRelu Elu Selu Celu HardSigmoid HardSwish Mish Softplus Softsign Sigmoid Tanh Gelu Erf"
    rows = [Row(name, name, [x]) for name in f"{activations} Abs Neg Exp Sin Cos Atan Floor Round Sign IsNaN".split()]
    rows += [Row(name, name, [positive]) for name in ("Log", "Sqrt", "Reciprocal")]
    rows += [Row(name, name, [x, positive]) for name in ("Add", "Mul", "Div", "Max", "Less", "Equal", "PRelu")]
    rows += [
        Row("Pow", "Pow", [positive, x]),
        Row("Pow, square", "Pow", [x], [np.array(2, np.float32)]),
        Row("Mod, floats", "Mod", [x, positive], attributes={"fmod": 1}),
        Row("Mod, integers", "Mod", [ints(1000, 8, 128, 768), ints(90, 8, 128, 768) + 1]),
        Row("Div, integers", "Div", [ints(1000, 8, 128, 768), ints(90, 8, 128, 768) + 1]),
        Row("Add, row", "Add", [x, floats(768)]),
        Row("Mul, column", "Mul", [x, floats(8, 128, 1)]),
        Row("Add, channels", "Add", [floats(1, 64, 112, 112), floats(64, 1, 1)]),
        Row("Clip", "Clip", [x], [np.array(-1, np.float32), np.array(1, np.float32)]),
        Row("Add f16", "Add", [x.astype(np.float16), positive.astype(np.float16)]),
        Row("Sigmoid f16", "Sigmoid", [x.astype(np.float16)]),
        Row("Add f64", "Add", [x.astype(np.float64), positive.astype(np.float64)]),
        Row("Exp f64", "Exp", [x.astype(np.float64)]),
    ]
    return rows


def products() -> list[Row]:
    return [
        Row("MatMul 512", "MatMul", [floats(512, 512), floats(512, 512)]),
        Row("MatMul 512, weights", "MatMul", [floats(512, 512)], [floats(512, 512)]),
        Row("MatMul, one row", "MatMul", [floats(1, 1024)], [floats(1024, 4096)]),
        Row("MatMul, batches", "MatMul", [floats(96, 128, 64), floats(96, 64, 128)]),
        Row("MatMul f64", "MatMul", [floats(256, 256).astype(np.float64), floats(256, 256).astype(np.float64)]),
        Row("MatMul, integers", "MatMul", [ints(100, 128, 128), ints(100, 128, 128)]),
        Row("Gemm, both transposed", "Gemm", [floats(512, 256), floats(384, 512)], attributes={"transA": 1, "transB": 1}),
        Row("Einsum bhid,bhjd", "Einsum", [floats(8, 12, 128, 64), floats(8, 12, 128, 64)],
            attributes={"equation": "bhid,bhjd->bhij"}),
        Row("GridSample", "GridSample", [floats(1, 32, 64, 64), np.tanh(floats(1, 64, 64, 2))]),
        Row("RoiAlign", "RoiAlign", [floats(1, 64, 56, 56), np.sort(np.abs(floats(50, 4)) * 20), np.zeros(50, np.int64)],
            attributes={"output_height": 7, "output_width": 7, "sampling_ratio": 2}),
        Row("NonMaxSuppression", "NonMaxSuppression", [boxes(2000), np.abs(floats(1, 1, 2000))],
            [i64(100), np.array([0.5], np.float32), np.array([0.1], np.float32)]),
        Row("Unique", "Unique", [ints(1000, 20000)], outputs=1),
        Row("DFT", "DFT", [floats(16, 1024, 1)]),
        Row("LSTM 128/128", "LSTM", [floats(50, 1, 128)], [weights(512, 128), weights(512, 128)], {"hidden_size": 128}),
        Row("GRU 128/128", "GRU", [floats(50, 1, 128)], [weights(384, 128), weights(384, 128)], {"hidden_size": 128}),
        Row("MatMulInteger", "MatMulInteger", [ints(255, 128, 768).astype(np.uint8)], [ints(100, 768, 768).astype(np.int8)]),
        Row("QuantizeLinear", "QuantizeLinear", [floats(8, 128, 768)], [np.array(0.1, np.float32), np.array(128, np.uint8)]),
        Row("DequantizeLinear", "DequantizeLinear", [ints(255, 8, 128, 768).astype(np.uint8)],
            [np.array(0.1, np.float32), np.array(128, np.uint8)]),
        Row("DynamicQuantizeLinear", "DynamicQuantizeLinear", [floats(8, 128, 768)], outputs=3),
    ]  # fmt: skip


def boxes(count: int) -> Array:
    corners = np.abs(floats(1, count, 2)) * 100
    return np.concatenate([corners, corners + 10 + np.abs(floats(1, count, 2)) * 20], axis=2)


def all_rows() -> list[Row]:
    return [*pools(), *convolutions(), *resizes(), *movements(), *reductions(), *norms(), *elementwise(), *products()]
