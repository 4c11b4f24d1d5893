"""Functions in both directions, and errors that cross them."""

import numpy as np
import pytest

import tenon

CALLER = """
fn @main(%x: tensor[n; f32]) -> tensor[n; f32] {
  packed "test.callback"(%x) -> tensor[n; f32]
}
"""


def test_a_program_calls_python(x):
    @tenon.register_func("test.callback", override=True)
    def callback(t):
        assert isinstance(t, tenon.Tensor)
        return np.asarray(t) * 2

    assert tenon.compile(tenon.ir.parse(CALLER))(x).tolist() == [0, 2, 4, 6]


def test_an_exception_comes_back_as_itself_with_frames(x):
    class Mine(Exception):
        pass

    raised = Mine("no")

    @tenon.register_func("test.callback", override=True)
    def callback(t):
        raise raised

    exe = tenon.compile(tenon.ir.parse(CALLER))
    with pytest.raises(Mine) as caught:
        exe(x)
    assert caught.value is raised
    assert "main" in caught.value.__notes__[0]
    # The next error is its own.
    with pytest.raises(tenon.UsageError):
        exe(x.astype("int8"))


class Unprintable(Exception):
    _kind = "mine"

    def __str__(self):
        raise ValueError


@pytest.mark.parametrize("raised", [Unprintable(), ValueError("a\0b")])
def test_any_exception_comes_back_as_itself(x, raised):
    def callback(t):
        raise raised

    tenon.register_func("test.callback", callback, override=True)
    with pytest.raises(type(raised)) as caught:
        tenon.compile(tenon.ir.parse(CALLER))(x)
    assert caught.value is raised


def test_a_callback_that_returns_something_else_is_an_error(x):
    tenon.register_func("test.callback", lambda t: object, override=True)
    with pytest.raises(tenon.Error):
        tenon.compile(tenon.ir.parse(CALLER))(x)


def test_a_name_is_registered_once():
    tenon.register_func("test.once", lambda: 1, override=True)
    with pytest.raises(tenon.UsageError, match="test.once"):
        tenon.register_func("test.once", lambda: 2)
    assert tenon.get_func("test.once")() == 1


def test_functions_are_values():
    twice = tenon.Function(lambda f, v: f(f(v)))
    assert twice(lambda v: v + 1, 5) == 7
    assert tenon.get_func("tenon.parse") is not None
    assert tenon.get_func("no.such", allow_missing=True) is None
    with pytest.raises(tenon.UsageError, match="no.such"):
        tenon.get_func("no.such")


@pytest.mark.parametrize(
    "value", [None, True, -7, 2**62, 1.5, "text", "a longer text than eight bytes", b"\0\1", (1, (2.5, "x")), {"a": 1, 2: "b"}]
)
def test_values_pass_unchanged(value):
    identity = tenon.Function(lambda v: v)
    result = identity(value)
    assert result == value and type(result) is type(value)


class FalseList(list):
    length: object = 0

    def __len__(self):
        if isinstance(self.length, Exception):
            raise self.length
        return self.length


class FalseTuple(tuple):
    length: object = 0
    __len__ = FalseList.__len__


@pytest.mark.parametrize("kind", [FalseList, FalseTuple])
@pytest.mark.parametrize("length", [-1, 0, 2**62, 2**70, ValueError("no")])
def test_the_length_that_a_container_claims_is_not_believed(kind, length):
    values = kind([1, (2, 3)])
    values.length = length
    assert tenon.Function(lambda value: value)(values) == (1, (2, 3))


def test_containers_without_an_end_are_refused():
    endless = []
    endless.append(endless)
    deep = []
    for _ in range(100_000):
        deep = [deep]
    for value in (endless, deep, {"a": deep}):
        with pytest.raises(RecursionError):
            tenon.Function(lambda v: v)(value)


def test_numpy_scalars_are_numbers():
    identity = tenon.Function(lambda v: v)
    assert identity(np.float32(1.5)) == 1.5 and identity(np.int8(3)) == 3 and identity(np.bool_(True)) is True


def test_an_integer_of_more_than_64_bits_is_refused():
    with pytest.raises(OverflowError, match="64 bits"):
        tenon.Function(lambda v: v)(2**63)


def test_the_error_about_a_taken_name_says_how_to_replace():
    tenon.register_func("test.taken", abs)
    with pytest.raises(tenon.UsageError, match="already registered") as caught:
        tenon.register_func("test.taken", abs)
    assert "override=True" in caught.value.help
    tenon.register_func("test.taken", abs, override=True)


