"""Compiling, saving, loading and calling."""

import functools
import io
import os
import pickle
import re
import subprocess
import sys
import threading
import zipfile

import numpy as np
import pytest

import tenon

ADD = "fn @main(%x: tensor[n; f32], %y: tensor[n; f32]) -> tensor[n; f32] { add(%x, %y) }"
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
        ((1,), {}, "^1 argument for 2 parameters; missing: y; the parameters are: x: tensor.*, y: tensor"),
        ((), {"y": 1}, "; missing: x; "),
        ((), {"z": 1}, "'z' is not a parameter; the parameters are: x"),
        ((1,), {"z": 2}, "'z' is not a parameter; the parameters are: x"),
        ((1,), {"x": 2}, "'x' is given twice"),
    ],
)
def test_wrong_arguments_name_the_parameters(add, args, kwargs, message):
    with pytest.raises(TypeError, match=message):
        add(*args, **kwargs)


def test_wrong_counts_name_a_few_of_many_parameters():
    params = ", ".join(f"%x{i}: i64" for i in range(25))
    many = tenon.compile(tenon.ir.parse(f"fn @main({params}) -> i64 {{ %x0 }}"))
    with pytest.raises(TypeError) as caught:
        many(1)
    assert str(caught.value) == (
        "1 argument for 25 parameters; missing: x1, x2, x3, x4, and 20 more; "
        "the parameters are: x0: i64, x1: i64, x2: i64, x3: i64, and 21 more"
    )
    with pytest.raises(TypeError, match="^1 arguments for the 25 parameters of 'main'; missing: x1, x2, x3, x4, and 20"):
        tenon.VirtualMachine(many).set_input("main", 1)


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


def test_a_source_is_not_loaded_but_compiled(tmp_path):
    path = tmp_path / "m.onnx"
    path.write_bytes(b"\x08\n\x12\x08")
    with pytest.raises(tenon.UsageError, match=re.escape(f"tenon.compile({str(path)!r}) compiles it")):
        tenon.load(path)


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
    strict = tenon.load(path, untrusted=True)
    assert strict(-x).tolist() == [0, 0, 0, 0]
    assert strict.untrusted and repr(strict).startswith("<tenon.Executable, untrusted\n")
    with pytest.raises(tenon.UsageError, match="loaded as untrusted can't be saved"):
        strict.save(tmp_path / "again.tnx")
    assert not (tmp_path / "again.tnx").exists()
    assert not tenon.load(path).untrusted
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
    assert np.array_equal(pickle.loads(pickle.dumps(tenon.load(path, weights=weights)))(weight), weight * 2)
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
    (tmp_path / "weights.npz").rename(tmp_path / "weights")  # the content says what it is
    for given in (weights, np.load(tmp_path / "weights"), tmp_path / "weights"):
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


@pytest.mark.parametrize(
    ("dtype", "given", "error", "message"),
    [
        ("i64", [0.999, -1.5], TypeError, r"floats such as 0.999 can't become a tensor of int64: pass integers"),
        ("i64", 1.5, TypeError, "floats such as 1.5"),
        ("bool", [1], TypeError, "integers such as 1 can't become a tensor of bool: pass booleans"),
        ("f32", ["1"], TypeError, "such as '1'"),
        ("u8", [1, 256], OverflowError, "256 doesn't fit uint8, which goes from 0 to 255"),
        ("u8", [-1], OverflowError, "-1 doesn't fit uint8"),
        ("i64", [2**64], OverflowError, "18446744073709551616 doesn't fit int64"),
    ],
)
def test_lists_of_another_kind_of_numbers_are_refused(dtype, given, error, message):
    shape = "n; " if isinstance(given, list) else ""
    exe = tenon.compile(tenon.ir.parse(f"fn @main(%x: tensor[{shape}{dtype}]) -> tensor[{shape}{dtype}] {{ %x }}"))
    with pytest.raises(error, match=message):
        exe(given)


def test_lists_of_a_lower_kind_are_converted():
    exe = tenon.compile(tenon.ir.parse("fn @main(%x: tensor[n; i64], %y: tensor[m; f32]) -> (tensor[n; i64], tensor[m; f32]) { (%x, %y) }"))
    x, y = exe([True, 2], [])
    assert x.tolist() == [1, 2] and y.shape == (0,)


