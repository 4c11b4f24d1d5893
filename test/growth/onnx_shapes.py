"""Shapes of ONNX models."""

from shapes import Shapes, nests
from wire import BOOL, INT64, graph, message, model, node, tensor, value_info

SHAPES = Shapes("onnx")

DEPTH = 20  # of nested graphs
CONDITION = value_info("c", [], BOOL)


def matrix(name: str) -> bytes:
    return value_info(name, ["n", 4])


def chain_of(nodes: list[bytes], inputs: list[bytes] = [], **parts: list[bytes]) -> bytes:
    """A model of nodes that make v1 of v0, v2 of v1, and so on. It takes v0 and the inputs, and returns the last."""
    return model(nodes, [matrix("v0"), *inputs], [matrix(f"v{len(nodes)}")], **parts)


def relus(n: int) -> list[bytes]:
    return [node("Relu", [f"v{i}"], [f"v{i + 1}"]) for i in range(n)]


def one_relu(weights: list[bytes]) -> bytes:
    return model([node("Relu", ["x"], ["y"])], [matrix("x")], [matrix("y")], weights)


def one_node(op: str, operands: list[str], result: str, **attributes: bytes) -> bytes:
    """A graph that captures the operands of its node."""
    return graph("g", [node(op, operands, [result], **attributes)], [], [matrix(result)])


@SHAPES.register(inspect=8192, plan=512)
def nodes(n: int) -> bytes:
    products = [node("MatMul", [f"v{i}", "w"], [f"v{i + 1}"]) for i in range(n)]
    return chain_of(products, [value_info("w", [4, 4])])


@SHAPES.register(plan=8192)
def unordered_nodes(n: int) -> bytes:
    return chain_of(relus(n)[::-1])


@SHAPES.register(inspect=256, plan=256, most=4000)
def outputs(n: int) -> bytes:
    products = [node("MatMul", ["x", f"w{i}"], [f"y{i}"]) for i in range(n)]
    weights = [tensor(f"w{i}", [4, 1], [float(i)] * 4) for i in range(n)]
    return model(products, [matrix("x")], [value_info(f"y{i}", ["n", 1]) for i in range(n)], weights)


@SHAPES.register(inspect=256, plan=256, most=4000)
def inputs(n: int) -> bytes:
    """Each input has a symbol of its own."""
    sums = [node("ReduceSum", [f"x{i}"], [f"r{i}"], keepdims=1) for i in range(n)]
    joined = node("Concat", [f"r{i}" for i in range(n)], ["y"], axis=0)
    given = [value_info(f"x{i}", [f"s{i}"]) for i in range(n)]
    return model([*sums, joined], given, [value_info("y", [n])])


@SHAPES.register(inspect=512, plan=64, most=4000)
def broadcasts(n: int) -> bytes:
    """Operands whose sizes have symbols of their own are broadcast against each other, by one node and by many."""
    sums = node("Sum", [f"x{i}" for i in range(n)], ["v0"])
    products = [node("Mul", [f"v{i}", f"x{i}"], [f"v{i + 1}"]) for i in range(n)]
    given = [value_info(f"x{i}", [f"s{i}"]) for i in range(n)]
    return model([sums, *products], given, [value_info(f"v{n}", ["d"])])


@SHAPES.register(inspect=4096, plan=512)
def initializers(n: int) -> bytes:
    sums = [node("Add", [f"v{i}", f"w{i}"], [f"v{i + 1}"]) for i in range(n)]
    return chain_of(sums, weights=[tensor(f"w{i}", [4], [1.0, 2.0, 3.0, float(i)]) for i in range(n)])


@SHAPES.register(inspect=16384, plan=16384)
def unused_initializers(n: int) -> bytes:
    return one_relu([tensor(f"w{i}", [1], [float(i)]) for i in range(n)])


@SHAPES.register(plan=8192)
def value_infos(n: int) -> bytes:
    return chain_of(relus(n), infos=[matrix(f"v{i + 1}") for i in range(n)])


@SHAPES.register(inspect=131072, plan=131072)
def opsets_and_metadata(n: int) -> bytes:
    properties = [(14, message((1, f"key {i}"), (2, "value"))) for i in range(n)]
    return one_relu([]) + message(*properties)


