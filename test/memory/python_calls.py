#!/usr/bin/env python3
"""Lets each allocation of Tenon's libraries fail while Python calls them: only that one, or also all later ones.

Usage: python_calls.py LIBRARY [--package FOLDER] [--only WORK] [--warm COUNT] [--cold COUNT]
           [--compilations COUNT]

LIBRARY is fail_allocation.c's, to be preloaded; FOLDER has the package to test. Each piece of work below runs with COUNT
(200) faults that are spread over it, in a process that has done it before (warm), and with COUNT (20) in processes that do
it for the first time (cold); 0 tries every allocation. A failure must end in the right
result or in a MemoryError or tenon.Error that speaks of memory; afterwards the same work must succeed, no argument may
have gained a reference, and no block may be lost.

Of compiling, COUNT (25) allocations are tried, and 0 tries all. It may end the process
as docs/security.md says, with LLVM's message.

Allocations of Python itself, of NumPy and of nanobind's own functions always succeed: Python's object may be lost where
nanobind's tables can't grow, or the process ends.
"""

from __future__ import annotations

import argparse
import ctypes
import functools
import gc
import itertools
import mmap
import os
import pickle
import re
import signal
import struct
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

SKIPPED = 77
# What a process says that LLVM ends.
LLVM_HAS_NO_MEMORY = b"LLVM ERROR: out of memory"

PROGRAM = """
type tree[T] { Leaf, Node(tree[T], T, tree[T]) }

fn @add(%x: tensor[n; f32], %y: tensor[n; f32]) -> tensor[n; f32] { add(%x, %y) }
fn @both(%x: tensor[n; f32]) -> (tensor[n; f32], tensor[n; f32]) {
  %y = add(%x, %x)
  (%y, %y)
}
fn @many(%a: i64, %b: i64, %c: i64, %d: i64, %e: i64, %f: i64, %g: i64, %h: i64, %i: i64, %big: u64) -> u64 { %big }
fn @strings(%x: tensor[n; string]) -> tensor[n; string] { %x }
fn @brain(%x: tensor[n; bf16]) -> tensor[n; bf16] { add(%x, %x) }
fn @sized(%x: tensor[n; f32], %s: shape[rank=2]) -> shape[rank=2] { %s }
fn @call(%x: tensor[n; f32]) -> tensor[n; f32] { packed "test.callback"(%x) -> tensor[n; f32] }

fn @mirror(%t: tree[i64]) -> tree[i64] {
  match %t {
    Leaf => { Leaf }
    Node(%l, %x, %r) => {
      %a = @mirror(%r)
      %b = @mirror(%l)
      Node(%a, %x, %b)
    }
  }
}
fn @same(%t: tree[tensor[2; f32]], %xs: list[list[f32]], %a: array[i64], %p: (i64, (f32, bool))) ->
    (tree[tensor[2; f32]], list[list[f32]], array[i64], (i64, (f32, bool))) {
  (%t, %xs, %a, %p)
}
fn @options(%a: option[i64], %b: option[option[i64]]) -> (option[i64], option[option[i64]]) { (%a, %b) }

fn @adder(%k: i64, %x: i64) -> i64 { add(%k, %x) }
fn @closure(%k: i64) -> fn(i64) -> i64 { closure @adder(%k) }
fn @apply(%f: fn(i64) -> i64, %x: i64) -> i64 { %f(%x) }
fn @ask(%f: fn(i64) -> list[i64]) -> i64 {
  %xs = %f(3)
  match %xs {
    Cons(%x, _) => { %x }
    Nil => { 0 }
  }
}
"""
MODULE = "fn @main(%x: tensor[n; f32]) -> tensor[n; f32] { exp(%x) }"


class Asked(Exception):
    """What the callbacks below raise when they should."""


# ---- The work: each function prepares it, and returns what to do under faults -------------------------------------------

Work = Callable[[], Any]


CALLBACK: list[Callable[[Any], Any]] = [lambda t: t]  # of the program


