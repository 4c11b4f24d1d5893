"""Modules, passes and the session."""

import pathlib
import pickle
import re

import numpy as np
import pytest

import tenon

TEXT = "fn @main(%x: tensor[n; f32]) -> tensor[n; f32] { %y = neg(%x) relu(%y) }"


def test_modules_print_parse_and_pickle():
    module = tenon.ir.parse(TEXT)
    assert isinstance(module, tenon.ir.Module)
    assert tenon.ir.parse(str(module)) == module
    assert tenon.ir.from_json(module.to_json()) == module
    assert pickle.loads(pickle.dumps(module)) == module
    assert "<pre>" in module._repr_html_()


def test_nodes_have_fields():
    module = tenon.ir.parse(TEXT)
    main = module.functions["main"]
    assert "functions" in dir(module) and "functions" in module.fields
    assert main.type_key.startswith("graph.")
    with pytest.raises(AttributeError, match="nothing_of_that_name"):
        module.nothing_of_that_name
    with pytest.raises(TypeError, match="node.id"):
        hash(main)
    assert main.id == module.functions["main"].id


def test_types_compare_by_content():
    assert tenon.ir.type("tensor[n, 4; f32]") == tenon.ir.type("tensor[n, 4; f32]")
    assert tenon.ir.type("tensor[n, 4; f32]") != tenon.ir.type("tensor[n, 5; f32]")


def test_a_module_is_interpreted(x):
    assert tenon.ir.parse(TEXT).interpret("main", -x).tolist() == x.tolist()


def test_a_pass_in_python_runs_among_ours(x):
    seen = []

    @tenon.transform.module_pass(name="test.see")
    def see(module, context):
        seen.append((isinstance(module, tenon.ir.Module), context["level"]))
        return module

    exe = tenon.compile(tenon.ir.parse(TEXT), passes=[see, *tenon.transform.passes()])
    assert seen == [(True, 2)]
    assert exe(-x).tolist() == x.tolist()
    module = tenon.ir.parse(TEXT)
    assert see(module) == module


def test_the_checker_runs_after_a_pass():
    @tenon.transform.module_pass(name="test.nothing")
    def nothing(module, context):
        return 3

    with pytest.raises(tenon.Error, match="test.nothing"):
        nothing(tenon.ir.parse(TEXT))


def test_a_pass_that_raises_raises_its_own_exception():
    @tenon.transform.module_pass
    def broken(module, context):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        broken(tenon.ir.parse(TEXT))


def test_passes_are_listed():
    names = tenon.transform.passes(level=2)
    assert "fuse_operators" in names and "schedule" not in names
    assert all(p.summary for p in tenon.transform.list_passes())


def test_onnx_models_come_as_files_protos_and_bytes(relu_model, tmp_path):
    proto = relu_model
    (tmp_path / "m.onnx").write_bytes(proto.SerializeToString())
    a = -np.ones((2, 3), dtype="float32")
    for source in (tmp_path / "m.onnx", str(tmp_path / "m.onnx"), proto, proto.SerializeToString()):
        assert not np.asarray(tenon.compile(source)(a)).any()
    fixed = tenon.compile(proto, dims={"batch": 2})
    assert fixed.signature().params[0].dims == (2, 3)
    assert tenon.compile(proto, shapes={"x": (5, 3)}).signature().params[0].dims == (5, 3)


def test_the_session_has_the_methods_of_onnx_runtime(relu_model):
    session = tenon.InferenceSession(relu_model)
    assert [(i.name, i.type, i.shape) for i in session.get_inputs()] == [("x", "tensor(float)", ["batch", 3])]
    assert session.get_outputs()[0].name == "y"
    a = np.array([[-1, 0, 2]], dtype="float32")
    for names in (None, ["y"]):
        (y,) = session.run(names, {"x": a})
        assert isinstance(y, np.ndarray) and y.tolist() == [[0, 0, 2]]
    with pytest.raises(ValueError, match="no output is named z; the outputs are: y"):
        session.run(["z"], {"x": a})
    with pytest.raises(ValueError, match="no input is named q; the inputs are: x"):
        session.run(None, {"q": a})


