"""tenon.VirtualMachine."""

import gc
import math
import threading
import time
import weakref

import numpy as np
import pytest

import tenon
from tenon import _memory

FOREVER = """
fn @main(%n: i64) -> i64 {
  loop (%i: i64 = 0) while { less(%i, %n) } { add(%i, 1) }
}
"""


@pytest.fixture(scope="module")
def forever():
    return tenon.compile(tenon.ir.parse(FOREVER))


def test_fuel_and_deadlines_stop_a_call_and_the_next_one_runs(forever):
    vm = tenon.VirtualMachine(forever, limits=tenon.Limits(fuel=1000))
    with pytest.raises(tenon.ExecutionError, match="fuel"):
        vm["main"](10**15)
    assert vm["main"](10) == 10
    vm = tenon.VirtualMachine(forever, limits=tenon.Limits(deadline=0.05))
    with pytest.raises(tenon.ExecutionError, match="deadline") as caught:
        vm["main"](10**15)
    assert caught.value.frames


def test_an_error_tells_programs_what_stopped_the_call(forever, add):
    for limits, reason in [
        (tenon.Limits(fuel=1000), "fuel"),
        (tenon.Limits(deadline=0.01), "deadline"),
    ]:
        vm = tenon.VirtualMachine(forever, limits=limits)
        with pytest.raises(tenon.ExecutionError) as caught:
            vm["main"](10**15)
        assert caught.value.stopped_by == reason
        assert not any(label.startswith(".") for label, _, _ in caught.value.rows)
        assert "stopped_by" not in str(caught.value)
    with pytest.raises(tenon.ExecutionError) as caught:
        tenon.VirtualMachine(add, limits=tenon.Limits(memory=1000))["main"](*[np.ones(10000, "float32")] * 2)
    assert caught.value.stopped_by == "memory"
    # However much is asked for, of the machine or by a kernel for itself.
    text = """
    kernel @wide(%x: tensor[n; i64]) -> (%y: tensor[n; i64]) {
      scratch %s: tensor[10000000000000000*n; i64]
      for %i from 0 count dim(n) {
        %s[%i] = %x[%i]
        %y[%i] = %s[%i]
      }
    }
    fn @full(%n: i64 = [n]) -> tensor[n; f32] { full(f32(1), shape=[n]) }
    fn @scratch(%x: tensor[n; i64]) -> tensor[n; i64] { kernel @wide(%x) }
    """
    vm = tenon.VirtualMachine(tenon.compile(tenon.ir.parse(text)), limits=tenon.Limits(memory=100 << 20))
    for function, argument in [("full", 1 << 34), ("full", 1 << 48), ("scratch", np.ones(1, "int64"))]:
        with pytest.raises(tenon.ExecutionError, match="memory limit") as caught:
            vm[function](argument)
        assert caught.value.stopped_by == "memory"
    with pytest.raises(tenon.ExecutionError) as caught:
        tenon.compile(tenon.ir.parse("fn @main(%x: i64) -> i64 { %x }"), deadline=0.0)
    assert caught.value.stopped_by == "deadline"
    with pytest.raises(tenon.UsageError) as caught:
        add(np.ones(2, "float32"), np.ones(3, "float32"))
    assert caught.value.stopped_by is None


def test_another_thread_cancels(forever):
    vm = tenon.VirtualMachine(forever)
    timer = threading.Timer(0.1, vm.cancel)
    timer.start()
    start = time.monotonic()
    with pytest.raises(tenon.ExecutionError, match="cancel") as caught:
        vm["main"](10**15)
    assert caught.value.stopped_by == "cancel"
    assert time.monotonic() - start < 5


def test_the_gil_is_released(forever):
    vm = tenon.VirtualMachine(forever, limits=tenon.Limits(deadline=0.3))
    ticks = 0
    end = threading.Event()

    def tick():
        nonlocal ticks
        while not end.is_set():
            ticks += 1
            time.sleep(0.01)

    ticker = threading.Thread(target=tick)
    ticker.start()
    with pytest.raises(tenon.ExecutionError):
        vm["main"](10**15)
    end.set()
    ticker.join()
    assert ticks >= 5