def test_a_callback_that_returns_no_value_of_tenon_is_a_type_error(x):
    tenon.register_func("test.callback", lambda t: {1}, override=True)
    with pytest.raises(TypeError, match="'set' is not a value of Tenon") as caught:
        tenon.compile(tenon.ir.parse(CALLER))(x)
    assert "main" in caught.value.__notes__[0]


def test_the_decorator_needs_a_name():
    with pytest.raises(TypeError, match="registered under a name"):

        @tenon.register_func
        def unnamed():
            pass


def returning(value, result):
    """A program of a tensor[n; f32] whose host function returns `value` for a result of that type."""
    tenon.register_func("test.returning", lambda x: value, override=True)
    return tenon.ir.parse(f'fn @main(%x: tensor[n; f32]) -> {result} {{ packed "test.returning"(%x) -> {result} }}')


def test_a_result_of_another_size_is_blamed_on_its_function():
    module = returning(tenon.Tensor(np.ones(1, "float32")), "tensor[n; f32]")
    for run in (tenon.compile(module), lambda x: module.interpret("main", x)):
        with pytest.raises(tenon.ExecutionError, match="the result of function 'test.returning' doesn't fit") as e:
            run(np.zeros(5, "float32"))
        assert e.value.expected.startswith("tensor[n=5; f32]") and e.value.found.startswith("tensor[1; f32]")


@pytest.mark.parametrize("mode", ["compiled", "bytecode", "interpret"])
def test_numbers_in_tuples_of_a_result_are_those_of_their_types(mode):
    """Rounded, at any depth; the range of integers is checked."""
    def run(value, result):
        module = returning(value, result)
        if mode == "interpret":
            return module.interpret("main", np.zeros(5, "float32"))
        return tenon.compile(module, mode=mode)(np.zeros(5, "float32"))

    rounded = float(np.float32(0.1))
    assert run(0.1, "f32") == rounded
    assert run((0.1, 1), "(f32, i64)") == (rounded, 1)
    assert run(((0.1, 7), 0.1), "((f32, i8), f64)") == ((rounded, 7), 0.1)
    assert run((70000.0, 1), "(f16, i64)") == (float("inf"), 1)
    for value, expected in (((0.1, 300), "i8"), (((0.1, 300), 0.1), "i8"), ((1, 2), "f32")):
        types = "((f32, i8), f64)" if isinstance(value[0], tuple) else "(f32, i8)"
        with pytest.raises(tenon.ExecutionError, match="of function 'test.returning' doesn't fit") as caught:
            run(value, types)
        assert caught.value.expected == expected
    for value, expected in ((300, "i8"), (2, "bool"), (-1, "u16"), (3, "f16"), ("text", "f32")):
        with pytest.raises(tenon.ExecutionError, match="of function 'test.returning' doesn't fit") as caught:
            run(value, expected)
        assert caught.value.expected == expected


@pytest.mark.parametrize("value", [3, (1, 2), "text"])
@pytest.mark.parametrize("level", [0, 2])
def test_a_polymorphic_function_passes_on_what_a_host_returns(value, level):
    tenon.register_func("test.any", lambda x: value, override=True)
    types = {int: "i64", tuple: "(i64, i64)", str: "string"}
    text = """fn @same[T](%x: T) -> T attrs(inline=false) { packed "test.any"(%x) -> T }
    fn @pair[T](%x: T) -> (T, i64) attrs(inline=false) { %r = packed "test.pair"(%x) -> (T, i64) %r }
    fn @main(%x: TYPE) -> (TYPE, (TYPE, i64)) { %a = @same(%x) %b = @pair(%x) (%a, %b) }"""
    tenon.register_func("test.pair", lambda x: (x, 4), override=True)
    module = tenon.ir.parse(text.replace("TYPE", types[type(value)]))
    expected = (value, (value, 4))
    assert tenon.compile(module, level=level)(value) == expected
    assert module.interpret("main", value) == expected


