#!/usr/bin/env python3
"""Compares Tenon with ONNX Runtime on random models of every operator (make_models.py).

Usage: compare_models.py [--package FOLDER] [--first SEED] [--count COUNT] [--seconds SECONDS] [--only OPERATOR]

Runs COUNT models from SEED on, for ever if COUNT is 0, or as many as SECONDS allow. A finding is printed with its number,
which `--first NUMBER --count 1 -v` makes again. Exits with 77 without the packages onnx and onnxruntime.

ONNX Runtime runs without optimizations, Tenon at a level that the number chooses. A model that ONNX Runtime refuses says
nothing. One that Tenon refuses because it doesn't implement something is counted by its reason; any other error is a
finding. What is known and isn't Tenon's mistake stands in known.py.
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import re
import signal
import sys
import time
import traceback
from collections.abc import Iterable
from pathlib import Path
from typing import Any

SKIPPED = 77
MOST_SECONDS = 60  # of one model, in every library together
MOST_ATTEMPTS = 8  # to make a model that ONNX Runtime takes


told_to = -1  # where a worker writes what it does


def differs(found: Any, expected: Any, tolerance: Any) -> str:
    """How two results differ, or an empty text."""
    if isinstance(expected, list):
        if not isinstance(found, (list, tuple)) or len(found) != len(expected):
            return f"{type(found).__name__} of {len(found)}, expected a list of {len(expected)}"
        return next((text for f, e in zip(found, expected) if (text := differs(f, e, tolerance))), "")
    if isinstance(expected, dict):
        if not isinstance(found, dict) or list(found) != list(expected):
            return f"the keys are {list(found)}, expected {list(expected)}"
        return next((text for key in expected if (text := differs(found[key], expected[key], tolerance))), "")
    if expected is None or found is None:
        return "" if expected is found else f"{found!r}, expected {expected!r}"
    found, expected = np.asarray(found), np.asarray(expected)
    if found.dtype != expected.dtype and not {found.dtype.kind, expected.dtype.kind} <= set("OU"):
        return f"the type is {found.dtype}, expected {expected.dtype}"
    if found.shape != expected.shape:
        return f"the shape is {found.shape}, expected {expected.shape}"
    close = tolerance(found, expected)
    if close.all():
        return ""
    at = tuple(int(i) for i in np.argwhere(~close)[0])
    return f"{int((~close).sum())} of {close.size} elements differ, the first at {list(at)}: {found[at]!r}, expected {expected[at]!r}"


class Tolerance:
    """By the element type that the operators compute in, the narrowest in the model."""

    RELATIVE = {"float64": 1e-6, "float32": 1e-4, "float16": 5e-3, "bfloat16": 4e-2}

    def __init__(self, model: Any, factor: float) -> None:
        text = model.text
        narrow = "bfloat16" if "bfloat16" in text else "float16" if "float16" in text else None
        self.narrow = narrow or ("float8" if "float8" in text or "float4" in text else None)
        self.factor = factor
        # Rounding to integers may go either way.
        quantizes = re.search(r"\b(Q\w*Linear\w*|DynamicQuantize\w*|QuantizeLinear)\b", text)
        self.step = 1 if quantizes else 0

    def __call__(self, found: Any, expected: Any) -> Any:
        same = found == expected
        if expected.dtype.kind not in "fciu" or expected.size == 0:
            return same
        if expected.dtype.kind in "iu":
            return np.abs(found.astype("float64") - expected.astype("float64")) <= self.step
        wide = "complex128" if expected.dtype.kind == "c" else "float64"
        f, e = found.astype(wide), expected.astype(wide)
        real = {"complex64": "float32", "complex128": "float64"}.get(expected.dtype.name, expected.dtype.name)
        relative = self.RELATIVE[real]
        if self.narrow:
            relative = max(relative, self.RELATIVE.get(self.narrow, 0.13))
        relative *= self.factor
        magnitude = np.where(np.isfinite(e), np.abs(e), 0)
        with np.errstate(invalid="ignore"):
            near = np.abs(f - e) <= relative * magnitude + 0.1 * relative * magnitude.max(initial=0) + 1e-30
        return same | near | (np.isnan(f) & np.isnan(e))


# ---- The worker, which a model may crash ----------------------------------------------------------------------------------


def tell(**what: Any) -> None:
    os.write(told_to, json.dumps(what).encode() + b"\n")


def run_reference(model: Any, inputs: dict[str, Any]) -> list[Any]:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model.proto.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, inputs)


def is_unstable(model: Any, expected: list[Any], tolerance: Tolerance) -> bool:
    """Whether the reference's own results change by more than the tolerance when its inputs change by a rounding error."""
    rng = np.random.default_rng(0)
    for _ in range(3):
        changed = {
            name: value * (1 + rng.uniform(-3e-7, 3e-7, value.shape).astype(value.dtype))
            if isinstance(value, np.ndarray) and value.dtype.kind == "f"
            else value
            for name, value in model.inputs.items()
        }
        try:
            again = run_reference(model, changed)
        except Exception:
            return True
        if differs(again, expected, tolerance):
            return True
    return False


