#!/usr/bin/env python3
"""Random sequences of Python calls of the package: its functions, its classes, and every attribute and operator of what they
return, with arguments of every kind, also of wrong ones, and objects that misbehave while they are looked at.

Usage: python_sequences.py --package FOLDER COUNT FIRST [-v]
       python_sequences.py --package FOLDER --atheris [ARGUMENT OF LIBFUZZER...]

Makes sequences FIRST to FIRST + COUNT - 1, for ever if COUNT is 0, each from its number alone; or, with Google's Atheris
(test/fuzz/requirements.txt), from the bytes that it chooses, as OSS-Fuzz runs Python's targets. -v counts the exceptions.

A call ends with a value or with an exception that isn't a bug of Tenon. No array that was lent changes, unless a call got it
to write into, and no object that was handed over is kept: all are gone once the sequence has ended. Exits with 1 after a
finding, and with the signal's number or after a minute's stand-still, with the stacks of all threads.
"""

from __future__ import annotations

import argparse
import collections
import concurrent.futures
import copy
import faulthandler
import gc
import itertools
import math
import operator
import os
import pickle
import random
import sys
import tempfile
import time
import traceback
import types
import weakref
from collections.abc import Callable, Sequence
from typing import Any

try:
    import numpy as np
except ImportError:
    print("skipped: NumPy isn't installed")
    sys.exit(77)

tenon: Any = None  # the package, once its folder is known

PROGRAM = """
type tree[T] { Leaf, Node(tree[T], T, tree[T]) }

fn @main(%x: tensor[n; f32], %y: tensor[n; f32]) -> tensor[n; f32] { add(%x, %y) }
fn @both(%x: tensor[n, 2; i64]) -> (tensor[n, 2; i64], tensor[n, 2; i64]) { (%x, %x) }
fn @scalars(%a: i8, %b: u64, %c: f16, %d: bool) -> (i8, u64, f16, bool) { (%a, %b, %c, %d) }
fn @strings(%x: tensor[n; string], %s: shape[rank=2]) -> (tensor[n; string], shape[rank=2]) { (%x, %s) }
fn @same(%t: tree[tensor[2; f32]], %xs: list[list[f32]], %a: array[i64], %o: option[(i64, bool)]) ->
    (tree[tensor[2; f32]], list[list[f32]], array[i64], option[(i64, bool)]) {
  (%t, %xs, %a, %o)
}
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
fn @call(%x: tensor[n; f32]) -> tensor[n; f32] { packed "test.sequences"(%x) -> tensor[n; f32] }
fn @adder(%k: i64, %x: i64) -> i64 { add(%k, %x) }
fn @closure(%k: i64) -> fn(i64) -> i64 { closure @adder(%k) }
fn @apply(%f: fn(i64) -> i64, %x: i64) -> i64 { %f(%x) }
fn @ask(%f: fn(i64) -> list[i64]) -> list[i64] { %f(3) }
fn @shared(%x: i64) -> array[array[list[i64]]] {
  %a = Cons(%x, Nil)
  %b = array[list[i64]](%a, %a)
  array[array[list[i64]]](%b, %b)
}
fn @spin(%f: fn(i64) -> i64, %x: i64) -> i64 {
  %y = %f(%x)
  @spin(%f, %y)
}
"""

SLOTS = 16
SECONDS = 60  # without an end of a sequence

# What a sequence may not do: what is kept for good, and what takes long or starts processes.
LEFT_OUT = {
    "register_type", "register_op", "register_func", "torch_backend", "backend", "testing", "reduce", "build_info",
    "time_evaluator", "TimeEvaluator", "benchmark",
}  # fmt: skip
# Attributes that change a class, or end an object by hand.
LEFT_OUT |= {"__class__", "__del__", "__subclasshook__", "__init_subclass__", "__subclasses__", "mro", "__dict__", "__globals__"}

# Exceptions of a defect, whatever the arguments were.
DEFECTS = (SystemError, AssertionError, UnboundLocalError, NameError)


