#!/usr/bin/env python3
"""Measures the rounding errors of Tenon, ONNX Runtime and OpenVINO against PyTorch in double precision.

Usage: accuracy.py --tenon PROGRAM --models FOLDER [--only NAME,...] [--libraries none]

Needs the packages of `requirements.txt` and `export-requirements.txt`. Every network of export_models.py, which are exported to the
folder if they are missing, runs in PyTorch with the same weights and inputs, but with 64-bit floats throughout, also where a network's
code asks for 32. An error is the greatest difference of an output's element, relative to the greatest magnitude in that output; of a
network, that of its worst output. The last column says whether Winograd's algorithm changes the result (whatever its tiles); if so,
16 times ONNX Runtime's error is allowed instead of 4. `--libraries none` measures Tenon's own kernels.

Exits with 1 if an error exceeds the budget.
"""

import argparse
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch.overrides import TorchFunctionMode

import compare
import export_models

BUDGET, WINOGRAD_BUDGET = 4, 16


class InDouble(TorchFunctionMode):
    """Takes 64-bit floats where a call asks for 32."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        wide = lambda value: torch.float64 if value is torch.float32 else value
        if function is torch.Tensor.float:
            function = torch.Tensor.double
        args = tuple(wide(value) for value in args)
        return function(*args, **{key: wide(value) for key, value in (kwargs or {}).items()})


def exact_outputs(made: export_models.Export, inputs: dict[str, np.ndarray]) -> list[np.ndarray]:
    given = [torch.from_numpy(inputs[name]) for name in made.inputs]
    given = [value.double() if value.is_floating_point() else value for value in given]
    with torch.no_grad(), InDouble():
        found = made.network.double()(*given)
    outputs = [found] if isinstance(found, torch.Tensor) else list(found)
    narrow = [str(value.dtype) for value in outputs if value.dtype != torch.float64]
    if narrow:
        raise RuntimeError(f"PyTorch's outputs are of {', '.join(narrow)}")
    return [value.numpy() for value in outputs]


HEAD = ("model", "Tenon", "direct", "ONNX Runtime", "OpenVINO", "to ORT", "budget", "Winograd")


@dataclass
class Row:
    name: str
    tenon: float
    direct: float  # without Winograd's algorithm
    onnxruntime: float
    openvino: float

    @property
    def uses_winograd(self) -> bool:
        """Whether turning Winograd's algorithm off changes the error."""
        return self.tenon != self.direct

    @property
    def ratio(self) -> float:
        return self.tenon / self.onnxruntime if self.onnxruntime else float(self.tenon > 0)

    @property
    def budget(self) -> int:
        return WINOGRAD_BUDGET if self.uses_winograd else BUDGET

    def text(self) -> str:
        errors = " | ".join(f"{e:.1e}" for e in (self.tenon, self.direct, self.onnxruntime, self.openvino))
        return f"| {self.name} | {errors} | {self.ratio:.2f} | {self.budget} | {'yes' if self.uses_winograd else 'no'} |"


def measure(tenon: Path, model: compare.Model, folder: Path, libraries: list[str]) -> Row:
    inputs = compare.make_inputs(model)
    inputs_file = folder / "inputs.npz"
    np.savez(inputs_file, **inputs)
    expected = exact_outputs(export_models.make(model.path.stem), inputs)
    names = compare.output_names(model)[: len(expected)]
    errors = {}
    for kind, flags in (("tenon", []), ("direct", ["--direct-convolutions"])):
        compiled = compare.Tenon(tenon, model, inputs, folder, libraries + flags, kind)
        errors[kind] = compare.difference(compiled.outputs(names, folder), expected)
    for engine in compare.PEERS:
        compare.Peer(engine, model, inputs_file, threads=1).close()
        errors[engine] = compare.difference(compare.stored_outputs(inputs_file, engine), expected)
    return Row(model.name, **errors)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tenon", type=Path, required=True)
    parser.add_argument("--models", type=Path, required=True)
    parser.add_argument("--only", help="names, comma-separated")
    parser.add_argument("--libraries", choices=["onednn", "none"], help="as for `tenon compile`")
    options = parser.parse_args()
    names = options.only.split(",") if options.only else sorted(set(export_models.NETWORKS) - {"vit_batch"})
    missing = [name for name in names if not (options.models / f"{name}.onnx").exists()]
    if missing:
        script = Path(export_models.__file__)
        subprocess.run([sys.executable, script, options.models, *missing], check=True)
    torch.backends.mha.set_fastpath_enabled(False)
    print(f"| {' | '.join(HEAD)} |\n{'| --- ' * len(HEAD)}|")
    libraries = ["--libraries", options.libraries] if options.libraries else []
    rows = []
    for name in names:
        for model in compare.exported(options.models / f"{name}.onnx"):
            with tempfile.TemporaryDirectory() as folder:
                rows.append(measure(options.tenon, model, Path(folder), libraries))
            print(rows[-1].text(), flush=True)
    if over := [row.name for row in rows if row.ratio > row.budget]:
        sys.exit(f"accuracy.py: over the budget: {', '.join(over)}")


if __name__ == "__main__":
    main()
