#!/usr/bin/env python3
"""Times models in Tenon, ONNX Runtime and OpenVINO in the same run and prints a table of ratios.

Usage: compare.py --tenon PROGRAM [--models FOLDER] [--filled FOLDER] [--loops | --recurrent | --int8 | --exported]
                  [--only NAME,...]
                  [--threads 1,2] [--rounds N] [--seconds S] [--compile-flags FLAGS] [--json FILE]
                  [--peak PROGRAM]

  --peak PROGRAM   bench_kernels, which measures what one core can do in registers, in turns with the
                   rest; by default the one in the build folder of --tenon
  --models FOLDER  the models of make_models.py or quantise.py, which are made there if they are missing
  --loops          an LSTM of 2,000 steps and a Loop of 1,000 iterations instead of the networks
  --recurrent      LSTMs, GRUs and RNNs of 100 steps instead of the networks; `limit` is the time that reading the
                   weights of the recurrence once for each step takes in the same rounds, in one thread
  --exported       every model in the folder, of fixed shapes or with a dimension `past`, as export_models.py writes them
  --int8           the models of quantise.py, of 8-bit integers, instead of the networks
  --filled FOLDER  a folder of ONNX's vision networks with weights (`resnet50/model.onnx`, ...);
                   without it these networks are left out

Everything but --int8 is fp32. Every engine gets the same seeded inputs, batch 1 where nothing else is said. Engines take turns, one timed
run each per round, so that a slow moment of the machine affects all of them; a figure is the median
over the rounds of a run's median latency. Ratios are Tenon's time divided by the peer's: below 1 is
faster. `own` is Tenon compiled with --libraries none: only its own kernels. GFLOP/s count the
multiplications and additions of convolutions, matrix products and recurrent layers, divided by the
time of the whole model; `peak` is the median of one core's rate over the same rounds. `difference`
is the greatest |Tenon - ONNX Runtime| over all outputs, relative to the greatest magnitude.
"""

import argparse
import ctypes
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
PEERS = ("onnxruntime", "openvino")
STEPS = 100  # of recurrent networks
PAST_TOKENS = (128, 512)  # of decoders


@dataclass
class Model:
    name: str
    path: Path
    shapes: dict[str, list[int]]  # values of symbolic dimensions: input to shape


def add_kinds(parser: argparse.ArgumentParser) -> None:
    """Adds a flag for each kind of models but the networks; the result's `kind` is for find_models."""
    group = parser.add_mutually_exclusive_group()
    for kind in ("loops", "recurrent", "int8", "exported"):
        group.add_argument(f"--{kind}", action="store_const", dest="kind", const=kind, default="networks")


def find_models(models: Path, filled: Path | None, kind: str) -> list[Model]:
    if kind == "exported":
        return [model for path in sorted(models.glob("*.onnx")) for model in exported(path)]
    if kind == "int8":
        return find_quantised(models, filled)
    if kind == "recurrent":
        return find_recurrent(models)
    return find_loops(models) if kind == "loops" else find_networks(models, filled)


def make_missing(models: Path, names: Iterable[str], script: str = "make_models.py", *flags) -> None:
    missing = [name for name in names if not (models / f"{name}.onnx").exists()]
    if missing:
        subprocess.run([sys.executable, HERE / script, *flags, models, *missing], check=True)


def find_networks(models: Path, filled: Path | None) -> list[Model]:
    names = ("mobilenetv2", "resnet18", "inceptionv3")
    make_missing(models, (*names, "bert"))
    from_onnx = ("resnet50", "squeezenet", "shufflenet", "vgg19") if filled else ()
    found = [Model(name, filled / name / "model.onnx", {}) for name in from_onnx]
    found += [Model(name, models / f"{name}.onnx", {}) for name in names]
    return found + bert_models("bert", models / "bert.onnx")


def find_loops(models: Path) -> list[Model]:
    found = [
        Model("lstm-2000", models / "lstm.onnx", {"x": [2000, 1, 32]}),
        Model("loop-1000", models / "loop.onnx", {}),
    ]
    make_missing(models, [model.path.stem for model in found])
    return found