@pytest.mark.parametrize(
    ("value", "result", "expected"),
    [
        (3, "tensor[n; f32]", "tensor[n=5; f32]"),
        (tenon.Tensor(np.ones(5, "int32")), "tensor[n; f32]", "tensor[n=5; f32]"),
        (tenon.Tensor(np.ones(5, "float32")), "tensor[2 * n; f32]", "tensor[10; f32]"),
        (tenon.Tensor(np.ones(5, "float32")), "tensor[3; f32]", "tensor[3; f32]"),
        (tenon.Tensor(np.ones(5, "float32")), "tensor[rank=2; f32]", "tensor[rank=2; f32]"),
        ("text", "i64", "an integer"),
        ((7, 8.5), "(i64, i64)", "i64"),
    ],
)
def test_a_result_of_another_type_is_blamed_on_its_function(value, result, expected):
    with pytest.raises(tenon.ExecutionError, match="function 'test.returning' doesn't fit its declared type") as caught:
        tenon.compile(returning(value, result))(np.zeros(5, "float32"))
    assert caught.value.expected == expected


CLOSURES = """
fn @number(%f: fn(i64) -> i8, %x: i64) -> bool { %y = %f(%x) greater(%y, i8(127)) }
fn @truth(%f: fn(i64) -> bool, %x: i64) -> i64 { %y = %f(%x) match %y { true => { 1 } false => { 0 } } }
fn @rounded(%f: fn(i64) -> f32, %x: i64) -> f32 { %f(%x) }
fn @list(%f: fn(i64) -> list[i64], %x: i64) -> i64 { %y = %f(%x) match %y { Nil => { 0 } Cons(%h, %t) => { %h } } }
fn @sized(%f: fn(tensor[n; f32]) -> tensor[n; f32], %x: tensor[n; f32]) -> tensor[n; f32] { %y = %f(%x) add(%y, %x) }
fn @pair(%f: (fn(i64) -> (f32, i8), i64), %x: i64) -> (f32, i8) { %g = %f.0 %g(%x) }
fn @array(%f: array[fn(i64) -> i8], %x: i64) -> i8 { %g = array_get(%f, 0) %g(%x) }
fn @made(%f: fn(i64) -> fn(i64) -> i8, %x: i64) -> i8 { %g = %f(%x) %g(%x) }
fn @same[T](%f: fn(T) -> T, %x: T) -> T attrs(inline=false) { %f(%x) }
fn @general(%f: fn(i8) -> i8, %x: i8) -> i8 { @same(%f, %x) }
fn @first[T](%f: array[fn(T) -> T], %x: T) -> T attrs(inline=false) { %g = array_get(%f, 0) %g(%x) }
fn @general_array(%f: array[fn(i8) -> i8], %x: i8) -> i8 { @first(%f, %x) }
fn @nothing(%f: fn(i64) -> (), %x: i64) -> i64 { %y = %f(%x) %x }
"""


@pytest.fixture(scope="module", params=["compiled", "bytecode", "interpret"])
def call_closures(request):
    module = tenon.ir.parse(CLOSURES)
    executable = tenon.compile(module, mode="bytecode" if request.param == "interpret" else request.param)

    def call(function, *args):
        return module.interpret(function, *args) if request.param == "interpret" else executable[function](*args)

    return call


@pytest.mark.parametrize(
    ("function", "value", "expected"),
    [
        ("number", 1000, "i8"),
        ("number", 1.5, "i8"),
        ("truth", 7, "bool"),
        ("truth", None, "bool"),
        ("rounded", 1, "f32"),
        ("list", 5, "list[i64]"),
        ("pair", (0.1, 300), "i8"),
        ("array", 1000, "i8"),
        ("made", 5, "fn(i64) -> i8"),
        ("general", 1000, "i8"),
        ("general_array", 1000, "i8"),
    ],
)
def test_what_a_function_value_of_the_host_returns_is_of_its_type(call_closures, function, value, expected):
    host = tenon.Function(lambda x: value)  # whose results the binding doesn't convert
    given = {
        "pair": lambda: (host, 1),
        "array": lambda: [host],
        "general_array": lambda: [host],
    }.get(function, lambda: host)()
    with pytest.raises(tenon.ExecutionError, match="of a function of the host doesn't fit its declared type") as caught:
        call_closures(function, given, 5)
    assert caught.value.expected == expected


def test_sizes_that_a_function_value_of_the_host_returns_are_those_of_its_arguments(call_closures):
    with pytest.raises(tenon.ExecutionError) as caught:
        call_closures("sized", lambda x: np.zeros(7, "float32"), np.zeros(3, "float32"))
    assert caught.value.found.startswith("tensor[7; f32]")


