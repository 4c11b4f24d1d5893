"""Compiling, saving, loading and calling."""

import os
import pickle
import threading

import numpy as np
import pytest

import tenon

TWO = "fn @main(%x: tensor[n; f32], %k: i64) -> (tensor[n; f32], i64) { %y = neg(%x) %l = add(%k, 1) (%y, %l) }"


def test_one_result_is_itself_and_several_are_a_tuple(add, x):
    y = add(x, x)
    assert isinstance(y, tenon.Tensor) and y.tolist() == [0, 2, 4, 6]
    two = tenon.compile(tenon.ir.parse(TWO))
    y, k = two(x, 4)
    assert y.tolist() == [0, -1, -2, -3] and k == 5


def test_arguments_have_names(add, x):
    assert add(y=x, x=2 * x).tolist() == [0, 3, 6, 9]
    assert add["main"](x, y=x).tolist() == [0, 2, 4, 6]


@pytest.mark.parametrize(
    ("args", "kwargs", "message"),
    [
        ((1,), {}, "1 arguments for 2 parameters: x: tensor"),
        ((1,), {"z": 2}, "'z' is not a parameter; the parameters are: x"),
        ((1,), {"x": 2}, "'x' is given twice"),
    ],
)
def test_wrong_arguments_name_the_parameters(add, args, kwargs, message):
    with pytest.raises(TypeError, match=message):
        add(*args, **kwargs)


def test_numbers_and_lists_become_tensors_where_those_are_expected(add):
    assert add([1, 2], (3, 4.5)).tolist() == [4, 6.5]


def test_an_argument_that_does_not_fit_is_an_error_with_its_parts(add, x):
    with pytest.raises(tenon.UsageError) as caught:
        add(x, x[:3])
    error = caught.value
    assert isinstance(error, ValueError)
    assert "n" in str(error) and error.found and error.expected
    assert "\n" not in error.message and str(error).startswith(error.message)


def test_signature_and_functions(add):
    assert add.functions == ("main",)
    signature = add.signature()
    assert [p.name for p in signature.params] == ["x", "y"]
    assert signature.params[0].dims == ("n",) and signature.params[0].dtype == "float32"
    assert "tensor[n; f32]" in str(signature) and "<table>" in signature._repr_html_()
    assert "main" in repr(add)


def test_an_unknown_function_is_named(add):
    with pytest.raises(tenon.UsageError, match="man"):
        add["man"]


def test_files_pickles_and_bytes_are_the_same(add, x, tmp_path):
    path = tmp_path / "add.tnx"
    add.save(path)
    assert path.read_bytes() == add.to_bytes()
    assert [p.name for p in tmp_path.iterdir()] == ["add.tnx"]
    for copy in (tenon.load(path), tenon.load(str(path)), pickle.loads(pickle.dumps(add))):
        assert copy(x, x).tolist() == [0, 2, 4, 6]
        assert copy.to_bytes() == add.to_bytes()


def test_a_saved_file_keeps_the_mode_of_the_one_it_replaces(add, tmp_path):
    path = tmp_path / "add.tnx"
    path.write_bytes(b"")
    path.chmod(0o640)
    add.save(path)
    assert path.stat().st_mode & 0o777 == 0o640 and path.stat().st_size > 0


def test_a_device_is_written_into(add):
    add.save("/dev/null")
    assert not os.path.isfile("/dev/null")


def test_saving_into_a_missing_folder_fails_and_leaves_nothing(add, tmp_path):
    with pytest.raises(FileNotFoundError):
        add.save(tmp_path / "missing" / "add.tnx")