def exported(path: Path) -> list[Model]:
    """The model, once for each number of past tokens if it has a cache."""
    import onnx

    inputs = onnx.load(path, load_external_data=False).graph.input
    dims = {value.name: value.type.tensor_type.shape.dim for value in inputs}
    caches = [name for name, shape in dims.items() if any(d.dim_param == "past" for d in shape)]
    if not caches:
        return [Model(path.stem, path, {})]
    sizes = lambda name, past: [past if d.dim_param == "past" else d.dim_value for d in dims[name]]
    return [Model(f"{path.stem}-{past}", path, {n: sizes(n, past) for n in caches}) for past in PAST_TOKENS]


def find_recurrent(models: Path) -> list[Model]:
    from make_models import RECURRENT

    make_missing(models, RECURRENT)
    return [
        Model(f"{name}, batch {batch}" if batch > 1 else name, models / f"{name}.onnx", {"x": [STEPS, batch, 300]})
        for name, (_, _, both) in RECURRENT.items()
        for batch in ((1,) if both else (1, 4))
    ]


class Stream:
    """Reads arrays as large as weights, back and forth."""

    def __init__(self, folder: Path):
        library = folder / "stream.so"
        source = HERE.parent / "dynamic" / "stream.c"
        subprocess.run(["cc", "-O3", "-march=native", "-shared", "-fPIC", source, "-o", library], check=True)
        self.read = ctypes.CDLL(str(library)).read_floats
        self.read.restype = ctypes.c_float
        self.read.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t]

    def ms(self, size: int, seconds: float) -> float:
        """The time of reading `size` bytes once for each step."""
        array = np.ones(size // 4 + 16, np.float32)
        start = -(-array.ctypes.data // 64) * 64
        return 1000 * statistics.median(timed_stretch(lambda: self.read(start, size // 4, STEPS), seconds))


def recurrent_bytes(model: Model) -> list[int]:
    """Of the weights that each step reads, of each layer and direction."""
    import onnx

    graph = onnx.load(model.path).graph
    shapes = {tensor.name: list(tensor.dims) for tensor in graph.initializer}
    found = [shapes[node.input[2]] for node in graph.node if node.op_type in ("LSTM", "GRU", "RNN")]
    return [4 * rows * columns for directions, rows, columns in found for _ in range(directions)]


def find_quantised(models: Path, filled: Path | None) -> list[Model]:
    from quantise import FILLED, NAMES

    names = NAMES + FILLED * bool(filled)
    make_missing(models, names, "quantise.py", *(("--filled", filled) if filled else ()))
    fixed = [Model(name, models / f"{name}.onnx", {}) for name in names if name != "bert-dynamic"]
    return fixed + bert_models("bert-dynamic", models / "bert-dynamic.onnx")


def bert_models(name: str, path: Path) -> list[Model]:
    inputs = ("input_ids", "attention_mask", "token_type_ids")
    return [
        Model(f"{name}-{tokens}", path, {key: [1, tokens] for key in inputs}) for tokens in (32, 128)
    ]


def make_inputs(model: Model) -> dict[str, np.ndarray]:
    """Seeded inputs: images in [0, 1), token ids below 1000, a mask of ones."""
    import onnx

    rng = np.random.default_rng(1)
    graph = onnx.load(model.path, load_external_data=False).graph
    weights = {tensor.name for tensor in graph.initializer}
    inputs = {}
    for value in graph.input:
        if value.name in weights:
            continue
        tensor = value.type.tensor_type
        shape = model.shapes.get(value.name) or [d.dim_value or 1 for d in tensor.shape.dim]
        dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type)
        if np.issubdtype(dtype, np.integer):
            high = {"attention_mask": 2, "token_type_ids": 2}.get(value.name, 1000)
            low = 1 if value.name == "attention_mask" else 0
            inputs[value.name] = rng.integers(low, high, shape).astype(dtype)
        else:
            inputs[value.name] = rng.random(shape).astype(dtype)
    return inputs


def timed_stretch(call, seconds: float) -> list[float]:
    times, end = [], time.perf_counter() + seconds
    while time.perf_counter() < end or len(times) < 3:
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return times


def peer_main(engine: str, path: str, inputs_file: str, threads: int) -> None:
    """The process of a peer: loads the model, then makes a timed run for each line on its input."""
    inputs = dict(np.load(inputs_file))
    if engine == "onnxruntime":
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        call = lambda: session.run(None, inputs)
        outputs = call()
        version = onnxruntime.__version__
    else:
        import openvino

        core = openvino.Core()
        config = {
            "INFERENCE_PRECISION_HINT": "f32",
            "INFERENCE_NUM_THREADS": str(threads),
            "NUM_STREAMS": "1",
        }
        request = core.compile_model(path, "CPU", config).create_infer_request()
        call = lambda: request.infer(inputs)
        call()
        outputs = [tensor.data.copy() for tensor in request.output_tensors]
        version = openvino.__version__.split("-")[0]
    np.savez(inputs_file + f".{engine}.npz", *outputs)
    for _ in range(3):
        call()
    print(json.dumps({"ready": True, "version": version}), flush=True)
    for line in sys.stdin:
        print(json.dumps(timed_stretch(call, float(line))), flush=True)


def stored_outputs(inputs_file: Path, engine: str) -> list[np.ndarray]:
    """Of the peer's first call."""
    stored = np.load(f"{inputs_file}.{engine}.npz")
    return [stored[f"arr_{i}"] for i in range(len(stored.files))]


class Peer:
    def __init__(self, engine: str, model: Model, inputs_file: Path, threads: int):
        arguments = [sys.executable, __file__, "--peer", engine, model.path, inputs_file, threads]
        self.process = subprocess.Popen(
            [str(a) for a in arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.version = json.loads(self.answer())["version"]

    def answer(self) -> str:
        for line in self.process.stdout:
            if line.startswith(("{", "[")):
                return line
        raise RuntimeError(f"a peer ended early, exit code {self.process.wait()}")

    def median_ms(self, seconds: float) -> float:
        self.process.stdin.write(f"{seconds}\n")
        self.process.stdin.flush()
        return 1000 * statistics.median(json.loads(self.answer()))

    def close(self) -> None:
        self.process.stdin.close()
        self.process.wait()


class Tenon:
    """Compiled once; each timed run is a separate `tenon bench`."""

    def __init__(
        self, tenon: Path, model: Model, inputs: dict, folder: Path, flags: list[str], kind: str
    ):
        self.tenon = tenon
        self.file = folder / f"{model.path.parent.name}-{model.path.stem}-{kind}.tnx"
        self.compile_s = None
        if not self.file.exists():
            start = time.perf_counter()
            self.run("compile", model.path, "-o", self.file, *flags)
            self.compile_s = time.perf_counter() - start
        self.inputs = []
        for i, (name, value) in enumerate(inputs.items()):
            path = folder / f"in-{i}.npy"  # names may hold slashes
            np.save(path, value)
            self.inputs += ["--input", f"{name}={path}"]

    def run(self, *arguments) -> str:
        done = subprocess.run(
            [str(a) for a in (self.tenon, *arguments)], capture_output=True, text=True
        )
        if done.returncode:
            raise RuntimeError(f"tenon {arguments[0]}: exit {done.returncode}\n{done.stderr}")
        return done.stdout

    def median_ms(self, seconds: float, threads: int) -> float:
        text = self.run(
            "bench", self.file, *self.inputs, "--threads", threads, "--duration", seconds, "--json"
        )
        return median_of(json.loads(text))

    def outputs(self, names: list[str], folder: Path) -> list[np.ndarray]:
        flags = []
        for i, name in enumerate(names):
            flags += ["--output", f"{name}={folder}/out-{i}.npy"]
        self.run("run", self.file, *self.inputs, *flags)
        return [np.load(folder / f"out-{i}.npy") for i in range(len(names))]


def difference(found: list[np.ndarray], expected: list[np.ndarray]) -> float:
    """Greatest error of the outputs relative to the greatest magnitude of each."""
    worst = 0.0
    for i, (ours, value) in enumerate(zip(found, expected, strict=True)):
        if ours.shape != value.shape:
            raise RuntimeError(f"output {i}: shape {ours.shape}, expected {value.shape}")
        scale = float(np.abs(value).max()) or 1.0
        error = float(np.abs(ours.astype(np.float64) - value).max()) / scale
        worst = max(worst, error if np.isfinite(error) else np.inf)
    return worst


def median_of(report: dict) -> float:
    """p50 in milliseconds of a `tenon bench --json` report."""
    return float(report["p50_ms"])


def output_names(model: Model) -> list[str]:
    import onnx

    return [value.name for value in onnx.load(model.path, load_external_data=False).graph.output]


def with_sizes(model: Model, inputs: dict):
    """The model with the shapes of `inputs` and all inferred shapes."""
    import onnx

    loaded = onnx.load(model.path, load_external_data=False)
    for value in loaded.graph.input:
        if value.name not in inputs:
            continue
        shape = value.type.tensor_type.shape
        del shape.dim[:]
        for size in inputs[value.name].shape:
            shape.dim.add().dim_value = size
    del loaded.graph.value_info[:]
    for value in loaded.graph.output:
        value.type.tensor_type.ClearField("shape")
    return onnx.shape_inference.infer_shapes(loaded, data_prop=True).graph


def flops_of(model: Model, inputs: dict) -> float | None:
    """Multiplications and additions of one run; None if a shape is not known."""
    graph = with_sizes(model, inputs)
    shapes = {tensor.name: list(tensor.dims) for tensor in graph.initializer}
    for value in (*graph.input, *graph.value_info, *graph.output):
        dims = value.type.tensor_type.shape.dim
        shapes[value.name] = [d.dim_value if d.HasField("dim_value") else None for d in dims]
    for node in graph.node:
        if node.op_type == "Constant" and node.attribute[0].HasField("t"):
            shapes[node.output[0]] = list(node.attribute[0].t.dims)
    total = 0.0
    for node in graph.node:
        of = [shapes.get(name, [None]) for name in (*node.input, node.output[0])]
        if node.op_type == "Conv":  # each output element: a window over its group's channels
            sizes = [*of[-1], *of[1][1:]]
        elif node.op_type in ("MatMul", "Gemm", "MatMulInteger"):
            transposed = any(a.name == "transA" and a.i for a in node.attribute)
            sizes = [*of[-1], of[0][-2 if transposed else -1]]
        elif node.op_type in ("LSTM", "GRU", "RNN"):  # steps, batch; both weights
            steps, batch = of[0][:2]
            weights = [a * b if a and b else None for a, b in (of[1][1:], of[2][1:])]
            sizes = [steps, batch, sum(weights) if None not in weights else None]
        elif node.op_type in ("Loop", "Scan", "If"):
            return None  # what its bodies do depends on the run
        else:
            continue
        if any(size is None for size in sizes):
            return None
        total += 2 * float(np.prod(np.array(sizes, dtype=np.float64)))
    return total or None


def measure(model: Model, options, flags: list[str], folder: Path) -> list[dict]:
    """A row per thread count."""
    inputs = make_inputs(model)
    inputs_file = folder / "inputs.npz"
    np.savez(inputs_file, **inputs)
    tenon = Tenon(options.tenon, model, inputs, folder, flags, "libraries")
    own = Tenon(options.tenon, model, inputs, folder, [*flags, "--libraries", "none"], "own")
    flops = flops_of(model, inputs)
    rows = []
    for threads in options.threads:
        peers = {engine: Peer(engine, model, inputs_file, threads) for engine in PEERS}
        expected = stored_outputs(inputs_file, "onnxruntime")
        row = {"model": model.name, "threads": threads, "compile_s": tenon.compile_s}
        row |= {"own_compile_s": own.compile_s, "flops": flops}
        row["difference"] = difference(tenon.outputs(output_names(model), folder), expected)
        times: dict[str, list[float]] = {"tenon": [], "own": [], **{e: [] for e in PEERS}}
        peaks, limits = [], []
        stream = Stream(folder) if options.kind == "recurrent" else None
        for _ in range(options.rounds):
            if stream:
                each = {size: stream.ms(size, options.seconds / 4) for size in recurrent_bytes(model)}
                limits.append(sum(each[size] for size in recurrent_bytes(model)))
            times["tenon"].append(tenon.median_ms(options.seconds, threads))
            times["own"].append(own.median_ms(options.seconds, threads))
            if options.peak:
                peaks.append(float(subprocess.check_output([options.peak, "--peak"])))
            for engine in PEERS:
                times[engine].append(peers[engine].median_ms(options.seconds))
        for engine, peer in peers.items():
            row[f"{engine}_version"] = peer.version
            peer.close()
        row["limit_ms"] = statistics.median(limits) if limits else None
        row["peak_gflops"] = statistics.median(peaks) if peaks else None
        row |= {f"{engine}_ms": statistics.median(values) for engine, values in times.items()}
        rows.append(row)
        print(f"{model.name}, {threads} threads: {row['tenon_ms']:.2f} ms", file=sys.stderr)
    return rows


def geometric_mean(values: list[float]) -> float:
    return float(np.exp(np.mean(np.log(values))))


def table(rows: list[dict], kind: str) -> str:
    lines = []
    for threads in sorted({row["threads"] for row in rows}):
        chosen = [row for row in rows if row["threads"] == threads]
        ort, vino = chosen[0]["onnxruntime_version"], chosen[0]["openvino_version"]
        head = (
            "model", "Tenon", "own", f"ONNX Runtime {ort}", f"OpenVINO {vino}", "to ORT", "to OpenVINO", "to the better", "limit",
            "GFLOP/s", "own", "peak", "difference",
        )  # fmt: skip
        title = f"Latency in ms, {kind}, {threads} thread{'s' * (threads > 1)}:"
        lines += [title, "", f"| {' | '.join(head)} |", "| --- " * len(head) + "|"]

        def rate(row: dict, key: str) -> str:
            return f"{row['flops'] / row[key] / 1e6:.0f}" if row["flops"] else "-"

        ratios = {"ort": [], "vino": [], "better": []}
        for row in chosen:
            ours, a, b = row["tenon_ms"], row["onnxruntime_ms"], row["openvino_ms"]
            ratios["ort"].append(ours / a)
            ratios["vino"].append(ours / b)
            ratios["better"].append(ours / min(a, b))
            lines.append(
                f"| {row['model']} | {ours:.2f} | {row['own_ms']:.2f} | {a:.2f} | {b:.2f} "
                f"| {ours / a:.2f} | {ours / b:.2f} | {ours / min(a, b):.2f} "
                f"| {f'{limit:.2f}' if (limit := row['limit_ms']) else '-'} "
                f"| {rate(row, 'tenon_ms')} | {rate(row, 'own_ms')} "
                f"| {row['peak_gflops'] or 0:.0f} | {row['difference']:.1e} |"
            )
        means = [geometric_mean(ratios[key]) for key in ("ort", "vino", "better")]
        lines.append(
            f"| geometric mean | | | | | {means[0]:.2f} | {means[1]:.2f} | {means[2]:.2f} | | | | | |"
        )
        lines.append("")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tenon", type=Path, required=True)
    parser.add_argument("--models", type=Path, default=Path("build/bench-models"))
    parser.add_argument("--filled", type=Path)
    add_kinds(parser)
    parser.add_argument("--only", help="names, comma-separated")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--compile-flags", default="")
    parser.add_argument("--json", type=Path, help="also write the rows there")
    parser.add_argument("--peak", type=Path, help="bench_kernels")
    options = parser.parse_args()
    options.threads = [int(n) for n in options.threads.split(",")]
    options.tenon = options.tenon.resolve()
    if not options.peak:
        beside = options.tenon.parents[2] / "bench" / "kernels" / "bench_kernels"
        options.peak = beside if beside.exists() else None
    rows, failed = [], []
    for model in find_models(options.models, options.filled, options.kind):
        if options.only and model.name not in options.only.split(","):
            continue
        with tempfile.TemporaryDirectory() as folder:
            try:
                rows += measure(model, options, options.compile_flags.split(), Path(folder))
            except RuntimeError as error:
                print(f"{model.name}: {error}", file=sys.stderr)
                failed.append(model.name)
    if rows:
        print(table(rows, "int8" if options.kind == "int8" else "fp32"))
    if options.json:
        options.json.write_text(json.dumps(rows, indent=2) + "\n")
    if failed or not rows:
        sys.exit(f"compare.py: not measured: {', '.join(failed) or 'anything'}")


if __name__ == "__main__":
    if len(sys.argv) > 1 and sys.argv[1] == "--peer":
        peer_main(sys.argv[2], sys.argv[3], sys.argv[4], int(sys.argv[5]))
    else:
        main()
