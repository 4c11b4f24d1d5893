"""Values of data types, lists, options, tuples, arrays and closures."""

import copy
import gc
import pickle
import signal
import threading

import numpy as np
import pytest

import tenon

TREES = """
type tree[T] { Leaf, Node(tree[T], T, tree[T]) }
type rose { Rose(i64, list[rose]) }
type color { Red, Green }
type Pair { Pair(i64, f32) }

fn @main(%t: tree[i64]) -> tree[i64] {
  match %t {
    Leaf => { Leaf }
    Node(%l, %x, %r) => {
      %a = @main(%r)
      %b = @main(%l)
      Node(%a, %x, %b)
    }
  }
}

fn @spine(%n: i64, %t: tree[i64]) -> tree[i64] {
  %done = less(%n, 1)
  if %done { %t } else {
    %m = sub(%n, 1)
    %next = Node(%t, %n, Leaf)
    @spine(%m, %next)
  }
}

fn @depth(%t: tree[i64], %n: i64) -> i64 {
  match %t {
    Leaf => { %n }
    Node(%l, _, _) => {
      %m = add(%n, 1)
      @depth(%l, %m)
    }
  }
}

fn @same(%t: tree[tensor[2; f32]], %r: rose, %xs: list[list[f32]], %c: color) -> (tree[tensor[2; f32]], rose, list[list[f32]], color) {
  (%t, %r, %xs, %c)
}

fn @options(%a: option[i64], %b: option[option[i64]], %c: option[()]) -> (option[i64], option[option[i64]], option[()]) {
  (%a, %b, %c)
}

fn @containers(%t: (i64, (f32, bool)), %a: array[f32], %one: (i64,), %unit: ()) -> ((i64, (f32, bool)), array[f32], (i64,), ()) {
  (%t, %a, %one, %unit)
}

fn @count(%n: i64, %xs: list[i64]) -> list[i64] {
  %done = less(%n, 1)
  if %done { %xs } else {
    %m = sub(%n, 1)
    %more = Cons(%n, %xs)
    @count(%m, %more)
  }
}

fn @total(%xs: list[i64], %sum: i64) -> i64 {
  match %xs {
    Nil => { %sum }
    Cons(%x, %rest) => {
      %next = add(%sum, %x)
      @total(%rest, %next)
    }
  }
}

fn @colored(%p: Pair) -> Pair {
  match %p { Pair(%n, %x) => { Pair(%n, %x) } }
}

fn @any_color(%c: color) -> i64 {
  match %c { Red => { 1 } Green => { 2 } }
}
"""

CLOSURES = """
type figure { Circle(f32), Square(f32) }

fn @adder(%k: i64, %x: i64) -> i64 { add(%k, %x) }

fn @main(%k: i64) -> fn(i64) -> i64 { closure @adder(%k) }

fn @literal(%k: i64) -> fn(i64) -> i64 {
  %twice = fn(%x: i64) -> i64 {
    %y = mul(%x, %k)
    add(%y, %y)
  }
  %twice
}

fn @apply(%f: fn(i64) -> i64, %x: i64) -> i64 { %f(%x) }

fn @areas(%area: fn(figure) -> f32, %all: list[figure]) -> list[f32] {
  match %all {
    Nil => { Nil }
    Cons(%s, %rest) => {
      %a = %area(%s)
      %others = @areas(%area, %rest)
      Cons(%a, %others)
    }
  }
}

fn @scaled(%k: f32) -> fn(list[f32]) -> option[f32] {
  %first = fn(%xs: list[f32]) -> option[f32] {
    match %xs {
      Nil => { None }
      Cons(%x, _) => {
        %y = mul(%x, %k)
        Some(%y)
      }
    }
  }
  %first
}

fn @ask(%f: fn(i64) -> list[i64]) -> i64 {
  %xs = %f(3)
  match %xs {
    Cons(%x, _) => { %x }
    Nil => { 0 }
  }
}
"""


@pytest.fixture(scope="module")
def trees():
    return tenon.compile(tenon.ir.parse(TREES))


@pytest.fixture(scope="module")
def closures():
    return tenon.compile(tenon.ir.parse(CLOSURES))


