"""Compiled programs and the machines that run them."""

from __future__ import annotations

import concurrent.futures
import dataclasses
import enum
import functools
import operator
import os
import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal

from . import _compiler, _errors, _files, _memory, _submit, _tenon, _threads
from ._custom import load_libraries, one_or_several
from ._data import Types
from ._errors import UsageError
from ._tenon import Function
from ._timing import TimeEvaluator


@dataclasses.dataclass(frozen=True)
class Parameter:
    """A parameter or result of a function.

    ``kind`` is "tensor", "shape", "int", "bool", "float", "array", "function", or "other" for lists, options, data types
    and objects.
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
    """Limits of each call; None means none, but for ``memory``.

    - ``fuel``: function entries and backward jumps
    - ``deadline``: seconds from the call's start
    - ``memory``: bytes of stack, tensors and other values; by default what the machine or container has, so that a
      mistyped size is an error, and with ``math.inf`` none
    - ``depth``: nested calls within the program
    - ``stack``: bytes of registers; fewer than 64 KiB count as 64 KiB
    """

    fuel: int | None = None
    deadline: float | None = None
    memory: float | None = None
    depth: int | None = None
    stack: int | None = None

    def __post_init__(self) -> None:
        self._arguments()  # what doesn't fit is an error here, and not where the limits are used

    def _arguments(self, threads: int = 0) -> dict[str, int]:
        """All fields of ``tenon_limits``."""
        return {
            "threads": threads,
            "fuel": _count("fuel", self.fuel, 0),
            "deadline_ns": _compiler.nanoseconds(self.deadline),
            "memory": _memory.ceiling(self.memory),
            "depth": _count("depth", self.depth, 1),
            "stack_bytes": _count("stack", self.stack, 1),
        }


def _count(name: str, value: int | None, least: int) -> int:
    """A limit as the runtime takes it: -1 for None."""
    if value is None:
        return -1
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"{name} is an integer, not {value!r}")
    if not least <= operator.index(value) < 1 << 63:
        raise ValueError(f"{name} is {value}; expected at least {least} and less than 2**63, or None for no limit")
    return operator.index(value)


def _few(names: list[str]) -> str:
    """The first of the names, and how many more there are."""
    shown = 4
    return ", ".join(names[:shown]) + (f", and {len(names) - shown} more" if len(names) > shown else "")


class _Functions:
    """The functions of a program, created on first use."""

    def __init__(self, make: Callable[[str], Function]) -> None:
        self._make = make
        self._made: dict[str, Function] = {}  # a plain dict: lookups in a subclass are slower

    def __getitem__(self, name: str) -> Function:
        """The exported function of that name, to call from any thread; of a ``VirtualMachine``, also one that
        ``save_function`` saved."""
        try:
            return self._made[name]
        except KeyError:
            pass
        return self._made.setdefault(name, self._make(name))


class Executable(_Functions):
    """A compiled program, loaded and verified. It is immutable; threads may share it and call its functions.

    >>> twice = tenon.compile(tenon.ir.parse('''
    ... fn @main(%x: tensor[n; f32]) -> tensor[n; f32] { add(%x, %x) }
    ... '''))
    >>> twice(np.ones(3, dtype="float32")).tolist()
    [2.0, 2.0, 2.0]
    >>> twice.signature().params[0].dims
    ('n',)
    """

    def __init__(
        self,
        program: _tenon.Program,
        name: str | None = None,
        *,
        untrusted: bool = False,
        weights: Mapping[str, Any] | None = None,
    ) -> None:
        """Executables come from ``tenon.compile`` and ``tenon.load``."""
        self._program = program
        self._name = name
        self._untrusted = untrusted
        self._weights = weights  # for pickles
        super().__init__(lambda name: program.function(name, Limits()._arguments()))
        self._lock = threading.Lock()
        self._machine: VirtualMachine | None = None  # of submitted calls

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Calls ``main``. One result is returned as it is, several as a tuple."""
        return self["main"](*args, **kwargs)

    def submit(self, *args: Any, **kwargs: Any) -> concurrent.futures.Future[Any]:
        """Calls ``main`` on another thread, for its result later.

        As many calls as the process may use processors run at the same time; others wait. Each has a machine of its own.
        The arguments must not change until the future is done. The future's ``cancel()`` also stops a call that runs, and
        so does the interpreter's end.

        >>> exe.submit(np.ones(3, dtype="float32")).result().tolist()
        [1.0, 1.0, 1.0]
        """
        with self._lock:
            if self._machine is None:
                self._machine = VirtualMachine(self)
        return self._machine.submit("main", *args, **kwargs)

    def cancel(self) -> None:
        """Stops the calls of ``exe(...)``, ``exe["name"](...)`` and ``submit`` that run now, each with an
        ``ExecutionError``. May be called from any thread."""
        for function in list(self._made.values()):
            function.cancel()
        with self._lock:
            machine = self._machine
        if machine is not None:
            machine.cancel()

    @property
    def untrusted(self) -> bool:
        """Whether it was loaded as a file from an untrusted sender, whose native code doesn't run."""
        return self._untrusted

    @property
    def functions(self) -> tuple[str, ...]:
        """The names of the exported functions."""
        return self._program.functions()

    @functools.cached_property
    def types(self) -> Types:
        """The data types in the signatures of these functions: ``exe.types.Node(exe.types.Leaf, 1, exe.types.Leaf)``.

        Results of these types are instances of the same classes.
        """
        return Types(self._program.types())

    def signature(self, function: str = "main") -> Signature:
        """The parameters and results of a function."""
        return Signature(
            tuple(Parameter(**p) for p in self._program.describe(function, False)),
            tuple(Parameter(**r) for r in self._program.describe(function, True)),
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

    def save(
        self, path: str | os.PathLike[str], *, external_weights: str | os.PathLike[str] | None = None
    ) -> None:
        """Writes the file, whole or not at all: a ``.tnx`` file, or the shared object of ``compile(shared=True)``.

        A program that was loaded as untrusted isn't written: its file has its sender's native code, which a later
        ``tenon.load`` would run.

        With ``external_weights``, large constants go to that file (safetensors) instead, which several programs can
        share: ``tenon.load(path, weights=external_weights)``.
        """
        if self.untrusted:
            raise _errors.usage(
                "a program that was loaded as untrusted can't be saved",
                found="a file with its sender's native code, which only an untrusted load leaves out",
                help="keep the sender's file, and load it with untrusted=True each time",
            )
        file = self._program.file()
        if external_weights is not None:
            if os.path.realpath(path) == os.path.realpath(external_weights):
                raise ValueError(f"external_weights names the same file as path: {os.fsdecode(path)}")
            file = _compiler.call("tenon.leave_out_weights", bytes(file), os.fsdecode(external_weights), None)
        _files.write_whole(path, file)

    def to_bytes(self) -> bytes:
        """The bytes of its file, with native code also of one that was loaded as untrusted."""
        return bytes(self._program.file())

    def __reduce__(self) -> tuple[Any, ...]:
        return _from_bytes, (self.to_bytes(), self._name, self._untrusted, self._weights)

    def __repr__(self) -> str:
        lines = [f"  {name}{signature}" for name, signature in self._signatures()]
        return "\n".join(["<tenon.Executable" + (", untrusted" if self.untrusted else ""), *lines]) + ">"

    def _repr_html_(self) -> str:
        from ._html import table

        return table(("function", "signature"), self._signatures())

    def _signatures(self) -> list[tuple[str, str]]:
        """By function, as text. A name that isn't UTF-8, as assembly can have, stands escaped, and nobody can ask for it."""
        known = []
        for name in self.functions:
            try:
                known.append((name, str(self.signature(name))))
            except UsageError:
                known.append((name, ""))
        return known


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


def _from_bytes(
    data: bytes, name: str | None = None, untrusted: bool = False, weights: dict[str, Any] | None = None
) -> Executable:
    return load(data, untrusted=untrusted, weights=weights, name=name)


# How executables begin: .tnx files and shared objects. ``load`` says so where an ELF file holds no program.
_BEGINNINGS = (b"\x89TNX", b"\x7fELF")


def _is_executable(file: Any) -> bool:
    """Whether a file, by its path or bytes, is an executable, by its content."""
    return _beginning(file, 4) in _BEGINNINGS


def _beginning(file: Any, size: int) -> bytes:
    """The first bytes of a file, by its path or bytes; none if it can't be read: opening it next reports the error."""
    if isinstance(file, (bytes, bytearray, memoryview)):
        return bytes(memoryview(file).cast("B")[:size])
    if not isinstance(file, (str, os.PathLike)):
        return b""
    try:
        with open(file, "rb") as opened:
            return opened.read(size)
    except OSError:
        return b""


# How files end that are compiled before they are loaded.
_SOURCES = (".onnx", ".tn")


def load(
    path: str | os.PathLike[str] | bytes | bytearray | memoryview,
    *,
    untrusted: bool = False,
    weights: Mapping[str, Any] | str | os.PathLike[str] | None = None,
    custom: Iterable[str | os.PathLike[str]] | str | os.PathLike[str] | None = None,
    name: str | None = None,
    deadline: float | None = None,
    memory: float | None = None,
) -> Executable:
    """Loads a ``.tnx`` file or a shared object that holds one, from its path or its bytes: maps or copies it, verifies
    it and links it.

    With ``untrusted``, nothing of the file runs natively: its kernels are compiled anew from the computes in it
    (``keep_computes``), and only functions that are meant for files may be called. ``weights`` maps names to the
    tensors that the file leaves out, and perhaps others, or is the file that ``Executable.save`` wrote them to, or an
    ``.npz`` file; they are refused where the file leaves out none. ``custom`` names libraries (``libtenon_NAME.so``) with
    functions that the file calls. ``name`` stands for the program in errors, by default its path. ``deadline`` (seconds)
    and ``memory`` (bytes, by default the machine's) limit the loading.
    """
    if untrusted not in (True, False):
        raise TypeError(f"untrusted is True or False; found {untrusted!r}")
    if name is not None and not isinstance(name, str):
        raise TypeError(f"name is a str; found {type(name).__name__}")
    untrusted = bool(untrusted)  # also NumPy's
    if untrusted:
        _compiler._load()  # it compiles the kernels
    if custom is not None:
        load_libraries(one_or_several("custom", custom))
    _threads.bound_spinning()
    limits = _compiler.nanoseconds(deadline), _memory.ceiling(memory)
    given = None if weights is None else _weights_of(weights, _compiler.limits_of(deadline, memory))
    if isinstance(path, (bytes, bytearray, memoryview)):
        program = _tenon.Program.from_bytes(bytes(path), untrusted, *limits, given, name)
    else:
        path = os.fspath(path)  # a TypeError says what it must be
        try:
            program = _tenon.Program.load(path, untrusted, *limits, given, name)
        except _errors.DamagedError:
            text = os.fsdecode(path)
            if not text.endswith(_SOURCES):
                raise
            raise _errors.usage(
                f"{text} is not an executable",
                expected="what Executable.save or `tenon compile` writes (.tnx)",
                help=f"tenon.compile({text!r}) compiles it",
            ) from None
        name = name or os.fsdecode(path)
    loaded = Executable(program, name, untrusted=untrusted, weights=given)
    if given and not any(constant["late"] for constant in loaded.stats()["constants"]):
        raise _errors.usage(
            f"weights has no effect on {name or 'the program'}",
            found="a file that leaves out no weights",
            help="leave out weights, or save the file with external_weights",
        )
    return loaded


def _weights_of(weights: Mapping[str, Any] | str | os.PathLike[str], limits: dict[str, int]) -> dict[str, Any]:
    """The tensors by name of a mapping, of a weight file or of an .npz file."""
    if isinstance(weights, Mapping):
        return dict(weights)
    if not isinstance(weights, (str, os.PathLike)):
        raise TypeError(f"weights is a dict of tensors, or a file's path; found {type(weights).__name__}")
    if _beginning(weights, 2) == b"PK":  # a zip archive, as .npz files are
        from . import _npz

        return _npz.read(weights, limits)
    return dict(_compiler.call("tenon.read_weights", os.fsdecode(weights), limits))


class VMInstrumentReturnKind(enum.IntEnum):
    """What the instrument of a ``VirtualMachine`` decides before a call."""

    NO_OP = _tenon.INSTRUMENT_CONTINUE
    SKIP_RUN = _tenon.INSTRUMENT_SKIP


class VirtualMachine(_Functions):
    """Runs an executable's functions, with memory, limits and an instrument of its own.

    ``vm["main"](x)`` may be called from any thread; calls that run at the same time use a machine each. ``set_input``,
    ``invoke_stateful`` and ``get_outputs`` keep their state here, one thread at a time.

    >>> vm = tenon.VirtualMachine(exe, limits=tenon.Limits(deadline=1.0), threads=1)
    >>> x = np.ones(2, dtype="float32")
    >>> vm["main"](x).tolist()
    [1.0, 1.0]
    >>> y = np.empty_like(x)
    >>> vm["main"](x, out=y) is y
    True
    """

    def __init__(
        self,
        executable: Executable,
        *,
        memory: Literal["pooled", "naive"] = "pooled",
        limits: Limits | None = None,
        threads: int = 0,
        inter_op: int = 1,
    ) -> None:
        """
        - ``memory``: ``"pooled"`` keeps freed memory for later tensors; ``"naive"`` returns it to the system at once.
        - ``limits`` of each call, ``limits.memory`` among them.
        - ``threads`` run the loops of a call's kernels; 0 stands for all that the process may use.
        - ``inter_op`` threads, but at most ``threads``, run calls that don't depend on each other, each on one. Such calls
          are found by ``tenon.compile(inter_op=2)``. With 1, and under an instrument, they run one after another.
        """
        if memory not in ("pooled", "naive"):
            raise ValueError(f"memory is {memory!r}; expected 'pooled' or 'naive'")
        if not isinstance(executable, Executable):
            raise TypeError(f"a VirtualMachine runs what tenon.compile or tenon.load returns, not {executable!r}")
        if limits is not None and not isinstance(limits, Limits):
            raise TypeError(f"limits is a tenon.Limits, such as tenon.Limits(fuel=1000), not {limits!r}")
        if not 0 <= _count("threads", threads, 0) <= _tenon.MOST_THREADS:
            raise ValueError(f"threads is {threads}; expected 0 to {_tenon.MOST_THREADS}")
        if not 1 <= _count("inter_op", inter_op, 1) <= _tenon.MOST_THREADS:
            raise ValueError(f"inter_op is {inter_op}; expected 1 to {_tenon.MOST_THREADS}")
        self.executable = executable
        self.memory = memory
        self.limits = limits if limits is not None else Limits()
        self.threads = threads
        self.inter_op = inter_op
        arguments = self.limits._arguments(threads)
        self._machines = _tenon.Machines(executable._program, memory == "naive", arguments, inter_op)
        super().__init__(self._machines.function)
        self._lock = threading.RLock()
        self._inputs: dict[str, tuple[Any, ...]] = {}
        self._outputs: dict[str, Any] = {}

    def __repr__(self) -> str:
        limits = ", ".join(f"{k}={v}" for k, v in dataclasses.asdict(self.limits).items() if v is not None)
        return (
            f"<tenon.VirtualMachine of {', '.join(self.executable.functions)}; memory={self.memory!r}, "
            f"threads={self.threads}, inter_op={self.inter_op}, limits: {limits or 'none'}>"
        )

    def submit(self, function: str, *args: Any, **kwargs: Any) -> concurrent.futures.Future[Any]:
        """Calls a function on another thread, like ``Executable.submit``, under the limits of this machine."""
        return _submit.submit(self._machines, self[function], args, kwargs)

    def cancel(self) -> None:
        """Stops the calls that run now, each with an ``ExecutionError``, and those of function values that this machine's
        calls made, wherever they run. May be called from any thread."""
        self._machines.cancel()

    def memory_stats(self) -> dict[str, Any]:
        """What the machines' memory pools hold and have done, in bytes and blocks of tensor memory.

        - ``memory``: ``"pooled"`` or ``"naive"``; ``machines``: how many there are, as many as calls ran at once
        - ``allocated``: bytes from the system: in use, also by results, or pooled; ``peak``: the most there ever were
        - ``pooled``: of these, the bytes that are free for later tensors
        - ``call_peak``: the most bytes in use at once during a machine's last call
        - ``call_bytes``: the most bytes that this call's code asked for at once, without what blocks are rounded up by
        - ``allocations``: blocks handed out; ``system_allocations``: of these, blocks that were new from the system

        >>> vm = tenon.VirtualMachine(exe)
        >>> y = vm["main"](np.ones(2, dtype="float32"))
        >>> vm.memory_stats()["allocations"]
        1
        """
        return self._machines.memory_stats()

    def trim(self) -> None:
        """Returns the pooled memory to the system, except that of machines which run a call."""
        self._machines.trim()

    def set_instrument(self, instrument: Callable[..., Any] | None) -> None:
        """Has every call within the program call ``instrument`` before and after it; None for no instrument.

        ``instrument(func, name, before, result, *args)`` gets the called function, its name (empty for a function
        value of the host), whether this is before the call, the result (None before the call), and the arguments. It returns None
        or ``VMInstrumentReturnKind.NO_OP`` to go on; before a call, ``SKIP_RUN`` skips it, whose result is then None, or
        the second item of a tuple ``(SKIP_RUN, result)``. A kernel's last arguments are the tensors that it writes to.
        Arguments and results of the program's functions that are values of its data types have the classes of
        ``executable.types``; lists and maps stay cells, since converting them takes time at every call.
        An exception ends the program's call and comes out of it.

        The instrument can't change while a call runs. A function that the host calls has no event, only those that it
        calls; a tail call has none after it.

        >>> seen = []
        >>> vm = tenon.VirtualMachine(exe)
        >>> vm.set_instrument(lambda func, name, before, result, *args: seen.append(before))
        >>> y = vm["main"](np.ones(2, dtype="float32"))
        >>> seen
        [True, False]
        """
        if instrument is not None and not callable(instrument):
            raise TypeError("an instrument is a function, or None")
        self._machines.set_instrument(instrument)

    def get_function_arity(self, function: str) -> int:
        """The number of parameters of a function."""
        return len(self.executable.signature(function).params)

    def get_function_param_name(self, function: str, index: int) -> str:
        """The name of a function's parameter."""
        params = self.executable.signature(function).params
        if not 0 <= index < len(params):
            raise IndexError(f"'{function}' has no parameter {index}: it has {len(params)}")
        return params[index].name

    def set_input(self, function: str, *args: Any, **kwargs: Any) -> None:
        """Keeps the arguments, by position or name, for ``invoke_stateful``; arrays are shared, not copied."""
        arguments = self._bound(function, args, kwargs)
        with self._lock:
            self._inputs[function] = arguments
            self._outputs.pop(function, None)

    def invoke_stateful(self, function: str) -> None:
        """Calls the function with the arguments of ``set_input`` and keeps its result for ``get_outputs``."""
        with self._lock:
            if function not in self._inputs:
                self[function]  # an unknown function is an error of its own
                raise ValueError(f"'{function}' has no inputs: call set_input({function!r}, ...) first")
            self._outputs[function] = self[function](*self._inputs[function])

    def get_outputs(self, function: str, *path: int | str) -> Any:
        """The result of the last ``invoke_stateful``, or a part of it.

        ``get_outputs("main", 1)`` is the second of several results, ``get_outputs("main", "y")`` the one of that name,
        and ``get_outputs("main", 1, 0)`` the first field of the second result, a tuple.
        """
        with self._lock:
            if function not in self._outputs:
                self[function]
                raise ValueError(f"'{function}' has no outputs: call invoke_stateful({function!r}) first")
            part = self._outputs[function]
        if not path:
            return part
        results = self.executable.signature(function).results
        first, rest = path[0], path[1:]
        if isinstance(first, str):
            names = [result.name for result in results]
            if first not in names:
                raise KeyError(f"'{function}' has no output '{first}': it has {', '.join(filter(None, names)) or 'no names'}")
            first = names.index(first)
        if not -len(results) <= first < len(results):
            raise IndexError(f"'{function}' has no output {first}: it has {len(results)}")
        if len(results) > 1:
            part = part[first]
        for place, index in enumerate(rest):
            if not isinstance(part, (tuple, list)):
                raise IndexError(f"output {[first, *rest[:place]]} of '{function}' is a single value")
            if not isinstance(index, int) or not -len(part) <= index < len(part):
                raise IndexError(f"output {[first, *rest[:place]]} of '{function}' has no field {index!r}: it has {len(part)}")
            part = part[index]
        return part

    def save_function(self, function: str, saved_name: str, *args: Any, **kwargs: Any) -> None:
        """Makes ``vm[saved_name]()`` call the function with these arguments, which are bound once."""
        if saved_name in self.executable.functions:
            raise ValueError(f"'{saved_name}' is a function of the program: choose another name")
        bound = self[function].bind(*self._bound(function, args, kwargs))
        self._made[saved_name] = bound

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
                f"{len(args) + len(kwargs)} arguments for the {len(names)} parameters of '{function}'"
                + (f"; missing: {_few(missing)}" if missing else "")
                + (f"; not a parameter, or given twice: {_few(unknown)}" if unknown else "")
                + f"; the parameters are: {_few(names) or 'none'}"
            )
        return args + tuple(kwargs[name] for name in names[len(args) :])
