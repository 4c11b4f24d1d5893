"""ONNX Runtime's interface over an executable."""

from __future__ import annotations

import dataclasses
import difflib
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

from . import _compiler, _errors, _tenon
from ._compile import compile
from ._executable import Executable, Parameter, VirtualMachine, _is_executable, load

# ONNX's names of dtypes, where they differ.
_ONNX_NAMES = {"float32": "float", "float64": "double"}
_DTYPES = {"f": "float", "bf": "bfloat", "i": "int", "u": "uint", "c": "complex"}
_PROVIDER = "CPUExecutionProvider"


@dataclasses.dataclass(frozen=True)
class NodeArg:
    """An input or output: its name, type ("tensor(float)", "seq(tensor(int64))") and shape (numbers, and strings for
    symbols; none for a sequence)."""

    name: str
    type: str
    shape: list[int | str]


def _onnx_type(text: str) -> str:
    """A type of Tenon's language in ONNX's notation."""
    for ours, theirs in (("array[", "seq"), ("option[", "optional")):
        if text.startswith(ours):
            return f"{theirs}({_onnx_type(text[len(ours) : -1])})"
    parts = re.fullmatch(r"map\[(tensor\[.*\]), (tensor\[.*\])\]", text)
    if parts:
        key = _onnx_type(parts[1]).removeprefix("tensor(").removesuffix(")")
        return f"map({key},{_onnx_type(parts[2])})"
    dtype = re.fullmatch(r"(?:tensor\[(?:.*; )?)?([a-z]+)(\d*)\]?", text)
    if not dtype:
        return text
    name = _DTYPES.get(dtype[1], dtype[1]) + dtype[2]
    return f"tensor({_ONNX_NAMES.get(name, name)})"


def _node_arg(p: Parameter) -> NodeArg:
    return NodeArg(p.name, _onnx_type(p.type), list(p.dims or ()))


def _as_numpy(result: Any) -> Any:
    if isinstance(result, tuple):  # a sequence
        return [_as_numpy(element) for element in result]
    return result.numpy() if hasattr(result, "numpy") else result


@dataclasses.dataclass(frozen=True)
class ModelMetadata:
    """What ``InferenceSession.get_modelmeta`` returns. A compiled file has only its producer, and the name that stands
    for the program in errors."""

    graph_name: str
    producer_name: str
    custom_metadata_map: dict[str, str] = dataclasses.field(default_factory=dict)
    description: str = ""
    domain: str = ""
    graph_description: str = ""
    version: int = 0


def _metadata_of(model: Any) -> dict[str, Any]:
    """What the compiler's function returns for an ``onnx.ModelProto``, a path or bytes; nothing for other models."""
    if hasattr(model, "SerializeToString"):
        model = model.SerializeToString()
    if isinstance(model, (bytes, bytearray, memoryview)):
        model = bytes(model)
    elif isinstance(model, (str, os.PathLike)):
        model = os.fsdecode(model)
    else:
        return {}
    return dict(_compiler.call("tenon.model_metadata", model, _compiler.limits_of(None, None)) or {})


# Tenon's counterparts of settings and methods of ONNX Runtime that this class lacks.
_INSTEAD = {
    "io_binding": "arguments and results are never copied: session.executable(x, out=y) writes to y",
    "run_with_iobinding": "session.executable(x, out=y) writes to y",
    "run_with_ort_values": "session.executable(x) takes and returns tensors of any library with DLPack",
    "run_async": "session.executable.submit(x) returns a Future",
    "end_profiling": "use tenon.profile()",
    "get_profiling_start_time_ns": "use tenon.profile()",
    "register_custom_ops_library": "give the library to tenon.compile(custom=[...])",
    "enable_profiling": "use tenon.profile()",
    "profile_file_prefix": "use tenon.profile()",
    "optimized_model_filepath": "save session.executable",
}


def _missing(self: Any, name: str) -> Any:
    """The ``__getattr__`` of what has the methods of a class of ONNX Runtime, which Python calls for missing ones."""
    hint = f"; {_INSTEAD[name]}" if name in _INSTEAD else ""
    raise AttributeError(f"{type(self).__name__} has no attribute {name!r}{hint}", name=name, obj=self)


