#!/usr/bin/env python3
"""Compares models of symbolic dimensions with the same models compiled for these sizes.

Usage: dynamic.py --tenon PROGRAM --models FOLDER [--only NAME,...] [--rounds N] [--seconds S] [--json FILE]

BERT-base of make_models.py with a symbolic batch and sequence, ViT-B/16 of export_models.py with a symbolic batch (`vit_batch`),
and a product of [m, 768] with a constant [768, 768] for twenty values of m. Both files of a model take turns, one thread each; a time
is the least of all rounds' calls, since a busy machine only adds to it. The limit is a ratio of 1.03.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import compare
import numpy as np

HERE = Path(__file__).resolve().parent
MOST = 1.03
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


def least_ms(tenon: Path, file: Path, sizes: list[str], seconds: float) -> float:
    command = [tenon, "bench", file, *sizes, "--threads", "1", "--duration", str(seconds), "--json"]
    return float(json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)["min_ms"])


def measure(name: str, model: Path, sizes: dict[str, int], options, folder: Path) -> dict:
    dims = [flag for symbol, size in sizes.items() for flag in ("--dim", f"{symbol}={size}")]
    symbolic, fixed = folder / f"{model.stem}.tnx", folder / "fixed.tnx"
    if not symbolic.exists():
        subprocess.run([options.tenon, "compile", "-q", model, "-o", symbolic], check=True)
    subprocess.run([options.tenon, "compile", "-q", model, *dims, "-o", fixed], check=True)
    times = {"symbolic": [], "fixed": []}
    for _ in range(options.rounds):
        times["symbolic"].append(least_ms(options.tenon, symbolic, dims, options.seconds))
        times["fixed"].append(least_ms(options.tenon, fixed, [], options.seconds))
    row = {"model": name, **{key: min(values) for key, values in times.items()}}
    row["ratio"] = row["symbolic"] / row["fixed"]
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tenon", type=Path, required=True)
    parser.add_argument("--models", type=Path, required=True)
    parser.add_argument("--only", help="the first words of names, comma-separated")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument("--json", type=Path, help="also write the rows there")
    options = parser.parse_args()
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