def test_the_stateful_interface(add, x):
    vm = tenon.VirtualMachine(add)
    with pytest.raises(ValueError, match="set_input"):
        vm.invoke_stateful("main")
    vm.set_input("main", x, y=x)
    with pytest.raises(ValueError, match="invoke_stateful"):
        vm.get_outputs("main")
    vm.invoke_stateful("main")
    assert vm.get_outputs("main").tolist() == [0, 2, 4, 6]
    with pytest.raises(TypeError, match="missing: y"):
        vm.set_input("main", x)
    with pytest.raises(TypeError, match="given twice: x"):
        vm.set_input("main", x, x=x)
    for use in (vm.invoke_stateful, vm.get_outputs, vm.set_input, vm.get_function_arity):
        with pytest.raises(tenon.UsageError, match="no function 'other'"):
            use("other")


@pytest.fixture(scope="module")
def nested():
    return tenon.compile(
        tenon.ir.parse("fn @main(%x: tensor[n; f32]) -> (tensor[n; f32], (tensor[n; f32], i64)) { %y = neg(%x) %pair = (%y, 7) (%x, %pair) }")
    )


def test_outputs_are_found_by_index(nested, x):
    vm = tenon.VirtualMachine(nested)
    vm.set_input("main", x)
    vm.invoke_stateful("main")
    assert vm.get_outputs("main", 1, 0).tolist() == [0, -1, -2, -3]
    assert vm.get_outputs("main", 1, 1) == 7
    assert vm.get_outputs("main", -1, -1) == 7
    with pytest.raises(IndexError, match=r"output \[1, 1\] of 'main' is a single value"):
        vm.get_outputs("main", 1, 1, 0)
    with pytest.raises(IndexError, match="no output 2: it has 2"):
        vm.get_outputs("main", 2)
    with pytest.raises(IndexError, match=r"output \[1\] of 'main' has no field 5: it has 2"):
        vm.get_outputs("main", 1, 5)


def test_outputs_are_found_by_name(relu_model):
    vm = tenon.VirtualMachine(tenon.compile(relu_model))
    vm.set_input("main", x=np.ones((1, 3), "float32"))
    vm.invoke_stateful("main")
    assert vm.get_outputs("main", "y").tolist() == [[1, 1, 1]]
    assert vm.get_outputs("main", 0).tolist() == [[1, 1, 1]]
    with pytest.raises(KeyError, match="no output 'z': it has y"):
        vm.get_outputs("main", "z")


def test_parameters_have_names(add):
    vm = tenon.VirtualMachine(add)
    assert vm.get_function_arity("main") == 2
    assert [vm.get_function_param_name("main", i) for i in range(2)] == ["x", "y"]
    with pytest.raises(IndexError, match="no parameter 2: it has 2"):
        vm.get_function_param_name("main", 2)


def test_a_saved_function_keeps_its_arguments(add, x):
    vm = tenon.VirtualMachine(add)
    vm.save_function("main", "main_x", x, x)
    assert vm["main_x"]().tolist() == [0, 2, 4, 6]
    with pytest.raises(ValueError, match="another name"):
        vm.save_function("main", "main", x, x)


def test_first_parameters_are_bound(add, x):
    for functions in (add, tenon.VirtualMachine(add)):
        bound = functions["main"].bind(x)
        assert bound.signature == "(y: tensor[n; f32]) -> tensor[n; f32]"
        assert bound(x).tolist() == bound(y=x).tolist() == [0, 2, 4, 6]
        assert functions["main"].bind(x=x).bind(x)().tolist() == [0, 2, 4, 6]
        with pytest.raises(TypeError, match="bind takes arguments for the leading parameters, in order, of: x: .*, y: "):
            functions["main"].bind(y=x)
    with pytest.raises(TypeError, match="only a function of a program"):
        tenon.get_func("tenon.parse").bind(1)