def write_program(path: str) -> None:
    tenon.register_func("test.callback", abs)
    tenon.compile(tenon.ir.parse(PROGRAM)).save(path)


def load_program(path: str) -> Any:
    tenon.register_func("test.callback", lambda t: CALLBACK[0](t), override=True)
    return tenon.load(path)


def load(path: str) -> Work:
    tenon.register_func("test.callback", abs, override=True)
    data = Path(path).read_bytes()

    def work() -> Any:
        exe = tenon.load(path)
        vm = tenon.VirtualMachine(tenon.load(data), limits=tenon.Limits(fuel=1000, memory=1 << 24))
        signature = str(exe.signature("same"))
        vm["options"]
        return exe.functions, list(exe.types), signature, exe["add"].signature, bytes(exe.to_bytes()) == data

    return work


def tensors(path: str) -> Work:
    exe = load_program(path)
    x, y = np.arange(4, dtype="float32"), np.ones(8, "float32")[::2]
    WATCHED.extend([x, y.base])
    out = np.empty(4, "float32")
    buffer = memoryview(bytearray(struct.pack("4f", 1, 2, 3, 4))).cast("f")
    brain = None if ml_dtypes is None else np.ones(3, ml_dtypes.bfloat16)
    strings = np.array(["a", "a longer text than eight bytes"])
    field = np.zeros(3, dtype=[("a", "u1"), ("b", "<f4")])["b"]

    def work() -> Any:
        add = exe["add"]
        results = [add(x, y), add(x=x, y=y), add(x, y, out=out), add(buffer, x), add([1, 2, 3, 4], x), add(field, field)]
        first = results[0]
        results += [add(first, first), add.bind(x)(y), *exe["both"](x)]
        held = [np.asarray(t).tolist() for t in results]
        held += [np.from_dlpack(first).tolist(), np.asarray(tenon.Tensor(x)).tolist(), first.shape, first.dtype, repr(first)]
        held += [pickle.loads(pickle.dumps(first)).tolist(), (first == x).tolist()]
        held += [exe["strings"](strings).tolist(), exe["sized"](x, (3, 4))]
        held.append(exe["many"](1, 2, 3, 4, 5, 6, 7, np.int8(8), 9, 2**64 - 1))
        if brain is not None:
            held.append(exe["brain"](brain).numpy().astype("float32").tolist())
        return held

    return work


class Exporter:
    """An array that has __dlpack__ alone, of the older or the newer form."""

    def __init__(self, array: Any, versioned: bool) -> None:
        self.array = array
        self.versioned = versioned

    def __dlpack__(self, **options: Any) -> Any:
        if not self.versioned and options:
            raise TypeError
        return self.array.__dlpack__(**options)


def dlpack(path: str) -> Work:
    exe = load_program(path)
    x = np.arange(4, dtype="float32")
    WATCHED.append(x)
    older, newer = Exporter(x, False), Exporter(x, True)

    def work() -> Any:
        t = exe["add"](older, newer)
        return np.from_dlpack(t).tolist(), np.from_dlpack(t, copy=True).tolist(), np.from_dlpack(tenon.Tensor(newer)).tolist()

    return work


def containers(path: str) -> Work:
    x = np.arange(3)
    WATCHED.append(x)
    value = {
        "a key that is longer than eight bytes": (1, 2.5, None, True),
        2: [b"\0\1", b"more than eight bytes", "text", {"x": x}],
        "empty": ((), {}, "", b""),
    }

    def work() -> Any:
        same = tenon.Function(lambda v: v)
        returned = same(value)
        return str(returned), repr(same), same.signature

    return work


def callbacks(path: str) -> Work:
    exe = load_program(path)
    x = np.arange(4, dtype="float32")
    WATCHED.append(x)

    def raises(t: Any) -> Any:
        raise Asked("with a text that is longer than what fits where short texts are kept")

    def work() -> Any:
        CALLBACK[0] = lambda t: np.asarray(t) * 2
        held = [exe["call"](x).tolist(), exe["apply"](lambda n: n + 1, 4), exe["ask"](lambda n: [n, 8])]
        closure = exe["closure"](3)
        held += [closure(4), exe["apply"](closure, 5), repr(closure)]
        CALLBACK[0] = raises
        try:
            exe["call"](x)
        except Asked as error:
            held.append(str(error))  # frames may be missing
        try:
            exe["ask"](raises)
        except Asked as error:
            held.append(str(error))
        return held

    return work


