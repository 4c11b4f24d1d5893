import numpy as np
import pytest

import tenon

ADD = "fn @main(%x: tensor[n; f32], %y: tensor[n; f32]) -> tensor[n; f32] { add(%x, %y) }"


@pytest.fixture(scope="session")
def add():
    """An executable whose main adds two vectors."""
    return tenon.compile(tenon.ir.parse(ADD))


@pytest.fixture
def x():
    return np.arange(4, dtype="float32")


@pytest.fixture
def relu_model():
    """An onnx.ModelProto: y = relu(x), both of shape [batch, 3]."""
    onnx = pytest.importorskip("onnx")
    value = lambda name: onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ["batch", 3])
    node = onnx.helper.make_node("Relu", ["x"], ["y"])
    graph = onnx.helper.make_graph([node], "g", [value("x")], [value("y")])
    return onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)
