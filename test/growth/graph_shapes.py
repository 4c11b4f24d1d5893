"""Shapes in the graph IR's text: the constructs of the language, on scalars, which need no kernels."""

from textwrap import indent

from shapes import Shapes, nests
from text import chain_of, commas, fold, function, lines, links, reversed_fold, values

SHAPES = Shapes("tn")

DEPTH = 90  # of nested constructs; the parser accepts 100


def products(n: int, name: str) -> str:
    return values(n, name, lambda i: f"mul(%x, {i + 2})")


@SHAPES.register(check=4096, compile=512, json=512)
def chain(n: int) -> str:
    return function("%v0: i64", "i64", chain_of(n, lambda i: f"add(%v{i}, {i})"))


@SHAPES.register(picture=512)
def uses_of_the_first_value(n: int) -> str:
    return function("%v0: i64", "i64", chain_of(n, lambda i: f"add(%v{i}, %v0)"))


@SHAPES.register(compile=512, picture=512)
def reversed_uses(n: int) -> str:
    """All values are alive in the middle."""
    return function("%x: i64", "i64", products(n, "%v") + reversed_fold(n, "add(%x, 1)", "%v"))


@SHAPES.register(compile=256)
def branches(n: int) -> str:
    body = chain_of(
        n,
        lambda i: f"if %c{i} {{ add(%v{i}, 1) }} else {{ add(%v{i}, 2) }}",
        before=lambda i: f"  %c{i} = less(%v{i}, {i})\n",
    )
    return function("%v0: i64", "i64", body)


@SHAPES.register(compile=256)
def branches_with_old_values(n: int) -> str:
    """Each branch uses values from far before it."""
    body = products(n, "%w") + "  %c = less(%x, 1)\n  %v0 = add(%x, 3)\n"
    body += chain_of(n, lambda i: f"if %c {{ add(%v{i}, %w{i}) }} else {{ add(%w{i}, %w{n - 1 - i}) }}")
    return function("%x: i64", "i64", body)


@SHAPES.register(compile=512, json=512)
def nested_branches(n: int) -> str:
    def nest(at: int, depth: int) -> str:
        if depth == 0:
            return f"add(%v{at}, 1)"
        return f"if %c {{ {nest(at, depth - 1)} }} else {{ add(%v{at}, {depth}) }}"

    depths = nests(n, DEPTH)
    return function("%v0: i64, %c: bool", "i64", chain_of(len(depths), lambda i: nest(i, depths[i])))


@SHAPES.register(compile=256)
def loops(n: int) -> str:
    body = chain_of(n, lambda i: f"loop (%i{i}: i64 = %v{i}) while {{ less(%i{i}, {i}) }} {{ add(%i{i}, 1) }}")
    return function("%v0: i64", "i64", body)


@SHAPES.register(compile=256)
def loops_with_old_values(n: int) -> str:
    body = products(n, "%w") + "  %v0 = add(%x, 3)\n"
    body += chain_of(
        n,
        lambda i: f"loop (%i{i}: i64 = %v{i}) while {{ less(%i{i}, %w{i}) }} {{ add(%i{i}, %w{n - 1 - i}) }}",
    )
    return function("%x: i64", "i64", body)


@SHAPES.register(compile=256)
def nested_loops(n: int) -> str:
    def nest(at: str, depth: int) -> str:
        if depth == 0:
            return f"add({at}, 1)"
        own = f"%i{depth}"
        return f"loop ({own}: i64 = {at}) while {{ less({own}, {depth}) }} {{ {nest(own, depth - 1)} }}"

    depths = nests(n, DEPTH)
    return function("%v0: i64", "i64", chain_of(len(depths), lambda i: nest(f"%v{i}", depths[i])))


@SHAPES.register(compile=1024)
def loop_body(n: int) -> str:
    body = indent(chain_of(n, lambda i: f"add(%v{i}, {i})"), "  ")
    return function("%x: i64", "i64", f"  loop (%v0: i64 = %x) while {{ less(%v0, 9) }} {{\n{body}  }}\n")


@SHAPES.register(compile=128, most=2000)
def loop_variables(n: int) -> str:
    variables = commas(n, lambda i: f"%v{i}: i64 = {i}")
    rotated = commas(n, lambda i: f"%v{(i + 1) % n}")
    body = f"  %t = loop ({variables}) while {{ less(%v0, %x) }} {{ ({rotated}) }}\n  %t.0\n"
    return function("%x: i64", "i64", body)


@SHAPES.register(check=2048, compile=512, json=512)
def functions(n: int) -> str:
    calls = lines(n, lambda i: function("%x: i64", "i64", f"  %y = mul(%x, {i})\n  @f{i + 1}(%y)\n", f"f{i}"))
    return calls + function("%x: i64", "i64", "  add(%x, 1)\n", f"f{n}")