def data(path: str) -> Work:
    exe = load_program(path)
    leaf = np.array([1, 2], "float32")
    WATCHED.append(leaf)
    Leaf, Node, Some = exe.types.Leaf, exe.types.Node, exe.types.Some

    def work() -> Any:
        mirrored = exe["mirror"](Node(Node(Leaf, 1, Leaf), 2, Leaf))
        again = exe["mirror"](mirrored)
        t, *others = exe["same"](Node(Leaf, leaf, Leaf), [[1, 2], []], (3, 4), (1, (2, True)))
        options = exe["options"](3, Some(None)), exe["options"](None, 4)
        same = tenon.Function(lambda v: v)(mirrored)
        return repr(mirrored), repr(again), t._1.tolist(), others, options, repr(same)

    return work


def host_types(path: str) -> Work:
    @dataclasses.dataclass
    class Point:
        x: int
        y: Any

    array = np.arange(3)
    WATCHED.append(array)
    tenon.register_type("test.Point")(Point)  # for good, so that each time takes memory

    def work() -> Any:
        point = Point(1, (array, "more than eight bytes"))
        same = tenon.Function(lambda v: v)
        return same(point) is point, same((point, [point]))[1][0] is point

    return work


def registration(path: str) -> Work:
    """Of a type, cold: a class is kept for good."""

    @dataclasses.dataclass
    class Mine:
        a_field_with_a_long_name: int

    def work() -> Any:
        tenon.register_type("test.Mine")(Mine)
        return str(tenon.Function(lambda v: v.a_field_with_a_long_name)(Mine(3)))

    return work


def machines(path: str) -> Work:
    exe = load_program(path)
    x = np.arange(4, dtype="float32")
    WATCHED.append(x)
    Leaf, Node = exe.types.Leaf, exe.types.Node

    def work() -> Any:
        seen = []
        vm = tenon.VirtualMachine(exe, limits=tenon.Limits(fuel=1000))
        vm.set_instrument(lambda function, name, before, result, *args: seen.append((name, before, len(args))))
        held = [vm["add"](x, x).tolist(), repr(vm["mirror"](Node(Leaf, 1, Leaf))), vm["apply"](lambda n: n, 2)]
        vm.set_instrument(None)
        vm.trim()
        vm.cancel()
        return held, seen, vm["closure"].bind(3)()(4), sorted(vm.memory_stats())

    return work


def mistakes(path: str) -> Work:
    exe = load_program(path)
    x = np.arange(4, dtype="float32")
    WATCHED.append(x)

    def work() -> Any:
        held = []
        for call in (
            lambda: exe["add"](x),
            lambda: exe["add"](x, x, z=1),
            lambda: exe["add"](x, x.astype("int8")),
            lambda: exe["add"](x, np.ones(3, "float32")),
            lambda: exe["add"](x, x.astype(">f4")),
            lambda: exe["add"](x, object()),
            lambda: exe["mirror"](3),
            lambda: exe["ask"](lambda n: ["none"]),
            lambda: exe["none"],
            lambda: tenon.load(b"\x89TNX and no more"),
            lambda: tenon.VirtualMachine(exe, limits=tenon.Limits(fuel=0))["mirror"](exe.types.Leaf),
        ):
            try:
                held.append(str(call()))
            except MemoryError:
                raise
            except (tenon.Error, TypeError, ValueError) as error:
                if is_of_memory(error):
                    raise
                # Where there is no memory to keep a callback's exception, an ExecutionError has its text, after the place.
                text = f"{type(error).__name__}: {str(error).splitlines()[0]}"
                held.append(re.sub(r"^ExecutionError: (<string>:\d+:\d+: )?", "", text))
        return held

    return work