def test_what_fits_is_passed_on_by_function_values_of_the_host(call_closures):
    call = call_closures
    rounded = float(np.float32(0.1))
    assert call("number", lambda x: 127, 5) is False
    assert call("truth", lambda x: True, 5) == 1
    assert call("rounded", lambda x: 0.1, 5) == rounded
    assert call("sized", lambda x: np.asarray(x) + 1, np.zeros(3, "float32")).tolist() == [1, 1, 1]
    assert call("pair", (lambda x: (0.1, 7), 1), 5) == (rounded, 7)
    assert call("array", [lambda x: -128], 5) == -128
    assert call("general_array", [lambda x: x + 1], 5) == 6
    assert call("made", lambda x: lambda y: x + y, 5) == 10
    assert call("nothing", tenon.Function(lambda x: "ignored"), 5) == 5


def test_a_function_of_the_host_that_another_returned_is_checked(call_closures):
    with pytest.raises(tenon.ExecutionError, match="of a function of the host doesn't fit its declared type"):
        call_closures("made", tenon.Function(lambda x: lambda y: 1000), 5)


def test_a_function_of_the_host_takes_arguments_by_position():
    identity = tenon.Function(lambda v: v)
    with pytest.raises(TypeError, match="has no parameter names: pass arguments by position"):
        identity(v=1)


def test_an_index_is_a_number():
    class Index:
        def __index__(self):
            return 7

    class Wrong:
        def __index__(self):
            raise LookupError("no index")

    identity = tenon.Function(lambda v: v)
    assert identity(Index()) == 7
    with pytest.raises(LookupError, match="no index"):
        identity(Wrong())
    with pytest.raises(TypeError, match="'set' is not a value of Tenon"):
        identity({1})


def test_text_that_is_no_unicode_is_refused():
    with pytest.raises(UnicodeEncodeError):
        tenon.Function(lambda v: v)("\ud800")


def test_only_cells_have_fields_by_number():
    with pytest.raises(TypeError, match="not a cell"):
        tenon._tenon.cell_of(1)


def test_a_function_takes_any_number_of_arguments():
    assert tenon.Function(lambda *values: values)(*range(20)) == tuple(range(20))


def test_functions_print_their_signatures(add):
    assert repr(tenon.Function(len)) == "<tenon.Function>"
    assert repr(add["main"]).startswith("<tenon.Function (x: tensor[n; f32]")


def test_every_kind_of_parameter_has_a_name():
    kinds = {"i64": "int", "bool": "bool", "f64": "float", "shape[2]": "shape", "fn(i64) -> i64": "function"}
    params = ", ".join(f"%p{i}: {type}" for i, type in enumerate(kinds))
    exe = tenon.compile(tenon.ir.parse(f"fn @main({params}) -> i64 {{ 1 }}"))
    assert [p.kind for p in exe.signature("main").params] == list(kinds.values())


KNOWN = """
fn @value(%f: fn(i64) -> i64 = [n], %x: tensor[n; f32]) -> (i64, tensor[rank=1; f32]) {
  %y = %f(1)
  %z = full(tensor[f32]{2}, shape=[size_of(%y)])
  (%y, %z)
}
fn @call(%f: fn(tensor[n; f32]) -> tensor[n; f32], %x: tensor[n; f32]) -> tensor[n; f32] attrs(inline=false) { %f(%x) }
fn @tail(%l: list[fn(tensor[n; f32]) -> tensor[n; f32]], %x: tensor[n; f32]) -> tensor[1; i64] {
  match %l {
    Cons(%f, _) => {
      %y = @call(%f, %x)
      shape_of(%y)
    }
    Nil => { shape_of(%x) }
  }
}
"""


@pytest.mark.parametrize("level", [0, 2])
@pytest.mark.parametrize("mode", ["bytecode", "compiled"])
def test_what_a_python_function_returns_has_the_sizes_and_values_that_its_type_states(mode, level):
    program = tenon.compile(tenon.ir.parse(KNOWN), mode=mode, level=level)
    three = np.arange(3, dtype="float32")
    assert program["value"](lambda i: 3, three)[0] == 3
    with pytest.raises(tenon.ExecutionError, match="does not match"):
        program["value"](lambda i: 5, three)
    assert program["tail"]([lambda x: x], three).tolist() == [3]
    with pytest.raises(tenon.ExecutionError, match="does not match"):
        program["tail"]([lambda x: np.zeros(5, "float32")], three)


