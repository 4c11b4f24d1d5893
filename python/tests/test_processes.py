"""What happens around a process: import, fork and the interpreter's end."""

import os
import shutil
import subprocess
import sys

import pytest


def run(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


SETUP = """
import numpy as np, tenon
exe = tenon.compile(tenon.ir.parse('''
fn @main(%x: tensor[n, n; f32]) -> tensor[n, n; f32] { matmul(%x, %x) }
'''))
x = np.ones((300, 300), "float32")
"""


def test_importing_loads_neither_numpy_nor_the_compiler():
    assert run(
        "import sys, tenon\n"
        "maps = open('/proc/self/maps').read()\n"
        "print('numpy' in sys.modules, 'libtenon_compiler' in maps, 'LLVM' in maps)"
    ).split() == ["False", "False", "False"]


def test_a_forked_child_calls_and_compiles():
    out = run(
        SETUP + "import os\n"
        "exe(x)\n"
        "child = os.fork()\n"
        "again = tenon.compile(tenon.ir.parse('fn @main(%i: i64) -> i64 { add(%i, 1) }'))(1)\n"
        "os.write(1, f'{np.asarray(exe(x))[0, 0]} {again}\\n'.encode())\n"
        "if child == 0: os._exit(0)\n"
        "assert os.waitpid(child, 0)[1] == 0"
    )
    assert out.split() == ["300.0", "2"] * 2


def test_the_interpreter_ends_with_functions_and_tensors_alive():
    out = run(
        SETUP + "import threading\n"
        "kept = [exe, exe(x), tenon.Tensor(x), tenon.Function(lambda: x)]\n"
        "tenon.register_func('test.kept', lambda: kept)\n"
        "threading.Thread(target=lambda: exe(x)).start()\n"
        "print('end')"
    )
    assert out == "end\n"


# Threads that the interpreter's end meets everywhere: in Tenon, on the way in and out, and in callbacks.
DAEMONS = """
import sys, threading, time
import numpy as np, tenon

ADD = 'fn @main(%x: tensor[n; f32]) -> tensor[n; f32] { add(%x, %x) }'
exe = tenon.compile(tenon.ir.parse(ADD))
x = np.ones(4, 'float32')

@tenon.register_func('test.callback')
def callback(t):
    return np.asarray(t) * sum(range(100))

calling = tenon.compile(tenon.ir.parse(
    'fn @main(%x: tensor[n; f32]) -> tensor[n; f32] { packed "test.callback"(%x) -> tensor[n; f32] }'))
vm = tenon.VirtualMachine(exe)
vm.set_instrument(lambda *args: None)

class Array:
    def __dlpack__(self, **options):
        return tenon.Tensor(x).__dlpack__(**options)
    def __del__(self):
        sum(range(100))

def fail():
    try:
        exe(np.ones((2, 2), 'float32'))
    except tenon.Error:
        pass

def forever(work):
    while True:
        work()

for work in [
    lambda: exe(x), lambda: calling(x), lambda: vm['main'](x), lambda: exe(Array()), lambda: exe['main'].bind(Array())(),
    lambda: tenon.Tensor(Array()).tolist(), lambda: tenon.compile(tenon.ir.parse(ADD)), fail,
]:
    threading.Thread(target=forever, args=(work,), daemon=True).start()
sys.setswitchinterval(1e-5)
time.sleep(0.2)
"""


def test_the_interpreter_ends_quietly_while_daemon_threads_call():
    # scripts/wheel has the loader write what it opens.
    environment = {name: value for name, value in os.environ.items() if name != "LD_DEBUG"}
    begin = lambda: subprocess.Popen(
        [sys.executable, "-c", DAEMONS],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=environment,
    )
    for process in [begin() for _ in range(10)]:
        output, _ = process.communicate(timeout=300)
        assert (process.returncode, output) == (0, "")


def test_programs_run_while_the_interpreter_ends():
    out = run(
        "import atexit, tenon\n"
        "exe = tenon.compile(tenon.ir.parse('fn @main(%f: fn(i64) -> i64, %i: i64) -> i64 { %f(%i) }'))\n"
        "atexit.register(lambda: print(exe(lambda i: i + 1, 1)))\n"
        "class Late:\n"
        "    def __del__(self, exe=exe, print=print):\n"
        "        print(exe(lambda i: i + 1, 2))\n"
        "late = Late()\n"
    )
    assert out == "2\n3\n"


def test_openmp_does_not_see_our_setting_later():
    assert run(SETUP + "import os\nprint(os.environ.get('GOMP_SPINCOUNT'))") == "None\n"


# Calls that take seconds, each in its own way, and what interrupts them.
INTERRUPTED = """
import os, signal, threading, time
import numpy as np, tenon

def interrupted(work, after=0.3):
    threading.Timer(after, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    begin = time.perf_counter()
    try:
        work()
    except KeyboardInterrupt as e:
        return time.perf_counter() - begin - after, getattr(e, "__notes__", [])
    raise AssertionError("it was not interrupted")
"""

SUM = """
exe = tenon.compile(tenon.ir.parse('''
fn @main(%n: i64) -> i64 {
  %t = loop (%i: i64 = 0, %s: i64 = 0) while { less(%i, %n) } {
    %j = add(%i, 1)
    %sum = add(%s, %i)
    (%j, %sum)
  }
  %t.1
}
'''))
"""


def test_ctrl_c_stops_a_running_loop():
    out = run(
        INTERRUPTED + SUM + "late, notes = interrupted(lambda: exe(10**12))\n"
        "assert late < 1, late\n"
        "assert any('main' in n for n in notes), notes\n"
        "print(exe(4))"
    )
    assert out == "6\n"


def test_ctrl_c_stops_kernels_between_two_of_them():
    run(
        INTERRUPTED + "exe = tenon.compile(tenon.ir.parse('''\n"
        "fn @main(%x: tensor[n, n; f32], %n: i64) -> tensor[n, n; f32] {\n"
        "  %t = loop (%i: i64 = 0, %y: tensor[n, n; f32] = %x) while { less(%i, %n) } {\n"
        "    %j = add(%i, 1)\n"
        "    %z = matmul(%y, %x)\n"
        "    (%j, %z)\n"
        "  }\n"
        "  %t.1\n"
        "}'''))\n"
        "x = np.zeros((500, 500), 'float32')\n"
        "late, _ = interrupted(lambda: exe(x, 10**9))\n"
        "assert late < 1, late\n"
    )


def test_ctrl_c_stops_one_long_product_and_harms_nothing():
    # oneDNN's products run with the stack pointer in the heap, where Python's handler must not run. pytest's
    # faulthandler gives its own process another stack, but not this child.
    run(
        INTERRUPTED + "exe = tenon.compile(tenon.ir.parse('''\n"
        "fn @main(%x: tensor[n, n; f32]) -> tensor[n, n; f32] { matmul(%x, %x) }'''))\n"
        "x = np.zeros((4000, 4000), 'float32')\n"
        "for i in range(30):\n"
        "    late, _ = interrupted(lambda: exe(x), after=0.05 + 0.005 * i)\n"
        "    assert late < 1, late\n"
    )


def test_ctrl_c_stops_a_compilation():
    run(
        INTERRUPTED + "lines = '\\n'.join(f'  %y{i} = matmul(%x{i}, %x{i})\\n  %x{i + 1} = exp(%y{i})' for i in range(3000))\n"
        "module = tenon.ir.parse('fn @main(%x0: tensor[n, n; f32]) -> tensor[n, n; f32] {\\n' + lines + '\\n  %x3000\\n}')\n"
        "interrupted(lambda: tenon.compile(module))\n"
    )


def test_a_handler_that_does_not_raise_lets_the_call_go_on():
    out = run(
        INTERRUPTED + SUM + "seen = []\n"
        "signal.signal(signal.SIGUSR1, lambda *_: seen.append(exe(4)))\n"
        "threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGUSR1)).start()\n"
        "vm = tenon.VirtualMachine(exe)\n"
        "try:\n"
        "    tenon.VirtualMachine(exe, limits=tenon.Limits(deadline=1.0))['main'](10**12)\n"
        "except tenon.Error as e:\n"
        "    print(seen, 'deadline' in str(e))\n"
    )
    assert out == "[6] True\n"


def test_ctrl_c_stops_a_call_in_a_forked_child():
    out = run(
        INTERRUPTED + SUM + "exe(4)\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    interrupted(lambda: exe(10**12))\n"
        "    os.write(1, b'stopped')\n"
        "    os._exit(0)\n"
        "os.waitpid(child, 0)\n"
    )
    assert out == "stopped"


def test_the_runtime_needs_no_static_tls_of_other_libraries():
    # Its own thread-local variables take few bytes of the space that the loader keeps for such libraries. Those of
    # libstdc++ (std::call_once has some) would have to fit as well, and don't if PyTorch was imported before.
    readelf = shutil.which("readelf")
    if not readelf:
        pytest.skip("readelf isn't installed")
    runtime = run(
        "import tenon\n"
        "print(next(l.split()[-1] for l in open('/proc/self/maps') if 'libtenon_runtime' in l))"
    ).strip()
    relocations = subprocess.run([readelf, "-rW", runtime], capture_output=True, text=True, check=True).stdout
    foreign = [line for line in relocations.splitlines() if "TPOFF" in line and "GLIBC" in line]
    assert foreign == []


SUBMITTED = SUM + """
ENDLESS = 10**15
vm = tenon.VirtualMachine(exe)
def message(future):
    try:
        return future.result(10)
    except tenon.ExecutionError as e:
        return e.message
"""


def test_the_interpreter_ends_while_submitted_calls_run():
    out = run(
        "import tenon" + SUBMITTED + "futures = [exe.submit(ENDLESS) for _ in range(50)] + [vm.submit('main', ENDLESS)]\n"
        "while not futures[0].running(): pass\n"
        "print('end')"
    )
    assert out == "end\n"


def test_ctrl_c_in_a_future_ends_the_process():
    out = run(
        INTERRUPTED + SUBMITTED + "late, _ = interrupted(lambda: exe.submit(ENDLESS).result())\n"
        "print(late < 1)"
    )
    assert out == "True\n"


def test_a_future_stops_its_own_call_alone():
    out = run(
        "import tenon\ntenon._tenon.processors = lambda: 4" + SUBMITTED + "a, b, c = (f('main', ENDLESS) for f in [vm.submit] * 3)\n"
        "while not (a.running() and b.running() and c.running()): pass\n"
        "assert a.cancel() and b.cancel()\n"
        "print(message(a) == message(b) == 'the call was cancelled', c.running(), a.cancel())\n"
        "while not c.done(): vm.cancel()\n"
        "print(message(c), message(vm.submit('main', 4)))"
    )
    assert out == "True True False\nthe call was cancelled 6\n"


def test_an_executable_stops_all_its_calls():
    out = run(
        "import threading, time, tenon" + SUBMITTED + "submitted = exe.submit(ENDLESS)\n"
        "while not submitted.running(): pass\n"
        "def stop():\n"
        "    while True: time.sleep(0.1), exe.cancel()\n"
        "threading.Thread(target=stop, daemon=True).start()\n"
        "try:\n"
        "    exe(ENDLESS)\n"
        "except tenon.ExecutionError as e:\n"
        "    print(e.message)\n"
        "print(message(submitted))"
    )
    assert out == "the call was cancelled\n" * 2


def test_a_forked_child_submits_calls():
    out = run(
        "import os, tenon" + SUBMITTED + "exe.submit(4).result()\n"
        "child = os.fork()\n"
        "os.write(1, f'{exe.submit(4).result()}\\n'.encode())\n"
        "if child == 0: os._exit(0)\n"
        "assert os.waitpid(child, 0)[1] == 0"
    )
    assert out == "6\n6\n"