def objects(path: str) -> Work:
    module = tenon.ir.parse(MODULE)

    def work() -> Any:
        function = next(iter(module.functions.values()))
        return dir(function), function.type_key, function == function, repr(module), str(function.id == function.id)

    return work


def compilation(path: str) -> Work:
    tenon.ir.parse(MODULE)  # so that the library is loaded: constructors of LLVM's static objects end the process

    def work() -> Any:
        exe = tenon.compile(tenon.ir.parse(MODULE))
        return exe(np.zeros(2, "float32")).tolist(), str(exe.signature())

    return work


WORKS = [load, tensors, dlpack, containers, callbacks, data, host_types, registration, machines, mistakes, objects]
ONLY_COLD = [registration]

# ---- Faults -------------------------------------------------------------------------------------------------------------

WATCHED: list[Any] = []  # arguments whose references are counted


def is_of_memory(error: BaseException) -> bool:
    return isinstance(error, MemoryError) or re.search(r"(out of|no) memory|bad_alloc", str(error)) is not None


def leave_nanobind_out() -> None:
    """Exempts the functions that nanobind has in its own source; its templates are compiled with the binding's code."""
    path = sys.modules["tenon._tenon"].__file__
    base = next(int(line.split("-")[0], 16) for line in open("/proc/self/maps") if line.rstrip().endswith(path))
    listing = subprocess.run(["nm", "-CS", "--defined-only", path], capture_output=True, text=True, check=True).stdout
    own = re.compile(r"(\w+) (\w+) [tTwWuU] (?:\S+ )*?(?:nanobind::detail::\w+\(|tsl::|std::.*tsl::)")
    ranges = [tuple(int(number, 16) for number in found.groups()) for line in listing.splitlines() if (found := own.match(line))]
    if len(ranges) < 50:
        raise SystemExit("nanobind's functions aren't found: is the binding stripped?")
    for start, size in ranges:
        if FAULTS.fail_allocation_except(base + start, base + start + size) != 0:
            raise SystemExit("nanobind has more functions than fail_allocation.c takes")


class Problem(Exception):
    pass


def under_fault(work: Work, number: int, lasting: bool) -> tuple[int, Any, BaseException | None]:
    """How many allocations there were, the result, and the exception."""
    result, error = None, None
    FAULTS.fail_allocation_begin(number, lasting)
    try:
        result = work()
    except Exception as raised:
        error = raised
    finally:
        count = FAULTS.fail_allocation_end()
    return count, result, error


def difference(result: Any, expected: Any) -> str:
    if isinstance(expected, (list, tuple)) and len(result) == len(expected):
        result, expected = next((r, e) for r, e in zip(result, expected) if r != e)
    return f"the result is {result!r}\n  expected {expected!r}"


def once(work: Work, number: int, lasting: bool, expected: Any) -> tuple[bool, bool]:
    """Does the work with the fault and then without. Whether the fault was reached, and whether the work failed."""
    count, result, error = under_fault(work, number, lasting)
    if error is not None:
        if count <= number:
            raise Problem(f"it failed by itself: {error!r}")
        allowed = isinstance(error, (MemoryError, tenon.Error)) and not isinstance(error, tenon.InternalError)
        # Where there is no memory to keep a callback's exception, an error has its text.
        if not allowed or not (is_of_memory(error) or "Asked: " in str(error)):
            raise Problem(f"the exception is {type(error).__name__}: {error}")
    elif result != expected:
        raise Problem(difference(result, expected))
    failed = error is not None
    del result, error
    try:
        result = work()
    except Exception as raised:
        raise Problem(f"then the same work failed: {type(raised).__name__}: {raised}") from None
    if result != expected:
        raise Problem(f"then the result is {result!r}\n  expected {expected!r}")
    return count > number, failed