class Choices:
    """A fuzzer's bytes while there are any, then random numbers."""

    def __init__(self, data: bytes, seed: int) -> None:
        self.data, self.random = data, random.Random(seed)

    def below(self, n: int) -> int:
        if not self.data:
            return self.random.randrange(n)
        size = 1 if n <= 256 else 4
        number, self.data = int.from_bytes(self.data[:size], "little"), self.data[size:]
        return number % n

    def one_in(self, n: int) -> bool:
        return self.below(n) == 0

    def of(self, values: Sequence[Any]) -> Any:
        return values[self.below(len(values))]


class Odd(Exception):
    """What misbehaving objects raise."""


class Misbehaving:
    """An object whose every operator makes calls of the sequence, and then raises or answers with anything."""

    def __init__(self, sequence: PythonSequence) -> None:
        self._sequence = weakref.ref(sequence)

    def _answer(self) -> Any:
        sequence = self._sequence()
        if sequence is None:
            raise Odd
        return sequence.call_back()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_sequence") or name in ("__setstate__", "__getstate__"):
            raise AttributeError(name)
        return self._answer()


def _misbehave(name: str) -> Callable[..., Any]:
    return lambda self, *args, **kwargs: self._answer()


# Python 3.11 itself never releases what a __hash__ returns that isn't an integer.
Misbehaving.__hash__ = lambda self: (self._answer(), 7)[1]  # type: ignore[method-assign]
for _name in (
    "__len__", "__iter__", "__next__", "__getitem__", "__index__", "__int__", "__float__", "__bool__", "__eq__", "__repr__",
    "__str__", "__call__", "__contains__", "__array__", "__array_interface__", "__dlpack__", "__dlpack_device__",
    "__fspath__", "__enter__", "__exit__", "__reduce__", "keys", "items", "read", "SerializeToString",
):  # fmt: skip
    setattr(Misbehaving, _name, _misbehave(_name))


def of_tenon(value: Any) -> bool:
    """Whether the value is one of the package's, so that its attributes may be called."""
    kind = value if isinstance(value, type) else type(value)
    return kind.__module__.split(".")[0] == "tenon" or value is tenon or getattr(value, "__package__", None) == "tenon"