def test_a_shared_object_is_loaded_like_a_file(x, tmp_path):
    path = tmp_path / "libadd.so"
    exe = tenon.compile(tenon.ir.parse(ADD), shared=True)
    exe.save(path)
    assert path.read_bytes()[:4] == b"\x7fELF"
    for loaded in (exe, tenon.load(path), tenon.load(path.read_bytes()), pickle.loads(pickle.dumps(exe))):
        assert loaded["main"](x, x).tolist() == [0, 2, 4, 6]
    assert [f["name"] for f in tenon.load(path).stats()["functions"]] == ["main"]
    with pytest.raises(tenon.UsageError, match="can't be taken out of it"):
        exe.save(path, external_weights=tmp_path / "weights")
    with pytest.raises(tenon.UnsupportedError, match="untrusted"):
        tenon.load(path, untrusted=True)
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(tenon.DamagedError, match="a segment outside of its bytes"):
        tenon.load(path)


def test_files_are_loaded_from_memory(add, x):
    for data in (add.to_bytes(), bytearray(add.to_bytes()), memoryview(add.to_bytes())):
        assert tenon.load(data)(x, x).tolist() == [0, 2, 4, 6]
    with pytest.raises(tenon.DamagedError, match="mine"):
        tenon.load(b"no program", name="mine")


def test_errors_name_the_program(relu_model, tmp_path):
    relu_model.graph.name = "encoder"
    exe = tenon.compile(relu_model)
    (tmp_path / "m.onnx").write_bytes(relu_model.SerializeToString())
    named = {
        "encoder": exe,
        "m.onnx": tenon.compile(tmp_path / "m.onnx"),
        "mine": tenon.compile(relu_model, name="mine"),
        "<module>": tenon.compile(tenon.ir.parse("fn @main(%x: i64) -> i64 { %x }")),
    }
    named |= {f"{name} (pickled)": pickle.loads(pickle.dumps(e)) for name, e in named.items()}
    for name, executable in named.items():
        with pytest.raises(tenon.UsageError, match=name.removesuffix(" (pickled)")):
            executable["none"]


def test_an_unknown_option_lists_those_of_python_as_well():
    module = tenon.ir.parse("fn @main(%x: i64) -> i64 { %x }")
    with pytest.raises(tenon.UsageError, match='there is no option "dim"') as caught:
        tenon.compile(module, dim={"n": 1})
    assert caught.value.help == "did you mean dims?"
    known = caught.value.expected.removeprefix("one of ").split(", ")
    assert {"dims", "shapes", "deadline", "level"} <= set(known) and len(known) == len(set(known))


def test_one_name_is_a_list_of_itself():
    module = tenon.ir.parse("fn @main(%x: i64) -> i64 { %x }")
    with pytest.raises(tenon.UsageError, match="there is no pass 'simplfy'"):
        tenon.compile(module, passes="simplfy")
    with pytest.raises(TypeError, match="module_pass"):
        tenon.compile(module, passes=[len])
    for call in (lambda **o: tenon.compile(module, **o), lambda **o: tenon.load(b"", **o)):
        with pytest.raises(ValueError, match="libtenon_NAME.so, as files refer to it by NAME; not lib.so"):
            call(custom="./lib.so")
        with pytest.raises(TypeError, match="custom takes"):
            call(custom=3)


def test_sizes_of_shapes_may_be_none(relu_model):
    exe = tenon.compile(relu_model, shapes={"x": (None, 3)})
    assert exe.signature().params[0].dims == ("batch", 3)


def test_a_file_that_cannot_be_written_is_named(add):
    with pytest.raises(FileNotFoundError) as caught:
        add.save("/nonexistent/x.tnx")
    assert caught.value.filename == "/nonexistent/x.tnx"


def test_executables_and_machines_show_themselves(add):
    assert "<table>" in add._repr_html_() and "main" in add._repr_html_()
    machine = tenon.VirtualMachine(add, limits=tenon.Limits(depth=7))
    assert repr(machine) == "<tenon.VirtualMachine of main; memory='pooled', threads=0, inter_op=1, limits: depth=7>"


def test_a_pool_of_processes_calls_an_executable(add, x):
    import multiprocessing

    double = functools.partial(add, x)
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        results = pool.map(double, [x, x])
    assert [y.tolist() for y in results] == [[0, 2, 4, 6]] * 2


def test_untrusted_files_call_functions_that_are_for_files(tmp_path):
    tenon.register_func("test.for_files", lambda n: n + 1, for_files=True)
    tenon.register_func("test.not_for_files", lambda n: n + 1)
    for name, refused in (("test.for_files", False), ("test.not_for_files", True)):
        text = f'fn @main(%n: i64) -> i64 {{\n  packed "{name}"(%n) -> i64\n}}'
        data = tenon.compile(tenon.ir.parse(text)).to_bytes()
        if refused:
            with pytest.raises(tenon.UnsupportedError, match="functions that untrusted files may not call"):
                tenon.load(data, untrusted=True)
        else:
            assert tenon.load(data, untrusted=True)(41) == 42


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"untrusted": None}, "untrusted is True or False; found None"),
        ({"untrusted": "yes"}, "untrusted is True or False; found 'yes'"),
        ({"weights": 5}, "weights is a dict of tensors, or a file's path; found int"),
        ({"name": 5}, "name is a str; found int"),
    ],
)
def test_load_says_what_its_options_are(add, options, message):
    with pytest.raises(TypeError, match=message):
        tenon.load(add.to_bytes(), **options)
    ones = np.ones(2, "float32")
    assert tenon.load(add.to_bytes(), untrusted=np.False_)(ones, ones).tolist() == [2, 2]


