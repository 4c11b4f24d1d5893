"""Tenon: a compiler and virtual machine for tensor programs.

>>> exe = tenon.compile("model.onnx", dims={"batch": 1})
>>> exe.save("model.tnx")
>>> y = tenon.load("model.tnx")(x)

- ``tenon.compile`` compiles ONNX models and programs; ``tenon.load`` loads compiled files.
- ``tenon.Executable`` calls functions; ``tenon.VirtualMachine`` does so under limits, and times them.
- ``tenon.Tensor`` shares its memory with NumPy, torch and others.
- ``tenon.ir`` parses, prints and builds programs; ``tenon.transform`` runs passes, also in Python.
- ``tenon.register_func`` and ``tenon.get_func`` exchange functions with programs and the compiler;
  ``tenon.register_op`` computes a model's own operators.
- ``tenon.testing`` compares a model's values with a reference, and shrinks a model that fails.
- ``tenon.profile`` records where the time goes.
- ``tenon.InferenceSession`` works like ONNX Runtime's.

Errors are exceptions of ``tenon.Error`` with their parts as attributes.
"""

from __future__ import annotations

from ._errors import DamagedError, Error, ExecutionError, InternalError, UnsupportedError, UsageError
from ._tenon import Function, Object, Tensor, version as _version
from ._values import Cell, Shape
from ._data import DataValue, Types
from ._executable import (
    Executable,
    Limits,
    Parameter,
    Signature,
    Stats,
    VirtualMachine,
    VMInstrumentReturnKind,
    load,
)
from ._timing import BenchmarkResult, TimeEvaluator
from ._compile import build_info, compile
from ._custom import register_op
from ._functions import get_func, register_func
from ._profile import Profile, profile
from ._types import register_type
from ._session import InferenceSession, ModelMetadata, NodeArg, SessionOptions
from ._torch import backend as torch_backend, register_backend as _register_backend
from . import ir, testing, transform

__version__: str = _version()
_register_backend()

__all__ = [
    "BenchmarkResult",
    "Cell",
    "DamagedError",
    "DataValue",
    "Error",
    "Executable",
    "ExecutionError",
    "Function",
    "InferenceSession",
    "InternalError",
    "Limits",
    "ModelMetadata",
    "NodeArg",
    "Object",
    "Parameter",
    "Profile",
    "SessionOptions",
    "Shape",
    "Signature",
    "Stats",
    "Tensor",
    "TimeEvaluator",
    "Types",
    "UnsupportedError",
    "UsageError",
    "VMInstrumentReturnKind",
    "VirtualMachine",
    "build_info",
    "compile",
    "get_func",
    "ir",
    "load",
    "profile",
    "register_func",
    "register_op",
    "register_type",
    "testing",
    "torch_backend",
    "transform",
]
