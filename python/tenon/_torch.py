"""Models of PyTorch: exported to ONNX, then imported like any other. torch is imported when it is needed."""

from __future__ import annotations

import copy
import importlib.util
import inspect
import logging
import re
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from ._errors import usage


def is_model(model: Any) -> bool:
    """Whether it is a torch.nn.Module or a torch.export.ExportedProgram."""
    torch = sys.modules.get("torch")
    if torch is None:
        return False
    return isinstance(model, (torch.nn.Module, torch.export.ExportedProgram))


def to_onnx(
    model: Any,
    args: Sequence[Any] | None,
    kwargs: Mapping[str, Any] | None = None,
    dynamic_shapes: Any = None,
) -> Any:
    """The onnx.ModelProto of a model. ``dynamic_shapes`` is that of ``torch.export.export``."""
    import torch

    more: tuple[Any, ...] = ()
    if importlib.util.find_spec("onnxscript") is None:
        raise ModuleNotFoundError(
            "models of PyTorch need the package onnxscript: pip install onnxscript", name="onnxscript"
        )
    if isinstance(model, torch.jit.ScriptModule):
        raise usage(
            "PyTorch doesn't export TorchScript modules", help="compile the torch.nn.Module that this one was made from"
        )
    if isinstance(model, torch.export.ExportedProgram):
        positional: tuple[Any, ...] = ()
    elif args is None and kwargs is None:
        raise TypeError("a torch.nn.Module is compiled for example arguments: compile(model, args=(x, ...))")
    else:
        positional = () if args is None else tuple(args) if isinstance(args, (tuple, list)) else (args,)
        if positional and isinstance(positional[-1], dict) and not kwargs:
            more = ({},)  # the exporter takes a last dict for keyword arguments
    # The exporter logs what it registers and prints its progress.
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            program: Any = torch.onnx.export(
                model,
                positional + more,
                kwargs=dict(kwargs) if kwargs else None,
                dynamic_shapes=dynamic_shapes,
                dynamo=True,
                verbose=False,
            )
    except torch.onnx.OnnxExporterError as error:
        if dynamic_shapes and "user-specified" in _reason(error):
            raise _fixed_size("", _reason(error, prefix="- ")) from error
        raise usage(
            "PyTorch can't export the model",
            found=_reason(error),
            where=_place(error),
            help="change the model until torch.export.export takes it; the cause of this exception has all that PyTorch says",
        ) from error
    finally:
        logger.setLevel(level)
    _refuse_changes(program.exported_program.graph_signature)
    if dynamic_shapes:
        _refuse_fixed_sizes(program.exported_program, model, (positional, dict(kwargs or {})), dynamic_shapes)
    _name_results(program)
    _name_sizes(program)
    return program.model_proto


def _refuse_changes(signature: Any) -> None:
    """Programs are functions: what a model does to its buffers or inputs would be lost without a word."""
    changed: dict[str, str] = {}
    for kind in ("buffers_to_mutate", "parameters_to_mutate", "user_inputs_to_mutate"):
        changed |= getattr(signature, kind, None) or {}
    if changed:
        raise usage(
            "the model changes its own buffers or its inputs in place, which a compiled program doesn't",
            found=", ".join(map(str, changed.values())),
            help="return the new values instead; of layers that learn from their inputs, call model.eval() first",
        )


def _refuse_fixed_sizes(exported: Any, model: Any, example: tuple[Any, Any], dynamic_shapes: Any) -> None:
    """``torch.onnx.export`` fixes sizes that the model needs to have one value, and says nothing."""
    import torch

    if isinstance(model, torch.export.ExportedProgram):
        if model.example_inputs is None:
            return
        example = model.example_inputs
    values = {node.name: node.meta.get("val") for node in exported.graph.nodes if node.op == "placeholder"}
    inputs = exported.graph_signature.user_inputs
    asked = list(_asked(getattr(model, "forward", model), example, dynamic_shapes))
    if len(asked) != len(inputs):
        return
    fixed = []
    for name, axes in zip(inputs, asked):
        shape = getattr(values.get(name), "shape", ())
        fixed += [f"{shape[axis]} on axis {axis} of '{name}'" for axis in axes if isinstance(shape[axis], int)]
    if fixed:
        why = "" if isinstance(model, torch.export.ExportedProgram) else _why_fixed(model, example, dynamic_shapes)
        raise _fixed_size(", ".join(fixed), why)