HANDED_OVER = """
fn @tail(%f: fn(tensor[n; f32]) -> tensor[n; f32], %x: tensor[n; f32]) -> tensor[n; f32]
    attrs(export=false, inline=false) { %f(%x) }
fn @apply(%f: fn(tensor[n; f32]) -> tensor[n; f32], %x: tensor[n; f32]) -> tensor[1; i64]
    attrs(export=false, inline=false) {
  %y = @tail(%f, %x)
  shape_of(%y)
}
"""
RETURNED = """
fn @main() -> fn(fn(tensor[n; f32]) -> tensor[n; f32], tensor[n; f32]) -> tensor[1; i64] {
  closure @apply()
}
"""
PASSED = """
fn @main(%x: tensor[n; f32]) -> tensor[1; i64] {
  %f = closure @apply()
  packed "test.apply_to_five"(%f, %x) -> tensor[1; i64]
}
"""


@pytest.mark.parametrize("level", [0, 2])
@pytest.mark.parametrize("mode", ["bytecode", "compiled"])
def test_a_function_that_the_program_gives_checks_what_those_that_it_takes_return(mode, level):
    three, five = np.arange(3, dtype="float32"), np.zeros(5, "float32")
    apply = tenon.compile(tenon.ir.parse(HANDED_OVER + RETURNED), mode=mode, level=level)["main"]()
    assert apply(lambda x: x, three).tolist() == [3]
    with pytest.raises(tenon.ExecutionError, match="does not match"):
        apply(lambda x: five, three)
    tenon.register_func("test.apply_to_five", lambda f, x: f(lambda _: five, x), override=True)
    passes = tenon.compile(tenon.ir.parse(HANDED_OVER + PASSED), mode=mode, level=level)
    with pytest.raises(tenon.ExecutionError, match="does not match"):
        passes["main"](three)


# @pick may be part of a recursion, and ends in a call of a function that knows T alone.
POLYMORPHIC = """
fn @nth[T](%l: list[T], %i: i64, %other: T) -> T {
  match %l {
    Nil => { %other }
    Cons(%x, %rest) => {
      %is = less(%i, 1)
      %j = sub(%i, 1)
      if %is { %x } else { @nth(%rest, %j, %other) }
    }
  }
}
fn @pick(%l: list[tensor[n; f32]], %i: i64, %x: tensor[n; f32]) -> tensor[n; f32] {
  %is = less(2, %i)
  if %is { @pick(%l, 0, %x) } else { @nth(%l, %i, %x) }
}
fn @main(%l: list[tensor[n; f32]], %x: tensor[n; f32]) -> (tensor[n; f32], tensor[1; i64]) {
  %y = @pick(%l, 3, %x)
  %s = shape_of(%y)
  (%y, %s)
}
fn @by_closure(%l: list[tensor[n; f32]], %x: tensor[n; f32]) -> (tensor[n; f32], tensor[1; i64]) {
  %f = closure @pick()
  %y = %f(%l, 3, %x)
  %s = shape_of(%y)
  (%y, %s)
}
"""


@pytest.mark.parametrize("function", ["main", "by_closure"])
def test_what_comes_out_of_a_list_by_a_polymorphic_tail_call_has_the_stated_sizes(function):
    module = tenon.ir.parse(POLYMORPHIC)
    three, five = np.arange(3, dtype="float32"), np.zeros(5, "float32")
    calls = [tenon.compile(module, mode=mode, level=level)[function] for mode in ("bytecode", "compiled") for level in (0, 2)]
    for call in [*calls, lambda *args: module.interpret(function, *args)]:
        assert call([three], three)[1].tolist() == [3]
        with pytest.raises(tenon.ExecutionError, match="does not match"):
            call([five], three)


GIVEN = """
fn @unused(%x: tensor[n; f32]) -> tensor[1; i64] {
  %y = packed "test.five"(%x) -> tensor[n; f32]
  shape_of(%y)
}
fn @matched(%x: tensor[n; f32]) -> (tensor[rank=1; f32], tensor[1; i64]) {
  %y = packed "test.five"(%x) -> tensor[n; f32]
  %z = match_shape(%y, [m])
  %s = shape_of(%y)
  (%z, %s)
}
"""


@pytest.mark.parametrize("function", ["unused", "matched"])
def test_what_a_packed_function_returns_is_checked_whatever_is_done_with_it(function):
    tenon.register_func("test.five", lambda x: np.zeros(5, "float32"), override=True)
    module = tenon.ir.parse(GIVEN)
    calls = [tenon.compile(module, mode=mode)[function] for mode in ("bytecode", "compiled")]
    for call in [*calls, lambda x: module.interpret(function, x)]:
        with pytest.raises(tenon.ExecutionError, match="doesn't fit its declared type"):
            call(np.arange(3, dtype="float32"))
