"""Hostile programs of any size: each shape repeats one construct n times.

`shapes()` has them all. The text of a shape of size 2n is about twice as long as that of size n. Where nesting is
limited, a shape repeats its deepest nest instead.
"""

from collections.abc import Callable
from dataclasses import dataclass

from wire import message, model, node, tensor, value_info

DEPTH = 90  # of nested constructs; the parsers accept 100

# Commands by name; $I is the input, $O an output file. Those in READERS read what `asm` makes of the input.
COMMANDS = {
    "check": ("opt", "$I", "--passes", ""),
    "compile": ("compile", "$I", "-o", "$O"),
    "plan": ("compile", "$I", "--stop-after", "plan_memory"),
    "schedule": ("compile", "$I", "--stop-after", "schedule"),
    "json": ("$I",),  # of json_both_ways
    "inspect": ("inspect", "$I"),
    "asm": ("asm", "$I", "-o", "$O"),
    "disasm": ("disasm", "$I", "-o", "$O"),
    "verify": ("verify", "$I"),
    "dump": ("dump", "--text", "$I"),
}
READERS = ("disasm", "verify", "dump")


@dataclass(frozen=True)
class Shape:
    name: str
    make: Callable[[int], str | bytes]
    command: str
    suffix: str  # of the input file
    first: int  # the smallest size to measure
    most: int  # the largest size that tenon accepts

    @property
    def label(self) -> str:
        return f"{self.suffix}/{self.name}/{self.command}"


ALL: list[Shape] = []


def shape(suffix: str, most: int = 1 << 20, **first: int) -> Callable:
    """Registers a function of n under its name for each command, with the smallest size to measure."""

    def register(make: Callable[[int], str | bytes]) -> Callable:
        ALL.extend(Shape(make.__name__, make, command, suffix, n, most) for command, n in first.items())
        return make

    return register


def shapes() -> list[Shape]:
    return ALL


def lines(n: int, line: Callable[[int], str]) -> str:
    return "".join(line(i) for i in range(n))


def function(parameters: str, result: str, body: str, name: str = "main") -> str:
    return f"fn @{name}({parameters}) -> {result} {{\n{body}}}\n"


# ---- graph IR: scalars, which need no kernels ----


@shape("tn", check=4096, compile=512, json=512)
def chain(n: int) -> str:
    body = lines(n, lambda i: f"  %v{i + 1} = add(%v{i}, {i})\n")
    return function("%v0: i64", "i64", f"{body}  %v{n}\n")


@shape("tn", compile=512)
def reversed_uses(n: int) -> str:
    """All values are alive in the middle."""
    body = lines(n, lambda i: f"  %v{i} = mul(%x, {i + 2})\n")
    body += f"  %s{n} = add(%x, 1)\n"
    body += lines(n, lambda i: f"  %s{n - 1 - i} = add(%s{n - i}, %v{n - 1 - i})\n")
    return function("%x: i64", "i64", f"{body}  %s0\n")


@shape("tn", compile=256)
def branches(n: int) -> str:
    body = lines(
        n,
        lambda i: f"  %c{i} = less(%v{i}, {i})\n"
        f"  %v{i + 1} = if %c{i} {{ add(%v{i}, 1) }} else {{ add(%v{i}, 2) }}\n",
    )
    return function("%v0: i64", "i64", f"{body}  %v{n}\n")


@shape("tn", compile=256)
def branches_with_old_values(n: int) -> str:
    """Each branch uses values from far before it."""
    body = lines(n, lambda i: f"  %w{i} = mul(%x, {i + 2})\n")
    body += "  %c = less(%x, 1)\n  %v0 = add(%x, 3)\n"
    body += lines(
        n,
        lambda i: f"  %v{i + 1} = if %c {{ add(%v{i}, %w{i}) }} else {{ add(%w{i}, %w{n - 1 - i}) }}\n",
    )
    return function("%x: i64", "i64", f"{body}  %v{n}\n")