def _fixed_size(found: str, why: str) -> Exception:
    return usage(
        "the model has only one value for a size that dynamic_shapes lets change",
        found=found or None,
        expected="a model that takes any size there" if found else None,
        help="leave the size out of dynamic_shapes, or change what fixes it" + (why and f"; PyTorch says: {why}"),
    )


def _asked(forward: Any, example: tuple[Any, Any], dynamic_shapes: Any) -> Iterator[list[int]]:
    """For each input of a model, in the order of its flattened arguments, the axes that are asked to change."""
    import torch
    from torch.utils import _pytree

    args, kwargs = example
    named = dict(kwargs)
    if isinstance(dynamic_shapes, Mapping):
        bound = inspect.signature(forward).bind(*args, **kwargs)
        given = [(bound.arguments[name], dynamic_shapes.get(name)) for name in bound.arguments]
    else:
        given = list(zip([*args, *named.values()], dynamic_shapes))

    def changes(size: Any) -> bool:
        return isinstance(size, (str, torch.export.Dim)) or size is torch.export.Dim.DYNAMIC

    def walk(value: Any, spec: Any) -> Iterator[list[int]]:
        if isinstance(value, torch.Tensor):
            items = spec.items() if isinstance(spec, Mapping) else enumerate(spec or ())
            yield [axis % value.dim() for axis, size in items if changes(size)]
        elif isinstance(value, Mapping) and isinstance(spec, Mapping):
            for key, item in value.items():
                yield from walk(item, spec.get(key))
        elif isinstance(value, (tuple, list)) and isinstance(spec, (tuple, list)):
            for item, part in zip(value, spec):
                yield from walk(item, part)
        else:
            yield from ([] for _ in _pytree.tree_leaves(value))

    for value, spec in given:
        yield from walk(value, spec)


def _why_fixed(model: Any, example: tuple[Any, Any], dynamic_shapes: Any) -> str:
    """PyTorch's explanation why sizes can't change, which it gives only where nothing is fixed for it."""
    import torch

    def without_names(spec: Any) -> Any:
        if isinstance(spec, str):
            return torch.export.Dim.DYNAMIC
        if isinstance(spec, Mapping):
            return {key: without_names(value) for key, value in spec.items()}
        return type(spec)(map(without_names, spec)) if isinstance(spec, (tuple, list)) else spec

    try:
        torch.export.export(model, *example, dynamic_shapes=without_names(dynamic_shapes), strict=False)
    except Exception as error:  # whatever PyTorch raises
        return _reason(error, prefix="- ")
    return ""


def _name_results(program: Any) -> None:
    """Names the results of a model that returns a dict or a dataclass by their keys: ``last_hidden_state``; a part of
    a nested result by all keys on its path: ``hidden_states_0``."""
    from torch.utils import _pytree

    exported = program.exported_program
    spec = exported.module_call_graph[0].signature.out_spec
    paths, _ = _pytree.tree_flatten_with_path(_pytree.tree_unflatten(range(spec.num_leaves), spec))
    results = zip(paths, exported.graph_signature.user_outputs)
    keys = [[_key(key) for key in path] for (path, _), output in results if output is not None]
    graph = program.model.graph
    if len(keys) != len(graph.outputs) or not all(k and isinstance(k[0], str) for k in keys):
        return
    taken = {value.name for value in graph.inputs} | set(graph.initializers)
    for value, path in zip(graph.outputs, keys):
        name = "_".join(map(str, path))
        if value.producer() is not None and name not in taken:
            taken.add(name)
            value.name = name


def _key(key: Any) -> str | int:
    for field in ("key", "name", "idx"):
        if hasattr(key, field):
            return getattr(key, field)
    return str(key)


