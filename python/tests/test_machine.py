"""tenon.VirtualMachine."""

import threading
import time

import numpy as np
import pytest

import tenon

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


def test_another_thread_cancels(forever):
    vm = tenon.VirtualMachine(forever)
    timer = threading.Timer(0.1, vm.cancel)
    timer.start()
    start = time.monotonic()
    with pytest.raises(tenon.ExecutionError, match="cancel"):
        vm["main"](10**15)
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


def test_outputs_are_found_by_index(x):
    nested = tenon.compile(
        tenon.ir.parse("fn @main(%x: tensor[n; f32]) -> (tensor[n; f32], (tensor[n; f32], i64)) { %y = neg(%x) %pair = (%y, 7) (%x, %pair) }")
    )
    vm = tenon.VirtualMachine(nested)
    vm.set_input("main", x)
    vm.invoke_stateful("main")
    assert vm.get_outputs("main", 1, 0).tolist() == [0, -1, -2, -3]
    assert vm.get_outputs("main", 1, 1) == 7
    with pytest.raises(IndexError):
        vm.get_outputs("main", 1, 1, 0)


def test_a_saved_function_keeps_its_arguments(add, x):
    vm = tenon.VirtualMachine(add)
    vm.save_function("main", "main_x", x, x)
    assert vm["main_x"]().tolist() == [0, 2, 4, 6]
    with pytest.raises(ValueError, match="another name"):
        vm.save_function("main", "main", x, x)


def test_the_time_evaluator_repeats(add, x):
    result = tenon.VirtualMachine(add).time_evaluator("main", number=2, repeat=3, min_repeat_ms=1)(x, x)
    assert len(result.results) == 3
    assert 0 < result.min <= result.median <= result.max < 1
    assert result.min <= result.mean <= result.max and result.std >= 0