class SessionOptions:
    """Options of ``InferenceSession``, with the names of ``onnxruntime.SessionOptions``, which is accepted too, except
    for its dimension overrides, which can't be read back.

    ``intra_op_num_threads`` run the loops of a call's kernels, 0 for all; where ``execution_mode`` is ``ORT_PARALLEL``,
    ``inter_op_num_threads`` run calls that don't depend on each other, 0 for as many as there are processors
    (``inter_op`` of ``tenon.compile`` and ``tenon.VirtualMachine``); the sizes of ``add_free_dimension_override_by_name``
    are those of ``tenon.compile(dims=...)``. A ``graph_optimization_level`` of ``ORT_DISABLE_ALL`` is ``level=0``, of
    ``ORT_ENABLE_BASIC`` ``level=1``, and any higher one the default. The other settings are about how ONNX Runtime works,
    and change nothing.
    """

    intra_op_num_threads: int = 0
    inter_op_num_threads: int = 0
    graph_optimization_level: Any = None
    execution_mode: Any = None
    execution_order: Any = None
    enable_mem_pattern: bool = True
    enable_mem_reuse: bool = True
    enable_cpu_mem_arena: bool = True
    use_deterministic_compute: bool = False
    use_per_session_threads: bool = True
    log_severity_level: int = 2
    log_verbosity_level: int = 0
    logid: str = ""
    _dims: dict[str, int]

    def __init__(self) -> None:
        object.__setattr__(self, "_dims", {})

    def __setattr__(self, name: str, value: Any) -> None:
        """Takes only the settings above: any other one would be ignored."""
        settings = [setting for setting in SessionOptions.__annotations__ if not setting.startswith("_")]
        if name not in settings:
            near = difflib.get_close_matches(name, settings, 1)
            hint = _INSTEAD.get(name) or (f"did you mean {near[0]}?" if near else f"there are {', '.join(settings)}")
            raise AttributeError(f"SessionOptions has no setting {name!r}; {hint}", name=name, obj=self)
        super().__setattr__(name, value)

    __getattr__ = _missing

    def add_free_dimension_override_by_name(self, name: str, size: int) -> None:
        """Fixes a symbolic dimension."""
        self._dims[name] = size

    def add_session_config_entry(self, key: str, value: str) -> None:
        """Does nothing: the entries are about ONNX Runtime."""


def _name_of(member: Any) -> Any:
    """The name of a member of one of ONNX Runtime's enums, or the name itself."""
    return getattr(member, "name", member)


_LEVELS = {
    "ORT_DISABLE_ALL": 0,
    "ORT_ENABLE_BASIC": 1,
    "ORT_ENABLE_EXTENDED": None,
    "ORT_ENABLE_LAYOUT": None,
    "ORT_ENABLE_ALL": None,
}


def _level(session: Any) -> int | None:
    """The level for ``tenon.compile``, None for its default, of a member of ONNX Runtime's enum GraphOptimizationLevel
    or that member's name."""
    given = getattr(session, "graph_optimization_level", None)
    if given is None:
        return None
    name = _name_of(given)
    if name not in _LEVELS:
        raise ValueError(f"graph_optimization_level is {given!r}; expected one of {', '.join(_LEVELS)}")
    return _LEVELS[name]


def _inter_op(session: Any) -> int:
    """The threads that run calls which don't depend on each other: in ONNX Runtime's parallel mode alone, a member of
    its enum ExecutionMode or that member's name."""
    if _name_of(getattr(session, "execution_mode", None)) != "ORT_PARALLEL":
        return 1
    return int(session.inter_op_num_threads) or _tenon.processors()


def _with(options: dict[str, Any], session: Any) -> dict[str, Any]:
    """The options of ``tenon.compile`` with those of the session's options that are meant for it."""
    given: dict[str, Any] = dict(options)
    dims = getattr(session, "_dims", None)
    if dims:
        given["dims"] = {**dims, **(options.get("dims") or {})}
    if (level := _level(session)) is not None:
        given.setdefault("level", level)
    if (inter_op := _inter_op(session)) > 1:
        given.setdefault("inter_op", inter_op)
    return given


