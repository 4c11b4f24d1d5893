#!/usr/bin/env python3
"""Compares models of symbolic dimensions with the same models compiled for these sizes.

Usage: dynamic.py --tenon PROGRAM --models FOLDER [--only NAME,...] [--rounds N] [--json FILE]

BERT-base of make_models.py with a symbolic batch and sequence, ViT-B/16 of export_models.py with a symbolic batch (`vit_batch`),
and a product of [m, 768] with a constant [768, 768] for twenty values of m. Both files of a model are called in turns in one
process, on one thread; a round is as many calls of each as take five milliseconds. A time is the median over the rounds of a call's
time of the processor, a ratio the median of the rounds' ratios. The limit is 1.03.

Tenon's Python package is the one beside the program, in `python`.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import compare
import numpy as np

HERE = Path(__file__).resolve().parent
MOST = 1.03
MOST_DIFFERENCE = 1e-5  # of results, relative to the greatest magnitude
STRETCH_MS = 5.0
ROWS = (1, 2, 3, 4, 6, 8, 12, 16, 17, 24, 31, 32, 48, 64, 100, 128, 200, 256, 384, 512)
WIDTH = 768


def product_model(path: Path) -> None:
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    weights = np.random.default_rng(1).standard_normal((WIDTH, WIDTH), np.float32)
    value = lambda name: helper.make_tensor_value_info(name, TensorProto.FLOAT, ["m", WIDTH])
    node = helper.make_node("MatMul", ["x", "w"], ["y"])
    graph = helper.make_graph([node], "product", [value("x")], [value("y")], [numpy_helper.from_array(weights, "w")])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def find_cases(models: Path, folder: Path) -> list[tuple[str, Path, dict[str, int]]]:
    """Name, model, and sizes of its symbols."""
    if not (models / "bert.onnx").exists():
        subprocess.run([sys.executable, HERE / "make_models.py", models, "bert"], check=True)
    if not (models / "vit_batch.onnx").exists():
        subprocess.run([sys.executable, HERE / "export_models.py", models, "vit_batch"], check=True)
    product_model(folder / "product.onnx")
    cases = [(f"bert-{n}", models / "bert.onnx", {"batch": 1, "sequence": n}) for n in (32, 128)]
    cases += [(f"vit, batch {n}", models / "vit_batch.onnx", {"batch": n}) for n in (1, 2)]
    return cases + [(f"product, {m} rows", folder / "product.onnx", {"m": m}) for m in ROWS]


def timed(call, repeats: int) -> float:
    """Milliseconds of the processor."""
    start = time.process_time()
    for _ in range(repeats):
        call()
    return 1000 * (time.process_time() - start) / repeats


def measure(name: str, model: Path, sizes: dict[str, int], options, folder: Path) -> dict:
    import onnx
    import tenon

    dims = [flag for symbol, size in sizes.items() for flag in ("--dim", f"{symbol}={size}")]
    inputs = {}
    for value in onnx.load(model, load_external_data=False).graph.input:
        inputs[value.name] = [sizes.get(d.dim_param, d.dim_value) for d in value.type.tensor_type.shape.dim]
    given = compare.make_inputs(compare.Model(name, model, inputs))
    calls = {}
    for kind, flags in (("symbolic", []), ("fixed", dims)):
        file = folder / f"{kind}.tnx"
        subprocess.run([options.tenon, "compile", "-q", model, *flags, "-o", file], check=True)
        function = tenon.VirtualMachine(tenon.load(file), threads=1)["main"]
        calls[kind] = lambda function=function: function(**given)
    results = [call() for call in calls.values()]
    first, second = (value if isinstance(value, tuple) else (value,) for value in results)
    error = compare.difference([np.asarray(v) for v in first], [np.asarray(v) for v in second])
    if error > MOST_DIFFERENCE:
        raise RuntimeError(f"{name}: results differ by {error:.1e}")
    repeats = max(1, round(STRETCH_MS / timed(calls["fixed"], 3)))
    times = {kind: [] for kind in calls}
    for _ in range(options.rounds):
        for kind, call in calls.items():
            times[kind].append(timed(call, repeats))
    ratios = [a / b for a, b in zip(times["symbolic"], times["fixed"])]
    row = {"model": name, **{kind: statistics.median(values) for kind, values in times.items()}}
    return row | {"ratio": statistics.median(ratios)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tenon", type=Path, required=True)
    parser.add_argument("--models", type=Path, required=True)
    parser.add_argument("--only", help="the first words of names, comma-separated")
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--json", type=Path, help="also write the rows there")
    options = parser.parse_args()
    sys.path.insert(0, str(options.tenon.resolve().parents[2] / "python"))
    only = tuple(options.only.split(",")) if options.only else ("",)
    print("| model | symbolic, ms | fixed, ms | ratio |\n| --- | --- | --- | --- |")
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name, model, sizes in find_cases(options.models, Path(folder)):
            if not name.startswith(only):
                continue
            row = measure(name, model, sizes, options, Path(folder))
            ratio = f"{row['ratio']:.2f}" if row["ratio"] <= MOST else f"**{row['ratio']:.2f}**"
            print(f"| {name} | {row['symbolic']:.4f} | {row['fixed']:.4f} | {ratio} |", flush=True)
            rows.append(row)
    if rows:
        print(f"| geometric mean | | | {compare.geometric_mean([row['ratio'] for row in rows]):.2f} |")
    if options.json:
        options.json.write_text(json.dumps(rows, indent=2) + "\n")


if __name__ == "__main__":
    main()
