"""Compiled programs and the machines that run them."""

from __future__ import annotations

import dataclasses
import os
import statistics
import threading
import time
from collections.abc import Iterable, Mapping
from typing import Any

from . import _compiler, _files, _tenon, _threads
from ._custom import load_libraries
from ._tenon import Function


@dataclasses.dataclass(frozen=True)
class Parameter:
    """A parameter or result of a function.

    ``dims`` are its sizes: numbers, and strings for the symbols that the arguments bind, such as ``"batch"``; None
    for values other than tensors and shapes, and for unknown ranks.
    """

    name: str
    type: str
    kind: str
    dtype: str | None
    dims: tuple[int | str, ...] | None

    def __str__(self) -> str:
        return f"{self.name}: {self.type}" if self.name else self.type


@dataclasses.dataclass(frozen=True)
class Signature:
    """The parameters and results of a function."""

    params: tuple[Parameter, ...]
    results: tuple[Parameter, ...]

    def __str__(self) -> str:
        params = ", ".join(map(str, self.params))
        results = ", ".join(map(str, self.results))
        return f"({params}) -> {results if len(self.results) == 1 else f'({results})'}"

    def _repr_html_(self) -> str:
        from ._html import table

        rows = [("parameter", p.name, p.type) for p in self.params]
        rows += [("result", r.name, r.type) for r in self.results]
        return table(("", "name", "type"), rows)


@dataclasses.dataclass(frozen=True)
class Limits:
    """Limits of each call; None means none.

    - ``fuel``: function entries and backward jumps
    - ``deadline``: seconds from the call's start
    - ``memory``: bytes of stack, tensors and other values
    - ``depth``: nested calls within the program
    - ``stack``: bytes of registers
    """

    fuel: int | None = None
    deadline: float | None = None
    memory: int | None = None
    depth: int | None = None
    stack: int | None = None

    def _arguments(self) -> dict[str, int]:
        def given(value: int | None) -> int:
            return -1 if value is None else value

        return {
            "fuel": given(self.fuel),
            "deadline_ns": _compiler.nanoseconds(self.deadline),
            "memory": given(self.memory),
            "depth": given(self.depth),
            "stack_bytes": given(self.stack),
        }


class _Functions:
    """The functions of a program under limits, made when first used."""

    def __init__(self, program: _tenon.Program, limits: Limits, threads: int) -> None:
        self._program = program
        self._arguments = {"threads": threads, **limits._arguments()}
        self._made: dict[str, Function] = {}

    def __getitem__(self, name: str) -> Function:
        found = self._made.get(name)
        if found is None:
            made = self._program.function(name, **self._arguments)
            found = self._made.setdefault(name, made)
        return found

    def made(self) -> list[Function]:
        return list(self._made.values())


class Executable:
    """A compiled program, loaded and verified. It is immutable; threads may share it and call its functions.

    >>> twice = tenon.compile(tenon.ir.parse('''
    ... fn @main(%x: tensor[n; f32]) -> tensor[n; f32] { add(%x, %x) }
    ... '''))
    >>> twice(np.ones(3, dtype="float32")).tolist()
    [2.0, 2.0, 2.0]
    >>> twice.signature().params[0].dims
    ('n',)
    """

    def __init__(self, program: _tenon.Program) -> None:
        """Executables come from ``tenon.compile`` and ``tenon.load``."""
        self._program = program
        self._functions = _Functions(program, Limits(), threads=0)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Calls ``main``. One result is returned as it is, several as a tuple."""
        return self._functions["main"](*args, **kwargs)

    def __getitem__(self, name: str) -> Function:
        """The exported function of that name, to call from any thread."""
        return self._functions[name]

    @property
    def functions(self) -> tuple[str, ...]:
        """The names of the exported functions."""
        return self._program.functions()

    def signature(self, function: str = "main") -> Signature:
        """The parameters and results of a function."""
        return Signature(
            tuple(Parameter(*p) for p in self._program.describe(function, False)),
            tuple(Parameter(*r) for r in self._program.describe(function, True)),
        )

    def stats(self) -> Stats:
        """What the executable holds: functions with their instructions, constants, kernels, native code.

        >>> exe.stats()["functions"][0]["name"]
        'main'
        """
        return Stats(self._looked_into("tenon.stats"))

    def as_text(self, *, full: bool = False) -> str:
        """The executable as assembly, which ``docs/assembly.md`` describes.

        Constants of more than 64 elements and native code are left out; ``full`` includes them.

        >>> "ret" in exe.as_text()
        True
        """
        return str(self._looked_into("tenon.disassemble", full))

    def as_python(self) -> str:
        """The executable's code in Python's syntax: documentation, to be read and not to be run.

        Each function is a ``def``, each instruction a statement; the instructions and kernels that they call aren't
        defined.

        >>> "def main(" in exe.as_python()
        True
        """
        return str(self._looked_into("tenon.to_python"))

    def _looked_into(self, name: str, *arguments: Any) -> Any:
        return _compiler.call(name, self.to_bytes(), *arguments, None)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the ``.tnx`` file, whole or not at all."""
        _files.write_whole(path, self._program.file())

    def to_bytes(self) -> bytes:
        """The bytes of the ``.tnx`` file."""
        return bytes(self._program.file())

    def __reduce__(self) -> tuple[Any, ...]:
        return _from_bytes, (self.to_bytes(),)

    def __repr__(self) -> str:
        lines = [f"  {name}{self.signature(name)}" for name in self.functions]
        return "\n".join(["<tenon.Executable", *lines]) + ">"


