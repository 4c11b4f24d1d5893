"""Models of PyTorch: exported to ONNX, then imported like any other. torch is imported when it is needed."""

from __future__ import annotations

import logging
import re
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any


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

    if isinstance(model, torch.export.ExportedProgram):
        positional: tuple[Any, ...] = ()
    elif args is None and kwargs is None:
        raise TypeError("a torch.nn.Module is compiled for example arguments: compile(model, args=(x, ...))")
    else:
        positional = () if args is None else tuple(args) if isinstance(args, (tuple, list)) else (args,)
        if positional and isinstance(positional[-1], dict) and not kwargs:
            positional += ({},)  # the exporter takes a last dict for keyword arguments
    # The exporter logs what it registers and prints its progress.
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            program = torch.onnx.export(
                model,
                positional,
                kwargs=dict(kwargs) if kwargs else None,
                dynamic_shapes=dynamic_shapes,
                dynamo=True,
                verbose=False,
            )
    finally:
        logger.setLevel(level)
    _name_results(program)
    _name_sizes(program)
    return program.model_proto


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


_said: set[str] = set()


def backend(graph: Any, inputs: Sequence[Any], **options: Any) -> Callable[..., Any]:
    """The backend of ``torch.compile(model, backend="tenon")``. What it can't take runs in PyTorch; a warning says so
    once for each reason."""
    import torch

    from ._compile import compile

    def fall_back(reason: str) -> Callable[..., Any]:
        if reason not in _said:
            _said.add(reason)
            warnings.warn(f"tenon runs a part of this model in PyTorch: {reason}", stacklevel=3)
        return graph.forward

    if not all(isinstance(i, torch.Tensor) for i in inputs):
        return fall_back("it has sizes as inputs; pass dynamic=False to torch.compile")
    if torch.is_grad_enabled() and any(i.requires_grad for i in inputs):
        return fall_back("it needs gradients; call the model under torch.no_grad()")
    if any(i.device.type != "cpu" for i in inputs):
        return fall_back("its tensors are not on the CPU")
    try:
        examples = tuple(torch.zeros(i.shape, dtype=i.dtype) for i in inputs)
        executable = compile(to_onnx(graph, examples), **options)
    except Exception as error:  # whatever the exporter raises
        return fall_back(str(error).strip().partition("\n")[0])
    function = executable["main"]
    if len(executable.signature().params) != len(inputs):
        return fall_back("the exporter dropped inputs")

    def run(*arguments: Any) -> tuple[Any, ...]:
        results = function(*(a.detach().contiguous() for a in arguments))
        return tuple(torch.from_dlpack(r) for r in (results if isinstance(results, tuple) else (results,)))

    return run