def test_constructors_make_values_and_results_are_of_their_classes(trees):
    Leaf, Node = trees.types.Leaf, trees.types.Node
    mirrored = trees(Node(Node(Leaf, 1, Leaf), 2, Leaf))
    assert mirrored == Node(Leaf, 2, Node(Leaf, 1, Leaf))
    assert isinstance(mirrored, Node) and isinstance(mirrored, trees.types.tree)
    assert isinstance(mirrored, tenon.DataValue) and not isinstance(mirrored, trees.types.color)
    assert repr(mirrored) == "Node(Leaf, 2, Node(Leaf, 1, Leaf))"
    assert mirrored.fields[1] == mirrored._1 == 2
    assert trees(t=Leaf) == Leaf() == Leaf
    assert mirrored != Leaf and Leaf != mirrored and mirrored != 2


def test_values_of_one_file_fit_another_executable_of_the_same_types(trees):
    again = tenon.compile(tenon.ir.parse(TREES))
    Leaf, Node = again.types.Leaf, again.types.Node
    assert Node is trees.types.Node
    held = trees(Node(Leaf, 1, Leaf))
    assert again(held) == Node(Leaf, 1, Leaf)


def test_match_takes_values_apart(trees):
    Leaf, Node, Red = trees.types.Leaf, trees.types.Node, trees.types.Red
    match trees(Node(Leaf, 7, Leaf)):
        case Leaf():
            found = None
        case Node(Leaf(), x, _):
            found = x
    assert found == 7
    match trees.types.Green():
        case trees.types.Red:
            found = "red"
        case trees.types.Green:
            found = "green"
    assert found == "green"
    assert {Red: 1}[Red()] == 1


def test_data_type_and_constructor_of_one_name(trees):
    value = trees["colored"](trees.types.Pair(1, 2))
    assert value == trees.types.Pair(1, 2.0) and isinstance(value._1, float)


def test_types_lists_and_explains(trees):
    assert {"tree", "Leaf", "Node", "Rose", "Red"} <= set(trees.types)
    assert "Node" in dir(trees.types) and "Node" in trees.types and "Nod" not in trees.types
    assert trees.types["None"] is not None
    with pytest.raises(AttributeError, match=r"no constructor or data type 'Nod'; it has .*tree\[T\] { Leaf, Node"):
        trees.types.Nod
    with pytest.raises(TypeError, match=r"Node has 3 fields, not 1: tree\[T\]"):
        trees.types.Node(1)
    with pytest.raises(TypeError, match="tree has no constructor of its own"):
        trees.types.tree()
    with pytest.raises(AttributeError, match="doesn't change"):
        trees.types.Leaf()._fields = ()


def test_fields_of_all_types_come_back(trees):
    Leaf, Node, Rose, Green = trees.types.Leaf, trees.types.Node, trees.types.Rose, trees.types.Green
    tensor = np.array([1, 2], "float32")
    t, r, xs, c = trees["same"](Node(Leaf, tensor, Node(Leaf, [3, 4], Leaf)), Rose(1, [Rose(2, []), Rose(3, [])]), [[1], []], Green)
    assert t == Node(Leaf, tensor, Node(Leaf, np.array([3, 4], "float32"), Leaf))
    assert r == Rose(1, [Rose(2, []), Rose(3, [])]) and isinstance(r._1, list)
    assert xs == [[1.0], []] and isinstance(xs[0][0], float)
    assert c == Green


def test_tensors_in_values_are_read_only(trees):
    Leaf, Node, Rose = trees.types.Leaf, trees.types.Node, trees.types.Rose
    t = trees["same"](Node(Leaf, np.zeros(2, "float32"), Leaf), Rose(1, []), [], trees.types.Red)[0]
    with pytest.raises(ValueError):
        np.asarray(t._1)[0] = 1


def test_what_python_changed_is_passed_on(trees):
    Leaf, Rose, Red = trees.types.Leaf, trees.types.Rose, trees.types.Red
    rose = trees["same"](Leaf, Rose(1, [Rose(2, [])]), [], Red)[1]
    rose._1[0]._1.append(Rose(3, []))
    assert trees["same"](Leaf, rose, [], Red)[1] == Rose(1, [Rose(2, [Rose(3, [])])])