@SHAPES.register(compile=256)
def recursive_functions(n: int) -> str:
    def one(i: int) -> str:
        call = f"    %y = sub(%x, 1)\n    @f{(i + 1) % n}(%y)\n"
        return function("%x: i64", "i64", f"  %c = less(%x, {i})\n  if %c {{ %x }} else {{\n{call}  }}\n", f"f{i}")

    return lines(n, one)


@SHAPES.register(compile=1024)
def calls_of_one_function(n: int) -> str:
    f = function("%x: i64, %y: i64", "i64", "  add(%x, %y)\n", "f")
    return f + function("%v0: i64", "i64", chain_of(n, lambda i: f"@f(%v{i}, {i})"))


@SHAPES.register(check=256, compile=256, most=4000)
def parameters(n: int) -> str:
    return function(commas(n, lambda i: f"%x{i}: i64"), "i64", fold(n, "add(%x0, 1)", "%x"))


@SHAPES.register(check=256, compile=256, most=4000)
def results(n: int) -> str:
    body = values(n, "%v", lambda i: f"add(%x, {i})") + f"  ({commas(n, lambda i: f'%v{i}')})\n"
    return function("%x: i64", f"({commas(n, lambda i: 'i64')})", body)


@SHAPES.register(check=256, compile=256, picture=256, most=4000)
def tuple_fields(n: int) -> str:
    body = values(n, "%v", lambda i: f"add(%x, {i})") + f"  %t = ({commas(n, lambda i: f'%v{i}')})\n"
    body += fold(n, "add(%x, 1)", "%f", before=lambda i: f"  %f{i} = %t.{i}\n")
    return function("%x: i64", "i64", body)


@SHAPES.register(compile=512)
def nested_tuples(n: int) -> str:
    depths = nests(n, DEPTH)

    def nest(at: int) -> str:
        depth = depths[at]
        body = f"  %t{at}_0 = (%v{at}, {at})\n" + links(depth, lambda i: f"(%t{at}_{i}, {i})", f"%t{at}_")
        body += f"  %u{at}_{depth + 1} = (%t{at}_{depth}, 1)\n"
        body += lines(depth + 1, lambda i: f"  %u{at}_{depth - i} = %u{at}_{depth + 1 - i}.0\n")
        return body + f"  %w{at} = %u{at}_0.0\n"

    return function("%v0: i64", "i64", chain_of(len(depths), lambda i: f"add(%w{i}, 1)", before=nest))


@SHAPES.register(compile=512)
def uses_of_one_value(n: int) -> str:
    return function("%x: i64", "i64", products(n, "%v") + fold(n, "add(%x, %x)", "%v"))


@SHAPES.register(check=8192, compile=512)
def checks(n: int) -> str:
    body = lines(n, lambda i: f"  check a <= {i + 1}*b, \"check {i}\"\n")
    return function("%a: i64 = [a], %b: i64 = [b]", "i64", f"{body}  %a\n")


@SHAPES.register(check=4096, compile=512)
def matched_symbols(n: int) -> str:
    return function("%v0: i64", "i64", chain_of(n, lambda i: f"match_elements(%v{i}, [s{i}])"))


@SHAPES.register(check=4096)
def symbols(n: int) -> str:
    """Each parameter has a size of its own."""
    return function(commas(n, lambda i: f"%x{i}: tensor[s{i}; f32]"), "tensor[s0; f32]", "  relu(%x0)\n")


@SHAPES.register(check=128, most=2000)
def terms_of_a_size(n: int) -> str:
    tensor = f"tensor[{' + '.join(f's{i}' for i in range(n))}; f32]"
    return function(f"{commas(n, lambda i: f'%s{i}: i64 = [s{i}]')}, %x: {tensor}", tensor, "  %x\n")


def size_of(function_of_two: str, n: int) -> str:
    """A function whose parameter has a size of n arguments, none of which is easily proved to be at most another."""

    def half(first: int, end: int) -> str:
        if end - first == 1:
            return f"min(a_{first}, b_{first})*floordiv(min(c_{first}, d_{first}), 3)"
        middle = (first + end) // 2
        return f"{function_of_two}({half(first, middle)}, {half(middle, end)})"

    names = [f"{name}_{i}" for i in range(n) for name in "abcd"]
    tensor = f"tensor[{half(0, n)}; f32]"
    return function(f"{commas(4 * n, lambda i: f'%{names[i]}: i64 = [{names[i]}]')}, %x: {tensor}", tensor, "  %x\n")


@SHAPES.register(check=32, most=400)
def greatest_of_sizes(n: int) -> str:
    return size_of("max", n)


@SHAPES.register(check=32, most=400)
def broadcast_of_sizes(n: int) -> str:
    return size_of("bcast", n)


@SHAPES.register(check=2048)
def sizes(n: int) -> str:
    body = values(n, "%v", lambda i: f"expand(%x, shape=[{i + 2}*a + b, a])")
    return function("%x: tensor[a; f32], %y: tensor[b; f32]", "tensor[a; f32]", f"{body}  %x\n")


