#!/usr/bin/env python3
"""Builds benchmark models that aren't in any data set, with random weights: MobileNetV2, Inception v3, ResNet-18, BERT-base,
loops, and a wide graph.

Usage: make_models.py OUT_FOLDER [NAME]...
                      [--layers N --hidden N --heads N] [--fused-layer-norm] [--branches N --products N --width N]

A name is that of a file below, or a recurrent network such as lstm-512, of two layers with 512 units, or gru-both-256, of one layer in
both directions; without names, mobilenetv2 and bert. --help lists all.

The graphs have the form that PyTorch's exporter writes: batch normalisation folded into the
convolutions, sizes computed by Shape, Gather and Concat, GELU as Erf, layer normalisation as nine
nodes (or one LayerNormalization of opset 17 with --fused-layer-norm). The same arguments give the
same bytes. The weights of BERT are in a separate file beside the model (438 MB).

  mobilenetv2.onnx  image: float[1, 3, 224, 224] -> logits: float[1, 1000]
  inceptionv3.onnx  image: float[1, 3, 299, 299] -> logits: float[1, 1000]
  resnet18.onnx     image: float[1, 3, 224, 224] -> logits: float[1, 1000]
  bert.onnx         input_ids, attention_mask, token_type_ids: tensor[batch, sequence; i64]
                    -> last_hidden_state: float[batch, sequence, 768], pooler_output: float[batch, 768]
  lstm.onnx         x: float[steps, 1, 32] -> y: float[steps, 1, 1, 64], last_h, last_c
  loop.onnx         x: float[64] -> last: float[64], rows: float[1000, 64], a Loop of 1,000 iterations
  wide.onnx         x: float[64, 64] -> y: float[64, 64], the sum of 12 branches of 4 products each
"""

import argparse
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


class Graph:
    """Collects nodes and initializers; every method that adds a node returns its output's name."""

    def __init__(self, seed: int):
        self.rng = np.random.default_rng(seed)
        self.nodes: list[onnx.NodeProto] = []
        self.initializers: dict[str, np.ndarray] = {}

    def add(self, operator: str, inputs: list[str], name: str, **attributes) -> str:
        output = f"{name}_output_0"
        self.nodes.append(helper.make_node(operator, inputs, [output], name, **attributes))
        return output

    def constant(self, name: str, value) -> str:
        self.initializers.setdefault(name, np.asarray(value))
        return name

    def ints(self, *values: int) -> str:
        return self.constant("ints_" + "_".join(map(str, values)), np.array(values, np.int64))

    def weight(self, name: str, shape: tuple[int, ...], scale: float) -> str:
        value = self.rng.standard_normal(shape, np.float32) * np.float32(scale)
        return self.constant(name, value)

    def model(self, name: str, inputs, outputs, opset: int) -> onnx.ModelProto:
        tensors = [numpy_helper.from_array(value, key) for key, value in self.initializers.items()]
        graph = helper.make_graph(self.nodes, name, inputs, outputs, tensors)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
        model.producer_name = "bench/models/make_models.py"
        return model