def test_a_list_within_itself_is_an_error(trees):
    Leaf, Rose, Red = trees.types.Leaf, trees.types.Rose, trees.types.Red
    roses = []
    rose = Rose(1, roses)
    roses.append(rose)
    assert repr(rose) == "Rose(1, [Rose(1, [...])])"
    with pytest.raises(ValueError, match="an object of type 'list' contains itself"):
        trees["same"](Leaf, rose, [], Red)
    shared = [Rose(2, [])]
    twice = Rose(1, [Rose(3, shared), Rose(4, shared)])
    assert trees["same"](Leaf, twice, [], Red)[1] == twice
    assert repr(twice) == "Rose(1, [Rose(3, [Rose(2, [])]), Rose(4, [Rose(2, [])])])"


def test_an_instance_of_a_subclass_is_an_error(trees):
    Odd = type("Odd", (trees.types.Node,), {})
    with pytest.raises(TypeError, match="a value of type tree\\[i64\\] is expected"):
        trees["main"](Odd(trees.types.Leaf, 1, trees.types.Leaf))


def test_an_option_is_none_or_the_value(trees):
    options, Some = trees["options"], trees.types.Some
    assert options(None, None, None) == (None, None, None)
    assert options(3, 3, ()) == (3, Some(3), Some(None))
    assert options(Some(3), Some(None), Some(None)) == (3, Some(None), Some(None))
    assert options(0, Some(Some(4)), None) == (0, Some(4), None)


def test_bytes_are_a_sequence():
    exe = tenon.compile(tenon.ir.parse("fn @main(%a: array[u8], %l: list[u8]) -> (array[u8], list[u8]) { (%a, %l) }"))
    assert exe(b"ab", b"c") == ((97, 98), [99])
    with pytest.raises(TypeError):
        exe("ab", b"c")


def test_tuples_and_arrays_are_tuples(trees):
    result = trees["containers"]((1, (2, True)), np.array([1.5, 2.5], "float32"), (3,), None)
    assert result == ((1, (2.0, True)), (1.5, 2.5), (3,), None)
    assert trees["containers"]([1, [2, True]], range(2), [3], ())[1] == (0.0, 1.0)


def test_wrong_values_are_errors_that_say_where(trees):
    Leaf, Node, Red = trees.types.Leaf, trees.types.Node, trees.types.Red
    with pytest.raises(TypeError, match=r"a value of type i64 is expected for field 1 of Node, not 'a'"):
        trees(Node(Leaf, "a", Leaf))
    with pytest.raises(TypeError, match=r"a value of type tree\[T\] is expected for field 2 of Node, not 5: tree\[T\] {"):
        Node(Leaf, 1, 5)
    with pytest.raises(TypeError, match=r"a value of type i64 is expected for field 0 of Pair, not 'a': Pair {"):
        trees.types.Pair("a", 1.5)
    with pytest.raises(TypeError, match=r"a value of type f32 is expected for field 1 of Pair, not None: Pair {"):
        trees.types.Pair(1, None)
    with pytest.raises(TypeError, match=r"a value of type tree\[i64\] is expected, not Red"):
        trees(Red)
    with pytest.raises(TypeError, match=r"a value of type list\[i64\] is expected, not 'abc'"):
        trees["total"]("abc", 0)
    with pytest.raises(TypeError, match=r"a value of type i64 is expected for element 2 of list\[i64\], not None"):
        trees["total"]([1, 2, None], 0)
    with pytest.raises(TypeError, match=r"a value of type \(i64, \(f32, bool\)\) is expected, not 3 items"):
        trees["containers"]((1, 2, 3), [], (1,), None)


