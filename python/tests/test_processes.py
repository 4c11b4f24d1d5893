"""What happens around a process: import, fork and the interpreter's end."""

import subprocess
import sys


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


def test_openmp_does_not_see_our_setting_later():
    assert run(SETUP + "import os\nprint(os.environ.get('GOMP_SPINCOUNT'))") == "None\n"