def test_numbers_and_tuples_take_the_type_that_is_expected():
    b = tenon.ir.Builder()
    with b.function("same", x="i8", export=False, inline=False) as v:
        b.result(v)
    with b.function("main", n="i32") as n:
        step = b.scalar(1, "i32")
        end = b.loop({"i": ("i32", 0), "half": ("f32", 0.5)}, lambda i, _: b.less(i, n), lambda i, _: (b.add(i, step), 1))
        few = b.less(n, b.scalar(3, "i32"))
        pair = b.if_(few, lambda: (b.field(end, 0), b.field(end, 1)), lambda: (7, 0.25))
        closure = b.closure({"y": "i16"}, "(i16, f64)", lambda y: (y, 3))
        b.result(pair, b.call("same", 5), b.call(closure, 6))
    text = str(b.module())
    assert "attrs(export=false, inline=false)" in text
    exe = tenon.compile(b.module())
    assert exe(2) == ((2, 1.0), 5, (6, 3.0))
    assert exe(9) == ((7, 0.25), 5, (6, 3.0))


def test_a_builder_builds_loops_ifs_and_calls(x):
    b = tenon.ir.Builder()
    with b.function("twice", x="tensor[n; f32]", export=False) as v:
        b.result(b.add(v, v))
    with b.function("main", {"x.0": "tensor[n; f32]"}, results=["y", "i"], k="i64") as (v, k):
        end = b.loop(
            {"y": ("tensor[n; f32]", v), "i": ("i64", 0)},
            lambda y, i: b.less(i, k),
            lambda y, i: (b.call("twice", y), b.add(i, 1)),
        )
        b.result(b.if_(b.less(k, 0), lambda: b.tuple(v, k), lambda: end))
    exe = tenon.compile(b.module())
    assert exe.functions == ("main",)
    assert [r.name for r in exe.signature().results] == ["y", "i"]
    y, i = exe(x, 3)
    assert y.tolist() == (8 * x).tolist() and i == 3


def test_a_builder_says_what_is_missing():
    b = tenon.ir.Builder()
    with pytest.raises(ValueError, match="b.result"):
        with b.function("main", x="i64"):
            pass
    with pytest.raises(ValueError, match="no function is being built"):
        b.relu(1)
    with b.function("main", x="tensor[n; f32]") as x:
        with pytest.raises(tenon.UsageError, match="rellu"):
            b.rellu(x)
        b.result(x)
    b.declare("later", "fn(i64) -> i64")
    with pytest.raises(ValueError, match="'later' is declared but not built"):
        b.module()


def test_types_print_as_text():
    for text in ("tensor[n, 4; f32]", "fn(i64) -> (f32, bool)", "shape[rank=2]"):
        assert str(tenon.ir.type(text)) == text


def test_a_program_reports_all_its_mistakes():
    with pytest.raises(tenon.UsageError) as error:
        tenon.ir.parse("fn @main(%x: i64) -> i64 {\n  %y = ad(%x, 1)\n  %z = add(%y, %u)\n  %x < %z\n}", "p.tn")
    found = [error.value, *error.value.also]
    assert error.value.spans == ("p.tn:2:8", "p.tn:3:16", "p.tn:4:6")
    assert found[0].help == "did you mean add?" and found[2].expected == "less(%x, %z)"
    assert str(error.value).count("error: ") == 2


def test_the_content_says_what_a_file_is(relu_model, tmp_path):
    model = tmp_path / "model.bin"
    model.write_bytes(relu_model.SerializeToString())
    tenon.compile(model).save(tmp_path / "program.bin")
    assert [p.name for p in tenon.load(tmp_path / "program.bin").signature().params] == ["x"]
    with pytest.raises(tenon.UsageError, match="already compiled"):
        tenon.compile(tmp_path / "program.bin")
    with pytest.raises(tenon.UsageError, match="already compiled"):
        tenon.compile((tmp_path / "program.bin").read_bytes())
    checkpoint = tmp_path / "model.onnx"
    checkpoint.write_bytes(b"PK\x03\x04" + bytes(22) + b"archive/data.pkl")
    for model in (checkpoint, checkpoint.read_bytes()):
        with pytest.raises(tenon.UsageError) as error:
            tenon.compile(model)
        assert error.value.found == "a PyTorch checkpoint" and "torch.onnx.export" in error.value.help


def test_a_declaration_is_of_a_function():
    b = tenon.ir.Builder()
    with pytest.raises(tenon.UsageError, match="'f' is declared, but not as a function"):
        b.declare("f", "i64")