def test_numbers_in_containers_are_of_their_types():
    module = tenon.ir.parse(
        """
        fn @half(%a: array[f16]) -> f64 {
          %x = array_get(%a, 0)
          cast(%x, dtype=f64)
        }
        fn @brain(%a: option[bf16]) -> bf16 {
          match %a { None => { bf16(0) } Some(%x) => { %x } }
        }
        fn @single(%a: list[f32]) -> f64 {
          match %a { Nil => { f64(0) } Cons(%x, _) => { cast(%x, dtype=f64) } }
        }
        fn @small(%a: array[i8]) -> i8 { array_get(%a, 0) }
        fn @unsigned(%a: (u16, bool)) -> u16 { %a.0 }
        """
    )
    exe = tenon.compile(module)
    values = [0.1, -0.1, 1e-7, 1.5, 65504.0, 2049.0, 2051.0, 0.0, float("inf")]
    for x in values:
        assert exe["half"]([x]) == float(np.float16(x))
        assert exe["single"]([x]) == float(np.float32(x))
    assert [exe["brain"](x) for x in (1.01, 3e38, 1e-40)] == [1.0078125, 3.00405527047391e38, 9.183549615799121e-41]
    for x, function in ((65520.0, "half"), (1e39, "single")):
        with pytest.raises(TypeError, match="is expected for element 0 of"):
            exe[function]([x])
    assert exe["small"]([-128]) == -128
    for x in (128, -129):
        with pytest.raises(TypeError, match=rf"a value of type i8 is expected for element 0 of array\[i8\], not {x}"):
            exe["small"]([x])
    for x in (-1, 65536):
        with pytest.raises(TypeError, match="a value of type u16 is expected for field 0"):
            exe["unsigned"]((x, True))


def test_lists_of_a_million_elements(trees):
    n = 1_000_000
    assert trees["total"](range(n + 1), 0) == n * (n + 1) // 2
    xs = trees["count"](n, [])
    assert len(xs) == n and xs[0] == 1 and xs[-1] == n
    assert trees["total"](xs, 0) == n * (n + 1) // 2


def test_values_of_depth_100000_need_no_recursion(trees):
    Leaf, Node = trees.types.Leaf, trees.types.Node
    n = 100_000
    deep = trees["spine"](n, Leaf)
    assert trees["depth"](deep, 0) == n
    here, depth = deep, 0
    while here != Leaf:
        here, depth = here._0, depth + 1
    assert depth == n
    made = Leaf()
    for i in range(n, 0, -1):
        made = Node(made, i, Leaf)
    assert trees["depth"](made, 0) == n
    assert made == trees["spine"](n, Leaf) or made._1 == 1
    mirror = trees["spine"](n, Leaf)
    assert mirror == deep and hash(mirror) == hash(deep) and repr(deep) == repr(mirror)
    assert pickle.loads(pickle.dumps(deep)) == deep
    del deep, here, made, mirror
    gc.collect()


def test_values_can_be_keys_pickled_and_copied(trees):
    Leaf, Node, Rose = trees.types.Leaf, trees.types.Node, trees.types.Rose
    value = trees(Node(Leaf, 1, Leaf))
    assert {value: "found"}[Node(Leaf, 1, Leaf)] == "found"
    assert pickle.loads(pickle.dumps(value)) == value
    assert copy.copy(value) is value
    rose = Rose(1, [Rose(2, [])])
    assert pickle.loads(pickle.dumps(rose)) == rose
    with pytest.raises(TypeError, match="unhashable"):
        hash(rose)


LEVELS = 60


def shared_tree(types):
    tree = types.Leaf
    for i in range(LEVELS):
        tree = types.Node(tree, i, tree)
    return tree


SHARED = TREES + """
fn @shared(%n: i64) -> tree[i64] {
  %made = loop (%i: i64 = 0, %t: tree[i64] = Leaf) while { less(%i, %n) } {
    %next = add(%i, 1)
    %both = Node(%t, %i, %t)
    (%next, %both)
  }
  %made.1
}
fn @rose_depth(%r: rose, %n: i64) -> i64 {
  match %r {
    Rose(_, %below) => {
      match %below {
        Nil => { %n }
        Cons(%first, _) => {
          %m = add(%n, 1)
          @rose_depth(%first, %m)
        }
      }
    }
  }
}
"""


@pytest.fixture(scope="module")
def sharing():
    return tenon.compile(tenon.ir.parse(SHARED))


