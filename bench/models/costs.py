#!/usr/bin/env python3
"""Measures what a model costs besides its latency: compiling, loading, the first call, and memory, beside ONNX Runtime.

Usage: costs.py --tenon PROGRAM --models FOLDER [--filled FOLDER] [--loops | --recurrent | --int8 | --exported] [--only NAME,...]
                [--rounds N] [--threads N] [--json FILE]

The models are those of compare.py with the same flags. Engines take turns: in each round, each loads the model in a process of its own, from Python, and
calls it four times. Times are of the processor, of all threads of a process, since other programs may run meanwhile; a time is the least
of the rounds, a size their median.

  compile          time and peak memory of `tenon compile`; limits: 16 s, which are 8 on two processors, and 2.2 times the model's size
                   and 200 MB
  load and call    from the file to the first result: Tenon's of the compiled file, and the creation of ONNX Runtime's session with
                   its first run; limit: a half
  first to second  time of the first call divided by that of the second; limit: 1.1
  memory           the peak of the process, and in parentheses that before the model is loaded, with Python, NumPy, the engine and the
                   inputs; limit: 1.1 of ONNX Runtime's. `own` is the peak of `tenon bench`, which needs no Python

Tenon's Python package is the one beside the program, in `python`.
"""

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import compare
import numpy as np

MOST_COMPILE_S = 16.0
MOST_LOAD, MOST_FIRST, MOST_MEMORY = 0.5, 1.1, 1.1
CALLS = 4


def most_compile_mb(model_mb: float) -> float:
    return 2.2 * model_mb + 200


# Starts a command and prints its status, seconds of the processor and peak memory. What the system counts for a process begins with the memory of the one
# that started it, so that has to be a small one.
SMALL = """
import os, sys
output = os.open(os.devnull, os.O_WRONLY)
silent = [(os.POSIX_SPAWN_DUP2, output, 1), (os.POSIX_SPAWN_DUP2, output, 2)]
process = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ, file_actions=silent)
_, status, usage = os.wait4(process, 0)
print(status, usage.ru_utime + usage.ru_stime, usage.ru_maxrss)
"""


def peak_mb() -> float:
    """Of this process."""
    status = Path("/proc/self/status").read_text()
    return float(re.search(r"VmHWM:\s*(\d+)", status)[1]) / 1024


def load_onnxruntime(path: str, threads: int):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1

    def load():
        session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        return lambda inputs: session.run(None, inputs)

    return load


def load_tenon(path: str, threads: int):
    import tenon

    def load():
        function = tenon.VirtualMachine(tenon.load(path), threads=threads)["main"]
        return lambda inputs: function(**inputs)

    return load


def process_main(engine: str, path: str, inputs_file: str, threads: int) -> None:
    """One process of a round: prints its figures."""
    prepare = {"onnxruntime": load_onnxruntime, "tenon": load_tenon}[engine]
    load = prepare(path, threads)
    inputs = dict(np.load(inputs_file))
    figures = {"before_mb": peak_mb()}
    start = time.process_time()
    call = load()
    figures["load_ms"] = 1000 * (time.process_time() - start)
    calls = []
    for _ in range(CALLS):
        begin = time.process_time()
        call(inputs)
        calls.append(1000 * (time.process_time() - begin))
    figures |= {"first_ms": calls[0], "second_ms": calls[1], "peak_mb": peak_mb()}
    print(json.dumps(figures))


def run_process(engine: str, path: Path, inputs_file: Path, options) -> dict:
    python_path = options.tenon.parents[2] / "python"
    environment = os.environ | {"PYTHONPATH": str(python_path)}
    arguments = [sys.executable, __file__, "--process", engine, path, inputs_file, options.threads]
    text = subprocess.run([str(a) for a in arguments], env=environment, check=True, capture_output=True, text=True).stdout
    return json.loads(text.splitlines()[-1])


def peak_of(arguments: list) -> tuple[float, float]:
    """Seconds of the processor and MB of a command."""
    command = [sys.executable, "-S", "-c", SMALL, *(str(a) for a in arguments)]
    status, seconds, kilobytes = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    if status != "0":
        raise RuntimeError(f"{arguments[0]} {arguments[1]}: status {status}")
    return float(seconds), int(kilobytes) / 1024


def size_mb(path: Path) -> float:
    """Of the model with its external data."""
    import onnx

    model = onnx.load(path, load_external_data=False)
    external = {entry.value for tensor in model.graph.initializer for entry in tensor.external_data if entry.key == "location"}
    return sum(file.stat().st_size for file in (path, *(path.parent / name for name in external))) / 2**20