class PythonSequence:
    """One sequence. `problem` is a finding's text."""

    def __init__(self, choices: Choices, program: bytes) -> None:
        self.choices = choices
        self.program = program
        self.slots: list[Any] = [None] * SLOTS
        self.lent: list[tuple[weakref.ref[Any], bytes]] = []  # arrays and what they held
        self.handed: list[weakref.ref[Any]] = []
        self.written: set[int] = set()  # arrays that a call got to write into
        self.executable: Any = None
        self.depth = 0
        self.values = self.errors = 0
        self.problem = ""
        self.seen: collections.Counter[str] = collections.Counter()

    # ---- Values ---------------------------------------------------------------------------------

    def number(self) -> int:
        return self.choices.of((0, 1, 2, 3, -1, 7, 64, 255, 2**31, 2**63 - 1, 2**63, 2**64 - 1, -(2**63), 10**30))

    def text(self) -> str:
        return self.choices.of(
            ("main", "call", "apply", "x", "n", "", "test.sequences", "float32", "a\0b", "\ud800", "é" * 9, "ir", "table.txt", PROGRAM,
             "fn @main(%x: tensor[n; f32]) -> tensor[n; f32] { exp(%x) }", "{}", "(tensor[n; f32]) -> f32", "interpret")
        )  # fmt: skip

    def array(self) -> np.ndarray[Any, Any]:
        choices = self.choices
        shape = tuple(choices.below(4) for _ in range(choices.of((1, 1, 1, 2, 0, 3))))
        dtype = choices.of(("f4", "f4", "f4", "i8", "i8", "f8", "f2", "i1", "u8", "?", "c8", "U3", "O", ">f4", "M8[s]", "S2", "V4"))
        array = np.zeros(shape, dtype)
        if choices.one_in(6) and array.ndim:
            array = array[::-1]
        if choices.one_in(8):
            array = array.T
        if choices.one_in(8):
            array = np.broadcast_to(array, (2, *array.shape))
        if choices.one_in(6):
            array.flags.writeable = False
        self.lent.append((weakref.ref(array), array.tobytes()))
        return array

    def function(self) -> Callable[..., Any]:
        back = weakref.WeakMethod(self.call_back)

        def called(*args: Any, **kwargs: Any) -> Any:
            call = back()
            if call is None:
                raise Odd
            return call(*args)

        self.handed.append(weakref.ref(called))
        return called

    def value(self) -> Any:
        choices = self.choices
        make = choices.of(
            (self.array, self.array, self.array, self.number, self.text, self.function, self.container, self.odd, self.data, self.plain)
        )
        return make()

    def plain(self) -> Any:
        return self.choices.of(
            (None, True, 0.5, math.nan, math.inf, b"", b"\x89TNX", np.float32(2), np.int64(3), np.bool_(True), ..., slice(1), 1j,
             np.float16, "f4", object, int, range(3), memoryview(bytearray(8)).cast("f"), np.dtype("f4"), bytearray(8))
        )  # fmt: skip

    def odd(self) -> Any:
        value = Misbehaving(self)
        self.handed.append(weakref.ref(value))
        return value

    def container(self) -> Any:
        choices = self.choices
        items = [self.argument() for _ in range(choices.below(4))]
        kind = choices.below(7)
        if kind == 0:
            return tuple(items)
        if kind == 1:
            return items
        if kind == 2:
            return {choices.of(("x", "y", "a", 1, "n", None)): item for item in items}
        if kind == 3:
            return (item for item in items)
        if kind == 4:
            deep: Any = None
            for _ in range(choices.of((3, 50, 3000))):
                deep = [deep]
            return deep
        if kind == 5:
            cyclic: list[Any] = []
            cyclic.append(cyclic)
            return cyclic
        return tenon.Shape(i for i in items if isinstance(i, int))

    def data(self) -> Any:
        """Of the program's data types."""
        families = (self.first(tenon.Executable) or self.executable).types
        name = self.choices.of(("Leaf", "Node", "Some", "None", "Cons", "Nil", "tree", "list"))
        made = getattr(families, name)
        return made(*(self.argument() for _ in range(self.choices.below(4)))) if self.choices.one_in(2) else made

    def first(self, kind: type) -> Any:
        at = self.choices.below(SLOTS)
        for i in range(SLOTS):
            if isinstance(found := self.slots[(at + i) % SLOTS], kind):
                return found
        return None

    def argument(self) -> Any:
        return self.value() if self.choices.one_in(2) else self.choices.of(self.slots)

    def arguments(self, count: int) -> tuple[list[Any], dict[str, Any]]:
        names: dict[str, Any] = {}
        if self.choices.one_in(4):
            name = self.choices.of(("out", "x", "y", "limits", "function", "name", "trusted", "threads", "options", "mode", "dims"))
            names[name] = self.argument()
            if name == "out":
                self.writes_into(names[name])
        return [self.argument() for _ in range(count)], names

    def writes_into(self, value: Any) -> None:
        for item in value if isinstance(value, (list, tuple)) else [value]:
            self.written.add(id(item))

    # ---- Steps ----------------------------------------------------------------------------------

    def call_back(self, *args: Any) -> Any:
        """What functions and misbehaving objects do when Tenon calls them."""
        if self.depth < 3:
            self.depth += 1
            try:
                for _ in range(self.choices.below(3)):
                    self.step()
            finally:
                self.depth -= 1
        how = self.choices.below(8)
        if how == 0:
            raise Odd("with a text that is longer than what fits where short texts are kept")
        if how == 1:
            raise self.choices.of((KeyError("k"), StopIteration(3), AttributeError("a"), RecursionError(), OverflowError()))
        if args and how < 5:
            return args[0]
        return self.argument()

    def store(self, value: Any) -> None:
        self.slots[self.choices.below(SLOTS)] = value

    def step(self) -> None:
        if self.problem:
            return
        steps = (
            (self.make, 4), (self.load, 1), (self.machine, 1), (self.call, 6), (self.attribute, 8), (self.operate, 4), (self.top, 3),
            (self.drop, 1),
        )  # fmt: skip
        step = self.choices.of([f for f, weight in steps for _ in range(weight)])
        try:
            value = step()
            if isinstance(value, concurrent.futures.Future):
                concurrent.futures.wait([value])  # a sequence is one thread's
            self.store(value)
            self.values += 1
        except Exception as error:
            self.errors += 1
            self.judge(error)

    def judge(self, error: BaseException) -> None:
        name = type(error).__name__
        if isinstance(error, (*DEFECTS, tenon.InternalError)) or name == "PanicException":
            self.problem = "".join(traceback.format_exception(error))
            return
        frames = traceback.extract_tb(error.__traceback__)
        own = [f for f in frames if "/tenon/" in f.filename]
        place = f"{os.path.basename(own[-1].filename)}:{own[-1].lineno}" if own else ""
        self.seen[f"{name} {place} {str(error)[:90]}".replace("\n", " ")] += 1

    def make(self) -> Any:
        return self.value()

    def load(self) -> Any:
        program = self.program
        if self.choices.one_in(4):
            at = self.choices.below(len(program))
            program = program[:at] + bytes([self.choices.below(256)]) + program[at + 1 :]
        return tenon.load(program, **self.arguments(0)[1])

    def machine(self) -> Any:
        limits = tenon.Limits(fuel=500, deadline=5, memory=1 << 22, depth=50, stack=1 << 16)
        machine = tenon.VirtualMachine(self.first(tenon.Executable) or self.executable, limits=limits)
        if self.choices.one_in(4):
            machine.set_instrument(self.function())
        return machine

    def call(self) -> Any:
        """A function of the program, mostly with as many arguments as it has."""
        machine = self.first(tenon.VirtualMachine)
        if machine is None:
            machine = self.machine()
        name, count = self.choices.of(
            (("main", 2), ("both", 1), ("scalars", 4), ("strings", 2), ("same", 4), ("mirror", 1), ("call", 1), ("adder", 2),
             ("closure", 1), ("apply", 2), ("ask", 1), ("shared", 1), ("spin", 2))
        )  # fmt: skip
        args, names = self.arguments(count if not self.choices.one_in(8) else self.choices.below(4))
        return machine[name](*args, **names)

    def attribute(self) -> Any:
        target = self.choices.of(self.slots)
        for _ in range(4):
            if of_tenon(target):
                break
            target = self.choices.of(self.slots)
        if not of_tenon(target):
            return None
        name = self.choices.of(dir(target))
        if name in LEFT_OUT or name.startswith("_") and not name.startswith("__"):
            return None
        found = getattr(target, name)
        if not callable(found) or self.choices.one_in(8):
            return found
        args, names = self.arguments(self.choices.below(4))
        if isinstance(found, type) and of_tenon(found) and issubclass(found, tenon.TimeEvaluator):
            return None
        return found(*args, **names)

    def top(self) -> Any:
        """A function or class of the package or of one of its modules."""
        module = self.choices.of((tenon, tenon, tenon.ir, tenon.transform))
        name = self.choices.of([n for n in dir(module) if not n.startswith("_")])
        if name in LEFT_OUT or not of_tenon(getattr(module, name)):
            return None
        found = getattr(module, name)
        if not callable(found):
            return found
        args, names = self.arguments(self.choices.below(3))
        if found is tenon.VirtualMachine and "limits" not in names:
            names["limits"] = tenon.Limits(fuel=500, deadline=5, memory=1 << 22)
        return found(*args, **names)

    def operate(self) -> Any:
        value, other = self.choices.of(self.slots), self.argument()
        if not of_tenon(value) and not of_tenon(other):
            return None
        operations: tuple[Callable[[], Any], ...] = (
            lambda: value == other,
            lambda: hash(value),
            lambda: repr(value),
            lambda: str(value),
            lambda: len(value),
            lambda: list(itertools.islice(iter(value), 100)),
            lambda: value[other],
            lambda: other in value,
            lambda: bool(value),
            lambda: copy.copy(value),
            lambda: copy.deepcopy(value),
            lambda: pickle.loads(pickle.dumps(value)),
            lambda: np.asarray(value),
            lambda: np.from_dlpack(value),
            lambda: memoryview(value),
            lambda: setattr(value, self.choices.of(dir(value)), other) if not isinstance(value, (type, types.ModuleType)) else None,
            lambda: operator.index(value),
            lambda: float(value),
            lambda: type(value).__new__(type(value)),
            lambda: value + other,
            lambda: value < other,
            lambda: vars(value),
            lambda: isinstance(other, type(value)),
            gc.collect,
        )
        return self.choices.of(operations)()

    def drop(self) -> Any:
        self.store(None)

    # ---- The whole ------------------------------------------------------------------------------

    def run(self) -> None:
        tenon.register_func("test.sequences", self.function(), override=True)
        self.executable = self.slots[0] = tenon.load(self.program)
        for _ in range(10 + self.choices.below(60)):
            if self.problem:
                return
            self.step()

    def end(self) -> None:
        """Lets go of everything, and checks what was lent."""
        for ref, before in self.lent:
            array = ref()
            if array is not None and id(array) not in self.written and array.dtype != object and array.tobytes() != before:
                self.problem = self.problem or f"an array changed from {before!r} to {array!r}"
        tenon.register_func("test.sequences", abs, override=True)
        self.slots.clear()
        self.executable = None