def test_a_damaged_file_is_a_damaged_error(add, tmp_path):
    path = tmp_path / "add.tnx"
    data = bytearray(add.to_bytes())
    data[len(data) // 2] ^= 0xFF
    path.write_bytes(data)
    with pytest.raises(tenon.DamagedError, match="add.tnx"):
        tenon.load(path)


def test_an_untrusted_file_is_compiled_anew(x, tmp_path):
    module = tenon.ir.parse("fn @main(%x: tensor[n; f32]) -> tensor[n; f32] { relu(%x) }")
    path = tmp_path / "relu.tnx"
    tenon.compile(module, keep_computes=True).save(path)
    assert tenon.load(path, untrusted=True)(-x).tolist() == [0, 0, 0, 0]
    tenon.compile(module).save(path)
    with pytest.raises(tenon.UnsupportedError, match="untrusted"):
        tenon.load(path, untrusted=True)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(tenon.UsageError, match="nothing.tnx"):
        tenon.load(tmp_path / "nothing.tnx")


def test_calls_from_many_threads_agree(add, x):
    wrong = []

    def run(k):
        for _ in range(200):
            if add(x, k * x).tolist() != ((k + 1) * x).tolist():
                wrong.append(k)

    threads = [threading.Thread(target=run, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_other_objects_are_not_compiled():
    with pytest.raises(TypeError, match="can't compile a builtins.int"):
        tenon.compile(3)


def test_an_unknown_option_lists_the_options():
    with pytest.raises(tenon.UsageError, match="level"):
        tenon.compile(tenon.ir.parse(TWO), levle=3)


def test_a_syntax_error_has_its_place():
    with pytest.raises(tenon.UsageError) as caught:
        tenon.ir.parse("fn @main(%x: tensor[n; f32]) -> tensor[n; f32] { frobnicate(%x) }", "net.tn")
    assert caught.value.span.startswith("net.tn:1:")
    assert not caught.value.message.startswith("net.tn")


def test_a_shape_is_a_value_of_its_own():
    exe = tenon.compile(tenon.ir.parse("fn @main(%s: shape[rank=2]) -> shape[rank=2] { %s }"))
    s = exe((2, 3))
    assert isinstance(s, tenon.Shape) and s == (2, 3) and repr(s) == "Shape(2, 3)"
    assert exe(s) == s


def test_a_deadline_of_compilation_is_kept():
    with pytest.raises(tenon.ExecutionError):
        tenon.compile(tenon.ir.parse(TWO), deadline=0.0)


EVERY_CONTROL_FLOW = """
fn @fib(%n: i64) -> i64 {
  %small = less(%n, 2)
  if %small { %n } else {
    %a = sub(%n, 1)
    %b = sub(%n, 2)
    %x = @fib(%a)
    %y = @fib(%b)
    add(%x, %y)
  }
}
fn @main(%x: tensor[n, 2; f32], %times: i64) -> tensor[n, 2; f32] {
  %end = loop (%i: i64 = 0, %y: tensor[n, 2; f32] = %x) while { less(%i, %times) } {
    %j = add(%i, 1)
    %z = exp(%y)
    (%j, %z)
  }
  %end.1
}
"""


def test_an_executable_is_looked_into():
    exe = tenon.compile(tenon.ir.parse(EVERY_CONTROL_FLOW))
    stats = exe.stats()
    assert stats["file_bytes"] == len(exe.to_bytes())
    assert {f["name"]: f["exported"] for f in stats["functions"]} == {"fib": True, "main": True}
    main = next(f for f in stats["functions"] if f["name"] == "main")
    assert main["signature"] == "(x: tensor[n, 2; f32], times: i64) -> tensor[n, 2; f32]"
    assert main["instructions"]["ret"] >= 1
    assert len(stats["kernels"]) == 1 and stats["targets"][0]["bytes"] > 0
    assert "1 kernels" in str(stats) and "exported main:" in str(stats)
    assert "func @fib(n: i64) -> i64 {" in exe.as_text()
    assert len(exe.as_text(full=True)) > len(exe.as_text())


def test_assembly_is_assembled_again():
    exe = tenon.compile(tenon.ir.parse("fn @main(%i: i64) -> i64 { add(%i, 1) }"))
    again = tenon.get_func("tenon.assemble")(exe.as_text(full=True), None)
    assert again == exe.to_bytes()


def test_code_as_python_is_python():
    import ast

    text = tenon.compile(tenon.ir.parse(EVERY_CONTROL_FLOW)).as_python()
    functions = {f.name: f for f in ast.parse(text).body if isinstance(f, ast.FunctionDef)}
    assert set(functions) == {"fib", "main"}
    assert "fib(" in ast.unparse(functions["fib"].body)
    assert 'kernels["' in text and "match at:" in text



def test_weights_are_saved_apart_and_shared(tmp_path):
    weight = np.arange(1024, dtype="float32")
    b = tenon.ir.Builder()
    with b.function("main", x="tensor[1024; f32]") as x:
        b.result(b.add(x, b.constant(weight)))
    exe = tenon.compile(b.module())
    path, weights = tmp_path / "apart.tnx", tmp_path / "apart.safetensors"
    exe.save(path, external_weights=weights)
    assert path.stat().st_size < len(exe.to_bytes()) - weight.nbytes // 2 and weights.stat().st_size > weight.nbytes
    assert np.array_equal(tenon.load(path, weights=weights)(weight), weight * 2)
    with pytest.raises(tenon.UsageError, match="weights"):
        tenon.load(path)
    weights.write_bytes(b"damaged")
    with pytest.raises(tenon.DamagedError):
        tenon.load(path, weights=weights)


def test_weights_that_a_file_leaves_out_are_given_when_it_is_loaded(tmp_path):
    text = 'const "w" = late tensor[2; f32]\nfunc @main() -> tensor[2; f32] {\n  ret #0\n}\n'
    path = tmp_path / "late.tnx"
    path.write_bytes(tenon.get_func("tenon.assemble")(text, None))
    weights = {"w": np.array([1, 2], "float32"), "unused": np.zeros(3)}
    np.savez(tmp_path / "weights.npz", **weights)
    for given in (weights, np.load(tmp_path / "weights.npz")):
        assert tenon.load(path, weights=given)().tolist() == [1, 2]
    with pytest.raises(tenon.UsageError, match="no w"):
        tenon.load(path)
    with pytest.raises(tenon.UsageError, match=r"tensor\[2; f32\]"):
        tenon.load(path, weights={"w": np.zeros(2, "int32")})
    with pytest.raises(tenon.UsageError, match="the weights are not a map from names to tensors"):
        tenon.load(path, weights={"w": "text"})


def test_an_executable_says_what_it_was_made_from(tmp_path):
    program = tmp_path / "p.tn"
    program.write_text("fn @main(%n: i64) -> i64 { add(%n, 1) }\n")
    provenance = tenon.compile(program, level=1).stats()["provenance"]
    assert provenance["source"] == "p.tn" and provenance["bytes"] == 40 and provenance["level"] == 1
    assert "source" not in tenon.compile(tenon.ir.open(program)).stats()["provenance"]
