"""Threads that share an executable or a machine. A free-threaded interpreter runs them at the same time."""

import dataclasses
import gc
import itertools
import sys
import sysconfig
import threading
import time
import weakref

import numpy as np
import pytest

import tenon

THREADS = 8


def on_threads(*works, threads=THREADS, rounds=20):
    """Calls each work with a number, `rounds` times on each of many threads that begin together, and raises their errors."""
    errors = []
    begin = threading.Barrier(threads)

    def run(thread):
        begin.wait()
        try:
            for i in range(rounds):
                works[(thread + i) % len(works)](thread * rounds + i)
        except BaseException as error:
            errors.append(error)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)  # with a GIL, threads take turns more often
    try:
        all_threads = [threading.Thread(target=run, args=(i,)) for i in range(threads)]
        for thread in all_threads:
            thread.start()
        for thread in all_threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    if errors:
        raise errors[0]


@pytest.mark.skipif(not hasattr(sys, "_is_gil_enabled"), reason="this Python has no build without the GIL")
def test_the_package_leaves_the_gil_off():
    off = bool(sysconfig.get_config_var("Py_GIL_DISABLED")) and sys.flags.gil != 1
    assert sys._is_gil_enabled() == (not off)


def expected_sum(i):
    return [i + 1.0, i + 2.0]


def test_threads_share_functions(add):
    vm = tenon.VirtualMachine(add, threads=1)
    y = np.array([1, 2], "float32")
    tensor = tenon.Tensor(y)

    def by_position(i):
        assert add(np.full(2, i, "float32"), y).tolist() == expected_sum(i)

    def by_name(i):
        assert vm["main"](y=tensor, x=[float(i), float(i)]).tolist() == expected_sum(i)

    def into_memory(i):
        out = np.empty(2, "float32")
        assert vm["main"](memoryview(np.full(2, i, "float32")), y, out=out) is out
        assert out.tolist() == expected_sum(i)

    def bound(i):
        assert add["main"].bind(np.full(2, i, "float32"))(tensor).tolist() == expected_sum(i)

    def submitted(i):
        x = np.full(2, i, "float32")
        assert add.submit(x, y).result().tolist() == vm.submit("main", x, y).result().tolist() == expected_sum(i)

    def wrong(i):
        with pytest.raises(tenon.UsageError):
            vm["main"](y.astype("int8"), y)
        with pytest.raises(TypeError, match="1 argument for 2 parameters"):
            add(y)

    def looked_at(i):
        assert vm.memory_stats()["machines"] >= 1
        vm.trim()
        assert "add" in add.as_text() and add.signature().params[0].name == "x"

    on_threads(by_position, by_name, into_memory, bound, submitted, wrong, looked_at, rounds=70)
    assert vm.memory_stats()["machines"] <= 2 * THREADS  # those of `submit`, too


def test_the_first_call_on_a_function_may_be_of_any_thread():
    exe = tenon.compile(tenon.ir.parse("fn @main(%x: i64) -> i64 { add(%x, 1) }"))
    for _ in range(10):
        fresh = tenon.VirtualMachine(exe)

        def first(i):
            assert fresh["main"](i) == i + 1

        on_threads(first, rounds=1)


def test_threads_share_the_stateful_interface(add):
    vm = tenon.VirtualMachine(add, threads=1)
    zero = np.zeros(2, "float32")
    vm.set_input("main", zero, zero)
    vm.invoke_stateful("main")

    def step(i):
        x = np.full(2, i, "float32")
        vm.set_input("main", x, y=x)
        vm.invoke_stateful("main")
        try:
            first, second = vm.get_outputs("main").tolist()
        except ValueError as error:  # another thread has set its input since
            assert "invoke_stateful" in str(error)
        else:
            assert first == second and first % 2 == 0  # of one thread's input, whichever's
        vm.save_function("main", f"saved_{i % 3}", x, x)
        assert vm[f"saved_{i % 3}"]().tolist()[0] % 2 == 0

    on_threads(step, rounds=20)


