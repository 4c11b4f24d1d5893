#!/usr/bin/env python3
"""Compares one compiled BERT with ONNX Runtime at several batch sizes and lengths.

Usage: agree.py --tenon PROGRAM [--model BERT.onnx] [--shapes 1x8,2x16,...] [--tolerance T]

The model is compiled once; every shape runs from that file. Inputs are seeded: random tokens, and a
mask that hides the last tokens of every second row. Prints a line per shape with the greatest error
relative to the greatest magnitude of the output; exits with 1 if one exceeds the tolerance.
"""

import argparse
import sys
import tempfile
from pathlib import Path

import compare
import numpy as np
import onnxruntime

SHAPES = "1x1,1x8,2x16,3x33,4x64,1x128"


def inputs_of(batch: int, length: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(batch * 1000 + length)
    mask = np.ones((batch, length), np.int64)
    mask[1::2, length - length // 4 :] = 0
    return {
        "input_ids": rng.integers(0, 30522, (batch, length)),
        "attention_mask": mask,
        "token_type_ids": rng.integers(0, 2, (batch, length)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tenon", type=Path, required=True)
    parser.add_argument("--model", type=Path, default=Path("build/bench-models/bert.onnx"))
    parser.add_argument("--shapes", default=SHAPES)
    parser.add_argument("--tolerance", type=float, default=1e-4)
    options = parser.parse_args()
    model = compare.Model("bert", options.model, {})
    session = onnxruntime.InferenceSession(str(options.model), providers=["CPUExecutionProvider"])
    outputs = [output.name for output in session.get_outputs()]
    worst = 0.0
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        for shape in options.shapes.split(","):
            batch, length = map(int, shape.split("x"))
            inputs = inputs_of(batch, length)
            tenon = compare.Tenon(options.tenon.resolve(), model, inputs, folder, [], "agree")  # compiles only the first time
            line = []
            for name, found, expected in zip(outputs, tenon.outputs(outputs, folder), session.run(None, inputs), strict=True):
                if found.dtype != expected.dtype:
                    sys.exit(f"{shape}: {name}: {found.dtype}, not {expected.dtype}")
                error = compare.difference([found], [expected])
                worst = max(worst, error)
                line.append(f"{name} {error:.1e}")
            print(f"batch {batch}, length {length}: {', '.join(line)}", flush=True)
    agree = worst <= options.tolerance
    print(f"{'agree' if agree else 'DIFFER'}: greatest error {worst:.1e}, tolerance {options.tolerance:.0e}")
    sys.exit(0 if agree else 1)


if __name__ == "__main__":
    main()