def test_a_function_may_have_the_name_of_a_type():
    b = tenon.ir.Builder()
    b.define("type tree { Leaf, Node(tree, tree) }")
    b.declare("tree", "fn(i64) -> tree")
    with b.function("tree", n="i64") as n:
        b.result(b.construct("Leaf"))
    with b.function("main", n="i64") as n:
        b.result(b.call("tree", n))
    module = b.module()
    assert module.interpret("main", 1) == module.data_types.Leaf


def test_the_builder_reaches_every_function_that_builds(monkeypatch):
    table = pathlib.Path(__file__).parents[2] / "src/driver/functions.def"
    if not table.exists():
        pytest.skip("this needs the sources")
    known = set(re.findall(r'"(tenon\.build_\w+)"', table.read_text())) - {"tenon.build_info"}
    known -= {"tenon.build_type"}  # tenon.ir.type
    called = set()

    def call(name, *arguments):
        called.add(name)
        return tenon._compiler.call(name, *arguments)

    monkeypatch.setattr(tenon._builder, "_call", call)
    b = tenon.ir.Builder()
    b.declare("helper", "fn(i64) -> i64")
    with b.function("helper", x="i64") as x:
        b.result(b.add(x, 1))
    with b.function("main", x="tensor[rank=2; f32]", n="i64") as (x, n):
        b.at("here")
        x = b.match_shape(x, ["rows", "columns"])
        b.match_elements(n, ["m"])
        b.check("less_equal", "m", 10, "n is at most 10")
        total = b.add(b.call("helper", n), n)
        loop = b.loop({"i": ("i64", 0)}, lambda i: b.less(i, 3), lambda i: b.add(i, b.constant(1)))
        either = b.if_(b.less(n, 5), lambda: total, lambda: loop)
        pair = b.bind(b.node("graph.Tuple", fields=[x, either]), "pair")
        seen = b.packed("test.seen", b.field(b.tuple(b.field(pair, 1), n), 0), result="i64")
        b.result(b.field(pair, 0), seen)
    module = b.module()
    with b.function("literal", x="i64") as x:
        b.result(b.call(b.closure({"y": "i64"}, "i64", lambda y: b.add(y, x)), 1))
    b.define("type tree[T] { Leaf, Node(tree[T], T, tree[T]) } fn @leaf[T]() -> tree[T] { Leaf }")
    b.import_("std/list.tn", "l")
    with b.function("same", type_params=["T"], x="T") as x:
        b.result(x)
    with b.function("values", x="tensor[n; f32]", t="tree[f32]") as (x, t):
        added = b.call(b.function_value("helper"), b.size("2*n"))
        first = b.array_get(b.array("f32", b.scalar(0.5, "f32"), 2), 1)
        found = b.match(t, {"Node(_, y, _)": lambda y: y, "Leaf": lambda: 1})
        leaf = b.call("leaf", type_arguments=["f32"])
        with pytest.raises(TypeError, match="type_arguments are for a function's name"):
            b.call(b.function_value("helper"), 1, type_arguments=["f32"])
        b.result(added, first, b.construct("Node", leaf, found, b.construct("Leaf", type="tree[f32]")))
    values = b.module()
    Leaf, Node = values.data_types.Leaf, values.data_types.Node
    x = np.ones(3, "float32")
    assert values.interpret("values", x, Leaf) == (7, 2.0, Node(Leaf, 1.0, Leaf))
    assert called == known
    tenon.register_func("test.seen", lambda x: x, override=True)
    assert tenon.compile(values)["values"](x, Node(Leaf, 2.5, Leaf)) == (7, 2.0, Node(Leaf, 2.5, Leaf))
    exe = tenon.compile(module)
    x = np.ones((2, 3), "float32")
    assert exe(x, 2)[1] == 5 and "%pair" in str(module)
    with pytest.raises(tenon.ExecutionError, match="n is at most 10"):
        exe(x, 11)


def test_a_function_literal_may_call_itself():
    b = tenon.ir.Builder()

    def body(y, itself):
        return b.if_(b.less(y, 1), lambda: 0, lambda: b.add(b.call(itself, b.sub(y, 1)), y))

    with b.function("main", x="i64") as x:
        b.result(b.call(b.closure({"y": "i64"}, "i64", body, self_name="sum"), x))
    text = str(b.module())
    assert "sum" in text and tenon.ir.parse(text) == b.module()