def mobilenetv2() -> onnx.ModelProto:
    """M. Sandler et al., "MobileNetV2: Inverted Residuals and Linear Bottlenecks" (2018), width 1."""
    g = Graph(seed=2)
    zero, six = g.constant("zero", np.float32(0)), g.constant("six", np.float32(6))

    def conv(x, before, after, kernel, stride, groups, name, relu6=True):
        fan_in = before // groups * kernel * kernel
        gain = 2.0 if relu6 else 1.0
        out = g.add(
            "Conv",
            [
                x,
                g.weight(f"{name}.weight", (after, before // groups, kernel, kernel), (gain / fan_in) ** 0.5),
                g.weight(f"{name}.bias", (after,), 0.05),
            ],
            f"/{name}/Conv",
            kernel_shape=[kernel] * 2,
            strides=[stride] * 2,
            pads=[kernel // 2] * 4,
            dilations=[1, 1],
            group=groups,
        )
        return g.add("Clip", [out, zero, six], f"/{name}/Clip") if relu6 else out

    x, channels = conv("image", 3, 32, 3, 2, 1, "features.0"), 32
    block = 1
    for expand, after, repeats, first_stride in (
        (1, 16, 1, 1),
        (6, 24, 2, 2),
        (6, 32, 3, 2),
        (6, 64, 4, 2),
        (6, 96, 3, 1),
        (6, 160, 3, 2),
        (6, 320, 1, 1),
    ):
        for repeat in range(repeats):
            stride, inner, name = (first_stride if repeat == 0 else 1), channels * expand, f"features.{block}"
            y = x
            if expand != 1:
                y = conv(y, channels, inner, 1, 1, 1, f"{name}.expand")
            y = conv(y, inner, inner, 3, stride, inner, f"{name}.depthwise")
            y = conv(y, inner, after, 1, 1, 1, f"{name}.project", relu6=False)
            if stride == 1 and channels == after:
                y = g.add("Add", [x, y], f"/{name}/Add")
            x, channels, block = y, after, block + 1
    x = conv(x, channels, 1280, 1, 1, 1, f"features.{block}")
    x = g.add("GlobalAveragePool", [x], "/GlobalAveragePool")
    x = g.add("Flatten", [x], "/Flatten", axis=1)
    weight, bias = g.weight("classifier.weight", (1000, 1280), 0.03), g.weight("classifier.bias", (1000,), 0.05)
    g.nodes.append(helper.make_node("Gemm", [x, weight, bias], ["logits"], "/classifier/Gemm", transB=1))
    return g.model(
        "mobilenetv2",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 3, 224, 224])],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, [1, 1000])],
        opset=13,
    )


