#!/usr/bin/env python3
"""Trains the small convolutional network of this example with JAX and writes the files of the demo.

The data is scikit-learn's bundled set of handwritten digits: 1797 images of 8 by 8 pixels, values 0
to 16, in the order of their writers. The last 397 are held out, so that most of their writers are new
to the network. Writes beside this file:

  digits.onnx         images: float[batch, 1, 8, 8] (0..16) -> probabilities: float[batch, 10]
  images.npy          the held-out images, tensor[397, 1, 8, 8; f32]
  labels.npy          their labels, tensor[397; i64]
  probabilities.npy   JAX's output for them with the exported weights, tensor[397, 10; f32]

Run it with the packages of requirements.txt; it takes a minute on one core. The demo uses the committed files.
"""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from sklearn.datasets import load_digits

HERE = Path(__file__).resolve().parent
HELD_BACK = 397
CHANNELS = (16, 32, 64)  # of the three convolutions; the second is followed by a 2x2 maximum
EPOCHS, BATCH, RATE, DECAY = 30, 50, 2e-3, 1e-4
BN_EPSILON, BN_MOMENTUM = 1e-5, 0.9
PIXEL_SCALE = np.float32(1 / 16)


def initial_parameters(rng: np.random.Generator) -> tuple[dict, dict]:
    """Trained parameters (He initialisation) and the running statistics of batch normalisation."""
    trained, running, before = {}, {}, 1
    for i, after in enumerate(CHANNELS, 1):
        scale = np.sqrt(2 / (before * 9))
        trained[f"conv{i}.weight"] = rng.normal(0, scale, (after, before, 3, 3))
        trained[f"bn{i}.scale"] = np.ones(after)
        trained[f"bn{i}.bias"] = np.zeros(after)
        running[f"bn{i}.mean"] = np.zeros(after)
        running[f"bn{i}.var"] = np.ones(after)
        before = after
    trained["fc.weight"] = rng.normal(0, np.sqrt(1 / (before * 16)), (10, before * 16))
    trained["fc.bias"] = np.zeros(10)
    return (
        {name: jnp.asarray(value, jnp.float32) for name, value in trained.items()},
        {name: jnp.asarray(value, jnp.float32) for name, value in running.items()},
    )


def logits(trained: dict, running: dict, images, training: bool):
    """The network before its softmax, and the statistics of this batch."""
    x, seen = images * PIXEL_SCALE, {}
    for i in range(1, len(CHANNELS) + 1):
        x = jax.lax.conv_general_dilated(
            x, trained[f"conv{i}.weight"], (1, 1), "SAME", dimension_numbers=("NCHW", "OIHW", "NCHW")
        )
        mean, var = running[f"bn{i}.mean"], running[f"bn{i}.var"]
        if training:
            mean, var = x.mean((0, 2, 3)), x.var((0, 2, 3))
            seen[f"bn{i}.mean"], seen[f"bn{i}.var"] = mean, var
        x = (x - mean[:, None, None]) / jnp.sqrt(var[:, None, None] + BN_EPSILON)
        x = x * trained[f"bn{i}.scale"][:, None, None] + trained[f"bn{i}.bias"][:, None, None]
        x = jax.nn.relu(x)
        if i == 2:
            x = jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")
    return x.reshape(x.shape[0], -1) @ trained["fc.weight"].T + trained["fc.bias"], seen


def loss(trained, running, images, labels):
    scores, seen = logits(trained, running, images, training=True)
    picked = jnp.take_along_axis(jax.nn.log_softmax(scores), labels[:, None], 1)
    return -picked.mean(), seen


@jax.jit
def step(trained, running, moments, count, images, labels):
    """One step of Adam with decoupled weight decay."""
    (value, seen), gradients = jax.value_and_grad(loss, has_aux=True)(trained, running, images, labels)
    updated, kept = {}, {}
    for name, gradient in gradients.items():
        first = 0.9 * moments[name][0] + 0.1 * gradient
        second = 0.999 * moments[name][1] + 0.001 * gradient**2
        move = (first / (1 - 0.9**count)) / (jnp.sqrt(second / (1 - 0.999**count)) + 1e-8)
        updated[name] = trained[name] - RATE * (move + DECAY * trained[name])
        kept[name] = (first, second)
    running = {n: BN_MOMENTUM * running[n] + (1 - BN_MOMENTUM) * seen[n] for n in running}
    return updated, running, kept, value


