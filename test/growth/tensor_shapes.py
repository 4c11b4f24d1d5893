"""Shapes in the graph IR's text: operators on tensors, and kernels."""

from textwrap import indent

from shapes import Shapes
from text import chain_of, commas, fold, function, lines, links, reversed_fold, values

SHAPES = Shapes("tn")

MATRIX = "tensor[4, 4; f32]"


def kernel(operand: str, result: str, body: str, name: str = "k") -> str:
    return f"kernel @{name}(%x: {operand}) -> (%y: {result}) {{\n{body}}}\n"


def call_of_kernel(operand: str, result: str) -> str:
    return function(f"%x: {operand}", result, "  kernel @k(%x)\n")


@SHAPES.register(check=4096, plan=512)
def operators(n: int) -> str:
    """Operators that don't fuse, each on the one before it."""
    return function(f"%x: {MATRIX}, %v0: {MATRIX}", MATRIX, chain_of(n, lambda i: f"matmul(%v{i}, %x)"))


@SHAPES.register(plan=128)
def parallel_operators(n: int) -> str:
    body = values(n, "%v", lambda i: f"slice(%x, starts=[{i}], sizes=[4])") + fold(n, "exp(%y)", "%v")
    return function(f"%x: tensor[{n + 4}; f32], %y: tensor[4; f32]", "tensor[4; f32]", body)


@SHAPES.register(plan=512)
def elementwise(n: int) -> str:
    body = chain_of(n, lambda i: f"{'exp' if i % 2 else 'tanh'}(%v{i})")
    return function("%v0: tensor[n; f32]", "tensor[n; f32]", body)


def products_alive_together(n: int, matrix: str) -> str:
    """A chain of products that are all used at the end, in reverse."""
    body = links(n, lambda i: f"matmul(%v{i}, %x)") + reversed_fold(n, "matmul(%x, %x)", "%v", "matmul")
    return function(f"%x: {matrix}, %v0: {matrix}", matrix, body)


@SHAPES.register(plan=256)
def tensors_alive_together(n: int) -> str:
    return products_alive_together(n, MATRIX)


@SHAPES.register(plan=128)
def symbolic_tensors_alive_together(n: int) -> str:
    return products_alive_together(n, "tensor[n, n; f32]")


@SHAPES.register(plan=128)
def tensors_of_many_sizes(n: int) -> str:
    body = lines(
        n,
        lambda i: f"  %v{i} = expand(%x, shape=[{i + 1}, a])\n  %w{i} = reduce_max(%v{i}, axes=[0])\n",
    )
    return function("%x: tensor[a; f32]", "tensor[a; f32]", body + fold(n, "exp(%x)", "%w"))


@SHAPES.register(plan=128)
def tensors_in_branches(n: int) -> str:
    body = chain_of(n, lambda i: f"if %c {{ matmul(%v{i}, %x) }} else {{ relu(%v{i}) }}")
    return function(f"%x: {MATRIX}, %v0: {MATRIX}, %c: bool", MATRIX, body)


@SHAPES.register(plan=128, most=4000)
def tuples_of_tensors(n: int) -> str:
    body = values(n, "%y", lambda i: f"mul(%x, tensor[f32]{{{i}}})") + values(n, "%v", lambda i: f"matmul(%x, %y{i})")
    body += f"  %t = ({commas(n, lambda i: f'%v{i}')})\n"
    body += fold(n, "matmul(%x, %x)", "%f", "matmul", before=lambda i: f"  %f{i} = %t.{i}\n")
    return function(f"%x: {MATRIX}", MATRIX, body)


@SHAPES.register(plan=256)
def kept_arguments(n: int) -> str:
    """Each call may return any argument of a call before it."""
    f = function(f"%a: {MATRIX}, %b: {MATRIX}", MATRIX, "  %c = matmul(%a, %b)\n  %c\n", "f")
    body = chain_of(n, lambda i: f"@f(%v{i}, %m{i})", before=lambda i: f"  %m{i} = matmul(%x, %v{i})\n")
    return f + function(f"%x: {MATRIX}, %v0: {MATRIX}", MATRIX, body)