def inceptionv3() -> onnx.ModelProto:
    """C. Szegedy et al., "Rethinking the Inception Architecture for Computer Vision" (2015), as in torchvision, without
    the auxiliary classifier."""
    g = Graph(seed=4)
    channels = {"image": 3}

    def conv(x, after, height, width, name, stride=1, padded=True):
        before = channels[x]
        weight = g.weight(f"{name}.weight", (after, before, height, width), (2.0 / (before * height * width)) ** 0.5)
        pads = [height // 2, width // 2] * 2 if padded else [0] * 4
        out = g.add(
            "Conv",
            [x, weight, g.weight(f"{name}.bias", (after,), 0.05)],
            f"/{name}/Conv",
            kernel_shape=[height, width],
            strides=[stride] * 2,
            pads=pads,
        )
        out = g.add("Relu", [out], f"/{name}/Relu")
        channels[out] = after
        return out

    def pool(x, operator, stride, name):
        pads = [1] * 4 if stride == 1 else [0] * 4
        out = g.add(operator, [x], f"/{name}/{operator}", kernel_shape=[3, 3], strides=[stride] * 2, pads=pads)
        channels[out] = channels[x]
        return out

    def concat(parts, name):
        out = g.add("Concat", parts, f"/{name}/Concat", axis=1)
        channels[out] = sum(channels[part] for part in parts)
        return out

    def chain(x, name, *layers):
        """Convolutions of (channels, height, width), one after another."""
        for i, (after, height, width) in enumerate(layers):
            x = conv(x, after, height, width, f"{name}.{i}")
        return x

    x = conv("image", 32, 3, 3, "stem.0", stride=2, padded=False)
    x = conv(x, 32, 3, 3, "stem.1", padded=False)
    x = pool(conv(x, 64, 3, 3, "stem.2"), "MaxPool", 2, "stem.3")
    x = conv(conv(x, 80, 1, 1, "stem.4"), 192, 3, 3, "stem.5", padded=False)
    x = pool(x, "MaxPool", 2, "stem.6")
    for i, pooled in enumerate((32, 64, 64)):
        a = f"a.{i}"
        x = concat(
            [
                chain(x, f"{a}.1x1", (64, 1, 1)),
                chain(x, f"{a}.5x5", (48, 1, 1), (64, 5, 5)),
                chain(x, f"{a}.3x3", (64, 1, 1), (96, 3, 3), (96, 3, 3)),
                chain(pool(x, "AveragePool", 1, f"{a}.pool"), f"{a}.pool", (pooled, 1, 1)),
            ],
            a,
        )
    x = concat(
        [
            conv(x, 384, 3, 3, "b.3x3", stride=2, padded=False),
            conv(chain(x, "b.twice", (64, 1, 1), (96, 3, 3)), 96, 3, 3, "b.twice.2", stride=2, padded=False),
            pool(x, "MaxPool", 2, "b.pool"),
        ],
        "b",
    )
    for i, inner in enumerate((128, 160, 160, 192)):
        c = f"c.{i}"
        sevens = [(inner, 7, 1), (inner, 1, 7)]
        x = concat(
            [
                chain(x, f"{c}.1x1", (192, 1, 1)),
                chain(x, f"{c}.7x7", (inner, 1, 1), (inner, 1, 7), (192, 7, 1)),
                chain(x, f"{c}.twice", (inner, 1, 1), *sevens, (inner, 7, 1), (192, 1, 7)),
                chain(pool(x, "AveragePool", 1, f"{c}.pool"), f"{c}.pool", (192, 1, 1)),
            ],
            c,
        )
    sevens = chain(x, "d.7x7", (192, 1, 1), (192, 1, 7), (192, 7, 1))
    x = concat(
        [
            conv(chain(x, "d.3x3", (192, 1, 1)), 320, 3, 3, "d.3x3.1", stride=2, padded=False),
            conv(sevens, 192, 3, 3, "d.7x7.3", stride=2, padded=False),
            pool(x, "MaxPool", 2, "d.pool"),
        ],
        "d",
    )
    for i in range(2):
        e = f"e.{i}"
        once = chain(x, f"{e}.3x3", (384, 1, 1))
        twice = chain(x, f"{e}.twice", (448, 1, 1), (384, 3, 3))
        x = concat(
            [
                chain(x, f"{e}.1x1", (320, 1, 1)),
                *(conv(once, 384, *size, f"{e}.3x3.{size[0]}x{size[1]}") for size in ((1, 3), (3, 1))),
                *(conv(twice, 384, *size, f"{e}.twice.{size[0]}x{size[1]}") for size in ((1, 3), (3, 1))),
                chain(pool(x, "AveragePool", 1, f"{e}.pool"), f"{e}.pool", (192, 1, 1)),
            ],
            e,
        )
    x = g.add("Flatten", [g.add("GlobalAveragePool", [x], "/GlobalAveragePool")], "/Flatten", axis=1)
    weight, bias = g.weight("classifier.weight", (1000, 2048), 0.03), g.weight("classifier.bias", (1000,), 0.05)
    g.nodes.append(helper.make_node("Gemm", [x, weight, bias], ["logits"], "/classifier/Gemm", transB=1))
    return g.model(
        "inceptionv3",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 3, 299, 299])],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, [1, 1000])],
        opset=13,
    )