def _name_sizes(program: Any) -> None:
    """Renames sizes that the user didn't name, for which torch has names such as ``s77``, after the first input and
    axis that have them: ``x_0``."""
    names: dict[str, str] = {}
    for value in program.model.graph.inputs:
        for axis, size in enumerate(value.shape or ()):
            symbol = getattr(size, "value", None)
            if isinstance(symbol, str) and re.fullmatch(r"[su]\d+", symbol):
                value.shape[axis] = names.setdefault(symbol, f"{value.name}_{axis}")


def register_backend() -> None:
    """Makes ``torch.compile(model, backend="tenon")`` known where the package has no metadata of pip's, if Dynamo is
    loaded already. It isn't loaded for this: that takes seconds."""
    registry = sys.modules.get("torch._dynamo.backends.registry")
    register = getattr(registry, "register_backend", None)
    if register is not None and "tenon" not in getattr(registry, "_BACKENDS", ()):
        register(backend, name="tenon")


_said: set[str] = set()


def backend(
    graph: Any,
    inputs: Sequence[Any],
    *,
    options: Mapping[str, Any] | None = None,
    mode: str | None = None,
    **more: Any,
) -> Callable[..., Any]:
    """The backend of ``torch.compile(model, backend="tenon")``, whose ``options`` are those of ``tenon.compile``; it has
    no modes. What it can't take runs in PyTorch; a warning says so once for each reason. A wrong option is an error."""
    import torch

    from ._compile import compile

    def fall_back(reason: str) -> Callable[..., Any]:
        if reason not in _said:
            _said.add(reason)
            warnings.warn(f"tenon runs a part of this model in PyTorch: {reason}", stacklevel=3)
        return graph.forward

    options = {**(options or {}), **more}
    _check_options(options, mode)
    tensors = [i for i in inputs if isinstance(i, torch.Tensor)]
    if not all(isinstance(i, (torch.Tensor, torch.SymInt, int)) for i in inputs):
        return fall_back("its inputs are other values than tensors and integers")
    if torch.is_grad_enabled() and any(t.requires_grad for t in tensors):
        return fall_back("it needs gradients; call the model under torch.no_grad()")
    if any(t.device.type != "cpu" for t in tensors):
        return fall_back("its tensors are not on the CPU")
    # Exporting while Dynamo traces would disturb it.
    known = _known(graph, inputs)
    lock = threading.Lock()
    prepared: list[Callable[..., Any]] = []

    def prepare(arguments: Sequence[Any]) -> Callable[..., Any]:
        try:
            part = _Part(graph, known, arguments)
            executable = compile(to_onnx(part.module, part.examples, dynamic_shapes=part.dynamic_shapes), **options)
        except Exception as error:  # whatever the exporter raises
            return fall_back(_reason(error))
        signature = executable.signature()
        if len(signature.params) != len(part.kept) or len(signature.results) != part.computed:
            return fall_back("the exporter dropped inputs or results")
        return part.runner(executable["main"])

    def run(*arguments: Any) -> Any:
        if not prepared:
            with lock:
                if not prepared:
                    prepared.append(prepare(arguments))
                    known.clear()
        return prepared[0](*arguments)

    return run


def _check_options(options: Mapping[str, Any], mode: str | None) -> None:
    """Raises an error for options that no model could be compiled with: the errors of models don't reach the caller."""
    from . import ir
    from ._compile import compile

    if mode not in (None, "default"):
        raise usage(
            "the backend 'tenon' has no modes",
            found=f"mode={mode!r}",
            help='leave it out; options={"level": 3} optimises more',
        )
    own = [name for name in ("args", "kwargs", "dynamic_shapes") if name in options]
    if own:
        raise usage(f"torch.compile itself determines {own[0]}", help="leave it out of the options")
    sizes = ("dims", "shapes")  # those of the model
    compile(
        ir.parse("fn @main() -> i64 { 0 }"), **{name: value for name, value in options.items() if name not in sizes}
    )


def _reason(error: BaseException, prefix: str = "") -> str:
    """The first line of an error, or of the one that it comes from: the exporter's own say how to debug it. With a
    ``prefix``, the first line that begins with that, if there is one, without it."""
    while error.__cause__ is not None:
        error = error.__cause__
    lines = str(error).strip().splitlines() or [type(error).__name__]
    for line in lines if prefix else ():
        if line.strip().startswith(prefix):
            return line.strip().removeprefix(prefix)
    return " ".join(line.strip() for line in lines[:2]) if lines[0].endswith(":") else lines[0]