class Stats(dict[str, Any]):
    """What an executable holds, as a dict of plain data; printed, it is a summary.

    - ``producer``, ``file_bytes``, ``libraries``, ``kernels``, ``computes_bytes``
    - ``functions``, each with ``name``, ``exported``, ``signature``, ``registers``, and ``instructions``, the number
      of each kind
    - ``constants``, each with ``name``, ``type``, ``bytes``, ``late``
    - ``packed``, the functions that the process must have, each with ``name``, ``effect``
    - ``targets``, each with ``triple``, ``cpu``, ``features``, ``bytes``
    """

    def __str__(self) -> str:
        weights = sum(c["bytes"] for c in self["constants"])
        lines = [f"{self['file_bytes']:,} bytes, written by {self['producer'] or 'an unknown compiler'}"]
        lines += [f"{len(self['constants'])} constants of {weights:,} bytes, {len(self['kernels'])} kernels"]
        lines += [f"native code for {t['cpu']} ({t['triple']}): {t['bytes']:,} bytes" for t in self["targets"]]
        lines += [f"needs library {name}" for name in self["libraries"]]
        lines += [f"calls {p['name']} ({p['effect']})" for p in self["packed"]]
        for f in self["functions"]:
            count = sum(f["instructions"].values())
            kind = "exported" if f["exported"] else "local"
            lines += [f"{kind} {f['name']}: {count} instructions, {f['registers']} registers, {f['signature']}"]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        from ._html import table

        return table(("", ""), [(str(i), line) for i, line in enumerate(str(self).splitlines())])


def _from_bytes(data: bytes) -> Executable:
    _threads.bound_spinning()
    return Executable(_tenon.Program.from_bytes(data, False, -1, -1, None))


_MAGIC = b"\x89TNX"  # how every executable begins


def _is_executable(path: str | os.PathLike[str]) -> bool:
    """Whether the file is an executable, by its content."""
    try:
        with open(path, "rb") as file:
            return file.read(len(_MAGIC)) == _MAGIC
    except OSError:
        return False  # who opens it next says why it can't be read


def load(
    path: str | os.PathLike[str],
    *,
    untrusted: bool = False,
    weights: Mapping[str, Any] | None = None,
    custom: Iterable[str | os.PathLike[str]] | None = None,
    deadline: float | None = None,
    memory: int | None = None,
) -> Executable:
    """Loads a ``.tnx`` file: maps it, verifies it and links it.

    With ``untrusted``, nothing of the file runs natively: its kernels are compiled anew from the computes in it
    (``keep_computes``), and only functions that are meant for files may be called. ``weights`` maps names to the
    tensors that the file leaves out. ``custom`` names libraries (``libtenon_NAME.so``) with functions that the file
    calls. ``deadline`` (seconds) and ``memory`` (bytes) limit the loading.
    """
    if untrusted:
        _compiler._load()  # it compiles the kernels
    if custom is not None:
        load_libraries(custom)
    _threads.bound_spinning()
    program = _tenon.Program.load(
        os.fspath(path),
        untrusted,
        _compiler.nanoseconds(deadline),
        -1 if memory is None else memory,
        None if weights is None else dict(weights),
    )
    return Executable(program)