def test_one(choices: Choices, program: bytes) -> PythonSequence:
    sequence = PythonSequence(choices, program)
    sequence.run()
    sequence.end()
    for wait in (0, 0.01, 0.1, 1):  # a thread of submitted calls lets go of the last one a little later
        time.sleep(wait)
        gc.collect()
        kept = [ref() for ref in itertools.chain((r for r, _ in sequence.lent), sequence.handed) if ref() is not None]
        if not kept:
            break
    if kept and not sequence.problem:
        holders = [type(h).__name__ for h in gc.get_referrers(kept[0])]
        sequence.problem = f"{len(kept)} objects are still alive, such as {type(kept[0]).__name__}, which {holders} refer to"
    return sequence


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--package", required=True, help="the folder with the package")
    parser.add_argument("--atheris", action="store_true")
    parser.add_argument("-v", action="store_true", help="print the exceptions that calls ended with")
    options, rest = parser.parse_known_args()
    sys.path.insert(0, os.path.abspath(options.package))
    global tenon
    if options.atheris:
        import atheris

        with atheris.instrument_imports(include=["tenon"]):
            import tenon
    else:
        import tenon
    faulthandler.enable()
    here = tempfile.TemporaryDirectory()
    os.chdir(here.name)  # calls may write files
    tenon.register_func("test.sequences", abs)
    program = tenon.compile(tenon.ir.parse(PROGRAM), mode="bytecode").to_bytes()

    if options.atheris:

        def test_bytes(data: bytes) -> None:
            if problem := test_one(Choices(data, len(data)), program).problem:
                raise RuntimeError(problem)

        atheris.Setup([sys.argv[0], *rest], test_bytes)
        atheris.Fuzz()

    count, first = map(int, rest)
    values = errors = findings = 0
    seen: collections.Counter[str] = collections.Counter()
    for number in itertools.count(first) if count == 0 else range(first, first + count):
        faulthandler.dump_traceback_later(SECONDS, exit=True)
        print(f"\r{number} ", end="", file=sys.stderr, flush=True)
        sequence = test_one(Choices(b"", number), program)
        values += sequence.values
        errors += sequence.errors
        seen += sequence.seen
        if sequence.problem:
            findings += 1
            print(f"finding: sequence {number}: {sequence.problem}", flush=True)
    faulthandler.cancel_dump_traceback_later()
    if options.v:
        for text, times in seen.most_common():
            print(f"{times:6} {text}")
    print(f"{count} sequences: {values} calls gave values, {errors} exceptions; {findings} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