def test_cancelling_stops_the_running_calls_alone():
    forever = tenon.compile(tenon.ir.parse("fn @main(%n: i64) -> i64 { loop (%i: i64 = 0) while { less(%i, %n) } { add(%i, 1) } }"))
    vm = tenon.VirtualMachine(forever)
    stopped = threading.Event()

    def cancel():
        while not stopped.is_set():
            vm.cancel()
            time.sleep(0.001)

    canceller = threading.Thread(target=cancel)
    canceller.start()
    try:

        def run(i):
            with pytest.raises(tenon.ExecutionError, match="cancel"):
                vm["main"](10**15)

        on_threads(run, rounds=5)
    finally:
        stopped.set()
        canceller.join()
    assert vm["main"](10) == 10


CALLER = """
fn @main(%x: i64) -> i64 { packed "test.threads.callback"(%x) -> i64 }
"""


def test_an_exception_comes_back_on_its_own_thread():
    class Odd(Exception):
        pass

    def callback(x):
        if x % 2:
            raise Odd(x)
        if x % 3 == 0:
            return exe(2 * x + 2)  # 2 mod 6, so it ends there
        return -x

    tenon.register_func("test.threads.callback", callback, override=True)
    exe = tenon.compile(tenon.ir.parse(CALLER))
    vm = tenon.VirtualMachine(exe)

    def call(i):
        function = (exe, vm["main"])[i % 5 % 2]
        if i % 2:
            with pytest.raises(Odd) as caught:
                function(i)
            assert caught.value.args == (i,) and len(caught.value.__notes__) == 1
            with pytest.raises(tenon.UsageError):
                tenon.get_func(f"no.such.{i}")
        else:
            assert function(i) == (-i if i % 3 else -(2 * i + 2))

    on_threads(call, rounds=100)


def test_functions_are_registered_while_they_are_called():
    name = "test.threads.replaced"
    tenon.register_func(name, lambda: "first", override=True)

    def replace(i):
        tenon.register_func(name, lambda: f"number {i}", override=True)

    def call(i):
        assert tenon.get_func(name)().startswith(("first", "number"))

    def once(i):
        tenon.register_func(f"test.threads.once.{i}", lambda: i)
        assert tenon.get_func(f"test.threads.once.{i}")() == i
        with pytest.raises(tenon.UsageError, match="already registered"):
            tenon.register_func(f"test.threads.once.{i}", lambda: i)

    unique = itertools.count()
    on_threads(replace, call, call, lambda i: once(next(unique)), rounds=100)


def test_an_instrument_is_set_while_threads_call(add, x):
    vm = tenon.VirtualMachine(add, threads=1)
    seen = []

    def call(i):
        assert vm["main"](x, x).tolist() == [0, 2, 4, 6]

    def change(i):
        try:
            vm.set_instrument(None if i % 2 else lambda func, name, before, result, *args: seen.append(name))
        except ValueError as error:
            assert "can't change while a call runs" in str(error)

    on_threads(call, call, change, rounds=60)
    vm.set_instrument(None)
    before = len(seen)
    vm["main"](x, x)
    assert len(seen) == before


def test_types_are_registered_while_instances_cross():
    same = tenon.Function(lambda value: value)
    apart = tenon.Function(lambda value: repr(value))

    @tenon.register_type("test.threads.Shared")
    @dataclasses.dataclass
    class Shared:
        number: int

    def cross(i):
        instance = Shared(i)
        assert same(instance) is instance
        assert same((instance, [instance]))[1][0] is instance
        assert apart(instance).endswith(f"(number={i})")

    def register(i):
        # Every thread registers the same keys again, with a class of its own.
        @tenon.register_type(f"test.threads.Type{i % 3}")
        class Annotated:
            value: int = i

        made = Annotated()
        assert same(made) is made
        tenon.register_type("test.threads.Shared")(Shared)

    on_threads(cross, cross, register, rounds=60)


