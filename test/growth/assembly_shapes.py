"""Shapes in the machine's assembly, for the assembler and for the readers of the executables that it makes."""

from shapes import Shapes
from text import lines

SHAPES = Shapes("tna")


def func(body: str, name: str = "main", operand: str = "i64") -> str:
    """A function from a value to a value of the same type, which ends by returning %0."""
    return f"func @{name}(x: {operand}) -> {operand} {{\n{body}  ret %0\n}}\n"


@SHAPES.register(asm=131072, disasm=65536, verify=131072, dump=65536)
def instructions(n: int) -> str:
    return func(lines(n, lambda i: f"  %0 = add %0, {i}\n"))


@SHAPES.register(asm=32768, disasm=16384, verify=131072)
def jumps(n: int) -> str:
    body = lines(n, lambda i: f"  %1 = lt %0, {i}\n  if %1, l{n - 1 - i}\n")
    return func(body + lines(n, lambda i: f"l{i}:\n  %0 = add %0, 1\n"))


@SHAPES.register(asm=16384, disasm=16384, verify=32768)
def machine_functions(n: int) -> str:
    return lines(n, lambda i: func(f"  %0 = call @f{(i + 1) % n}, %0\n", f"f{i}"))


@SHAPES.register(asm=32768, disasm=65536, verify=131072)
def machine_constants(n: int) -> str:
    return lines(n, lambda i: f'const "c{i}" = tensor[2; i64] {{{i}, 2}}\n') + func("")


@SHAPES.register(asm=32768, disasm=65536, verify=131072)
def spans(n: int) -> str:
    table = lines(n, lambda i: f'span "f.tn" {i} 1 "node {i}"\n')
    return table + func(lines(n, lambda i: f"  at {i}\n  %0 = add %0, 1\n"))


@SHAPES.register(picture_of_code=4096)
def bundles(n: int) -> str:
    """Each tuple has the one before it twice, and all that calls made until then."""
    calls = lines(n, lambda i: '  %1 = call_packed $"host.f", %0\n  %0 = alloc_tuple %0, %0, %1\n')
    return 'packed $"host.f"\n' + func(calls, operand="any")


@SHAPES.register(picture_of_code=4096)
def calls_of_one_span(n: int) -> str:
    nodes = " ".join(f'"node {i}"' for i in range(n))
    calls = lines(n, lambda i: '  %0 = call_packed $"host.f", %0\n')
    return f'span "f.tn" 1 1 {nodes}\npacked $"host.f"\n' + func("  at 0\n" + calls, operand="any")


@SHAPES.register(asm=32768, disasm=32768, verify=131072, picture_of_code=4096)
def packed_names(n: int) -> str:
    table = lines(n, lambda i: f'packed $"host.f{i}"\n')
    return table + func(lines(n, lambda i: f'  %0 = call_packed $"host.f{i}", %0\n'), operand="any")