def train(images, labels):
    rng = np.random.default_rng(7)
    trained, running = initial_parameters(rng)
    moments = {name: (jnp.zeros_like(value),) * 2 for name, value in trained.items()}
    count = 0
    for epoch in range(EPOCHS):
        order, total = rng.permutation(len(images)), 0.0
        for start in range(0, len(order) - BATCH + 1, BATCH):
            batch, count = order[start : start + BATCH], count + 1
            trained, running, moments, value = step(
                trained, running, moments, count, images[batch], labels[batch]
            )
            total += float(value)
        if epoch % 5 == 4:
            print(f"epoch {epoch + 1}: loss {total * BATCH / len(order):.4f}")
    return trained, running


def onnx_model(trained: dict, running: dict) -> onnx.ModelProto:
    """The network in the form of an exporter: batch normalisation and activations are separate nodes."""
    weights = {"pixel_scale": PIXEL_SCALE, **trained, **running}
    nodes = [helper.make_node("Mul", ["images", "pixel_scale"], ["scaled"], "/scale")]
    x = "scaled"
    for i in range(1, len(CHANNELS) + 1):
        conv, bn, relu = f"conv{i}.out", f"bn{i}.out", f"relu{i}.out"
        statistics = [f"bn{i}.{part}" for part in ("scale", "bias", "mean", "var")]
        nodes += [
            helper.make_node(
                "Conv", [x, f"conv{i}.weight"], [conv], f"/conv{i}", kernel_shape=[3, 3], pads=[1] * 4
            ),
            helper.make_node(
                "BatchNormalization", [conv, *statistics], [bn], f"/bn{i}", epsilon=BN_EPSILON
            ),
            helper.make_node("Relu", [bn], [relu], f"/relu{i}"),
        ]
        x = relu
        if i == 2:
            nodes.append(
                helper.make_node(
                    "MaxPool", [x], ["pooled"], "/pool", kernel_shape=[2, 2], strides=[2, 2]
                )
            )
            x = "pooled"
    nodes += [
        helper.make_node("Flatten", [x], ["flat"], "/flatten", axis=1),
        helper.make_node("Gemm", ["flat", "fc.weight", "fc.bias"], ["logits"], "/fc", transB=1),
        helper.make_node("Softmax", ["logits"], ["probabilities"], "/softmax", axis=1),
    ]
    graph = helper.make_graph(
        nodes,
        "digits",
        [helper.make_tensor_value_info("images", TensorProto.FLOAT, ["batch", 1, 8, 8])],
        [helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, ["batch", 10])],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in weights.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    model.producer_name = "examples/digits/train.py"
    onnx.checker.check_model(model, full_check=True)
    return model


def main() -> None:
    jax.config.update("jax_default_matmul_precision", "highest")
    digits = load_digits()
    images = digits.images.astype(np.float32)[:, None]
    labels = digits.target.astype(np.int64)
    trained, running = train(images[:-HELD_BACK], labels[:-HELD_BACK])
    held_back = images[-HELD_BACK:]
    probabilities = np.asarray(jax.nn.softmax(logits(trained, running, held_back, training=False)[0]))
    right = int((probabilities.argmax(1) == labels[-HELD_BACK:]).sum())
    print(f"held out: {right} of {HELD_BACK} right ({100 * right / HELD_BACK:.2f} %)")
    onnx.save(onnx_model(trained, running), HERE / "digits.onnx")
    np.save(HERE / "images.npy", held_back)
    np.save(HERE / "labels.npy", labels[-HELD_BACK:])
    np.save(HERE / "probabilities.npy", probabilities)


if __name__ == "__main__":
    main()