def test_containers_change_while_they_are_converted():
    same = tenon.Function(lambda value: len(value))

    class Number:
        def __index__(self):  # code in Python, during which threads take turns
            return sum(range(10))

    table = {f"key {i}": Number() for i in range(50)}
    numbers = [float(i) for i in range(50)]

    def change(i):
        table[f"key {i % 50}"] = Number()
        table.pop(f"key {(i + 7) % 50}", None)
        numbers.extend((float(i), float(i)))
        del numbers[:2]

    def convert(i):
        assert 0 < same(table) <= 50 <= same(numbers) + 2 * THREADS

    on_threads(change, convert, convert, rounds=100)


def test_a_dict_is_converted_as_it_was():
    class Clearing:
        def __index__(self):
            table.clear()
            return 1

    table = {"a": Clearing(), "b": 2}
    assert tenon.Function(lambda value: value)(table) == {"a": 1, "b": 2}


def test_arrays_are_exchanged_by_all_protocols():
    same = tenon.Function(lambda tensor: tensor)

    class OnlyDlpack:
        def __init__(self, array):
            self.array = array

        def __dlpack__(self, **options):
            return self.array.__dlpack__(**options)

        def __dlpack_device__(self):
            return self.array.__dlpack_device__()

    def exchange(i):
        array = np.arange(i, i + 5, dtype=("float32", "int64", "uint16", "float64")[i % 4])
        for source in (array, OnlyDlpack(array), memoryview(array), array[::2], tenon.Tensor(array)):
            tensor = same(source)
            expected = np.asarray(source.array if isinstance(source, OnlyDlpack) else source)
            assert np.asarray(tensor).tolist() == np.from_dlpack(tensor).tolist() == expected.tolist()
            assert memoryview(tensor).shape == tensor.shape

    on_threads(exchange, rounds=50)
    # One tensor, of which threads take and drop views.
    shared = tenon.Tensor(np.arange(6, dtype="float32").reshape(2, 3))

    def view(i):
        assert np.asarray(shared)[1, 2] == memoryview(shared)[1, 2] == np.from_dlpack(shared)[1, 2] == 5
        assert same(shared).tolist() == [[0, 1, 2], [3, 4, 5]]

    on_threads(view, rounds=100)


def test_threads_compile_load_and_look_at_modules(tmp_path):
    def make(i):
        module = tenon.ir.parse(f"fn @main(%x: i64) -> i64 {{ add(%x, {i}) }}")
        assert [type(f).__name__ for f in module.functions.values()] == ["Function"]
        exe = tenon.compile(module, level=i % 3)
        path = tmp_path / f"{i}.tnx"
        exe.save(path)
        loaded = tenon.load(path)
        assert exe(1) == loaded(1) == i + 1
        assert loaded.functions == ("main",)
        with pytest.raises(tenon.Error):
            tenon.ir.parse("fn @main(")

    on_threads(make, threads=4, rounds=4)


def test_threads_leave_no_exceptions_behind():
    class Raised(Exception):
        pass

    raised = []

    def call(i):
        error = Raised(i)
        raised.append(weakref.ref(error))

        def fail():
            raise error

        with pytest.raises(Raised):
            tenon.Function(fail)()
        error = None

    on_threads(call, rounds=5)
    gc.collect()
    assert len(raised) == 5 * THREADS and not [ref() for ref in raised if ref()]


def test_cancelling_stops_a_closure_that_a_call_made():
    program = tenon.compile(
        tenon.ir.parse("""
            fn @spinner() -> fn(i64) -> i64 {
              %f = fn(%n: i64) -> i64 { loop (%i: i64 = 0) while { less(%i, %n) } { add(%i, 1) } }
              %f
            }
            """)
    )
    for limits in [None, tenon.Limits(fuel=1 << 60)]:
        vm = tenon.VirtualMachine(program, limits=limits)
        spin = vm["spinner"]()
        stopped = threading.Event()
        caught = []

        def run(spin=spin, stopped=stopped, caught=caught):
            try:
                spin(10**12)
            except tenon.ExecutionError as error:
                caught.append(error.stopped_by)
            stopped.set()

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        for _ in range(500):
            vm.cancel()
            if stopped.wait(0.02):
                break
        assert caught == ["cancel"]
        thread.join()
        assert spin(10) == 10