def resnet18() -> onnx.ModelProto:
    """K. He et al., "Deep Residual Learning for Image Recognition" (2015), as in torchvision."""
    g = Graph(seed=5)

    def conv(x, before, after, kernel, stride, name):
        weight = g.weight(f"{name}.weight", (after, before, kernel, kernel), (1.0 / (before * kernel**2)) ** 0.5)
        return g.add(
            "Conv",
            [x, weight, g.weight(f"{name}.bias", (after,), 0.05)],
            f"/{name}/Conv",
            kernel_shape=[kernel] * 2,
            strides=[stride] * 2,
            pads=[kernel // 2] * 4,
        )

    def relu(x, name):
        return g.add("Relu", [x], f"/{name}/Relu")

    x, channels = relu(conv("image", 3, 64, 7, 2, "conv1"), "conv1"), 64
    x = g.add("MaxPool", [x], "/maxpool/MaxPool", kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    for layer, after in enumerate((64, 128, 256, 512), start=1):
        for block in range(2):
            name, stride = f"layer{layer}.{block}", 2 if block == 0 and layer > 1 else 1
            y = relu(conv(x, channels, after, 3, stride, f"{name}.conv1"), f"{name}.conv1")
            y = conv(y, after, after, 3, 1, f"{name}.conv2")
            if stride > 1:
                x = conv(x, channels, after, 1, stride, f"{name}.downsample")
            x, channels = relu(g.add("Add", [y, x], f"/{name}/Add"), name), after
    x = g.add("Flatten", [g.add("GlobalAveragePool", [x], "/avgpool")], "/Flatten", axis=1)
    weight, bias = g.weight("fc.weight", (1000, 512), 0.03), g.weight("fc.bias", (1000,), 0.05)
    g.nodes.append(helper.make_node("Gemm", [x, weight, bias], ["logits"], "/fc/Gemm", transB=1))
    return g.model(
        "resnet18",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 3, 224, 224])],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, [1, 1000])],
        opset=13,
    )