def _place(error: BaseException) -> str | None:
    """The line of the model at which exporting failed, where PyTorch states one: the last of its traceback."""
    places = re.findall(r'^ *File "(.+?)", line (\d+)', str(error), re.MULTILINE)
    return ":".join(places[-1]) if places else None


def _known(graph: Any, inputs: Sequence[Any]) -> list[Any]:
    """What Dynamo knows about a graph's inputs: tensors with symbolic sizes, and sizes."""
    places = [node for node in graph.graph.nodes if node.op == "placeholder"]
    return [node.meta.get("example_value", value) for node, value in zip(places, inputs)]


class _Part:
    """A graph that Dynamo traced, as a module to export for arguments like those given.

    Where sizes change from call to call, Dynamo passes them as further inputs. Here, the tensors that have those sizes
    stand for them: ``kept`` are the indices of the inputs that remain. An integer that isn't a tensor's size remains one.
    """

    def __init__(self, graph: Any, known: Sequence[Any], arguments: Sequence[Any]) -> None:
        import torch

        self.module = torch.fx.GraphModule(graph, copy.deepcopy(graph.graph))
        nodes = self.module.graph.nodes
        places = [node for node in nodes if node.op == "placeholder"]
        body = next(node for node in nodes if node.op != "placeholder")
        self.kept: list[int] = []
        for i, value in enumerate(known):
            of = _size_of(known, value) if isinstance(value, torch.SymInt) else None
            if of is None:
                self.kept.append(i)
                continue
            with self.module.graph.inserting_before(body):
                size = self.module.graph.call_function(torch.ops.aten.sym_size.int, (places[of[0]], of[1]))
            size.meta = dict(places[i].meta)
            places[i].replace_all_uses_with(size)
            self.module.graph.erase_node(places[i])
        self.module.recompile()
        changing = torch.export.Dim.DYNAMIC
        self.examples: list[Any] = []
        self.dynamic_shapes: list[Any] = []
        for i in self.kept:
            if isinstance(arguments[i], torch.Tensor):
                self.examples.append(torch.zeros(arguments[i].shape, dtype=arguments[i].dtype))
                sizes = {axis: changing for axis, size in enumerate(known[i].shape) if _changes(size)}
                self.dynamic_shapes.append(sizes or None)
            else:
                self.examples.append(arguments[i])
                self.dynamic_shapes.append(changing if _changes(known[i]) else None)
        self._outputs = next(node for node in reversed(nodes) if node.op == "output").args[0]
        self.computed = sum(isinstance(output, torch.fx.Node) for output in self._outputs)

    def runner(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The graph as a function that calls the compiled one."""
        import torch

        kept = self.kept
        # How to make each result from a computed value; None for a constant.
        makers: list[Callable[[Any], Any] | None] = []
        for output in self._outputs:
            if not isinstance(output, torch.fx.Node):
                makers.append(None)
            else:
                is_size = isinstance(output.meta.get("example_value"), (int, torch.SymInt))
                makers.append(int if is_size else torch.utils.dlpack.from_dlpack)
        constants = [None if isinstance(output, torch.fx.Node) else output for output in self._outputs]

        def run(*arguments: Any) -> tuple[Any, ...]:
            given = (arguments[i] for i in kept)
            computed = function(*(a.detach().contiguous() if isinstance(a, torch.Tensor) else a for a in given))
            rest = iter(computed if isinstance(computed, tuple) else (computed,))
            return tuple(make(next(rest)) if make else constant for make, constant in zip(makers, constants))

        return run


def _size_of(values: Sequence[Any], size: Any) -> tuple[int, int] | None:
    """The first tensor that has a symbolic size, by index, and the axis."""
    for i, value in enumerate(values):
        for axis, other in enumerate(getattr(value, "shape", ())):
            if not isinstance(other, int) and other.node.expr == size.node.expr:
                return i, axis
    return None


def _changes(size: Any) -> bool:
    """Whether a size differs between calls: Dynamo found no reason to fix it after all."""
    return not isinstance(size, int) and not size.node.expr.is_number