def test_parts_that_values_share_are_passed_once(trees, sharing):
    assert sharing["depth"](shared_tree(sharing.types), 0) == LEVELS
    made = sharing["shared"](LEVELS)
    assert sharing["depth"](made, 0) == LEVELS
    assert trees["depth"](made, 0) == LEVELS  # another program, which opens it
    assert trees["depth"](made, 0) == LEVELS
    rose = sharing.types.Rose(0, [])
    for i in range(LEVELS):
        below = [rose, rose]
        rose = sharing.types.Rose(i, below)
    assert sharing["rose_depth"](rose, 0) == LEVELS
    untyped = tenon.Function(lambda value: value)
    assert untyped(rose).tag == 0


def test_a_list_that_changed_between_calls_is_passed_as_it_is(sharing):
    Rose = sharing.types.Rose
    below = []
    rose = Rose(1, [Rose(2, below), Rose(2, below)])
    assert sharing["rose_depth"](rose, 0) == 1
    below.append(Rose(3, []))
    assert sharing["rose_depth"](rose, 0) == 2


def test_the_same_object_may_be_of_several_types():
    exe = tenon.compile(tenon.ir.parse("fn @main(%t: ((f32, f32), (f64, f64))) -> ((f32, f32), (f64, f64)) { %t }"))
    both = (0.1, 1.0)
    assert exe((both, both)) == ((float(np.float32(0.1)), 1.0), (0.1, 1.0))


def test_parts_that_values_share_are_pickled_and_compared_once(sharing):
    for value in (shared_tree(sharing.types), sharing["shared"](LEVELS)):
        data = pickle.dumps(value)
        assert len(data) < 100 * LEVELS
        again = pickle.loads(data)
        assert again._0 is again._2
        assert again == value and again == shared_tree(sharing.types)
        assert again != again._0 and again != sharing.types.Node(again._0, -1, again._2)
    looped = []
    looped.append(sharing.types.Rose(1, looped))
    with pytest.raises(ValueError, match="contains itself"):
        pickle.dumps(looped[0])


def test_parts_that_values_share_are_hashed_once(sharing):
    Leaf, Node = sharing.types.Leaf, sharing.types.Node
    assert hash(shared_tree(sharing.types)) == hash(sharing["shared"](LEVELS))
    one = Node(Leaf, 0, Leaf)
    assert hash(Node(one, 1, one)) == hash(Node(Node(Leaf, 0, Leaf), 1, Node(Leaf, 0, Leaf)))
    assert hash(Node(one, 1, Leaf)) != hash(Node(Leaf, 1, one))


def test_errors_show_no_value_that_shares_parts_whole(sharing):
    tree = shared_tree(sharing.types)
    with pytest.raises(TypeError, match="a value of type rose is expected, not an object of type 'Node'"):
        sharing["rose_depth"](tree, 0)
    with pytest.raises(TypeError, match="for field 0 of Rose, not an object of type 'list'"):
        sharing.types.Rose([tree], [])


def test_signals_end_the_conversion_of_a_large_value(trees):
    class Rings(Exception):
        pass

    def ring(*_):
        raise Rings

    large = [0] * 3_000_000 + [2**64]
    before = signal.signal(signal.SIGALRM, ring)
    try:
        with pytest.raises(Rings) as raised:
            signal.setitimer(signal.ITIMER_REAL, 0.01)
            trees["total"](large, 0)
        assert raised.value.__context__ is None  # not after the last element was refused
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_a_cell_with_a_wrong_tag_is_an_error(trees):
    Leaf, Node, Green = trees.types.Leaf, trees.types.Node, trees.types.Green
    untyped = tenon.Function(lambda value: value)
    raw = untyped(Node(Leaf, 1, Leaf))
    assert isinstance(raw, tenon.Cell) and raw.tag == 1 and raw.fields[1] == 1
    with pytest.raises(TypeError, match="a value of type color is expected"):
        trees["any_color"](raw)


def test_programs_import_files_of_other_folders(tmp_path):
    (tmp_path / "app").mkdir()
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib/x.tn").write_text("fn @g(%x: i64) -> i64 { add(%x, 1) }")
    text = 'import "x.tn" as x\nfn @main(%n: i64) -> i64 { @x.g(%n) }\n'
    path = tmp_path / "app/a.tn"
    path.write_text(text)
    assert tenon.compile(path, import_path=tmp_path / "lib")(1) == 2
    assert tenon.ir.open(path, import_path=[tmp_path / "lib"]).interpret("main", 1) == 2
    assert tenon.ir.parse(text, str(path), import_path=[tmp_path / "lib"]).interpret("main", 1) == 2
    with pytest.raises(tenon.UsageError, match='import "x.tn" cannot be read') as error:
        tenon.compile(path, import_path=tmp_path)
    assert "nor below an import path" in str(error.value)
    with pytest.raises(TypeError, match="import_path is for the path of a program"):
        tenon.compile(tenon.ir.parse(TREES), import_path=tmp_path)


