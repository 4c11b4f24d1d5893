"""Models of PyTorch: exported to ONNX, then imported like any other. torch is imported when it is needed."""

from __future__ import annotations

import logging
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

    is_exported = isinstance(model, torch.export.ExportedProgram)
    if args is None and not is_exported:
        raise TypeError("a torch.nn.Module is compiled for example arguments: compile(model, args=(x, ...))")
    if not is_exported:
        args = args if isinstance(args, tuple) else tuple(args) if isinstance(args, list) else (args,)
    # The exporter logs what it registers and prints its progress.
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            program = torch.onnx.export(
                model,
                () if is_exported else args,
                kwargs=dict(kwargs) if kwargs else None,
                dynamic_shapes=dynamic_shapes,
                dynamo=True,
                verbose=False,
            )
    finally:
        logger.setLevel(level)
    return program.model_proto


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