def test_memory_is_pooled_or_not(add, x):
    vm = tenon.VirtualMachine(add)
    del_me = vm["main"](x, x)
    stats = vm.memory_stats()
    assert stats["memory"] == "pooled" and stats["machines"] == 1
    assert stats["allocations"] == stats["system_allocations"] == 1
    assert stats["allocated"] >= 16 and stats["pooled"] == 0 and stats["call_peak"] >= 16
    del del_me
    assert vm.memory_stats()["pooled"] == vm.memory_stats()["allocated"] > 0
    vm["main"](x, x)
    assert vm.memory_stats()["system_allocations"] == 1
    vm.trim()
    assert vm.memory_stats()["allocated"] == vm.memory_stats()["pooled"] == 0 < vm.memory_stats()["peak"]

    naive = tenon.VirtualMachine(add, memory="naive")
    for _ in range(2):
        naive["main"](x, x)
        assert naive.memory_stats()["allocated"] == 0
    assert naive.memory_stats()["system_allocations"] == 2
    with pytest.raises(ValueError, match="expected 'pooled' or 'naive'"):
        tenon.VirtualMachine(add, memory="other")


def test_memory_is_limited_to_the_machines_by_default():
    outer = tenon.compile(
        tenon.ir.parse("fn @main(%a: tensor[n, 1; f32], %b: tensor[1, m; f32]) -> tensor[n, m; f32] { add(%a, %b) }")
    )
    many = np.zeros(1 << 20, "float32")
    for call in (outer, tenon.VirtualMachine(outer)["main"]):
        with pytest.raises(tenon.ExecutionError, match="memory limit"):
            call(many.reshape(-1, 1), many.reshape(1, -1))
    assert tenon.Limits(memory=math.inf)._arguments()["memory"] == -1


@pytest.mark.parametrize(
    ("folder", "file", "membership"),
    [("", "memory.max", "0::"), ("memory", "memory.limit_in_bytes", "0::/other\n4:cpu,memory:")],
)
def test_a_container_has_less_memory(tmp_path, folder, file, membership):
    groups = tmp_path / folder
    (groups / "a/b").mkdir(parents=True)

    def limit(group):
        return _memory.limit_of_groups(tmp_path, f"7:cpu:/cpu\n{membership}{group}\n1:name=systemd:/x\n")

    assert limit("/a/b") is None
    (groups / "a/b" / file).write_text("max\n")
    (groups / "a" / file).write_text("1048576\n")
    (groups / file).write_text("2097152\n")
    assert limit("/a/b") == 1 << 20
    assert limit("/") == limit("/elsewhere") == limit("/../..") == 2 << 20


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"fuel": -1}, "fuel is -1; expected at least 0"),
        ({"fuel": 10**30}, "less than"),
        ({"fuel": 1.5}, "fuel is an integer, not 1.5"),
        ({"depth": 0}, "depth is 0; expected at least 1"),
        ({"stack": True}, "stack is an integer, not True"),
        ({"deadline": -1}, "at least 0"),
        ({"deadline": "5s"}, "a number of seconds, not '5s'"),
        ({"memory": "512MB"}, "a number of bytes, not '512MB'"),
        ({"memory": -1}, "expected at least 1 byte"),
        ({"memory": 0.5}, "expected at least 1 byte"),
    ],
)
def test_limits_are_checked_when_they_are_made(wrong, message):
    with pytest.raises((TypeError, ValueError), match=message):
        tenon.Limits(**wrong)


def test_a_machine_says_what_it_takes(add):
    with pytest.raises(TypeError, match="what tenon.compile or tenon.load returns, not 'model.onnx'"):
        tenon.VirtualMachine("model.onnx")
    with pytest.raises(TypeError, match="limits is a tenon.Limits"):
        tenon.VirtualMachine(add, limits={"fuel": 3})
    with pytest.raises(ValueError, match="threads is 1099511627776; expected 0 to 1024"):
        tenon.VirtualMachine(add, threads=2**40)
    with pytest.raises(ValueError, match="inter_op is 2000; expected 1 to 1024"):
        tenon.VirtualMachine(add, inter_op=2000)
    with pytest.raises(ValueError, match="inter_op is 0; expected at least 1"):
        tenon.VirtualMachine(add, inter_op=0)
    assert tenon.Limits(memory=1e9)._arguments()["memory"] == 10**9


WIDE = """
fn @main(%x: tensor[64, 64; f32], %y: tensor[64, 64; f32]) -> (tensor[64, 64; f32], tensor[64, 64; f32]) {
  %a = matmul(%x, %x)
  %b = matmul(%x, %y)
  %c = matmul(%a, %y)
  %d = matmul(%b, %y)
  (%c, %d)
}
"""