def test_an_untrusted_file_names_the_option_that_it_lacks(add):
    with pytest.raises(tenon.UnsupportedError) as caught:
        tenon.load(add.to_bytes(), untrusted=True)
    assert "keep_computes=True" in caught.value.help


def test_names_have_no_nul(add, x):
    class Point:
        pass

    vm = tenon.VirtualMachine(add)
    for use in (
        lambda: add["main\0"],
        lambda: add.signature("main\0"),
        lambda: vm["main\0"],
        lambda: tenon.get_func("tenon.parse\0"),
        lambda: tenon.register_func("test.nul\0")(len),
        lambda: tenon.register_type("test.\0Point")(Point),
    ):
        with pytest.raises(ValueError, match="a name can't contain a NUL"):
            use()


def test_a_path_may_be_bytes(add, tmp_path):
    add.save(os.fsencode(tmp_path / "a.tnx"))
    assert (tmp_path / "a.tnx").read_bytes() == add.to_bytes()


@pytest.mark.parametrize("none", [(), []])
def test_no_outputs_are_not_enough(add, x, none):
    for f in add["main"], tenon.VirtualMachine(add)["main"]:
        with pytest.raises(tenon.UsageError, match="one output, or None, for each result"):
            f(x, x, out=none)


def test_weights_do_not_go_into_the_file_itself(add, tmp_path):
    path = tmp_path / "a.tnx"
    with pytest.raises(ValueError, match="the same file"):
        add.save(path, external_weights=path)
    assert not path.exists()


def test_paths_have_no_nul(add, tmp_path):
    (tmp_path / "m.tn").write_text("fn @main(%x: i64) -> i64 { %x }")
    with pytest.raises(tenon.UsageError, match=r"m.tn\\x00z: can't be opened: Invalid argument"):
        tenon.compile(f"{tmp_path}/m.tn\0z")
    with pytest.raises(ValueError):
        add.save(tmp_path / "a.tnx", external_weights=f"{tmp_path}/w\0z")
    assert [p.name for p in tmp_path.iterdir()] == ["m.tn"]


def test_pickles_keep_how_a_file_was_loaded():
    text = "fn @main(%x: tensor[n; f32]) -> tensor[n; f32] { add(%x, %x) }"
    exe = tenon.compile(tenon.ir.parse(text), keep_computes=True)
    strict = tenon.load(exe.to_bytes(), untrusted=True)
    assert pickle.loads(pickle.dumps(strict)).untrusted
    assert pickle.loads(pickle.dumps(strict))(np.ones(2, "float32")).tolist() == [2, 2]


def test_a_text_is_no_path():
    text = "fn @main(%x: tensor[n; f32]) -> tensor[n; f32] { relu(%x) }"
    for read in (tenon.compile, tenon.ir.open):
        with pytest.raises(tenon.UsageError, match="a program's text was given") as caught:
            read(text)
        assert "tenon.ir.parse(text)" in caught.value.help


def test_an_error_leads_to_inspect_only_where_there_is_a_file(relu_model, tmp_path):
    x = np.zeros((2, 4), "float32")
    with pytest.raises(tenon.UsageError, match="input 'x' does not fit g") as caught:
        tenon.compile(relu_model)(x)
    assert "inspect" not in str(caught.value)
    path = tmp_path / "g.onnx"
    path.write_bytes(relu_model.SerializeToString())
    with pytest.raises(tenon.UsageError) as caught:
        tenon.compile(path)(x)
    assert caught.value.help == f"see `tenon inspect {path}`"


def test_missing_passes_lead_to_the_list_of_them():
    with pytest.raises(tenon.UsageError) as caught:
        tenon.compile(tenon.ir.parse("fn @main(%x: tensor[n; f32]) -> tensor[n; f32] { relu(%x) }"), passes=["simplify"])
    assert "tenon.transform.list_passes" in caught.value.help


def test_slips_are_errors_that_say_what_to_do():
    relu = tenon.compile(tenon.ir.parse("fn @main(%x: tensor[n; f32]) -> tensor[n; f32] { relu(%x) }"))
    x = np.ones(3, dtype="float32")
    with pytest.raises(TypeError, match=r"a dict isn't a tensor; inputs by name are keyword arguments"):
        relu({"x": x})
    with pytest.raises(TypeError, match="str, bytes or os.PathLike object, not NoneType"):
        tenon.load(None)
    with pytest.raises(OSError, match="/dev/full"):
        relu.save("/dev/full")


