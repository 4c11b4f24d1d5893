"""Shrinking a model while a check of it behaves the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from . import ir
from ._model_inputs import proto_of
from ._reduce_modules import smaller_modules
from ._reduce_protos import smaller_protos


def reduce(model: Any, check: Callable[[Any], Any]) -> Any:
    """The smallest model found for which ``check(model)`` does the same as for ``model``.

    What it does is what it returns, as true or false, or the class of the exception that it raises. So
    ``lambda m: tenon.compile(m)`` keeps the error of a model that can't be compiled, and
    ``lambda m: tenon.testing.compare(m, tenon.testing.random_inputs(m)).equal`` keeps a difference. The check must make
    inputs for whatever inputs a model has, as ``random_inputs`` does, and be repeatable: the search is.

    ``model`` is the path of an ONNX model, an ``onnx.ModelProto``, its bytes, or a ``tenon.ir.Module``; an
    ``onnx.ModelProto`` or a module is returned. Tried are: fewer outputs, values in the middle as the only outputs or as
    inputs, nodes left out, zeros for weights, and smaller sizes, as long as any of these succeeds.

    >>> module = tenon.ir.parse('''
    ... fn @main(%x: tensor[8; f32]) -> tensor[8; f32] {
    ...   %y = exp(%x)
    ...   %z = mul(%y, %y)
    ...   tanh(%z)
    ... }
    ... ''')
    >>> print(tenon.testing.reduce(module, lambda m: "mul" in str(m)))
    fn @main(%y: tensor[1; f32]) -> tensor[1; f32] {
      %z: tensor[1; f32] = mul(%y, %y)
      %z
    }
    <BLANKLINE>
    """
    if isinstance(model, ir.Module):
        return _search(model, check, smaller_modules)
    return _search(proto_of(model), check, smaller_protos)


def _search(model: Any, check: Callable[[Any], Any], smaller: Callable[[Any], Iterator[Any]]) -> Any:
    """Takes the first smaller model that keeps the outcome, until none does."""
    wanted = _outcome(check, model)
    while True:
        for candidate in smaller(model):
            if _outcome(check, candidate) == wanted:
                model = candidate
                break
        else:
            return model


def _outcome(check: Callable[[Any], Any], model: Any) -> Any:
    try:
        return bool(check(model))
    except Exception as error:
        return type(error)