def bert(layers: int, hidden: int, heads: int, fused_layer_norm: bool) -> onnx.ModelProto:
    """J. Devlin et al., "BERT: Pre-training of Deep Bidirectional Transformers" (2018), base size."""
    g = Graph(seed=3)
    head = hidden // heads
    vocabulary, positions, inner = 30522, 512, 4 * hidden

    def scalar(value) -> str:
        return g.constant(f"scalar_{value}", np.float32(value))

    def linear(x, before, after, name):
        weight = g.weight(f"{name}.weight", (before, after), 0.02)
        product = g.add("MatMul", [x, weight], f"/{name}/MatMul")
        return g.add("Add", [g.weight(f"{name}.bias", (after,), 0.02), product], f"/{name}/Add")

    def layer_norm(x, name):
        scale = g.constant(f"{name}.weight", 1 + g.rng.standard_normal(hidden, np.float32) * np.float32(0.02))
        bias = g.weight(f"{name}.bias", (hidden,), 0.02)
        if fused_layer_norm:
            return g.add(
                "LayerNormalization", [x, scale, bias], f"/{name}/LayerNormalization", axis=-1, epsilon=1e-12
            )
        mean = g.add("ReduceMean", [x], f"/{name}/ReduceMean", axes=[-1])
        centred = g.add("Sub", [x, mean], f"/{name}/Sub")
        square = g.add("Pow", [centred, scalar(2.0)], f"/{name}/Pow")
        variance = g.add("ReduceMean", [square], f"/{name}/ReduceMean_1", axes=[-1])
        guarded = g.add("Add", [variance, scalar(1e-12)], f"/{name}/Add")
        deviation = g.add("Sqrt", [guarded], f"/{name}/Sqrt")
        normal = g.add("Div", [centred, deviation], f"/{name}/Div")
        scaled = g.add("Mul", [normal, scale], f"/{name}/Mul")
        return g.add("Add", [scaled, bias], f"/{name}/Add_1")

    def size(x, axis, name):
        """One dimension of x as tensor[1; i64]."""
        shape = g.add("Shape", [x], f"/{name}/Shape_{axis}")
        one = g.add("Gather", [shape, g.constant(f"index_{axis}", np.int64(axis))], f"/{name}/Gather_{axis}", axis=0)
        return g.add("Unsqueeze", [one, g.ints(0)], f"/{name}/Unsqueeze_{axis}")

    # Embeddings: words, token types, and the first `sequence` positions.
    words = g.add(
        "Gather", [g.weight("embeddings.word", (vocabulary, hidden), 0.02), "input_ids"], "/embeddings/word/Gather"
    )
    types = g.add(
        "Gather", [g.weight("embeddings.type", (2, hidden), 0.02), "token_type_ids"], "/embeddings/type/Gather"
    )
    length = size("input_ids", 1, "embeddings")
    all_positions = g.constant("position_ids", np.arange(positions, dtype=np.int64)[None])
    used = g.add(
        "Slice", [all_positions, g.ints(0), length, g.ints(1), g.ints(1)], "/embeddings/Slice"
    )
    places = g.add(
        "Gather", [g.weight("embeddings.position", (positions, hidden), 0.02), used], "/embeddings/position/Gather"
    )
    x = g.add("Add", [words, types], "/embeddings/Add")
    x = g.add("Add", [x, places], "/embeddings/Add_1")
    x = layer_norm(x, "embeddings.LayerNorm")

    # The additive mask: 0 where attended, the lowest float elsewhere.
    mask = g.add("Unsqueeze", ["attention_mask", g.ints(1)], "/Unsqueeze")
    mask = g.add("Unsqueeze", [mask, g.ints(2)], "/Unsqueeze_1")
    mask = g.add("Cast", [mask], "/Cast", to=TensorProto.FLOAT)
    mask = g.add("Sub", [scalar(1.0), mask], "/Sub")
    mask = g.add("Mul", [mask, g.constant("least", np.finfo(np.float32).min)], "/Mul")

    for i in range(layers):
        name = f"layer.{i}"

        def split_heads(y, part, permutation):
            batch, sequence = size(y, 0, f"{name}.{part}"), size(y, 1, f"{name}.{part}")
            shape = g.add(
                "Concat", [batch, sequence, g.ints(heads), g.ints(head)], f"/{name}.{part}/Concat", axis=0
            )
            y = g.add("Reshape", [y, shape], f"/{name}.{part}/Reshape")
            return g.add("Transpose", [y], f"/{name}.{part}/Transpose", perm=permutation)

        query = split_heads(linear(x, hidden, hidden, f"{name}.query"), "query_heads", [0, 2, 1, 3])
        key = split_heads(linear(x, hidden, hidden, f"{name}.key"), "key_heads", [0, 2, 3, 1])
        value = split_heads(linear(x, hidden, hidden, f"{name}.value"), "value_heads", [0, 2, 1, 3])
        scores = g.add("MatMul", [query, key], f"/{name}/attention/MatMul")
        scores = g.add("Div", [scores, scalar(float(head) ** 0.5)], f"/{name}/attention/Div")
        scores = g.add("Add", [scores, mask], f"/{name}/attention/Add")
        weights = g.add("Softmax", [scores], f"/{name}/attention/Softmax", axis=-1)
        context = g.add("MatMul", [weights, value], f"/{name}/attention/MatMul_1")
        context = g.add("Transpose", [context], f"/{name}/attention/Transpose", perm=[0, 2, 1, 3])
        batch, sequence = size(context, 0, f"{name}.context"), size(context, 1, f"{name}.context")
        shape = g.add("Concat", [batch, sequence, g.ints(hidden)], f"/{name}/attention/Concat", axis=0)
        context = g.add("Reshape", [context, shape], f"/{name}/attention/Reshape")
        attended = linear(context, hidden, hidden, f"{name}.attention_output")
        x = layer_norm(g.add("Add", [attended, x], f"/{name}/Add"), f"{name}.attention_norm")
        # GELU by the error function.
        wide = linear(x, hidden, inner, f"{name}.intermediate")
        part = g.add("Div", [wide, scalar(float(np.float32(2) ** 0.5))], f"/{name}/gelu/Div")
        part = g.add("Erf", [part], f"/{name}/gelu/Erf")
        part = g.add("Add", [part, scalar(1.0)], f"/{name}/gelu/Add")
        wide = g.add("Mul", [wide, part], f"/{name}/gelu/Mul")
        wide = g.add("Mul", [wide, scalar(0.5)], f"/{name}/gelu/Mul_1")
        narrow = linear(wide, inner, hidden, f"{name}.output")
        x = layer_norm(g.add("Add", [narrow, x], f"/{name}/Add_1"), f"{name}.output_norm")

    g.nodes.append(helper.make_node("Identity", [x], ["last_hidden_state"], "/Identity"))
    first = g.add("Gather", [x, g.constant("index_0", np.int64(0))], "/pooler/Gather", axis=1)
    weight, bias = g.weight("pooler.weight", (hidden, hidden), 0.02), g.weight("pooler.bias", (hidden,), 0.02)
    pooled = g.add("Gemm", [first, weight, bias], "/pooler/Gemm", transB=1)
    g.nodes.append(helper.make_node("Tanh", [pooled], ["pooler_output"], "/pooler/Tanh"))
    tokens = ["batch", "sequence"]
    return g.model(
        "bert",
        [
            helper.make_tensor_value_info(name, TensorProto.INT64, tokens)
            for name in ("input_ids", "attention_mask", "token_type_ids")
        ],
        [
            helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT, [*tokens, hidden]),
            helper.make_tensor_value_info("pooler_output", TensorProto.FLOAT, ["batch", hidden]),
        ],
        opset=17 if fused_layer_norm else 14,
    )


