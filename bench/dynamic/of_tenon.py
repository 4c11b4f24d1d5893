"""The rows in Tenon: the programs of this folder, and the ONNX models that the peers run too."""

import json
import shutil
import subprocess
import sys
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
TOOL = HERE.parents[1] / "build/release/tools/tenon/tenon"
Call = Callable[[], np.ndarray]


def prepare(folder: Path) -> None:
    """Puts the programs and their weights side by side, as a program's weights must lie."""
    for program in HERE.glob("*.tn"):
        shutil.copy(program, folder)
    save_file(workloads.tree_weights(), folder / "tree_lstm.safetensors")
    for hidden in workloads.LSTM_SIZES:
        save_file(workloads.lstm_weights(hidden), folder / f"lstm_{hidden}.safetensors")


def machine(exe: tenon.Executable) -> tenon.VirtualMachine:
    return tenon.VirtualMachine(exe, threads=workloads.threads)


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


def outside_kernels(source: Path, inputs: dict[str, np.ndarray]) -> float:
    """The share of a call that is spent outside kernels and library functions, as `tenon bench` finds it."""
    if not TOOL.exists():
        sys.exit(f"there is no {TOOL}: cmake --build build/release --target tenon")
    with tempfile.TemporaryDirectory() as folder:
        for name, array in inputs.items():
            np.save(Path(folder, f"{name}.npy"), array)
        compiled = Path(folder, "model.tnx")
        subprocess.run([TOOL, "compile", source, "-o", compiled, "--quiet"], check=True)
        how = ["--threads", str(workloads.threads), "--duration", "1s", "--json", "--quiet"]
        command = [TOOL, "bench", compiled, "--inputs", folder, *how]
        shares = [json.loads(subprocess.check_output(command))["outside_kernels"] for _ in range(3)]
    return min(shares)  # the one that other processes disturbed least