class InferenceSession:
    """A compiled model with the methods of ``onnxruntime.InferenceSession``; ``run`` may be called from any thread.

    >>> session = tenon.InferenceSession("model.onnx", providers=["CPUExecutionProvider"])
    >>> outputs = session.run(None, {"x": x})
    """

    def __init__(
        self,
        path_or_bytes: Any,
        sess_options: Any = None,
        providers: Sequence[str | tuple[str, Mapping[str, Any]]] | None = None,
        provider_options: Sequence[Mapping[str, Any]] | None = None,
        **options: Any,
    ) -> None:
        """``path_or_bytes`` is what ``tenon.compile`` takes, with its options, an ``Executable``, or a file of one, with
        the options of ``tenon.load``. Such a file may hold native code, which a model can't, so its name must end with
        .tnx or .so unless ``untrusted`` says how to load it. An input for which an ONNX model has an initializer is a
        constant, and can't be overridden in ``run``.

        ``sess_options`` are ``tenon.SessionOptions`` or ONNX Runtime's, ``providers`` must include CPUExecutionProvider,
        and ``provider_options`` change nothing.
        """
        _require_cpu(providers)
        is_file = _is_executable(path_or_bytes)
        if is_file and "untrusted" not in options:
            _require_executables_name(path_or_bytes)
        compiled = is_file or isinstance(path_or_bytes, Executable)
        if compiled and getattr(sess_options, "_dims", None):
            raise ValueError("a compiled model's sizes are fixed when it is compiled: give them to tenon.compile(dims=...)")
        if compiled and _level(sess_options) is not None:
            raise ValueError("a compiled model has been optimized already: give the level to tenon.compile(level=...)")
        if isinstance(path_or_bytes, Executable):
            if options:
                raise TypeError(f"an Executable takes no options; found {', '.join(options)}")
            self.executable = path_or_bytes
        elif compiled:
            self.executable = load(path_or_bytes, **options)
        else:
            self.executable = compile(path_or_bytes, **_with(options, sess_options))
        said = {} if compiled else _metadata_of(path_or_bytes)
        self._frozen = frozenset(said.pop("defaults", ()))
        self._metadata = ModelMetadata(**said) if said else None
        threads = int(getattr(sess_options, "intra_op_num_threads", 0))
        inter_op = _inter_op(sess_options)
        # Calls of an executable's own functions are the fastest.
        own = threads == 0 and inter_op == 1
        self._function = (
            self.executable if own else VirtualMachine(self.executable, threads=threads, inter_op=inter_op)
        )["main"]
        signature = self.executable.signature("main")
        self._inputs = [_node_arg(p) for p in signature.params]
        self._input_names = {node.name for node in self._inputs}
        self._outputs = [_node_arg(r) for r in signature.results]
        self._places = {output.name: i for i, output in enumerate(self._outputs)}
        self._options = sess_options

    def get_inputs(self) -> list[NodeArg]:
        return list(self._inputs)

    def get_outputs(self) -> list[NodeArg]:
        return list(self._outputs)

    def get_overridable_initializers(self) -> list[NodeArg]:
        """None: in a compiled model, an input that has an initializer is a constant."""
        return []

    def get_providers(self) -> list[str]:
        return [_PROVIDER]

    def get_provider_options(self) -> dict[str, dict[str, str]]:
        return {_PROVIDER: {}}

    def get_session_options(self) -> Any:
        return self._options if self._options is not None else SessionOptions()

    def get_modelmeta(self) -> ModelMetadata:
        """What the ONNX model says about itself; of other models and of compiled files, the program's name and producer."""
        if self._metadata is not None:
            return self._metadata
        return ModelMetadata(self.executable._name or "", str(self.executable.stats()["producer"] or ""))

    def run(
        self, output_names: Sequence[str] | None, input_feed: Mapping[str, Any], run_options: Any = None
    ) -> list[Any]:
        """The outputs of those names, by default all, as NumPy arrays that share the results' memory, or lists of these
        for sequences. ``run_options`` change nothing."""
        if isinstance(output_names, str):
            raise TypeError(f"output_names is a list of names, such as [{output_names!r}]")
        if not isinstance(input_feed, Mapping):
            example = ", ".join(f'"{node.name}": ...' for node in self._inputs)
            raise TypeError(f"input_feed is a dict of the inputs, {{{example}}}; found {type(input_feed).__name__}")
        if not input_feed.keys() <= self._input_names:
            raise self._unknown_input(next(name for name in input_feed if name not in self._input_names))
        results = self._function(**input_feed)
        if len(self._outputs) == 1:
            results = (results,)
        if output_names:
            unknown = [name for name in output_names if name not in self._places]
            if unknown:
                raise ValueError(f"no output is named {', '.join(unknown)}; the outputs are: {', '.join(self._places)}")
            results = [results[self._places[name]] for name in output_names]
        return [_as_numpy(result) for result in results]

    __getattr__ = _missing

    def _unknown_input(self, name: str) -> ValueError:
        if name in self._frozen:
            return ValueError(
                f"the model has a value of its own for {name}, which is a constant once it is compiled: "
                "remove its initializer from the model to pass it"
            )
        near = difflib.get_close_matches(name, self._input_names, 1)
        hint = f"did you mean {near[0]}?" if near else f"the inputs are: {', '.join(n.name for n in self._inputs)}"
        return ValueError(f"no input is named {name}; {hint}")


def _require_executables_name(file: Any) -> None:
    """Code that was written for ONNX Runtime passes on what is only data there, such as an upload."""
    name = "the model" if isinstance(file, (bytes, bytearray, memoryview)) else os.fsdecode(file)
    if not name.endswith((".tnx", ".so")):
        raise _errors.usage(
            f"{name} is an executable, which may hold native code",
            expected="a model; or an executable whose name ends with .tnx or .so",
            help="pass untrusted=True to run none of its native code, or tenon.load(...) if you trust its sender",
        )


def _require_cpu(providers: Sequence[str | tuple[str, Mapping[str, Any]]] | None) -> None:
    if providers is None:
        return
    names = [p if isinstance(p, str) else p[0] for p in ([providers] if isinstance(providers, str) else providers)]
    if names and _PROVIDER not in names:
        raise ValueError(f"Tenon runs models on the CPU: providers must include {_PROVIDER}; found {', '.join(names)}")