@SHAPES.register(check=2048, plan=512, json=512)
def constants(n: int) -> str:
    body = chain_of(n, lambda i: f"matmul(%v{i}, tensor[2, 2; f32]{{1, 2, 3, {i}}})")
    return function("%v0: tensor[2, 2; f32]", "tensor[2, 2; f32]", body)


@SHAPES.register(plan=128)
def constants_that_fail(n: int) -> str:
    """Folding finds that none of the quotients can be computed."""
    body = values(n, "%q", lambda i: f"div(tensor[2; i64]{{1, {i}}}, tensor[2; i64]{{0, 1}})")
    return function("%x: tensor[2; i64]", "tensor[2; i64]", body + fold(n, "neg(%x)", "%q"))


@SHAPES.register(check=2048)
def named_constants(n: int) -> str:
    weight = f'tensor[65; f32]{{{commas(65, lambda i: "0")}}} as "w"'
    body = chain_of(n, lambda i: f"add(%v{i}, %w{i})", before=lambda i: f"  %w{i} = {weight}\n")
    return function("%v0: tensor[65; f32]", "tensor[65; f32]", body)


@SHAPES.register(plan=256, most=4000)
def results_of_a_kernel(n: int) -> str:
    body = f"  {commas(n, lambda i: f'%p{i}')} = split(%x, axis=0, sizes=[{commas(n, lambda i: '2')}])\n"
    body += fold(n, "exp(%y)", "%p")
    return function(f"%x: tensor[{2 * n}; f32], %y: tensor[2; f32]", "tensor[2; f32]", body)


@SHAPES.register(plan=256)
def operands_of_a_call(n: int) -> str:
    body = values(n, "%v", lambda i: f"mul(%x, tensor[f32]{{{i}}})")
    body += f"  concat({commas(n, lambda i: f'%v{i}')}, axis=0)\n"
    return function("%x: tensor[2; f32]", f"tensor[{2 * n}; f32]", body)


@SHAPES.register(schedule=128)
def kernels(n: int) -> str:
    """Kernels that all differ."""
    body = chain_of(n, lambda i: f"pad(%v{i}, before=[{i % 5 + 1}], after=[{i // 5}])")
    return function("%v0: tensor[a; f32]", "tensor[rank=1; f32]", body)


@SHAPES.register(check=8192)
def kernel_statements(n: int) -> str:
    vector = f"tensor[{n}; f32]"
    body = lines(n, lambda i: f"  %y[{i}] = %x[{i}] * {i}.0\n")
    return kernel(vector, vector, body) + call_of_kernel(vector, vector)


@SHAPES.register(check=2048)
def kernel_parts(n: int) -> str:
    operand, result = f"tensor[{n}; f32]", "tensor[1; f32]"
    body = "  $0 = %x[0]\n" + links(n, lambda i: f"${i} + %x[{i}]", "$") + f"  %y[0] = ${n}\n"
    return kernel(operand, result, body) + call_of_kernel(operand, result)


@SHAPES.register(check=2048)
def compute_parts(n: int) -> str:
    vector = "tensor[4; f32]"
    body = indent("  $0 = %x[%i]\n" + chain_of(n, lambda i: f"${i} * (${i} + 1.0)", "$"), "  ")
    compute = f"compute @k(%x: {vector}) -> (%y) {{\n  map %y: {vector} at [%i] {{\n{body}  }}\n}}\n"
    return compute + call_of_kernel(vector, vector)


@SHAPES.register(check=2048)
def many_kernels(n: int) -> str:
    vector = "tensor[2; f32]"
    kernels = lines(n, lambda i: kernel(vector, vector, "  %y[0] = %x[1]\n", f"k{i}"))
    return kernels + function(f"%v0: {vector}", vector, chain_of(n, lambda i: f"kernel @k{i}(%v{i})"))