@pytest.mark.parametrize("libraries", ["onednn", "none"])
def test_calls_that_do_not_depend_on_each_other_run_at_the_same_time(libraries):
    x, y = np.random.default_rng(1).standard_normal((2, 64, 64), np.float32)
    exe = tenon.compile(tenon.ir.parse(WIDE), inter_op=2, libraries=libraries)
    assert "concurrent" in exe.as_text()
    expected = tenon.VirtualMachine(exe)["main"](x, y)
    vm = tenon.VirtualMachine(exe, threads=2, inter_op=2)
    for _ in range(50):
        for found, same in zip(vm["main"](x, y), expected, strict=True):
            np.testing.assert_array_equal(found, same)
    # An instrument sees the calls one after another.
    seen = []
    vm.set_instrument(lambda function, name, before, result, *args: seen.append(before))
    vm["main"](x, y)
    assert seen == [True, False] * 4


def test_memory_has_a_limit(add):
    vm = tenon.VirtualMachine(add, limits=tenon.Limits(memory=1 << 20))
    big = np.zeros(1 << 20, "float32")
    with pytest.raises(tenon.ExecutionError, match="memory limit"):
        vm["main"](big, big)


CALLS = """
fn @main(%x: i64) -> i64 { %y = @twice(%x) packed "test.instrumented"(%y) -> i64 }
fn @twice(%x: i64) -> i64 { mul(%x, 2) }
"""


@pytest.fixture
def calls():
    tenon.register_func("test.instrumented", lambda x: x + 1, override=True)
    return tenon.VirtualMachine(tenon.compile(tenon.ir.parse(CALLS), level=0))


def test_an_instrument_sees_every_call(calls):
    seen = []

    def see(func, name, before, result, *args):
        assert isinstance(func, tenon.Function)
        seen.append((name, before, result, args))
        if before:
            assert func(*args) in (6, 7)

    calls.set_instrument(see)
    assert calls["main"](3) == 7
    assert seen == [
        ("twice", True, None, (3,)),
        ("twice", False, 6, (3,)),
        ("test.instrumented", True, None, (6,)),
        ("test.instrumented", False, 7, (6,)),
    ]
    calls.set_instrument(None)
    calls["main"](3)
    assert len(seen) == 4


def test_an_instrument_skips_calls(calls):
    kind = tenon.VMInstrumentReturnKind

    def skip(func, name, before, result, *args):
        return (kind.SKIP_RUN, 100) if name == "twice" else kind.NO_OP

    calls.set_instrument(skip)
    assert calls["main"](3) == 101
    calls.set_instrument(lambda func, name, before, result, *args: kind.SKIP_RUN if before else None)
    with pytest.raises(tenon.ExecutionError, match="the result of function .* doesn't fit its declared type"):
        calls["main"](3)


def test_errors_in_an_instrument_come_back_as_themselves(calls):
    def fail(func, name, before, result, *args):
        raise LookupError(name)

    calls.set_instrument(fail)
    with pytest.raises(LookupError, match="twice"):
        calls["main"](3)
    calls.set_instrument(lambda *event: 3)
    with pytest.raises(TypeError, match="an instrument returns None, a tenon.VMInstrumentReturnKind"):
        calls["main"](3)
    with pytest.raises(TypeError, match="an instrument is a function"):
        calls.set_instrument(3)

    def change(*event):
        calls.set_instrument(None)

    calls.set_instrument(change)
    with pytest.raises(ValueError, match="can't change while a call runs"):
        calls["main"](3)


def test_a_machine_that_its_instrument_refers_to_is_freed(add, x):
    vm = tenon.VirtualMachine(add)
    vm.set_instrument(lambda *event: vm.memory_stats() and None)
    vm["main"](x, x)
    freed = weakref.ref(vm)
    del vm
    gc.collect()
    assert freed() is None