def loses(attempt: Callable[[], Any]) -> str:
    """What the process has more of after each of some attempts: Python's own tables grow only now and then."""
    for i in range(6):
        references, live = [sys.getrefcount(x) for x in WATCHED], FAULTS.fail_allocation_live()
        attempt()
        if i > 0:
            gc.collect()
        gained = [sys.getrefcount(x) for x in WATCHED]
        if gained == references and FAULTS.fail_allocation_live() <= live:
            return ""
        if i == 0:
            gc.collect()
    return f"arguments have {gained} references, before {references}" if gained != references else "blocks are lost"


def in_child(task: Callable[[mmap.mmap], None], progress: mmap.mmap, quiet: bool = False) -> tuple[int, bytes]:
    """Runs a task in a child process, which may die. Its wait status, and what it wrote to standard error."""
    with tempfile.TemporaryFile() as errors:
        sys.stdout.flush()
        child = os.fork()
        if child == 0:
            code = 1
            try:
                signal.alarm(540)
                os.dup2(errors.fileno(), 2)
                task(progress)
                code = 0
            except Problem as problem:
                os.write(2, f"{problem}".encode())
            except BaseException as error:
                os.write(2, f"outside a fault: {type(error).__name__}: {error}".encode())
            finally:
                os._exit(code)
        _, status = os.waitpid(child, 0)
        errors.seek(0)
        return status, errors.read(4000)


def said(status: int, errors: bytes) -> str:
    text = errors.decode(errors="replace").strip()
    if os.WIFSIGNALED(status):
        return f"the process died of {signal.Signals(os.WTERMSIG(status)).name}: {text}"
    return text


def try_warm(prepare: Callable[[str], Work], path: str, most: int, start: tuple[int, bool], progress: mmap.mmap) -> None:
    """Faults in this process from `start` on; `progress` has the one that is tried."""
    work = prepare(path)
    for _ in range(3):
        expected = work()
    count = under_fault(work, -1, False)[0]
    failures = 0
    for lasting, number in itertools.product((False, True), spread(count, most)):
        if (lasting, number) >= (start[1], start[0]):
            progress[:24] = struct.pack("qqq", number, lasting, failures)
            outcome: list[tuple[bool, bool]] = []
            lost = loses(lambda: outcome.append(once(work, number, lasting, expected)))
            if lost:
                raise Problem(lost)
            failed = outcome[0][1]
            failures += failed
    progress[:24] = struct.pack("qqq", count, True, failures)


def try_cold(prepare: Callable[[str], Work], path: str, expected: Any, number: int, lasting: bool, progress: mmap.mmap) -> None:
    work = prepare(path)
    reached, failed = once(work, number, lasting, expected)
    progress[:24] = struct.pack("qqq", reached, lasting, failed)


def complain(work: Any, state: str, number: int, lasting: bool, problem: str) -> None:
    how = "and all later ones" if lasting else "alone"
    print(f"{work.__name__}, {state}, allocation {number} {how}: {problem}", flush=True)


MOST_COMPLAINTS = 12  # of one piece of work


def check_work(prepare: Callable[[str], Work], path: str, most: tuple[int, int]) -> int:
    """The number of problems."""
    problems = 0
    progress = mmap.mmap(-1, 4096)
    start = 0, False
    while problems < MOST_COMPLAINTS and prepare not in ONLY_COLD:
        status, errors = in_child(functools.partial(try_warm, prepare, path, most[0], start), progress)
        number, lasting, failures = struct.unpack("qqq", progress[:24])
        if status == 0:
            print(f"{prepare.__name__}, warm: {number} allocations, {failures} failures reported", flush=True)
            if failures == 0:
                complain(prepare, "warm", 0, False, "no failure was noticed: is the library preloaded?")
                problems += 1
            break
        problems += 1
        complain(prepare, "warm", number, bool(lasting), said(status, errors))
        if errors.startswith(b"outside a fault"):
            return problems
        start = number + 1, bool(lasting)

    # A child has the expected result, since this process is to stay cold.
    expected, count = expected_of(prepare, path)
    for lasting in (False, True):
        for number in spread(count, most[1]):
            status, errors = in_child(functools.partial(try_cold, prepare, path, expected, number, lasting), progress)
            if status != 0:
                problems += 1
                complain(prepare, "cold", number, lasting, said(status, errors))
                if problems >= 2 * MOST_COMPLAINTS:
                    return problems
    print(f"{prepare.__name__}, cold: {count} allocations", flush=True)
    return problems