def check(seed: int, keys: list[tuple[str, str]], newest: dict[str, int], verbose: bool) -> None:
    signal.alarm(MOST_SECONDS)
    tell(at="make", seed=seed)
    for attempt in range(MOST_ATTEMPTS):
        last = attempt == MOST_ATTEMPTS - 1
        try:
            model = make_models.make(seed, attempt, keys, newest)
        except make_models.Invalid as error:
            if not last:
                continue
            return tell(seed=seed, outcome="invalid", reason=str(error)[:200], operators=[])
        operators = [list(o) for o in model.operators]
        tell(at="onnxruntime", seed=seed, operators=operators)
        try:
            expected = run_reference(model, model.inputs)
            break
        except Exception as error:
            if last:
                return tell(seed=seed, outcome="refused by onnxruntime", reason=str(error)[:300], operators=operators)
    if verbose:
        print(model.text, file=sys.stderr)
        print(model.inputs, file=sys.stderr)
    level = seed // 4 % 4
    tell(at="tenon", seed=seed, operators=operators)
    try:
        libraries = {} if seed // 16 % 2 else {"libraries": "none"}
        session = tenon.InferenceSession(model.proto.SerializeToString(), level=level, **libraries)
        found = session.run(None, model.inputs)
    except tenon.UnsupportedError as error:
        reason = next((text for label, text, _ in error.rows if label == "reason"), str(error))
        return tell(seed=seed, outcome="not implemented", reason=reason[:300], operators=operators)
    except Exception as error:
        known = known_differences.reason_of(model, f"{type(error).__name__}: {error}")
        text = f"{type(error).__name__}: {error}"
        outcome = "known" if known else "error"
        return tell(seed=seed, outcome=outcome, reason=known or text[:1500], operators=operators, text=model.text, level=level)
    tolerance = Tolerance(model, known_differences.factor_of(model))
    text = differs(found, expected, tolerance)
    if not text:
        return tell(seed=seed, outcome="equal", operators=operators)
    known = known_differences.reason_of(model, text)
    if known:
        return tell(seed=seed, outcome="known", reason=known, operators=operators)
    if len(operators) > 1 and is_unstable(model, expected, tolerance):
        return tell(seed=seed, outcome="unstable", operators=operators)
    return tell(seed=seed, outcome="differs", reason=text, operators=operators, text=model.text, level=level)


def work(seeds: Iterable[int], keys: list[tuple[str, str]], verbose: bool) -> None:
    for seed in seeds:
        check(seed, keys, make_models.NEWEST, verbose)


# ---- The command ----------------------------------------------------------------------------------------------------------


