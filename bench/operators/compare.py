#!/usr/bin/env python3
"""Times single ONNX operators in Tenon and ONNX Runtime, and prints a table of ratios.

Usage: compare.py [--only TEXT,...] [--rounds N] [--seconds S] [--threads N] [--json FILE] [--list]

  --only TEXT,...  the rows whose names contain one of these
  --rounds N       turns that every engine gets (7)
  --seconds S      time of an engine's turn (0.05)
  --threads N      that every engine may use (1)
  --json FILE      also write the figures there
  --list           print the rows' names

The package tenon must be importable beside those of requirements.txt.

A row is a model of one operator, each call from Python with arrays that are ready. The results of both engines are
compared before anything is timed. Engines take turns, so that a slow moment of the machine affects both; times are by
the clock, the median over the rounds, and a ratio is the median of the rounds' ratios, Tenon's time divided by ONNX
Runtime's. Models mostly spend their time elsewhere: what a row says is whether an operator has a kernel worth its name.
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable

import numpy as np
import onnxruntime
import tenon
from rows import Array, Row, all_rows

TOLERANCE = {"float16": 1e-3}  # of a difference, relative to the greatest magnitude
PAUSE = 0.02  # seconds, after which the last engine's threads wait without spinning


def turn(call: Callable[[], object], seconds: float) -> float:
    """The time of a call, in µs: the mean of as many as fit."""
    time.sleep(PAUSE)
    calls, start = 0, time.perf_counter()
    while True:
        call()
        calls += 1
        elapsed = time.perf_counter() - start
        if elapsed > seconds:
            return 1e6 * elapsed / calls


def difference(a: Array, b: Array) -> float:
    if a.shape != b.shape or a.dtype != b.dtype:
        return np.inf
    if a.dtype.kind in "biu":
        return float(np.any(a != b))
    a, b = a.astype(np.float64), b.astype(np.float64)
    return float(np.max(np.abs(a - b), initial=0) / (np.max(np.abs(b), initial=0) + 1e-30))


def measure(row: Row, rounds: int, seconds: float, threads: int) -> dict:
    model = row.model()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    feeds = {f"x{i}": x for i, x in enumerate(row.inputs)}
    function = tenon.VirtualMachine(tenon.compile(model), threads=threads)["main"]

    def of_tenon() -> list[Array]:
        result = function(*row.inputs)
        return list(result) if isinstance(result, tuple) else [result]

    worst = max(difference(np.asarray(a), b) for a, b in zip(of_tenon(), session.run(None, feeds), strict=True))
    engines = {"Tenon": of_tenon, "ONNX Runtime": lambda: session.run(None, feeds)}
    for call in engines.values():
        turn(call, seconds / 4)
    found: dict[str, list[float]] = {name: [] for name in engines}
    for _ in range(rounds):
        for name, call in engines.items():
            found[name].append(turn(call, seconds))
    ratio = statistics.median(t / o for t, o in zip(*found.values()))
    medians = {name: statistics.median(times) for name, times in found.items()}
    return {"name": row.name, "ratio": ratio, "difference": worst, **medians}


def main() -> None:
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--only", default="")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=0.05)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--json")
    parser.add_argument("--list", action="store_true")
    arguments = parser.parse_args()
    rows = [r for r in all_rows() if any(text in r.name for text in arguments.only.split(","))]
    if arguments.list:
        print("\n".join(r.name for r in rows))
        return
    results = []
    print(f"{'operator':<36} {'Tenon':>10} {'ORT':>10} {'ratio':>7}")
    for row in rows:
        r = measure(row, arguments.rounds, arguments.seconds, arguments.threads)
        results.append(r)
        note = (
            ""
            if r["difference"] <= TOLERANCE.get(str(row.inputs[0].dtype), 1e-4)
            else f"  results differ by {r['difference']:.1g}"
        )
        print(f"{row.name:<36} {r['Tenon']:>7.1f} µs {r['ONNX Runtime']:>7.1f} µs {r['ratio']:>7.2f}{note}", flush=True)
    ratios = [r["ratio"] for r in results]
    print(f"geometric mean of {len(ratios)}: {statistics.geometric_mean(ratios):.2f}; greatest: {max(ratios):.1f}")
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump(results, file, indent=1)


if __name__ == "__main__":
    main()
