"""Shapes in the graph IR's text: operators on tensors, and kernels."""

from textwrap import indent

from shapes import Shapes
from text import Text, chain_of, commas, fold, function, lines, links, reversed_fold, values

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


# Parts that each use the one before twice: a walk that follows every path to them, instead of visiting each part once,
# takes 2^n steps. They stand wherever an expression may.


def shared(n: int, first: str, link: Text) -> str:
    return f"  $0 = {first}\n" + links(n, link, "$")


def shared_minima(n: int, first: str = "%x[0]") -> str:
    return shared(n, first, lambda i: f"min(${i}, ${i} + {i + 1})")


def kernel_of_shared_parts(body: str) -> str:
    vector = "tensor[16; i64]"
    return kernel(vector, vector, body) + call_of_kernel(vector, vector)


def compute_of_shared_parts(stage: str, results: str = "tensor[16; i64]") -> str:
    compute = f"compute @k(%x: tensor[16; i64], %w: tensor[64, 64; i32]) -> (%y) {{\n{stage}}}\n"
    return compute + function("%x: tensor[16; i64], %w: tensor[64, 64; i32]", results, "  kernel @k(%x, %w)\n")


@SHAPES.register(compile=16, most=128)
def shared_extent(n: int) -> str:
    return kernel_of_shared_parts(f"{shared_minima(n)}  for %i from 0 count ${n} {{ %y[0] = %i }}\n")


@SHAPES.register(compile=16, most=128)
def shared_extent_in_a_task(n: int) -> str:
    body = f"{shared_minima(n)}  for %i from ${n} count ${n} {{ %y[%p] = %i }}\n"
    return kernel_of_shared_parts(f"  parallel %p from 0 count 16 {{\n{body}  }}\n")


@SHAPES.register(compile=16, most=128)
def shared_extent_around_tasks(n: int) -> str:
    body = f"{shared_minima(n, '%i')}  parallel %p from 0 count ${n} {{ %y[0] = %i }}\n"
    return kernel_of_shared_parts(f"  for %i from 0 count 16 {{\n{body}  }}\n")


@SHAPES.register(compile=16, most=128)
def shared_extent_of_a_constant(n: int) -> str:
    """The kernel is called while it is compiled, if it doesn't take long."""
    body = f"{shared_minima(n, '%p')}  for %i from 0 count ${n} {{ %y[%p] = %i }}\n"
    made = kernel_of_shared_parts(f"  for %p from 0 count 16 {{\n{body}  }}\n").split("fn @main")[0]
    return made + function("", "tensor[16; i64]", f"  kernel @k(tensor[16; i64]{{{commas(16, lambda i: '1')}}})\n")


@SHAPES.register(compile=16, most=128)
def shared_begin(n: int) -> str:
    return kernel_of_shared_parts(f"{shared_minima(n)}  for %i from ${n} count 4 {{ %y[0] = %i }}\n")


@SHAPES.register(compile=16, most=128)
def shared_let(n: int) -> str:
    body = f"{shared_minima(n)}  let %n = ${n}\n  for %i from 0 count %n {{ %y[%p] = %i }}\n"
    return kernel_of_shared_parts(f"  for %p from 0 count 16 {{\n{body}  }}\n")


@SHAPES.register(compile=16, most=128)
def shared_index_of_a_map(n: int) -> str:
    return compute_of_shared_parts(
        f"  map %y: tensor[16; i64] at [%i] {{\n{shared_minima(n, '%i')}    %x[checked(${n}, 16)] + %x[min(${n}, %i)]\n  }}\n"
    )


@SHAPES.register(schedule=128, most=512)
def shared_condition_of_a_map(n: int) -> str:
    """Comparisons that may divide the axis into parts."""
    choices = shared(n, "%i", lambda i: f"select(${i} < {i + 1}, ${i} + 1, ${i})")
    return compute_of_shared_parts(f"  map %y: tensor[4096; i64] at [%i] {{\n{choices}    ${n}\n  }}\n", "tensor[4096; i64]")


@SHAPES.register(schedule=128, most=512)
def shared_quotients_of_a_map(n: int) -> str:
    """Quotients of sums, which may be simplified."""
    quotients = shared(n, "%i", lambda i: f"floordiv((${i} + %x[%i]) + ${i}, 3)")
    return compute_of_shared_parts(f"  map %y: tensor[16; i64] at [%i] {{\n{quotients}    ${n}\n  }}\n")


@SHAPES.register(compile=16, most=128)
def shared_words_of_a_product(n: int) -> str:
    """Words that a product of bytes may read in place."""
    words = shared(n, "%w[%i, %r]", lambda i: f"${i} | (${i} << i32({i % 7 + 1}))")
    stage = "  reduce sum in i32 %y: tensor[16, 64; i32] at [%i, %j] over [%r < 64] {\n"
    return compute_of_shared_parts(f"{stage}{words}    byte_dot(${n}, %w[%r, %j])\n  }}\n", "tensor[16, 64; i32]")


@SHAPES.register(compile=16, most=128)
def shared_factor_of_windows(n: int) -> str:
    """A product of windows that slide along a row, which may be written out for each place."""
    factors = shared(n, "%v[%r, %p + %s, %c]", lambda i: f"${i} + (${i} * {i % 7}.5)")
    operands = "%v: tensor[3, 64, 62; f32], %k: tensor[3, 5, 62; f32]"
    stage = "  reduce sum in f32 %y: tensor[60, 62; f32] at [%p, %c] over [%r < 3, %s < 5] {\n"
    compute = f"compute @k({operands}) -> (%y) {{\n{stage}{factors}    ${n} * %k[%r, %s, %c]\n  }}\n}}\n"
    return compute + function(operands, "tensor[60, 62; f32]", "  kernel @k(%v, %k)\n")


@SHAPES.register(compile=256, most=1024)
def loads_that_share_an_index(n: int) -> str:
    """Each of n loads has an index of n parts."""
    made: list[str] = []

    def folded(parts: list[str], operator: str) -> str:
        """The part at the root of a balanced tree, which is added to those that were made."""
        while len(parts) > 1:
            rest = parts[len(parts) // 2 * 2 :]
            pairs = zip(parts[::2], parts[1::2], strict=False)
            made.extend(operator.format(*pair) for pair in pairs)
            parts = [f"${i}" for i in range(len(made) - len(parts) // 2, len(made))] + rest
        return parts[0]

    index = folded([f"min(%i, {i + 5})" for i in range(n)], "max({}, {})")
    total = folded([f"%x[{index} + {i}]" for i in range(n)], "{} + {}")
    body = lines(len(made), lambda i: f"    ${i} = {made[i]}\n")
    vector = "tensor[16384; f32]"
    stage = f"  map %y: tensor[1024; f32] at [%i] {{\n{body}    {total}\n  }}\n"
    return f"compute @k(%x: {vector}) -> (%y) {{\n{stage}}}\n" + call_of_kernel(vector, "tensor[1024; f32]")