def test_saving_keeps_what_a_file_and_its_readers_rely_on(add, tmp_path):
    path = tmp_path / "add.tnx"
    path.write_bytes(b"before")
    path.chmod(0o600)
    add.save(path)
    assert path.stat().st_mode & 0o777 == 0o600 and os.listdir(tmp_path) == ["add.tnx"]
    path.chmod(0o400)
    if os.geteuid() != 0:
        with pytest.raises(PermissionError):
            add.save(path)
    descriptor = os.memfd_create("file")
    add.save(f"/proc/self/fd/{descriptor}")
    assert os.pread(descriptor, 1 << 20, 0) == add.to_bytes()
    os.close(descriptor)
    here = os.getcwd()
    os.chdir(tmp_path)
    try:
        add.save("-")
    finally:
        os.chdir(here)
    assert (tmp_path / "-").read_bytes() == add.to_bytes()


def test_weights_for_a_file_that_leaves_out_none_are_refused(add, x, tmp_path):
    with pytest.raises(tenon.UsageError, match="weights has no effect on whole.tnx") as caught:
        tenon.load(add.to_bytes(), weights={"w": x}, name="whole.tnx")
    assert caught.value.found == "a file that leaves out no weights"
    path, weights = tmp_path / "add.tnx", tmp_path / "none.safetensors"
    add.save(path, external_weights=weights)  # no constant is large: there are no weights in it
    assert tenon.load(path, weights=weights)(x, x).tolist() == [0, 2, 4, 6]


def test_reading_weights_is_limited(tmp_path):
    text = 'const "w" = late tensor[2; f32]\nfunc @main() -> tensor[2; f32] {\n  ret #0\n}\n'
    program = tmp_path / "late.tnx"
    program.write_bytes(tenon.get_func("tenon.assemble")(text, None))
    weights = tmp_path / "w.npz"
    np.savez_compressed(weights, w=np.ones(2, "float32"), large=np.zeros(40 << 20, "int8"))
    for limits, cause in (({"memory": 20e6}, "memory"), ({"deadline": 1e-3}, "deadline")):
        with pytest.raises(tenon.ExecutionError, match="reading .*w.npz") as caught:
            tenon.load(program, weights=weights, **limits)
        assert caught.value.stopped_by == cause and caught.value.help
    assert tenon.load(program, weights=weights)().tolist() == [1, 1]
    np.savez(weights, w=np.array([[1, 2], [3, 4]], "float32", order="F")[:, 0].reshape(2), e=np.zeros((0, 3)))
    assert tenon.load(program, weights=weights)().tolist() == [1, 3]
    np.savez(weights, w=np.array([None]))
    with pytest.raises(tenon.UsageError, match="an array that can't be read: w.npy") as caught:
        tenon.load(program, weights=weights)
    assert caught.value.found == "Python objects"
    content = io.BytesIO()
    np.save(content, np.ones(5, "float32"))
    with zipfile.ZipFile(weights, "w") as archive:
        archive.writestr("w.npy", content.getvalue()[:-1])
    with pytest.raises(tenon.UsageError, match="can't be read") as caught:
        tenon.load(program, weights=weights)
    assert caught.value.found == "fewer elements than its header says"


def test_a_function_without_a_name_in_utf_8_is_shown():
    text = 'func @"m\\xff"() -> i64 {\n  ret 1\n}\nfunc @k() -> i64 {\n  ret 1\n}\n'
    exe = tenon.load(tenon.get_func("tenon.assemble")(text, None))
    assert repr(exe) == "<tenon.Executable\n  m\\xff\n  k() -> i64>" and "m\\xff" in exe._repr_html_()


def test_a_loaded_program_and_an_interpreted_one_have_code_of_their_own(tmp_path):
    # The runtime's library and the compiler's each open native code, here for the first time in a process.
    script = f"""
import numpy as np
import tenon
a, b = np.float32([5, 7]), np.float32([2, 3])
loaded = tenon.load({str(tmp_path / "sub.tnx")!r})
module = tenon.ir.parse({TWO_TENSORS.format(op="add")!r})
assert np.asarray(module.interpret("main", a, b)).tolist() == [7, 10]
assert np.asarray(loaded(a, b)).tolist() == [3, 4]
"""
    tenon.compile(tenon.ir.parse(TWO_TENSORS.format(op="sub"))).save(tmp_path / "sub.tnx")
    subprocess.run([sys.executable, "-c", script], check=True, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})


TWO_TENSORS = "fn @main(%a: tensor[n; f32], %b: tensor[n; f32]) -> tensor[n; f32] {{ {op}(%a, %b) }}"