@shape("tn", compile=512, json=512)
def nested_branches(n: int) -> str:
    def nest(at: int, depth: int) -> str:
        if depth == 0:
            return f"add(%v{at}, 1)"
        return f"if %c {{ {nest(at, depth - 1)} }} else {{ add(%v{at}, {depth}) }}"

    body = lines(n // DEPTH + 1, lambda i: f"  %v{i + 1} = {nest(i, DEPTH)}\n")
    return function("%v0: i64, %c: bool", "i64", f"{body}  %v{n // DEPTH + 1}\n")


@shape("tn", compile=256)
def loops(n: int) -> str:
    body = lines(
        n,
        lambda i: f"  %v{i + 1} = loop (%i{i}: i64 = %v{i}) while {{ less(%i{i}, {i}) }} {{ add(%i{i}, 1) }}\n",
    )
    return function("%v0: i64", "i64", f"{body}  %v{n}\n")


@shape("tn", compile=256)
def loops_with_old_values(n: int) -> str:
    body = lines(n, lambda i: f"  %w{i} = mul(%x, {i + 2})\n") + "  %v0 = add(%x, 3)\n"
    body += lines(
        n,
        lambda i: f"  %v{i + 1} = loop (%i{i}: i64 = %v{i}) while {{ less(%i{i}, %w{i}) }}"
        f" {{ add(%i{i}, %w{n - 1 - i}) }}\n",
    )
    return function("%x: i64", "i64", f"{body}  %v{n}\n")


@shape("tn", compile=256)
def nested_loops(n: int) -> str:
    def nest(at: str, depth: int) -> str:
        if depth == 0:
            return f"add({at}, 1)"
        own = f"%i{depth}"
        return f"loop ({own}: i64 = {at}) while {{ less({own}, {depth}) }} {{ {nest(own, depth - 1)} }}"

    body = lines(n // DEPTH + 1, lambda i: f"  %v{i + 1} = {nest(f'%v{i}', DEPTH)}\n")
    return function("%v0: i64", "i64", f"{body}  %v{n // DEPTH + 1}\n")


@shape("tn", compile=1024)
def loop_body(n: int) -> str:
    body = lines(n, lambda i: f"    %v{i + 1} = add(%v{i}, {i})\n")
    return function(
        "%x: i64", "i64", f"  loop (%v0: i64 = %x) while {{ less(%v0, 9) }} {{\n{body}    %v{n}\n  }}\n"
    )


@shape("tn", compile=128, most=2000)
def loop_variables(n: int) -> str:
    variables = ", ".join(f"%v{i}: i64 = {i}" for i in range(n))
    rotated = ", ".join(f"%v{(i + 1) % n}" for i in range(n))
    body = f"  %t = loop ({variables}) while {{ less(%v0, %x) }} {{ ({rotated}) }}\n  %t.0\n"
    return function("%x: i64", "i64", body)


@shape("tn", check=2048, compile=512, json=512)
def functions(n: int) -> str:
    calls = lines(
        n, lambda i: function("%x: i64", "i64", f"  %y = mul(%x, {i})\n  @f{i + 1}(%y)\n", f"f{i}")
    )
    return calls + function("%x: i64", "i64", "  add(%x, 1)\n", f"f{n}")


@shape("tn", compile=256)
def recursive_functions(n: int) -> str:
    return lines(
        n,
        lambda i: function(
            "%x: i64",
            "i64",
            f"  %c = less(%x, {i})\n  if %c {{ %x }} else {{\n    %y = sub(%x, 1)\n"
            f"    @f{(i + 1) % n}(%y)\n  }}\n",
            f"f{i}",
        ),
    )


@shape("tn", compile=1024)
def calls_of_one_function(n: int) -> str:
    body = lines(n, lambda i: f"  %v{i + 1} = @f(%v{i}, {i})\n")
    return function("%x: i64, %y: i64", "i64", "  add(%x, %y)\n", "f") + function(
        "%v0: i64", "i64", f"{body}  %v{n}\n"
    )


@shape("tn", check=256, compile=256, most=4000)
def parameters(n: int) -> str:
    body = "  %s0 = add(%x0, 1)\n" + lines(n, lambda i: f"  %s{i + 1} = add(%s{i}, %x{i})\n")
    return function(", ".join(f"%x{i}: i64" for i in range(n)), "i64", f"{body}  %s{n}\n")


@shape("tn", check=256, compile=256, most=4000)
def results(n: int) -> str:
    body = lines(n, lambda i: f"  %v{i} = add(%x, {i})\n")
    names = ", ".join(f"%v{i}" for i in range(n))
    return function("%x: i64", f"({', '.join(['i64'] * n)})", f"{body}  ({names})\n")


@shape("tn", check=256, compile=256, most=4000)
def tuple_fields(n: int) -> str:
    body = lines(n, lambda i: f"  %v{i} = add(%x, {i})\n")
    body += f"  %t = ({', '.join(f'%v{i}' for i in range(n))})\n  %s0 = add(%x, 1)\n"
    body += lines(n, lambda i: f"  %f{i} = %t.{i}\n  %s{i + 1} = add(%s{i}, %f{i})\n")
    return function("%x: i64", "i64", f"{body}  %s{n}\n")


@shape("tn", compile=512)
def nested_tuples(n: int) -> str:
    def one(at: int) -> str:
        body = f"  %t{at}_0 = (%v{at}, {at})\n"
        body += lines(DEPTH, lambda i: f"  %t{at}_{i + 1} = (%t{at}_{i}, {i})\n")
        body += f"  %u{at}_{DEPTH + 1} = (%t{at}_{DEPTH}, 1)\n"
        body += lines(
            DEPTH + 1, lambda i: f"  %u{at}_{DEPTH - i} = %u{at}_{DEPTH + 1 - i}.0\n"
        )
        return body + f"  %w{at} = %u{at}_0.0\n  %v{at + 1} = add(%w{at}, 1)\n"

    count = n // DEPTH + 1
    return function("%v0: i64", "i64", lines(count, one) + f"  %v{count}\n")


@shape("tn", compile=512)
def uses_of_one_value(n: int) -> str:
    body = lines(n, lambda i: f"  %v{i} = mul(%x, {i + 2})\n") + "  %s0 = add(%x, %x)\n"
    body += lines(n, lambda i: f"  %s{i + 1} = add(%s{i}, %v{i})\n")
    return function("%x: i64", "i64", f"{body}  %s{n}\n")


@shape("tn", check=8192, compile=512)
def checks(n: int) -> str:
    body = lines(n, lambda i: f"  check a <= {i + 1}*b, \"check {i}\"\n")
    return function("%a: i64 = [a], %b: i64 = [b]", "i64", f"{body}  %a\n")


@shape("tn", check=4096, compile=512)
def matched_symbols(n: int) -> str:
    body = lines(n, lambda i: f"  %v{i + 1} = match_elements(%v{i}, [s{i}])\n")
    return function("%v0: i64", "i64", f"{body}  %v{n}\n")


@shape("tn", check=4096)
def symbols(n: int) -> str:
    """Each parameter has a size of its own."""
    return function(", ".join(f"%x{i}: tensor[s{i}; f32]" for i in range(n)), "tensor[s0; f32]", "  relu(%x0)\n")


@shape("tn", check=128, most=2000)
def terms_of_a_size(n: int) -> str:
    terms = " + ".join(f"s{i}" for i in range(n))
    sizes = ", ".join(f"%s{i}: i64 = [s{i}]" for i in range(n))
    return function(f"{sizes}, %x: tensor[{terms}; f32]", f"tensor[{terms}; f32]", "  %x\n")


@shape("tn", check=2048)
def sizes(n: int) -> str:
    body = lines(n, lambda i: f"  %v{i} = expand(%x, shape=[{i + 2}*a + b, a])\n")
    return function("%x: tensor[a; f32], %y: tensor[b; f32]", "tensor[a; f32]", f"{body}  %x\n")


@shape("tn", check=32768, compile=8192)
def long_names(n: int) -> str:
    """Names of n bytes in all, that agree but for their end."""
    name = "n" * 1000
    count = n // 10 + 1
    body = lines(count, lambda i: f"  %{name}{i + 1} = add(%{name}{i}, {i})\n")
    return function(f"%{name}0: i64", "i64", f"{body}  %{name}{count}\n")


@shape("tn", check=4096)
def equal_names(n: int) -> str:
    """The printer must tell variables of one name apart."""
    body = lines(
        n, lambda i: f"  %v{i + 1} = if %c {{\n    %a = add(%v{i}, 1)\n    %a\n  }} else {{ %v{i} }}\n"
    )
    return function("%v0: i64, %c: bool", "i64", f"{body}  %v{n}\n")


@shape("tn", check=131072, json=512)
def places(n: int) -> str:
    nodes = ", ".join(f'"node {i}"' for i in range(n))
    return function("%x: i64", "i64", f"  %y = add(%x, 1) at(nodes {nodes})\n  %z = add(%y, 1)\n  %z\n")


@shape("tn", check=65536, json=512)
def attributes(n: int) -> str:
    attributes = ", ".join(f"a{i}={i}" for i in range(n))
    return function(
        "%x: i64", "i64", f'  %y = packed "host.f"(%x, {attributes}) -> i64\n  %y\n'
    )


@shape("tn", check=131072)
def list_attribute(n: int) -> str:
    numbers = ", ".join(str(i) for i in range(n))
    return function("%x: i64", "i64", f'  %y = packed "host.f"(%x, list=[{numbers}]) -> i64\n  %y\n')


@shape("tn", compile=2048)
def packed_functions(n: int) -> str:
    body = lines(n, lambda i: f'  %v{i + 1} = packed "host.f{i}"(%v{i}) -> i64\n')
    return function("%v0: i64", "i64", f"{body}  %v{n}\n")


@shape("tn", compile=512)
def pure_packed_calls(n: int) -> str:
    """Calls that differ only in an attribute."""
    body = "  %s0 = add(%x, 1)\n" + lines(
        n,
        lambda i: f'  %v{i} = packed "host.f"(%x, {i}, number={i}, effect="pure") -> i64\n'
        f"  %s{i + 1} = add(%s{i}, %v{i})\n",
    )
    return function("%x: i64", "i64", f"{body}  %s{n}\n")


@shape("tn", check=4096)
def constructors(n: int) -> str:
    names = ", ".join(f"C{i}(i64)" for i in range(n))
    arms = lines(n, lambda i: f"    C{i}(%a{i}) => {{ add(%a{i}, {i}) }}\n")
    return f"type t {{ {names} }}\n" + function("%x: t", "i64", f"  match %x {{\n{arms}  }}\n")


@shape("tn", check=4096)
def data_types(n: int) -> str:
    types = lines(n, lambda i: f"type t{i} {{ C{i}(i64) }}\n")
    body = lines(n, lambda i: f"  %c{i} = C{i}({i})\n")
    return types + function("%x: i64", "i64", f"{body}  %x\n")


@shape("tn", check=128, most=2000)
def type_parameters(n: int) -> str:
    names = ", ".join(f"T{i}" for i in range(n))
    params = ", ".join(f"%x{i}: fn(T{i}) -> T{i}" for i in range(n))
    return f"fn @f[{names}]({params}) -> i64 {{ 1 }}\n"


@shape("tn", check=2048)
def closures(n: int) -> str:
    body = lines(n, lambda i: f"  %f{i} = fn(%y: i64) -> i64 {{ add(%y, %v{i}) }}\n  %v{i + 1} = %f{i}({i})\n")
    return function("%v0: i64", "i64", f"{body}  %v{n}\n")


# ---- graph IR: tensors ----


@shape("tn", check=4096, plan=512)
def operators(n: int) -> str:
    """Operators that don't fuse, each on the one before it."""
    body = lines(n, lambda i: f"  %v{i + 1} = matmul(%v{i}, %x)\n")
    return function("%x: tensor[4, 4; f32], %v0: tensor[4, 4; f32]", "tensor[4, 4; f32]", f"{body}  %v{n}\n")


@shape("tn", plan=128)
def parallel_operators(n: int) -> str:
    body = lines(n, lambda i: f"  %v{i} = slice(%x, starts=[{i}], sizes=[4])\n") + "  %s0 = exp(%y)\n"
    body += lines(n, lambda i: f"  %s{i + 1} = add(%s{i}, %v{i})\n")
    return function(
        f"%x: tensor[{n + 4}; f32], %y: tensor[4; f32]", "tensor[4; f32]", f"{body}  %s{n}\n"
    )


@shape("tn", plan=512)
def elementwise(n: int) -> str:
    body = lines(n, lambda i: f"  %v{i + 1} = {'exp' if i % 2 else 'tanh'}(%v{i})\n")
    return function("%v0: tensor[n; f32]", "tensor[n; f32]", f"{body}  %v{n}\n")


@shape("tn", plan=256)
def tensors_alive_together(n: int) -> str:
    """Products of a chain that are all used at the end, in reverse."""
    body = lines(n, lambda i: f"  %v{i + 1} = matmul(%v{i}, %x)\n") + f"  %s{n} = matmul(%x, %x)\n"
    body += lines(n, lambda i: f"  %s{n - 1 - i} = matmul(%s{n - i}, %v{n - 1 - i})\n")
    return function("%x: tensor[4, 4; f32], %v0: tensor[4, 4; f32]", "tensor[4, 4; f32]", f"{body}  %s0\n")


@shape("tn", plan=128)
def symbolic_tensors_alive_together(n: int) -> str:
    body = lines(n, lambda i: f"  %v{i + 1} = matmul(%v{i}, %x)\n") + f"  %s{n} = matmul(%x, %x)\n"
    body += lines(n, lambda i: f"  %s{n - 1 - i} = matmul(%s{n - i}, %v{n - 1 - i})\n")
    return function("%x: tensor[n, n; f32], %v0: tensor[n, n; f32]", "tensor[n, n; f32]", f"{body}  %s0\n")


@shape("tn", plan=128)
def tensors_of_many_sizes(n: int) -> str:
    body = lines(
        n,
        lambda i: f"  %v{i} = expand(%x, shape=[{i + 1}, a])\n  %w{i} = reduce_max(%v{i}, axes=[0])\n",
    )
    body += "  %s0 = exp(%x)\n" + lines(n, lambda i: f"  %s{i + 1} = add(%s{i}, %w{i})\n")
    return function("%x: tensor[a; f32]", "tensor[a; f32]", f"{body}  %s{n}\n")


@shape("tn", plan=128)
def tensors_in_branches(n: int) -> str:
    body = lines(
        n,
        lambda i: f"  %v{i + 1} = if %c {{ matmul(%v{i}, %x) }} else {{ relu(%v{i}) }}\n",
    )
    return function(
        "%x: tensor[4, 4; f32], %v0: tensor[4, 4; f32], %c: bool", "tensor[4, 4; f32]", f"{body}  %v{n}\n"
    )


@shape("tn", plan=128, most=4000)
def tuples_of_tensors(n: int) -> str:
    body = lines(n, lambda i: f"  %v{i} = matmul(%x, %x)\n".replace("%x, %x", f"%x, %y{i}"))
    body = lines(n, lambda i: f"  %y{i} = mul(%x, tensor[f32]{{{i}}})\n") + body
    body += f"  %t = ({', '.join(f'%v{i}' for i in range(n))})\n  %s0 = matmul(%x, %x)\n"
    body += lines(n, lambda i: f"  %f{i} = %t.{i}\n  %s{i + 1} = matmul(%s{i}, %f{i})\n")
    return function("%x: tensor[4, 4; f32]", "tensor[4, 4; f32]", f"{body}  %s{n}\n")


@shape("tn", plan=256)
def kept_arguments(n: int) -> str:
    """Each call may return any argument of a call before it."""
    body = lines(n, lambda i: f"  %m{i} = matmul(%x, %v{i})\n  %v{i + 1} = @f(%v{i}, %m{i})\n")
    two = "%a: tensor[4, 4; f32], %b: tensor[4, 4; f32]"
    f = function(two, "tensor[4, 4; f32]", "  %c = matmul(%a, %b)\n  %c\n", "f")
    return f + function(
        "%x: tensor[4, 4; f32], %v0: tensor[4, 4; f32]", "tensor[4, 4; f32]", f"{body}  %v{n}\n"
    )


@shape("tn", check=2048, plan=512, json=512)
def constants(n: int) -> str:
    body = lines(n, lambda i: f"  %v{i + 1} = matmul(%v{i}, tensor[2, 2; f32]{{1, 2, 3, {i}}})\n")
    return function("%v0: tensor[2, 2; f32]", "tensor[2, 2; f32]", f"{body}  %v{n}\n")


@shape("tn", plan=128)
def constants_that_fail(n: int) -> str:
    """Folding finds that none of the quotients can be computed."""
    body = lines(n, lambda i: f"  %q{i} = div(tensor[2; i64]{{1, {i}}}, tensor[2; i64]{{0, 1}})\n")
    body += "  %s0 = neg(%x)\n" + lines(n, lambda i: f"  %s{i + 1} = add(%s{i}, %q{i})\n")
    return function("%x: tensor[2; i64]", "tensor[2; i64]", f"{body}  %s{n}\n")


@shape("tn", check=2048)
def named_constants(n: int) -> str:
    zeros = ", ".join(["0"] * 65)
    body = lines(n, lambda i: f'  %w{i} = tensor[65; f32]{{{zeros}}} as "w"\n  %v{i + 1} = add(%v{i}, %w{i})\n')
    return function("%v0: tensor[65; f32]", "tensor[65; f32]", f"{body}  %v{n}\n")


@shape("tn", plan=256, most=4000)
def results_of_a_kernel(n: int) -> str:
    parts = ", ".join(["2"] * n)
    names = ", ".join(f"%p{i}" for i in range(n))
    body = f"  {names} = split(%x, axis=0, sizes=[{parts}])\n  %s0 = exp(%y)\n"
    body += lines(n, lambda i: f"  %s{i + 1} = add(%s{i}, %p{i})\n")
    return function(f"%x: tensor[{2 * n}; f32], %y: tensor[2; f32]", "tensor[2; f32]", f"{body}  %s{n}\n")


@shape("tn", plan=256)
def operands_of_a_call(n: int) -> str:
    body = lines(n, lambda i: f"  %v{i} = mul(%x, tensor[f32]{{{i}}})\n")
    body += f"  concat({', '.join(f'%v{i}' for i in range(n))}, axis=0)\n"
    return function("%x: tensor[2; f32]", f"tensor[{2 * n}; f32]", body)


@shape("tn", schedule=128)
def kernels(n: int) -> str:
    """Kernels that all differ."""
    body = lines(
        n, lambda i: f"  %v{i + 1} = pad(%v{i}, before=[{i % 5 + 1}], after=[{i // 5}])\n"
    )
    return function("%v0: tensor[a; f32]", "tensor[rank=1; f32]", f"{body}  %v{n}\n")


@shape("tn", check=8192)
def kernel_statements(n: int) -> str:
    body = lines(n, lambda i: f"  %y[{i}] = %x[{i}] * {i}.0\n")
    kernel = f"kernel @k(%x: tensor[{n}; f32]) -> (%y: tensor[{n}; f32]) {{\n{body}}}\n"
    return kernel + function(f"%x: tensor[{n}; f32]", f"tensor[{n}; f32]", "  kernel @k(%x)\n")


@shape("tn", check=2048)
def kernel_parts(n: int) -> str:
    body = "  $0 = %x[0]\n" + lines(n, lambda i: f"  ${i + 1} = ${i} + %x[{i}]\n")
    kernel = f"kernel @k(%x: tensor[{n}; f32]) -> (%y: tensor[1; f32]) {{\n{body}  %y[0] = ${n}\n}}\n"
    return kernel + function(f"%x: tensor[{n}; f32]", "tensor[1; f32]", "  kernel @k(%x)\n")


@shape("tn", check=2048)
def compute_parts(n: int) -> str:
    body = "    $0 = %x[%i]\n" + lines(n, lambda i: f"    ${i + 1} = ${i} * (${i} + 1.0)\n")
    compute = (
        "compute @k(%x: tensor[4; f32]) -> (%y) {\n  map %y: tensor[4; f32] at [%i] {\n"
        f"{body}    ${n}\n  }}\n}}\n"
    )
    return compute + function("%x: tensor[4; f32]", "tensor[4; f32]", "  kernel @k(%x)\n")


@shape("tn", check=2048)
def many_kernels(n: int) -> str:
    one = "(%x: tensor[2; f32]) -> (%y: tensor[2; f32]) {\n  %y[0] = %x[1]\n}\n"
    kernels = lines(n, lambda i: f"kernel @k{i}{one}")
    body = lines(n, lambda i: f"  %v{i + 1} = kernel @k{i}(%v{i})\n")
    return kernels + function("%v0: tensor[2; f32]", "tensor[2; f32]", f"{body}  %v{n}\n")


# ---- the machine's assembly and files ----


@shape("tna", asm=131072, disasm=65536, verify=131072, dump=65536)
def instructions(n: int) -> str:
    return "func @main(x: i64) -> i64 {\n" + lines(n, lambda i: f"  %0 = add %0, {i}\n") + "  ret %0\n}\n"


@shape("tna", asm=32768, disasm=16384, verify=131072)
def jumps(n: int) -> str:
    body = lines(n, lambda i: f"  %1 = lt %0, {i}\n  if %1, l{n - 1 - i}\n")
    labels = lines(n, lambda i: f"l{i}:\n  %0 = add %0, 1\n")
    return f"func @main(x: i64) -> i64 {{\n{body}{labels}  ret %0\n}}\n"


@shape("tna", asm=16384, disasm=16384, verify=32768)
def machine_functions(n: int) -> str:
    return lines(
        n, lambda i: f"func @f{i}(x: i64) -> i64 {{\n  %0 = call @f{(i + 1) % n}, %0\n  ret %0\n}}\n"
    )


@shape("tna", asm=32768, disasm=65536, verify=131072)
def machine_constants(n: int) -> str:
    constants = lines(n, lambda i: f'const "c{i}" = tensor[2; i64] {{{i}, 2}}\n')
    return constants + "func @main(x: i64) -> i64 {\n  ret %0\n}\n"


@shape("tna", asm=32768, disasm=65536, verify=131072)
def spans(n: int) -> str:
    spans = lines(n, lambda i: f'span "f.tn" {i} 1 "node {i}"\n')
    body = lines(n, lambda i: f"  at {i}\n  %0 = add %0, 1\n")
    return f"{spans}func @main(x: i64) -> i64 {{\n{body}  ret %0\n}}\n"


@shape("tna", asm=32768, disasm=32768, verify=131072)
def packed_names(n: int) -> str:
    names = lines(n, lambda i: f'packed $"host.f{i}"\n')
    body = lines(n, lambda i: f'  %0 = call_packed $"host.f{i}", %0\n')
    return f"{names}func @main(x: any) -> any {{\n{body}  ret %0\n}}\n"


# ---- ONNX ----

@shape("onnx", inspect=8192, plan=512)
def nodes(n: int) -> bytes:
    chain = [node("MatMul", [f"v{i}", "w"], [f"v{i + 1}"]) for i in range(n)]
    inputs = [value_info("v0", ["n", 4]), value_info("w", [4, 4])]
    return model(chain, inputs, [value_info(f"v{n}", ["n", 4])])


@shape("onnx", plan=8192)
def unordered_nodes(n: int) -> bytes:
    chain = [node("Relu", [f"v{i}"], [f"v{i + 1}"]) for i in range(n)]
    return model(chain[::-1], [value_info("v0", ["n", 4])], [value_info(f"v{n}", ["n", 4])])


@shape("onnx", inspect=256, plan=256, most=4000)
def outputs(n: int) -> bytes:
    nodes = [node("MatMul", ["x", f"w{i}"], [f"y{i}"]) for i in range(n)]
    weights = [tensor(f"w{i}", [4, 1], [float(i)] * 4) for i in range(n)]
    return model(nodes, [value_info("x", ["n", 4])], [value_info(f"y{i}", ["n", 1]) for i in range(n)], weights)


@shape("onnx", inspect=256, plan=256, most=4000)
def inputs(n: int) -> bytes:
    """Each input has a symbol of its own."""
    nodes = [node("ReduceSum", [f"x{i}"], [f"r{i}"], keepdims=1) for i in range(n)]
    nodes.append(node("Concat", [f"r{i}" for i in range(n)], ["y"], axis=0))
    given = [value_info(f"x{i}", [f"s{i}"]) for i in range(n)]
    return model(nodes, given, [value_info("y", [n])])


@shape("onnx", inspect=4096, plan=512)
def initializers(n: int) -> bytes:
    nodes = [node("Add", [f"v{i}", f"w{i}"], [f"v{i + 1}"]) for i in range(n)]
    weights = [tensor(f"w{i}", [4], [1.0, 2.0, 3.0, float(i)]) for i in range(n)]
    return model(nodes, [value_info("v0", ["n", 4])], [value_info(f"v{n}", ["n", 4])], weights)


@shape("onnx", inspect=16384, plan=16384)
def unused_initializers(n: int) -> bytes:
    weights = [tensor(f"w{i}", [1], [float(i)]) for i in range(n)]
    return model([node("Relu", ["x"], ["y"])], [value_info("x", ["n", 4])], [value_info("y", ["n", 4])], weights)


@shape("onnx", plan=8192)
def value_infos(n: int) -> bytes:
    chain = [node("Relu", [f"v{i}"], [f"v{i + 1}"]) for i in range(n)]
    infos = [value_info(f"v{i + 1}", ["n", 4]) for i in range(n)]
    return model(chain, [value_info("v0", ["n", 4])], [value_info(f"v{n}", ["n", 4])], infos=infos)


@shape("onnx", inspect=131072, plan=131072)
def opsets_and_metadata(n: int) -> bytes:
    one = model([node("Relu", ["x"], ["y"])], [value_info("x", ["n", 4])], [value_info("y", ["n", 4])])
    properties = [(14, message((1, f"key {i}"), (2, "value"))) for i in range(n)]
    return one + message(*properties)


@shape("onnx", inspect=2048, plan=128)
def conditions(n: int) -> bytes:
    def branch(at: int, kind: str) -> bytes:
        return message((1, node(kind, [f"v{at}"], [f"b{at}{kind}"])), (2, "g"),
                       (12, value_info(f"b{at}{kind}", ["n", 4])))

    nodes = [
        node("If", ["c"], [f"v{i + 1}"], then_branch=branch(i, "Relu"), else_branch=branch(i, "Exp"))
        for i in range(n)
    ]
    inputs = [value_info("v0", ["n", 4]), value_info("c", [], 9)]
    return model(nodes, inputs, [value_info(f"v{n}", ["n", 4])])


@shape("onnx", inspect=2048, plan=128)
def nested_conditions(n: int) -> bytes:
    def nest(at: int, depth: int) -> bytes:
        own = f"b{at}_{depth}"
        if depth == 0:
            inner = node("Relu", [f"v{at}"], [own])
        else:
            branch = nest(at, depth - 1)
            other = message((1, node("Exp", [f"v{at}"], [own + "e"])), (2, "g"),
                            (12, value_info(own + "e", ["n", 4])))
            inner = node("If", ["c"], [own], then_branch=branch, else_branch=other)
        return message((1, inner), (2, "g"), (12, value_info(own, ["n", 4])))

    depth = 20
    nodes = [
        node("If", ["c"], [f"v{i + 1}"], then_branch=nest(i, depth),
             else_branch=message((1, node("Exp", [f"v{i}"], [f"e{i}"])), (2, "g"),
                                 (12, value_info(f"e{i}", ["n", 4]))))
        for i in range(n // depth + 1)
    ]
    inputs = [value_info("v0", ["n", 4]), value_info("c", [], 9)]
    return model(nodes, inputs, [value_info(f"v{n // depth + 1}", ["n", 4])])


@shape("onnx", inspect=1024, plan=64)
def onnx_loops(n: int) -> bytes:
    def body(at: int) -> bytes:
        return message(
            (1, node("Relu", [f"in{at}"], [f"out{at}"])), (1, node("Identity", [f"c{at}"], [f"d{at}"])),
            (2, "g"), (11, value_info(f"i{at}", [], 7)), (11, value_info(f"c{at}", [], 9)),
            (11, value_info(f"in{at}", ["n", 4])), (12, value_info(f"d{at}", [], 9)),
            (12, value_info(f"out{at}", ["n", 4])))

    nodes = [node("Loop", ["m", "c", f"v{i}"], [f"v{i + 1}"], body=body(i)) for i in range(n)]
    inputs = [value_info("v0", ["n", 4]), value_info("m", [], 7), value_info("c", [], 9)]
    return model(nodes, inputs, [value_info(f"v{n}", ["n", 4])])


@shape("onnx", inspect=4096, plan=4096)
def model_functions(n: int) -> bytes:
    """Each function calls the one before it twice as seldom: the chain stays linear."""
    functions = [
        message((1, f"f{i}"), (4, "x"), (5, "y"), (7, node("Relu", ["x"], ["y"])),
                (9, message((1, ""), (2, 17))), (10, "local"))
        for i in range(n)
    ]
    nodes = [node(f"f{i}", [f"v{i}"], [f"v{i + 1}"], "local") for i in range(n)]
    return model(nodes, [value_info("v0", ["n", 4])], [value_info(f"v{n}", ["n", 4])], functions=functions)


@shape("onnx", plan=4096)
def shape_arithmetic(n: int) -> bytes:
    """Sizes that are computed as data, each from the one before it."""
    nodes = [node("Shape", ["x"], ["s0"])]
    for i in range(n):
        nodes.append(node("Add", [f"s{i}", "one"], [f"s{i + 1}"]))
    nodes.append(node("Expand", ["z", f"s{n}"], ["y"]))
    weights = [tensor("one", [2], [1, 0], 7), tensor("z", [1], [1.0])]
    return model(nodes, [value_info("x", ["n", 4])], [value_info("y", ["m", 4])], weights)


@shape("onnx", plan=2048)
def reshapes(n: int) -> bytes:
    nodes = []
    for i in range(n):
        nodes.append(node("Shape", [f"v{i}"], [f"s{i}"]))
        nodes.append(node("Reshape", [f"u{i}", f"s{i}"], [f"v{i + 1}"]))
        nodes.append(node("Relu", [f"v{i + 1}"], [f"u{i + 1}"]))
    inputs = [value_info("v0", ["n", 4]), value_info("u0", ["n", 4])]
    return model(nodes, inputs, [value_info(f"u{n}", ["n", 4])])


@shape("onnx", plan=8192)
def unsupported_nodes(n: int) -> bytes:
    """The importer lists them all."""
    nodes = [node(f"Unknown{i}", [f"v{i}"], [f"v{i + 1}"]) for i in range(n)]
    return model(nodes, [value_info("v0", ["n", 4])], [value_info(f"v{n}", ["n", 4])])


@shape("onnx", plan=1024)
def concatenation(n: int) -> bytes:
    nodes = [node("Relu", ["x"], ["r"]), node("Concat", ["r"] * n, ["y"], axis=0)]
    return model(nodes, [value_info("x", ["n", 4])], [value_info("y", ["m", 4])])