class VirtualMachine:
    """Runs an executable's functions under limits of its own.

    ``vm["main"](x)`` may be called from any thread. ``set_input``, ``invoke_stateful`` and ``get_outputs`` keep their
    state in the machine, one thread at a time.

    >>> vm = tenon.VirtualMachine(exe, limits=tenon.Limits(deadline=1.0), threads=1)
    >>> vm["main"](np.ones(2, dtype="float32")).tolist()
    [1.0, 1.0]
    """

    def __init__(self, executable: Executable, *, limits: Limits | None = None, threads: int = 0) -> None:
        """``threads`` run the loops of a call's kernels; 0 stands for all that the process may use."""
        self.executable = executable
        self.limits = limits if limits is not None else Limits()
        self.threads = threads
        self._functions = _Functions(executable._program, self.limits, threads)
        self._lock = threading.RLock()
        self._inputs: dict[str, tuple[Any, ...]] = {}
        self._outputs: dict[str, Any] = {}
        self._saved: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        saved = self._saved.get(name)
        return self._functions[name] if saved is None else saved

    def cancel(self) -> None:
        """Stops the calls that run now, each with an ``ExecutionError``. May be called from any thread."""
        for function in self._functions.made():
            function.cancel()

    def set_input(self, function: str, *args: Any, **kwargs: Any) -> None:
        """Keeps the arguments for ``invoke_stateful``."""
        arguments = self._bound(function, args, kwargs)
        with self._lock:
            self._inputs[function] = arguments
            self._outputs.pop(function, None)

    def invoke_stateful(self, function: str) -> None:
        """Calls the function with the arguments of ``set_input`` and keeps its result for ``get_outputs``."""
        with self._lock:
            if function not in self._inputs:
                raise ValueError(f"'{function}' has no inputs: call set_input({function!r}, ...) first")
            self._outputs[function] = self._functions[function](*self._inputs[function])

    def get_outputs(self, function: str, *index: int) -> Any:
        """The result of the last ``invoke_stateful``; with indices, a part of it: ``get_outputs("main", 0, 1)``."""
        with self._lock:
            if function not in self._outputs:
                raise ValueError(f"'{function}' has no outputs: call invoke_stateful({function!r}) first")
            result = self._outputs[function]
        for place, i in enumerate(index):
            if not isinstance(result, tuple):
                raise IndexError(f"output {list(index[:place])} is a single value")
            result = result[i]
        return result

    def save_function(self, function: str, saved_name: str, *args: Any, **kwargs: Any) -> None:
        """Makes ``vm[saved_name]()`` call the function with these arguments, which are bound once."""
        if saved_name in self.executable.functions:
            raise ValueError(f"'{saved_name}' is a function of the program: choose another name")
        bound, arguments = self._functions[function], self._bound(function, args, kwargs)
        with self._lock:
            self._saved[saved_name] = lambda: bound(*arguments)

    def time_evaluator(
        self,
        function: str,
        *,
        number: int = 10,
        repeat: int = 1,
        min_repeat_ms: float = 0,
        cooldown_interval_ms: float = 0,
        repeats_to_cooldown: int = 1,
    ) -> TimeEvaluator:
        """A function that times calls: ``vm.time_evaluator("main", number=10, repeat=3)(x).median`` in seconds."""
        return TimeEvaluator(
            self[function], number, repeat, min_repeat_ms, cooldown_interval_ms, repeats_to_cooldown
        )

    def _bound(self, function: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """All arguments in order of the parameters."""
        names = [p.name for p in self.executable.signature(function).params]
        unknown = [name for name in kwargs if name not in names[len(args) :]]
        missing = [name for name in names[len(args) :] if name not in kwargs]
        if len(args) > len(names) or unknown or missing:
            raise TypeError(
                f"'{function}' takes {self.executable.signature(function)}"
                + (f"; missing: {', '.join(missing)}" if missing else "")
                + (f"; not a parameter, or given twice: {', '.join(unknown)}" if unknown else "")
            )
        return args + tuple(kwargs[name] for name in names[len(args) :])


@dataclasses.dataclass(frozen=True)
class BenchmarkResult:
    """Seconds per call, one value for each repetition."""

    results: tuple[float, ...]

    @property
    def mean(self) -> float:
        return statistics.fmean(self.results)

    @property
    def median(self) -> float:
        return statistics.median(self.results)

    @property
    def min(self) -> float:
        return min(self.results)

    @property
    def max(self) -> float:
        return max(self.results)

    @property
    def std(self) -> float:
        return statistics.pstdev(self.results)


@dataclasses.dataclass(frozen=True)
class TimeEvaluator:
    """Times a function: ``repeat`` times, each the mean of ``number`` calls after one call that isn't timed.

    ``number`` grows until a repetition takes ``min_repeat_ms``. After every ``repeats_to_cooldown`` repetitions, it
    pauses for ``cooldown_interval_ms``.
    """

    function: Any
    number: int
    repeat: int
    min_repeat_ms: float
    cooldown_interval_ms: float
    repeats_to_cooldown: int

    def __call__(self, *args: Any, **kwargs: Any) -> BenchmarkResult:
        if self.number < 1 or self.repeat < 1:
            raise ValueError("number and repeat must be at least 1")
        self.function(*args, **kwargs)
        number, results = self.number, []
        for done in range(1, self.repeat + 1):
            while True:
                start = time.perf_counter()
                for _ in range(number):
                    self.function(*args, **kwargs)
                elapsed = time.perf_counter() - start
                if elapsed * 1e3 >= self.min_repeat_ms:
                    break
                wanted = self.min_repeat_ms / max(elapsed * 1e3, 1e-6)
                number = max(number + 1, min(round(number * wanted * 1.2), number * 100))
            results.append(elapsed / number)
            if self.cooldown_interval_ms and done % self.repeats_to_cooldown == 0 and done < self.repeat:
                time.sleep(self.cooldown_interval_ms / 1e3)
        return BenchmarkResult(tuple(results))