def test_interpretation_takes_and_returns_the_same_values():
    module = tenon.ir.parse(TREES)
    Leaf, Node = module.data_types.Leaf, module.data_types.Node
    value = Node(Node(Leaf, 1, Leaf), 2, Leaf)
    assert module.interpret("main", value) == tenon.compile(module)(value) == Node(Leaf, 2, Node(Leaf, 1, Leaf))
    assert module.interpret("options", 3, 3, None) == (3, module.data_types.Some(3), None)
    assert module.interpret("count", 3, []) == [1, 2, 3]
    closures = tenon.ir.parse(CLOSURES)
    assert repr(closures.interpret("main", 2)) == "<closure @adder>"
    assert repr(closures.interpret("literal", 2)) == "<closure @literal.twice>"
    assert closures.interpret("literal", 2)(3) == 12


U64 = """
fn @main(%x: u64, %l: list[u64], %a: array[u64], %o: option[u64], %t: (u64, bool), %f: fn(u64) -> u64)
    -> (u64, list[u64], array[u64], option[u64], (u64, bool), u64, fn(u64) -> u64, bool) {
  %y = %f(%x)
  %large = greater(%x, u64(9223372036854775808))
  (%x, %l, %a, %o, %t, %y, %f, %large)
}
fn @one(%x: u64) -> u64 { %x }
"""


def test_a_u64_has_no_sign():
    most = 2**64 - 1
    module = tenon.ir.parse(U64)
    exe = tenon.compile(module)
    for run in (lambda name, *a: exe[name](*a), module.interpret):
        numbers = np.array([most, 1], "uint64")
        *values, f, large = run("main", most, [most], numbers, most, (most, True), lambda y: y - 1)
        assert values == [most, [most], (most, 1), most, (most, True), most - 1]
        assert large is True and f(most) == most - 1
        assert run("one", np.uint64(most)) == most and run("one", 0) == 0
        for wrong in (-1, 2**64, -(2**70)):
            with pytest.raises(OverflowError, match=f"from 0 to 2\\*\\*64 - 1 is expected, not {wrong}"):
                run("one", wrong)
    with pytest.raises(OverflowError, match="doesn't fit 64 bits with a sign"):
        tenon.compile(tenon.ir.parse("fn @main(%x: i64) -> i64 { %x }"))(most)
    b = tenon.ir.Builder()
    with b.function("main"):
        b.result(b.scalar(most, "u64"))
    assert tenon.compile(b.module())() == most
    with pytest.raises(OverflowError, match="-1 doesn't fit u64"):
        b.scalar(-1, "u64")


def test_interpretation_takes_what_a_compiled_program_takes():
    text = """
    fn @main(%x: f64, %v: tensor[n; f32], %s: shape[*], %u: tensor[u64])
        -> (f64, tensor[n; f32], shape[*], tensor[u64]) {
      (%x, %v, %s, %u)
    }"""
    module = tenon.ir.parse(text)
    given = (3, [1, 2], (4, 5), 2**64 - 1)
    for run in (tenon.compile(module), lambda *a: module.interpret("main", *a)):
        x, v, s, u = run(*given)
        assert (x, v.tolist(), s, u.numpy().item()) == (3.0, [1.0, 2.0], (4, 5), 2**64 - 1)
        with pytest.raises(ValueError, match="a size in a shape is negative: -2"):
            run(3, [1, 2], (1, -2), 0)