def lstm(inputs: int = 32, hidden: int = 64) -> onnx.ModelProto:
    g = Graph(seed=3)
    weights = [
        g.weight("weights", (1, 4 * hidden, inputs), 0.1),
        g.weight("recurrence", (1, 4 * hidden, hidden), 0.1),
    ]
    g.nodes.append(
        helper.make_node("LSTM", ["x", *weights], ["y", "last_h", "last_c"], "/LSTM", hidden_size=hidden)
    )
    values = {"x": ["steps", 1, inputs], "y": ["steps", 1, 1, hidden]}
    values |= {"last_h": [1, 1, hidden], "last_c": [1, 1, hidden]}
    infos = [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in values.items()]
    return g.model("lstm", infos[:1], infos[1:], opset=17)


RECURRENT = {  # operator, units, whether in both directions; without that, two layers
    f"{operator.lower()}-{'both-' * both}{units}": (operator, units, both)
    for operator in ("LSTM", "GRU", "RNN")
    for units, both in ((512, False), (256, False), (64, False), (256, True))
}


def recurrent(operator: str, units: int, both: bool, inputs: int = 300) -> onnx.ModelProto:
    """Layers as PyTorch exports them, over any number of steps and sequences."""
    g = Graph(seed=6)
    directions, gates = 1 + both, {"LSTM": 4, "GRU": 3, "RNN": 1}[operator]
    settings = {"hidden_size": units, "direction": "bidirectional" if both else "forward"}
    if operator == "GRU":
        settings["linear_before_reset"] = 1
    x, size = "x", inputs
    for layer in range(1 if both else 2):
        weights = [
            g.weight(f"weights_{layer}", (directions, gates * units, size), units**-0.5),
            g.weight(f"recurrence_{layer}", (directions, gates * units, units), units**-0.5),
            g.weight(f"bias_{layer}", (directions, 2 * gates * units), units**-0.5),
        ]
        y, last = f"y_{layer}", f"last_{layer}"
        g.nodes.append(helper.make_node(operator, [x, *weights], [y, last], f"/{operator}_{layer}", **settings))
        y = g.add("Transpose", [y], f"/Transpose_{layer}", perm=[0, 2, 1, 3])
        x, size = g.add("Reshape", [y, g.ints(0, 0, -1)], f"/Reshape_{layer}"), directions * units
    g.nodes.append(helper.make_node("Identity", [x], ["y"], "/Identity"))
    values = {"x": ["steps", "batch", inputs], "y": ["steps", "batch", size], last: [directions, "batch", units]}
    infos = [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in values.items()]
    return g.model(operator.lower(), infos[:1], infos[1:], opset=17)


