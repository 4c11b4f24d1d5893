#!/usr/bin/env python3
"""Compares ensembles of trees that scikit-learn trains with ONNX Runtime, for a few rows and for many.

Usage: estimators.py --python FOLDER [--threads N] [--rounds N]

FOLDER has Tenon's Python package. The ensembles are trained on 1,000 random rows of 20 features. Each engine is called from Python
with sixteen inputs in turns, so that no processor can learn the way of every row. In a round each engine is called for as many
times as take about 20 ms, with no thread of the other one alive. A time is the least of the rounds' mean times of a call.
"""

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import onnxruntime
import skl2onnx
from skl2onnx.common.data_types import FloatTensorType
from sklearn.ensemble import GradientBoostingRegressor, RandomForestClassifier, RandomForestRegressor

FEATURES = 20
ROWS = (1, 10, 100, 1000)
INPUTS = 16
STRETCH_S = 0.02


def models() -> Iterator[tuple[str, bytes]]:
    random = np.random.default_rng(0)
    x = random.normal(size=(1000, FEATURES)).astype(np.float32)
    y = x[:, 0] * x[:, 1] + x[:, 2]
    classes = (y > 0).astype(int) + (x[:, 3] > 0.5)
    estimators = {
        "100 trees of a forest, 3 classes": RandomForestClassifier(100, random_state=0).fit(x, classes),
        "100 trees of a forest, regression": RandomForestRegressor(100, random_state=0).fit(x, y),
        "100 boosted trees of depth 3": GradientBoostingRegressor(random_state=0).fit(x, y),
    }
    for name, estimator in estimators.items():
        for zipmap in (False, True) if name.endswith("classes") else (None,):
            options = {} if zipmap is None else {"zipmap": zipmap}
            model = skl2onnx.to_onnx(estimator, initial_types=[("x", FloatTensorType([None, FEATURES]))], options=options)
            yield name + (", as dicts" if zipmap else ""), model.SerializeToString()


@contextmanager
def tenon_call(model: bytes, threads: int) -> Iterator[Callable]:
    import tenon

    yield tenon.VirtualMachine(tenon.compile(model), threads=threads)["main"]


@contextmanager
def onnxruntime_call(model: bytes, threads: int) -> Iterator[Callable]:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(model, options)
    yield lambda x: session.run(None, {"x": x})


def numbers(results) -> np.ndarray:
    """The last result: scores, or dicts of them."""
    last = results[-1] if isinstance(results, (tuple, list)) else results
    if isinstance(last, (tuple, list)) and isinstance(last[0], dict):
        last = [list(scores.values()) for scores in last]
    return np.asarray(last, dtype=np.float64).ravel()


def time_of(call: Callable, inputs: list[np.ndarray]) -> float:
    calls, start = 0, time.perf_counter()
    while time.perf_counter() - start < STRETCH_S:
        for x in inputs:
            call(x)
        calls += len(inputs)
    return (time.perf_counter() - start) / calls


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", required=True, help="the folder of Tenon's Python package")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    sys.path.insert(0, args.python)

    random = np.random.default_rng(1)
    print("| model | rows | Tenon, µs | ONNX Runtime, µs | ratio | difference |\n| --- | --- | --- | --- | --- | --- |")
    for name, model in models():
        for rows in ROWS:
            inputs = [random.normal(size=(rows, FEATURES)).astype(np.float32) for _ in range(INPUTS)]
            times: dict[Callable, list[float]] = {tenon_call: [], onnxruntime_call: []}
            results = {}
            for _ in range(args.rounds):
                for engine in times:
                    with engine(model, args.threads) as call:
                        results[engine] = numbers(call(inputs[0]))
                        times[engine].append(time_of(call, inputs))
            ours, theirs = (min(measured) * 1e6 for measured in times.values())
            difference = np.max(np.abs(results[tenon_call] - results[onnxruntime_call]))
            print(f"| {name} | {rows} | {ours:.1f} | {theirs:.1f} | {ours / theirs:.2f} | {difference:.1e} |", flush=True)


if __name__ == "__main__":
    main()
