#!/usr/bin/env python3
"""Measures models with and without calls that run at the same time (--inter-op), in turns.

Usage: inter_op.py --tenon TENON MODEL.onnx... [--threads N --rounds N --seconds S]

For each model, a table row of the median over the rounds of a run's median latency in ms: on one thread; on N, with the
calls in order; with groups of calls, but in order; and with --inter-op N. The ratio is that of the last to the second.
"""

import argparse
import json
import statistics
import subprocess
import tempfile
from pathlib import Path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--tenon", required=True, type=Path)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1)
    options = parser.parse_args()
    many = ["--threads", str(options.threads)]
    together = ["--inter-op", str(options.threads)]

    def tenon(*arguments: str) -> str:
        command = [str(options.tenon.resolve()), *arguments, "--quiet"]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    print("| model | 1 thread | in order | groups, in order | groups | ratio |\n| --- | --- | --- | --- | --- | --- |")
    for model in options.models:
        with tempfile.TemporaryDirectory() as folder:
            plain, grouped = f"{folder}/plain.tnx", f"{folder}/grouped.tnx"
            tenon("compile", str(model), "-o", plain)
            tenon("compile", str(model), "-o", grouped, *together)
            ways = [
                [plain, "--threads", "1"],
                [plain, *many],
                [grouped, *many],
                [grouped, *many, *together],
            ]
            found: list[list[float]] = [[] for _ in ways]
            for _ in range(options.rounds):
                for way, times in zip(ways, found, strict=True):
                    output = tenon("bench", *way, "--duration", f"{options.seconds}s", "--json")
                    times.append(json.loads(output)["p50_ms"])
        medians = [statistics.median(times) for times in found]
        figures = " | ".join(f"{ms:.3g}" for ms in medians)
        print(f"| {model.stem} | {figures} | {medians[3] / medians[1]:.2f} |", flush=True)


if __name__ == "__main__":
    main()