def measure(model: compare.Model, options, folder: Path) -> dict:
    inputs = compare.make_inputs(model)
    inputs_file = folder / "inputs.npz"
    np.savez(inputs_file, **inputs)
    given = []
    for i, (name, value) in enumerate(inputs.items()):
        np.save(folder / f"in-{i}.npy", value)
        given += ["--input", f"{name}={folder}/in-{i}.npy"]
    compiled = folder / "model.tnx"
    bench = [options.tenon, "bench", compiled, *given, "--threads", options.threads, "--iterations", "3", "--warmup", "0"]
    rounds = []
    for _ in range(options.rounds):
        figures = dict(zip(("compile_s", "compile_mb"), peak_of([options.tenon, "compile", model.path, "-o", compiled])))
        for engine, path in (("tenon", compiled), ("onnxruntime", model.path)):
            found = run_process(engine, path, inputs_file, options)
            figures |= {f"{engine}_{key}": value for key, value in found.items()}
        figures["own_mb"] = peak_of(bench)[1]
        rounds.append(figures)
    row = {"model": model.name, "model_mb": size_mb(model.path), "file_mb": compiled.stat().st_size / 2**20}
    for key in rounds[0]:
        choose = statistics.median if key.endswith("_mb") else min
        row[key] = choose(figures[key] for figures in rounds)
    for engine in ("tenon", "onnxruntime"):
        row[f"{engine}_both_ms"] = min(f[f"{engine}_load_ms"] + f[f"{engine}_first_ms"] for f in rounds)
    row["load"] = row["tenon_both_ms"] / row["onnxruntime_both_ms"]
    row["first"] = row["tenon_first_ms"] / row["tenon_second_ms"]
    row["memory"] = row["tenon_peak_mb"] / row["onnxruntime_peak_mb"]
    return row


def marked(value: float, most: float, digits: int = 2) -> str:
    text = f"{value:.{digits}f}"
    return f"**{text}**" if value > most else text


HEAD = (
    "model", "size, MB", "file, MB", "compile, s", "its memory, MB", "load and call, ms", "ONNX Runtime's, ms", "ratio",
    "first call, ms", "second, ms", "ratio", "memory, MB", "ONNX Runtime's, MB", "ratio", "own, MB",
)  # fmt: skip


def line(row: dict) -> str:
    memory = lambda engine: f"{row[f'{engine}_peak_mb']:.0f} ({row[f'{engine}_before_mb']:.0f})"
    cells = (
        row["model"],
        f"{row['model_mb']:.0f}",
        f"{row['file_mb']:.0f}",
        marked(row["compile_s"], MOST_COMPILE_S),
        marked(row["compile_mb"], most_compile_mb(row["model_mb"]), 0),
        f"{row['tenon_both_ms']:.1f}",
        f"{row['onnxruntime_both_ms']:.1f}",
        marked(row["load"], MOST_LOAD),
        f"{row['tenon_first_ms']:.2f}",
        f"{row['tenon_second_ms']:.2f}",
        marked(row["first"], MOST_FIRST),
        memory("tenon"),
        memory("onnxruntime"),
        marked(row["memory"], MOST_MEMORY),
        f"{row['own_mb']:.0f}",
    )
    return f"| {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tenon", type=Path, required=True)
    parser.add_argument("--models", type=Path, required=True)
    parser.add_argument("--filled", type=Path)
    compare.add_kinds(parser)
    parser.add_argument("--only", help="names, comma-separated")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--json", type=Path, help="also write the rows there")
    options = parser.parse_args()
    options.tenon = options.tenon.resolve()
    print(f"| {' | '.join(HEAD)} |\n|{' --- |' * len(HEAD)}")
    rows = []
    for model in compare.find_models(options.models, options.filled, options.kind):
        if options.only and model.name not in options.only.split(","):
            continue
        with tempfile.TemporaryDirectory() as folder:
            rows.append(measure(model, options, Path(folder)))
        print(line(rows[-1]), flush=True)
    if options.json:
        options.json.write_text(json.dumps(rows, indent=2) + "\n")


if __name__ == "__main__":
    if len(sys.argv) > 1 and sys.argv[1] == "--process":
        process_main(sys.argv[2], sys.argv[3], sys.argv[4], int(sys.argv[5]))
    else:
        main()