def spread(count: int, most: int) -> list[int]:
    """Numbers below `count`: all, or so many."""
    return list(range(count)) if most == 0 else sorted({i * count // most for i in range(most)})


def expected_of(prepare: Callable[[str], Work], path: str) -> tuple[Any, int]:
    """The result of cold work, and how many allocations it makes."""
    with tempfile.NamedTemporaryFile() as file:

        def task(_: mmap.mmap) -> None:
            count, result, _ = under_fault(prepare(path), -1, False)
            Path(file.name).write_bytes(pickle.dumps((count, result)))

        status, errors = in_child(task, mmap.mmap(-1, 4096))
        if status != 0:
            raise SystemExit(f"{prepare.__name__} fails without a fault: {said(status, errors)}")
        count, result = pickle.loads(Path(file.name).read_bytes())
        return result, count


def check_compilation(path: str, runs: int) -> int:
    problems = ended = reported = 0
    progress = mmap.mmap(-1, 4096)
    expected, count = expected_of(compilation, path)
    for lasting in (False, True):
        for number in spread(count, runs):
            status, errors = in_child(functools.partial(try_cold, compilation, path, expected, number, lasting), progress)
            if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGABRT and LLVM_HAS_NO_MEMORY in errors:
                ended += 1
            elif status != 0:
                problems += 1
                complain(compilation, "cold", number, lasting, said(status, errors))
            else:
                reported += struct.unpack("qqq", progress[:24])[2]
    print(f"compilation: {count} allocations, {reported} failures reported, {ended} ended by LLVM", flush=True)
    return problems + (reported == 0)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("library", type=Path)
    parser.add_argument("--package", type=Path, help="the folder with the package")
    parser.add_argument("--only", help="the name of one piece of work")
    parser.add_argument("--warm", type=int, default=200, help="how many of the allocations to try warm; 0 for all")
    parser.add_argument("--cold", type=int, default=20, help="the same cold")
    parser.add_argument("--compilations", type=int, default=25, help="the same of compiling")
    options = parser.parse_args()
    if str(options.library.resolve()) not in os.environ.get("LD_PRELOAD", ""):
        environment = {**os.environ, "LD_PRELOAD": str(options.library.resolve()), "GOMP_SPINCOUNT": "1000"}
        if options.package:
            environment["PYTHONPATH"] = str(options.package)
        return subprocess.run([sys.executable, *sys.argv], env=environment).returncode

    global tenon, np, ml_dtypes, dataclasses, FAULTS
    try:
        import dataclasses

        import numpy as np
    except ImportError as error:
        print(f"skipped: {error}")
        return SKIPPED
    try:
        import ml_dtypes
    except ImportError:
        ml_dtypes = None
    import tenon

    FAULTS = ctypes.CDLL(str(options.library.resolve()))
    FAULTS.fail_allocation_begin.argtypes = [ctypes.c_long, ctypes.c_int]
    FAULTS.fail_allocation_except.argtypes = [ctypes.c_size_t, ctypes.c_size_t]
    FAULTS.fail_allocation_end.restype = FAULTS.fail_allocation_live.restype = ctypes.c_long

    leave_nanobind_out()

    problems = 0
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/program.tnx"
        # In a child, since this process is to stay cold.
        status, errors = in_child(lambda _: write_program(path), mmap.mmap(-1, 4096))
        if status != 0:
            raise SystemExit(said(status, errors))
        for work in WORKS:
            if options.only in (None, work.__name__):
                problems += check_work(work, path, (options.warm, options.cold))
        if options.only in (None, compilation.__name__):
            problems += check_compilation(path, options.compilations)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