def test_interpretation_takes_tensors_of_any_layout():
    text = """
    type box { Box(tensor[rank=2; i64]) }
    fn @main(%x: tensor[n, 2; i64], %b: box, %f: fn() -> tensor[2; i64])
        -> (tensor[2, n; i64], tensor[rank=2; i64], i64) {
      %columns = transpose(%x, perm=[1, 0])
      %doubled = match %b {
        Box(%y) => {
          %z = match_shape(%y, [k, 2])
          add(%z, %z)
        }
      }
      %row = %f()
      %sizes = match_elements(%row, [p, q])
      (%columns, %doubled, size(p + 100*q))
    }"""
    module = tenon.ir.parse(text)
    columns = np.arange(10, dtype="int64").reshape(2, 5).T
    Box = module.data_types.Box
    unaligned = np.frombuffer(b"\0" * 7 + columns.tobytes(), "int64", offset=7).reshape(5, 2)
    for x in (columns, columns[::-2], unaligned):
        for run in (tenon.compile(module), lambda *a: module.interpret("main", *a)):
            a, b, sizes = run(x, Box(x), lambda x=x: x[0])
            assert a.tolist() == x.T.tolist() and b.tolist() == (x + x).tolist()
            assert sizes == x[0, 0] + 100 * x[0, 1]


def test_closures_are_callables_that_are_kept(closures):
    add = closures(40)
    assert add(2) == 42 and repr(add) == "<closure @adder>"
    assert repr(closures["literal"](3)) == "<closure @literal.twice>"
    assert closures["apply"](add, 1) == 41
    results = []
    thread = threading.Thread(target=lambda: results.append(add(1)))
    thread.start()
    thread.join()
    assert results == [41]
    with pytest.raises(TypeError, match="2 arguments for 1 parameter"):
        add(1, 2)


def test_python_functions_are_closures_with_typed_arguments(closures):
    Circle, Square = closures.types.Circle, closures.types.Square

    def area(shape):
        match shape:
            case Circle(r):
                return 3 * r * r
            case Square(a):
                return a * a

    assert closures["areas"](area, [Circle(1), Square(2)]) == [3.0, 4.0]
    assert closures["apply"](lambda x: x + 1, 1) == 2
    assert closures["ask"](lambda n: [n, n]) == 3
    with pytest.raises(TypeError, match=r"a value of type list\[i64\] is expected, not 5"):
        closures["ask"](lambda n: 5)
    first = closures["scaled"](2.0)
    assert first([1.5]) == 3.0 and first([]) is None


def test_an_instrument_sees_the_names_of_closures(closures):
    vm = tenon.VirtualMachine(closures)
    seen = []
    vm.set_instrument(lambda func, name, before, result, *args: seen.append((name, before)))
    add = vm["main"](1)
    vm["apply"](closures["literal"](2), 3)
    assert seen == [("literal.twice", True), ("literal.twice", False)]
    seen.clear()
    vm["apply"](lambda x: x, 3)
    assert seen == [("", True), ("", False)]
    assert add(1) == 2


def test_types_that_grow_within_a_value_are_looked_at_up_to_a_limit():
    exe = tenon.compile(
        tenon.ir.parse(
            """
type t[T] { A, B(t[(T, T)]) }
fn @main(%n: i64) -> t[i64] { @grow[i64](%n) }
fn @grow[T](%n: i64) -> t[T] {
  %last = less(%n, 1)
  if %last { A } else {
    %m = sub(%n, 1)
    %inner = @grow[(T, T)](%m)
    B(%inner)
  }
}
fn @same(%x: t[i64]) -> t[i64] { %x }
"""
        )
    )

    def depth(value):
        n = 0
        while value.fields:
            value, n = value.fields[0], n + 1
        return n

    assert depth(exe(10)) == 10
    with pytest.raises(ValueError, match="data type 't', which contains itself with other types, are too large"):
        depth(exe(40))
    value = exe.types.A
    for _ in range(40):
        value = exe.types.B(value)
    with pytest.raises(ValueError, match="too large"):
        exe["same"](value)
    assert depth(exe(10)) == 10