def test_results_are_written_to_the_callers_memory(add, x):
    vm = tenon.VirtualMachine(add)
    for function in (add["main"], vm["main"]):
        out = np.empty(4, "float32")
        assert function(x, x, out=out) is out
        assert out.tolist() == [0, 2, 4, 6]
        with pytest.raises(tenon.UsageError, match="output 0 overlaps an input"):
            function(x, x, out=x)
        with pytest.raises(tenon.UsageError, match="output 0 doesn't have the type of the result"):
            function(x, x, out=np.empty(5, "float32"))
        with pytest.raises(tenon.UsageError, match="output 0 can't hold the result"):
            function(x, x, out=np.empty(4, "int32"))
        with pytest.raises(tenon.UsageError, match="row-major"):
            function(x, x, out=np.empty(8, "float32")[::2])
        out.flags.writeable = False
        with pytest.raises(tenon.UsageError, match="output 0 is read-only"):
            function(x, x, out=out)
        with pytest.raises(TypeError, match="out is a tensor or an array"):
            function(x, x, out=3)
        with pytest.raises(tenon.UsageError, match="one output, or None, for each result"):
            function(x, x, out=(None, None))
    assert vm.memory_stats()["machines"] == 1


def test_kernels_write_to_the_callers_memory(add, x):
    vm, out, direct = tenon.VirtualMachine(add), np.empty(4, "float32"), []
    vm.set_instrument(lambda func, name, before, result, *args: direct.append(np.shares_memory(args[-1], out)))
    vm["main"](x, x, out=out)
    assert direct == [True, True]
    assert vm.memory_stats()["allocations"] == 0
    assert "alloc_result 0," in add.as_text()


def test_several_results_are_written_to_a_tuple(x):
    both = tenon.compile(
        tenon.ir.parse("fn @main(%x: tensor[n; f32]) -> (tensor[n; f32], tensor[n; f32]) { %y = neg(%x) (%y, %x) }")
    )
    first, second = np.empty(4, "float32"), np.empty(4, "float32")
    results = both["main"](x, out=(first, second))
    assert results[0] is first and results[1] is second
    assert first.tolist() == [0, -1, -2, -3] and second.tolist() == [0, 1, 2, 3]
    results = both["main"](x, out=(None, second))
    assert results[0].tolist() == [0, -1, -2, -3] and results[1] is second
    with pytest.raises(tenon.UsageError, match="output 1 overlaps another output"):
        both["main"](x, out=(first, first))


def test_calls_are_submitted(add, x):
    vm = tenon.VirtualMachine(add)
    futures = [add.submit(x, x), vm.submit("main", x, y=x)]
    assert [f.result().tolist() for f in futures] == [[0, 2, 4, 6]] * 2
    with pytest.raises(TypeError, match="1 argument for 2 parameters"):
        vm.submit("main", x).result()


def test_submitted_calls_are_cancelled(forever):
    vm = tenon.VirtualMachine(forever)
    future = vm.submit("main", 10**15)
    while vm.memory_stats()["machines"] == 1 and not future.done():
        vm["main"](1)  # takes a second machine once the other call runs
    vm.cancel()
    with pytest.raises(tenon.ExecutionError, match="cancel"):
        future.result(timeout=60)


def test_the_time_evaluator_repeats(add, x):
    result = tenon.VirtualMachine(add).time_evaluator("main", number=2, repeat=3, min_repeat_ms=1)(x, x)
    assert len(result.results) == 3
    assert 0 < result.min <= result.median <= result.max < 1
    assert result.min <= result.mean <= result.max and result.std >= 0


def test_a_result_without_an_output_has_memory_of_its_own():
    module = tenon.ir.parse(
        "fn @main(%x: tensor[n; f32]) -> (tensor[n; f32], tensor[n; f32]) { %y = add(%x, %x) (%y, %y) }"
    )
    exe = tenon.compile(module)
    buffer = np.zeros(2, "float32")
    for out in ((buffer, None), (None, buffer)):
        first = exe(np.ones(2, "float32"), out=out)
        exe(np.full(2, 100, "float32"), out=out)
        assert [r.tolist() for r in first if r is not buffer] == [[2, 2]]
        assert buffer.tolist() == [200, 200]


def test_machines_with_saved_functions_are_collected(add, x):
    class Instrument:
        def __call__(self, *event):
            pass

    vm, instrument = tenon.VirtualMachine(add), Instrument()
    instrument.vm = vm
    vm.set_instrument(instrument)
    vm.save_function("main", "twice", x, x)
    vm["twice"]()
    gone = weakref.ref(instrument)
    del vm, instrument
    gc.collect()
    assert gone() is None
