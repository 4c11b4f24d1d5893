"""The rows in Tenon: the programs of this folder, and the ONNX models that the peers run too."""

import json
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from safetensors.numpy import save_file

import tenon
import workloads

HERE = Path(__file__).resolve().parent
Call = Callable[[], np.ndarray]


def prepare(folder: Path) -> None:
    """Puts the programs and their weights side by side, as a program's weights must lie."""
    for program in HERE.glob("*.tn"):
        shutil.copy(program, folder)
    save_file(workloads.tree_weights(), folder / "tree_lstm.safetensors")
    for hidden in workloads.LSTM_SIZES:
        save_file(workloads.lstm_weights(hidden), folder / f"lstm_{hidden}.safetensors")


def machine(exe: tenon.Executable) -> tenon.VirtualMachine:
    return tenon.VirtualMachine(exe, threads=1)


def calls(function: Any, inputs: list[tuple[Any, ...]]) -> list[Call]:
    return [lambda i=i: np.asarray(function(*i)) for i in inputs]


def lstm(folder: Path, hidden: int, function: str, sentences: list[np.ndarray]) -> list[Call]:
    vm = machine(tenon.compile(folder / f"lstm_{hidden}.tn"))
    shaped = [s[:, None] if function.startswith("steps") else s for s in sentences]
    return calls(vm[function], [(s,) for s in shaped])


def tree_lstm(folder: Path, trees: list[tuple[workloads.Tree, np.ndarray]]) -> list[Call]:
    exe = tenon.compile(folder / "tree_lstm.tn")
    Leaf, Node = exe.types.Leaf, exe.types.Node

    def with_words(tree: workloads.Tree, words: np.ndarray) -> Any:
        if isinstance(tree, int):
            return Leaf(words[tree : tree + 1])
        return Node(*(with_words(t, words) for t in tree))

    return calls(machine(exe)["main"], [(with_words(tree, words),) for tree, words in trees])


def model(
    source: onnx.ModelProto | Path, inputs: list[tuple[np.ndarray, ...]], output: int | None = None
) -> list[Call]:
    main = machine(tenon.compile(source))["main"]
    return calls(main if output is None else lambda *i: main(*i)[output], inputs)


def in_kernels(call: Call, times: int = 5) -> tuple[float, float]:
    """Nanoseconds of a call of the machine, and of those the ones in kernels and library functions."""
    with tenon.profile() as p:
        for _ in range(times):
            call()
    with tempfile.TemporaryDirectory() as folder:
        p.save(f"{folder}/t.json")
        events = json.loads(Path(folder, "t.json").read_text())
    sessions = [e for e in events if e.get("cat") == "Session" and e.get("ph") == "X"]
    nodes = [e for e in events if e.get("cat") == "Node" and e.get("ph") == "X"]
    within = lambda n, s: s["ts"] <= n["ts"] and n["ts"] + n["dur"] <= s["ts"] + s["dur"]
    found = [(s["dur"], sum(n["dur"] for n in nodes if within(n, s))) for s in sessions]
    total, kernels = min(found, key=lambda f: f[0] - f[1])  # the one that other processes disturbed least
    return 1000 * total, 1000 * kernels
