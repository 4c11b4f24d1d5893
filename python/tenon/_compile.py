"""tenon.compile: models and programs in, executables out."""

from __future__ import annotations

import difflib
import inspect
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from . import _compiler, _errors, _tenon, _threads, _torch, ir
from ._custom import load_libraries, one_or_several
from ._executable import Executable
from ._values import Shape


def compile(
    model: Any,
    *,
    dims: Mapping[str, int] | None = None,
    shapes: Mapping[str, Sequence[int | None]] | None = None,
    args: Any = None,
    kwargs: Mapping[str, Any] | None = None,
    dynamic_shapes: Any = None,
    passes: Iterable[Any] | None = None,
    custom: Iterable[str | os.PathLike[str]] | str | os.PathLike[str] | None = None,
    import_path: str | os.PathLike[str] | Iterable[str | os.PathLike[str]] = (),
    name: str | None = None,
    deadline: float | None = None,
    memory: float | None = None,
    **options: Any,
) -> Executable:
    """Compiles a model to an executable for this machine.

    ``model`` is the path of an ONNX model or of a program in Tenon's language (a ``str`` or path; the content decides
    which), an ``onnx.ModelProto`` or the bytes of one, a ``tenon.ir.Module``, a ``torch.nn.Module`` or a
    ``torch.export.ExportedProgram``.

    - ``dims`` fixes symbolic dimensions by name: ``{"batch": 1}``.
    - ``shapes`` fixes the shapes of inputs by name; -1 or None leaves a size symbolic.
    - ``args``, ``kwargs`` and ``dynamic_shapes`` are for models of PyTorch: example arguments, and the sizes that may
      change, as ``torch.export.export`` takes them. They need the packages torch and onnxscript.
    - ``custom`` names libraries (``libtenon_NAME.so``) of functions that compute a model's own operators; see
      ``tenon.register_op`` for those in Python.
    - ``passes`` replaces the passes of the level: see ``tenon.transform``.
    - ``import_path`` names folders in which, or below which, the files may lie that a program imports.
    - ``name`` stands for the program in errors: by default the model's path, its graph's name or its class.
    - ``deadline`` (seconds) and ``memory`` (bytes, by default the machine's) limit the compilation. The executable, which
      is in memory once, doesn't count.
    - ``options`` are those of ``tenon.compile`` in docs/compiler-library.md: ``level=3``, ``cpu="x86-64-v3"``,
      ``libraries="none"``. An unknown one is an error that lists them.

    Raises ``tenon.UnsupportedError`` with all operators that a model needs and Tenon lacks, and ``tenon.UsageError``
    for a model or option that is wrong.
    """
    from . import transform

    if passes is not None:
        options["passes"] = transform._names(passes)
    if options:
        _check_options(options)
    if custom is not None:
        options["custom"] = load_libraries(one_or_several("custom", custom))
    limits = _compiler.limits_of(deadline, memory)
    if name is None:
        name = _name_of(model)
    if _torch.is_model(model):
        model = _torch.to_onnx(model, args, kwargs, dynamic_shapes)
    elif args is not None or kwargs is not None or dynamic_shapes is not None:
        raise TypeError("args, kwargs and dynamic_shapes are for models of PyTorch; this isn't one")
    paths = _compiler.import_path_of(import_path)
    if paths and not isinstance(model, (str, os.PathLike)):
        raise TypeError("import_path is for the path of a program; give tenon.ir.parse the import_path of a text")
    module = _module_of(model, dims, shapes, limits | paths)
    if isinstance(model, (str, os.PathLike)):
        options["origin"] = _compiler.call("tenon.origin", os.fspath(model), _sizes(dims, shapes) | limits)
    _threads.bound_spinning()
    program = _tenon.Program.compiled(_compiler.function("tenon.compile_to_file"), module, options | limits, name)
    return Executable(program, name)


def _check_options(options: Mapping[str, Any]) -> None:
    """Raises an error that names an option of no use to ``tenon.compile``."""
    compilers = {row["name"] for row in _compiler.call("tenon.list_options") if row["of"] == "compile"}
    for name in options:
        if name not in compilers:
            own = {p.name for p in inspect.signature(compile).parameters.values() if p.kind == p.KEYWORD_ONLY}
            known = sorted(compilers | own)
            near = difflib.get_close_matches(name, known, 1)
            help = f"did you mean {near[0]}?" if near else "leave it out"
            raise _errors.usage(f'there is no option "{name}"', expected=f"one of {', '.join(known)}", help=help)


def _name_of(model: Any) -> str:
    """What stands for a model in errors."""
    if isinstance(model, (str, os.PathLike)):
        return os.fsdecode(model)
    if isinstance(model, ir.Module):
        return "<module>"
    if hasattr(model, "SerializeToString"):
        return str(model.graph.name) or "<model>"
    if isinstance(model, (bytes, bytearray, memoryview)):
        return "<model>"
    return type(model).__name__


def build_info() -> dict[str, Any]:
    """What this build of the compiler contains.

    ``llvm`` is LLVM's version, ``code_generators`` LLVM's names of the architectures that it can generate code for, and
    ``targets`` those that ``tenon.compile(target=...)`` takes.
    """
    return dict(_compiler.call("tenon.build_info"))


def _sizes(dims: Mapping[str, int] | None, shapes: Mapping[str, Sequence[int | None]] | None) -> dict[str, Any]:
    """The options dims and shapes, as the compiler's functions take them."""
    options: dict[str, Any] = {}
    if dims:
        options["dims"] = dict(dims)
    if shapes:
        options["shapes"] = {
            name: Shape(-1 if size is None else size for size in shape) for name, shape in shapes.items()
        }
    return options


def _module_of(
    model: Any,
    dims: Mapping[str, int] | None,
    shapes: Mapping[str, Sequence[int | None]] | None,
    limits: dict[str, Any],
) -> ir.Module:
    options = _sizes(dims, shapes) | limits
    if isinstance(model, ir.Module):
        if dims or shapes:
            raise TypeError("dims and shapes apply to models: fix the sizes in the module's types instead")
        return model
    if isinstance(model, (str, os.PathLike)):
        return _compiler.call("tenon.open", os.fspath(model), options)
    if hasattr(model, "SerializeToString"):  # an onnx.ModelProto
        model = model.SerializeToString()
    if isinstance(model, (bytes, bytearray, memoryview)):
        return _compiler.call("tenon.import_onnx", bytes(model), options)
    raise TypeError(
        f"can't compile a {type(model).__module__}.{type(model).__qualname__}: "
        "give a path, an onnx.ModelProto, its bytes, a tenon.ir.Module or a model of PyTorch"
    )