class Tally:
    def __init__(self) -> None:
        self.outcomes: collections.Counter[str] = collections.Counter()
        self.compared: collections.Counter[tuple[str, ...]] = collections.Counter()
        self.known: collections.Counter[str] = collections.Counter()
        self.reasons: dict[tuple[str, str], tuple[int, int]] = {}
        self.keys: list[tuple[str, str]] = []
        self.findings = 0

    def add(self, told: dict[str, Any]) -> None:
        outcome = told["outcome"]
        self.outcomes[outcome] += 1
        if outcome in ("equal", "differs"):
            for domain, name, version in told["operators"]:
                self.compared[domain, name] += 1
        elif outcome == "known":  # what else the model computes isn't compared
            self.known[told["reason"]] += 1
        elif len(told["operators"]) == 1 and outcome != "unstable":
            name = told["operators"][0][1]
            reason = f"{name}: {outcome}: {told['reason']}"
            count, seed = self.reasons.get((outcome, reason), (0, told["seed"]))
            self.reasons[outcome, reason] = count + 1, seed
        if outcome in ("error", "differs", "died"):
            self.findings += 1
            names = " ".join(f"{name}-{version}" for _, name, version in told["operators"])
            print(f"finding {told['seed']} ({names}, -O{told.get('level')}): {told['reason']}", flush=True)
            if told.get("text"):
                print("  " + told["text"].replace("\n", "\n  "), flush=True)

    def summary(self, verbose: bool) -> None:
        print("; ".join(f"{count} {outcome}" for outcome, count in self.outcomes.most_common()))
        names = [f"{name} {self.compared[domain, name]}" for domain, name in self.keys]
        print(f"compared by operator: {', '.join(names)}")
        never = [name for domain, name in self.keys if not self.compared[domain, name]]
        print(f"never compared: {', '.join(never) or 'none'}")
        if verbose:
            for (outcome, reason), (count, seed) in sorted(self.reasons.items()):
                if outcome != "invalid":
                    print(f"{count} x {reason} (such as {seed})")
            for _, _, reason in known_differences.KNOWN:
                print(f"{self.known[reason]} x known: {reason}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--package", type=Path, help="the folder with the package tenon")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=0)
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--only", help="one operator")
    parser.add_argument("-v", "--verbose", action="store_true", help="print models, and why models were refused")
    options = parser.parse_args()
    keys = [key for key in make_models.cases() if key[0] in make_models.NEWEST and known_differences.is_compared(key)]
    tally = Tally()
    tally.keys = [key for key in keys if options.only in (None, key[1])]
    seed, end = options.first, time.monotonic() + (options.seconds or float("inf"))
    last = options.first + options.count if options.count else sys.maxsize
    try:
        while seed < last and time.monotonic() < end:
            seed = follow(range(seed, last), tally, options.verbose and options.count == 1, end)
    except KeyboardInterrupt:
        pass
    tally.summary(options.verbose)
    return 1 if tally.findings else 0


def follow(seeds: range, tally: Tally, verbose: bool, end: float) -> int:
    """Runs a worker until it ends, or dies of a model. Returns the next number."""
    global told_to
    told_here, told_to = os.pipe()
    sys.stdout.flush()
    worker = os.fork()
    if worker == 0:
        os.close(told_here)
        if not verbose:  # of libraries
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        try:
            work(seeds, tally.keys, verbose)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    os.close(told_to)
    state: dict[str, Any] = {}
    seed = seeds.start
    with open(told_here) as lines:
        for line in lines:
            told = json.loads(line)
            if "outcome" not in told:
                state = told
                continue
            tally.add(told)
            state, seed = {}, told["seed"] + 1
            if time.monotonic() > end:
                os.kill(worker, signal.SIGKILL)
                break
    code = os.waitstatus_to_exitcode(os.waitpid(worker, 0)[1])
    if not state:
        if code not in (0, -signal.SIGKILL):
            raise SystemExit(f"the worker failed with {code} at {seed}: run it with --first {seed} --count 1 -v")
        return seed
    outcome = "died" if state["at"] == "tenon" else f"died in {state['at']}"
    told = {"seed": state["seed"], "outcome": outcome, "operators": state.get("operators", [])}
    tally.add({**told, "reason": f"the process ended with {code}"})
    return state["seed"] + 1


if __name__ == "__main__":
    try:
        import numpy as np
        import onnx
        import onnxruntime
    except ImportError as missing:
        print(f"skipped: {missing}")
        sys.exit(SKIPPED)
    import known as known_differences
    import make_models

    if "--package" in sys.argv[1:-1]:
        sys.path.insert(0, os.path.abspath(sys.argv[sys.argv.index("--package") + 1]))
    import tenon

    sys.exit(main())