def loop(turns: int = 1000, width: int = 64) -> onnx.ModelProto:
    float_row = lambda name: helper.make_tensor_value_info(name, TensorProto.FLOAT, [width])
    boolean = lambda name: helper.make_tensor_value_info(name, TensorProto.BOOL, [])
    body = helper.make_graph(
        [
            helper.make_node("Mul", ["state", "factor"], ["scaled"], "/body/Mul"),
            helper.make_node("Tanh", ["scaled"], ["next"], "/body/Tanh"),
            helper.make_node("Identity", ["next"], ["row"], "/body/Identity"),
            helper.make_node("Identity", ["go_on"], ["go_on_next"], "/body/Identity_1"),
        ],
        "body",
        [helper.make_tensor_value_info("i", TensorProto.INT64, []), boolean("go_on"), float_row("state")],
        [boolean("go_on_next"), float_row("next"), float_row("row")],
        [numpy_helper.from_array(np.float32(1.01), "factor")],
    )
    g = Graph(seed=4)
    count = g.constant("turns", np.int64(turns))
    g.nodes.append(helper.make_node("Loop", [count, "", "x"], ["last", "rows"], "/Loop", body=body))
    rows = helper.make_tensor_value_info("rows", TensorProto.FLOAT, [turns, width])
    return g.model("loop", [float_row("x")], [float_row("last"), rows], opset=17)


def wide(branches: int, products: int, width: int) -> onnx.ModelProto:
    """Branches that don't depend on each other: chains of products with square matrices, which are then added."""
    g = Graph(seed=5)
    ends = []
    for i in range(branches):
        x = "x"
        for k in range(products):
            x = g.add("MatMul", [x, g.weight(f"weight_{i}_{k}", (width, width), width**-0.5)], f"/{i}/{k}/MatMul")
            x = g.add("Relu", [x], f"/{i}/{k}/Relu")
        ends.append(x)
    g.nodes.append(helper.make_node("Sum", ends, ["y"], "/Sum"))
    return g.model(
        "wide",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [width, width])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [width, width])],
        opset=13,
    )


# By name, from the options.
MODELS = {
    "mobilenetv2": lambda _: mobilenetv2(),
    "inceptionv3": lambda _: inceptionv3(),
    "resnet18": lambda _: resnet18(),
    "bert": lambda options: bert(options.layers, options.hidden, options.heads, options.fused_layer_norm),
    "lstm": lambda _: lstm(),
    "loop": lambda _: loop(),
    "wide": lambda options: wide(options.branches, options.products, options.width),
} | {name: lambda _, of=of: recurrent(*of) for name, of in RECURRENT.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("models", nargs="*", metavar="NAME", default=["mobilenetv2", "bert"], help=", ".join(MODELS))
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--hidden", type=int, default=768)
    parser.add_argument("--heads", type=int, default=12)
    parser.add_argument("--fused-layer-norm", action="store_true")
    parser.add_argument("--branches", type=int, default=12)
    parser.add_argument("--products", type=int, default=4)
    parser.add_argument("--width", type=int, default=64)
    options = parser.parse_args()
    if unknown := set(options.models) - set(MODELS):
        parser.error(f"no model {', '.join(sorted(unknown))}; there are {', '.join(MODELS)}")
    options.out.mkdir(parents=True, exist_ok=True)
    for name in options.models:
        path = options.out / f"{name}.onnx"
        model = MODELS[name](options)
        if name == "bert":
            weights = options.out / f"{name}.data"
            weights.unlink(missing_ok=True)  # the writer appends
            onnx.save(model, path, save_as_external_data=True, location=weights.name)
        else:
            onnx.save(model, path)
        onnx.checker.check_model(str(path), full_check=True)
        print(path)


if __name__ == "__main__":
    main()