@pytest.mark.parametrize(
    "attributes, says",
    [
        ({"_held": 5, "_fields": None}, "_held isn't a cell"),
        ({"_fields": [1, 2]}, "_fields isn't a tuple"),
        ({"_fields": (1, 2, 3)}, "another number of fields"),
    ],
)
def test_what_an_instance_pretends_to_hold_is_not_believed(attributes, says):
    exe = tenon.compile(tenon.ir.parse("type p { P(i64, i64) } fn @main(%x: p) -> p { %x }"))
    made = exe.types.P(1, 2)
    for name, value in attributes.items():
        object.__setattr__(made, name, value)
    with pytest.raises(TypeError, match=says):
        exe(made)
    if len(made._fields or ()) != 3:  # any number where no type is known
        with pytest.raises(TypeError, match=says):
            tenon.Function(lambda p: p)(made)


def test_a_view_of_a_file_keeps_it_alive():
    exe = tenon.compile(tenon.ir.parse("fn @main() -> i64 { 1 }"))
    expected = exe.to_bytes()
    view = exe._program.file()
    del exe
    gc.collect()
    assert bytes(view) == expected


def test_an_instrument_sees_data_by_the_names_of_constructors():
    program = tenon.compile(
        tenon.ir.parse("""
            type tree { Leaf, Node(tree, i64, tree) }
            fn @sum(%t: tree, %xs: list[i64]) -> (tree, i64) {
              match %t {
                Leaf => { (%t, 0) }
                Node(%a, %x, %b) => {
                  %l = @sum(%a, %xs)
                  %r = @sum(%b, %xs)
                  %s = add(%l.1, %r.1)
                  %all = add(%s, %x)
                  (%t, %all)
                }
              }
            }
            fn @main(%t: tree) -> i64 {
              %xs = Cons(1, Nil)
              %s = @sum(%t, %xs)
              %s.1
            }
            """)
    )
    Leaf, Node = program.types.Leaf, program.types.Node
    vm = tenon.VirtualMachine(program)
    seen = []
    vm.set_instrument(lambda func, name, before, result, *args: seen.append((name, before, result, args[0])))
    tree = Node(Leaf, 1, Node(Leaf, 2, Leaf))
    assert vm["main"](tree) == 3
    assert seen[0] == ("sum", True, None, tree)
    assert repr(seen[0][3]) == "Node(Leaf, 1, Node(Leaf, 2, Leaf))"
    assert (False, (tree, 3)) in [(before, result) for _, before, result, _ in seen]


def nested(levels: int) -> str:
    """A program whose result has 2**levels paths, and a few objects."""
    lines, t = ["  %a0 = array[i64](%n)"], "array[i64]"
    for i in range(1, levels + 1):
        lines.append(f"  %a{i} = array[{t}](%a{i - 1}, %a{i - 1})")
        t = f"array[{t}]"
    return "\n".join([f"fn @main(%n: i64) -> {t} {{", *lines, f"  %a{levels}", "}"])


def test_a_part_that_stands_in_several_places_is_one_object():
    result = tenon.compile(tenon.ir.parse(nested(60)), mode="bytecode")(3)
    for _ in range(59):
        assert len(result) == 2 and result[0] is result[1]
        result = result[0]
    assert result == ((3,), (3,))


def test_tensors_in_a_part_that_stands_in_two_places_are_read_only():
    program = """fn @main(%x: tensor[2; f32]) -> array[array[tensor[2; f32]]] {
  %y = add(%x, %x)
  %z = mul(%x, %x)
  %a = array[tensor[2; f32]](%y)
  %b = array[tensor[2; f32]](%z)
  array[array[tensor[2; f32]]](%a, %b, %a)
}"""
    shared, alone, again = tenon.compile(tenon.ir.parse(program))(np.float32([1, 2]))
    assert shared[0].tolist() == again[0].tolist() == [2, 4]
    assert not np.asarray(shared[0]).flags.writeable and not np.asarray(again[0]).flags.writeable


def test_the_text_of_a_value_is_bounded():
    program = """type t { L, N(t, t) }
fn @main(%n: i64, %x: t) -> t {
  %is_done = equal(%n, 0)
  if %is_done { %x } else {
    %m = sub(%n, 1)
    %y = N(%x, %x)
    @main(%m, %y)
  }
}"""
    exe = tenon.compile(tenon.ir.parse(program))
    assert repr(exe(2, exe.types.L)) == "N(N(L, L), N(L, L))"
    text = repr(exe(60, exe.types.L))
    assert len(text) < 100_000 and text.endswith("...")