def test_classes_of_types_derive_from_each_other():
    tensor, scalar = tenon.ir.type("tensor[2; f32]"), tenon.ir.type("i64")
    assert [type(t).__name__ for t in (tensor, scalar)] == ["TensorType", "ScalarType"]
    assert type(tensor).__base__ is type(scalar).__base__ and type(tensor).__base__.__name__ == "Type"
    assert [str(t) for t in (tensor, scalar)] == ["tensor[2; f32]", "i64"]


def test_a_module_is_shown_in_a_line_and_printed_whole():
    functions = [f"fn @f{i}(%x: i64) -> i64 {{ %x }}" for i in range(10)]
    module = tenon.ir.parse("\n".join(functions))
    assert repr(module) == "<tenon.ir.Module of @f0, @f1, @f2, @f3, @f4, @f5, @f6, @f7 and 2 more; print(module) shows it>"
    assert str(module).count("fn @") == 10


def test_a_module_is_not_saved_as_onnx(tmp_path):
    module = tenon.ir.parse("fn @main(%x: i64) -> i64 { %x }")
    with pytest.raises(ValueError, match="not as ONNX"):
        module.save(tmp_path / "m.onnx")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("two", [2.0, np.float32(2), np.array(2, "float32")])
def test_floats_beside_f32_operands_are_f32(two):
    b = tenon.ir.Builder()
    with b.function("main", x="tensor[n; f32]") as x:
        b.result(b.mul(x, two))
    assert tenon.compile(b.module())(np.ones(2, "float32")).tolist() == [2, 2]


def test_a_function_has_one_result():
    b = tenon.ir.Builder()
    with pytest.raises(ValueError, match="has its result already"):
        with b.function("main", x="i64") as x:
            b.result(x)
            b.result(x)


RETURNS = """
fn @string(%n: i64) -> string {
  packed "test.returns"(%n) -> string
}
fn @array(%n: i64) -> i64 {
  %x = packed "test.returns"(%n) -> array[i64]
  array_length(%x)
}
fn @pair(%n: i64) -> i64 {
  %x = packed "test.returns"(%n) -> (i64, array[i64])
  %x.0
}
fn @list(%n: i64) -> i64 {
  %x = packed "test.returns"(%n) -> list[i64]
  match %x {
    Nil => { 0 }
    Cons(%y, _) => { %y }
  }
}
fn @closure(%n: i64) -> i64 {
  %f = packed "test.returns"(%n) -> fn(i64) -> i64
  %f(%n)
}
"""


@pytest.mark.parametrize(
    "function, wrong, expected",
    [
        ("string", 5, "string"),
        ("array", 5, r"array\[i64\]"),
        ("array", "ab", r"array\[i64\]"),
        ("pair", (1,), r"\(i64, array\[i64\]\)"),
        ("pair", (1, 2), r"array\[i64\]"),
        ("list", 5, r"list\[i64\]"),
        ("list", [4, 5], r"list\[i64\]"),
        ("closure", 5, r"fn\(i64\) -> i64"),
    ],
)
def test_a_registered_function_keeps_to_the_type_that_its_call_states(function, wrong, expected):
    tenon.register_func("test.returns", lambda n: wrong, override=True)
    module = tenon.ir.parse(RETURNS)
    words = rf"(?s)of function 'test.returns' doesn't fit its declared type.*expected +{expected}"
    with pytest.raises(tenon.ExecutionError, match=words):
        tenon.compile(module)[function](1)
    with pytest.raises(tenon.ExecutionError, match=words):
        module.interpret(function, 1)


def test_a_module_whose_types_carry_values_is_interpreted():
    module = tenon.ir.parse("""
    fn @sizes(%x: tensor[2, n; f32], %three: i64 = [3]) -> (i64 = [n], tensor[2; i64] = [2, n]) {
      %n = size(n)
      %shape = shape_of(%x)
      (%n, %shape)
    }""")
    x = np.ones((2, 5), "float32")
    for number, shape in (module.interpret("sizes", x, 3), tenon.compile(module)["sizes"](x, 3)):
        assert (number, shape.tolist()) == (5, [2, 5])


def test_the_message_of_an_error_has_no_place_in_it():
    for name in ("plain.tn", "a\x01b.tn"):
        with pytest.raises(tenon.UsageError) as caught:
            tenon.ir.parse("fn @main(%x: i64) -> i64 { %y }", name=name)
        assert caught.value.message == "unknown variable %y"
        assert str(caught.value).splitlines()[0].endswith(": unknown variable %y")