@SHAPES.register(check=32768, compile=8192)
def long_names(n: int) -> str:
    """Names of about 1000 bytes that differ only at their end."""
    name = "%" + "n" * 1000
    return function(f"{name}0: i64", "i64", chain_of(n // 10 + 1, lambda i: f"add({name}{i}, {i})", name))


@SHAPES.register(check=4096)
def equal_names(n: int) -> str:
    """The printer must tell variables of one name apart."""
    body = chain_of(n, lambda i: f"if %c {{\n    %a = add(%v{i}, 1)\n    %a\n  }} else {{ %v{i} }}")
    return function("%v0: i64, %c: bool", "i64", body)


@SHAPES.register(check=131072, json=512)
def places(n: int) -> str:
    nodes = commas(n, lambda i: f'"node {i}"')
    return function("%x: i64", "i64", f"  %y = add(%x, 1) at(nodes {nodes})\n  %z = add(%y, 1)\n  %z\n")


@SHAPES.register(check=65536, json=512)
def attributes(n: int) -> str:
    numbers = commas(n, lambda i: f"a{i}={i}")
    return function("%x: i64", "i64", f'  %y = packed "host.f"(%x, {numbers}) -> i64\n  %y\n')


@SHAPES.register(check=131072)
def list_attribute(n: int) -> str:
    return function("%x: i64", "i64", f'  %y = packed "host.f"(%x, list=[{commas(n, str)}]) -> i64\n  %y\n')


@SHAPES.register(compile=2048)
def packed_functions(n: int) -> str:
    return function("%v0: i64", "i64", chain_of(n, lambda i: f'packed "host.f{i}"(%v{i}) -> i64'))


@SHAPES.register(compile=512)
def pure_packed_calls(n: int) -> str:
    """Calls that differ only in an operand and an attribute."""

    def call(i: int) -> str:
        return f'  %v{i} = packed "host.f"(%x, {i}, number={i}, effect="pure") -> i64\n'

    return function("%x: i64", "i64", fold(n, "add(%x, 1)", "%v", before=call))


@SHAPES.register(check=4096)
def constructors(n: int) -> str:
    arms = lines(n, lambda i: f"    C{i}(%a{i}) => {{ add(%a{i}, {i}) }}\n")
    data = f"type t {{ {commas(n, lambda i: f'C{i}(i64)')} }}\n"
    return data + function("%x: t", "i64", f"  match %x {{\n{arms}  }}\n")


@SHAPES.register(check=4096)
def data_types(n: int) -> str:
    types = lines(n, lambda i: f"type t{i} {{ C{i}(i64) }}\n")
    return types + function("%x: i64", "i64", values(n, "%c", lambda i: f"C{i}({i})") + "  %x\n")


@SHAPES.register(check=128, most=2000)
def type_parameters(n: int) -> str:
    functions = commas(n, lambda i: f"%x{i}: fn(T{i}) -> T{i}")
    return f"fn @f[{commas(n, lambda i: f'T{i}')}]({functions}) -> i64 {{ 1 }}\n"


@SHAPES.register(check=32)
def related_arguments(n: int) -> str:
    """Arguments that functions both take and give, nested, with other names for the sizes in them."""

    def nested(symbol: str) -> str:
        return "box[" * DEPTH + f"fn(tensor[{symbol}; f32]) -> tensor[{symbol}; f32]" + "]" * DEPTH

    known = "type box[T] { Box(fn(T) -> T) }\n" + f"fn @take(%x: {nested('m')}) -> i64 {{ 1 }}\n"
    return known + function(f"%x: {nested('k')}", "i64", values(n, "%v", lambda i: "@take(%x)") + fold(n, "add(%v0, 1)", "%v"))


@SHAPES.register(check=512)
def types_of_each_other(n: int) -> str:
    """Data types whose fields pass a parameter on, so that what holds of one follows from all others."""
    types = lines(n, lambda i: f"type t{i}[T] {{ C{i}(t{(i + 1) % n}[T], fn(T) -> i64) }}\n")
    return types + function("%x: i64", "i64", "  %x\n")


@SHAPES.register(check=2048)
def closures(n: int) -> str:
    body = chain_of(
        n, lambda i: f"%f{i}({i})", before=lambda i: f"  %f{i} = fn(%y: i64) -> i64 {{ add(%y, %v{i}) }}\n"
    )
    return function("%v0: i64", "i64", body)


@SHAPES.register(compile=128)
def sizes_by_folding(n: int) -> str:
    """Each size is known once the one before is folded."""
    steps = ["%m0 = match_elements(%c0, [s0])"]
    for i in range(1, n):
        steps += [
            f"%f{i} = full(1, shape=[s{i - 1}])",
            f"%c{i} = reduce_sum(%f{i}, axes=[0], keepdims=true)",
            f"%m{i} = match_elements(%c{i}, [s{i}])",
        ]
    body = "\n  ".join(["%c0 = full(3, shape=[1])", *steps, f"full(1, shape=[s{n - 1}])"])
    return f"fn @main(%x: tensor[q; i64]) -> tensor[rank=1; i64] {{\n  {body}\n}}\n"