@SHAPES.register(inspect=2048, plan=128)
def conditions(n: int) -> bytes:
    def branch(op: str, at: int) -> bytes:
        return one_node(op, [f"v{at}"], f"b{at}{op}")

    ifs = [
        node("If", ["c"], [f"v{i + 1}"], then_branch=branch("Relu", i), else_branch=branch("Exp", i))
        for i in range(n)
    ]
    return chain_of(ifs, [CONDITION])


@SHAPES.register(inspect=2048, plan=128)
def nested_conditions(n: int) -> bytes:
    def nest(at: int, depth: int) -> bytes:
        own = f"b{at}_{depth}"
        if depth == 0:
            return one_node("Relu", [f"v{at}"], own)
        other = one_node("Exp", [f"v{at}"], own + "e")
        return one_node("If", ["c"], own, then_branch=nest(at, depth - 1), else_branch=other)

    ifs = [
        node("If", ["c"], [f"v{i + 1}"], then_branch=nest(i, depth), else_branch=one_node("Exp", [f"v{i}"], f"e{i}"))
        for i, depth in enumerate(nests(n, DEPTH))
    ]
    return chain_of(ifs, [CONDITION])


@SHAPES.register(inspect=1024, plan=64)
def onnx_loops(n: int) -> bytes:
    def body(at: int) -> bytes:
        return graph(
            "g",
            [node("Relu", [f"in{at}"], [f"out{at}"]), node("Identity", [f"c{at}"], [f"d{at}"])],
            [value_info(f"i{at}", [], INT64), value_info(f"c{at}", [], BOOL), matrix(f"in{at}")],
            [value_info(f"d{at}", [], BOOL), matrix(f"out{at}")],
        )

    loops = [node("Loop", ["m", "c", f"v{i}"], [f"v{i + 1}"], body=body(i)) for i in range(n)]
    return chain_of(loops, [value_info("m", [], INT64), CONDITION])


@SHAPES.register(inspect=4096, plan=4096)
def model_functions(n: int) -> bytes:
    """Each function is called once, on the result of the one before it."""
    relu, opset = node("Relu", ["x"], ["y"]), message((1, ""), (2, 17))
    functions = [
        message((1, f"f{i}"), (4, "x"), (5, "y"), (7, relu), (9, opset), (10, "local")) for i in range(n)
    ]
    return chain_of([node(f"f{i}", [f"v{i}"], [f"v{i + 1}"], "local") for i in range(n)], functions=functions)


@SHAPES.register(plan=4096)
def shape_arithmetic(n: int) -> bytes:
    """Sizes that are computed as data, each from the one before it."""
    sums = [node("Add", [f"s{i}", "one"], [f"s{i + 1}"]) for i in range(n)]
    steps = [node("Shape", ["x"], ["s0"]), *sums, node("Expand", ["z", f"s{n}"], ["y"])]
    weights = [tensor("one", [2], [1, 0], INT64), tensor("z", [1], [1.0])]
    return model(steps, [matrix("x")], [value_info("y", ["m", 4])], weights)


@SHAPES.register(plan=2048)
def reshapes(n: int) -> bytes:
    steps = []
    for i in range(n):
        steps.append(node("Shape", [f"v{i}"], [f"s{i}"]))
        steps.append(node("Reshape", [f"u{i}", f"s{i}"], [f"v{i + 1}"]))
        steps.append(node("Relu", [f"v{i + 1}"], [f"u{i + 1}"]))
    return model(steps, [matrix("v0"), matrix("u0")], [matrix(f"u{n}")])


@SHAPES.register(plan=8192)
def unsupported_nodes(n: int) -> bytes:
    """The importer lists them all."""
    return chain_of([node(f"Unknown{i}", [f"v{i}"], [f"v{i + 1}"]) for i in range(n)])


@SHAPES.register(plan=1024)
def concatenation(n: int) -> bytes:
    steps = [node("Relu", ["x"], ["r"]), node("Concat", ["r"] * n, ["y"], axis=0)]
    return model(steps, [matrix("x")], [value_info("y", ["m", 4])])
