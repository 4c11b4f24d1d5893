#!/usr/bin/env python3
"""Times recurrent and recursive models at batch 1 in Tenon, PyTorch and ONNX Runtime, and prints a table of ratios.

Usage: compare.py [--only NAME,...] [--rounds N] [--seconds S] [--threads N] [--folder FOLDER] [--json FILE]

  --only NAME,...   these rows: see --list
  --rounds N        turns that every engine gets (15)
  --seconds S       time of an engine's turn (0.1)
  --threads N       that every engine may use (1); with several, times are by the clock, and there are no limits
  --folder FOLDER   where weights, models and a C library are made; by default a temporary folder
  --json FILE       also write every round's figures there
  --list            print the rows' names

The package tenon must be importable beside those of requirements.txt, and there must be a C compiler, cc, and the command
build/release/tools/tenon/tenon.

Everything is fp32. A row is a set of sentences or trees, each a call from Python with arrays that are
ready. The results of all engines are compared before anything is timed. Engines take turns, so that a slow moment of
the machine affects all of them; times are CPU time per token (a word, a leaf, an iteration of a loop), the median over
the rounds, and a ratio is the median of the rounds' ratios, Tenon's time divided by the peer's. The limit is the time
that it takes to read the weights once for each step, alternately forwards and backwards, or, where many tokens share a
reading, to multiply by them, if that takes longer: the fastest that `limit.c` read as many bytes, and multiplied in
registers, in the same rounds. A budget counts as met within 1.1 of the limit, too.
"""

import argparse
import ctypes
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

import of_onnx
import of_tenon
import of_torch
import tenon
import torch
import workloads

HERE = Path(__file__).resolve().parent
TOLERANCE = 1e-4  # of a difference, relative to the greatest magnitude
LOOP_TURNS, BERT_MEAN_WORDS, BERT_WORDS = 1000, 40, 128
AT_LIMIT = 1.1
PAUSE = 0.2  # seconds, after which the last engine's threads wait without spinning
Call = Callable[[], np.ndarray]


@dataclass
class Weights:
    bytes: int
    reads: float = 1.0  # how often a token reads them
    products: float = 1.0  # and multiplies a row by them


@dataclass
class Row:
    name: str
    what: str
    tokens: int  # in all calls together
    tenon: list[Call]
    peers: dict[str, list[Call]]
    budgets: dict[str, float]  # of the ratio to a peer
    weights: list[Weights] = field(default_factory=list)
    beside: dict[str, list[Call]] = field(default_factory=dict)  # timed in turns with the others, not in the table
    beyond_kernels: Callable[[list[dict]], tuple[str, bool]] | None = None  # of the rounds: text, whether met


# ---- the rows ----


def size_of(values: dict[str, np.ndarray], *names: str) -> int:
    return sum(values[name].nbytes for name in names)


def tree_row(folder: Path, name: str) -> Row:
    if name == "tree":
        what, words = "Tree-LSTM 300/150, random trees", workloads.lengths(workloads.MEAN_WORDS)
        trees = [(workloads.random_tree(n), workloads.sentence(n)) for n in words]
    else:
        what, words = "Tree-LSTM 300/150, degenerate tree", [workloads.DEGENERATE_WORDS]
        trees = [(workloads.degenerate_tree(n), workloads.sentence(n)) for n in words]
    values = workloads.tree_weights()
    leaf, inner = size_of(values, "leaf", "leaf_bias"), size_of(values, "node", "node_bias")
    nodes = sum(n - 1 for n in words) / sum(words)  # inner ones per leaf
    often = (leaf + nodes * inner) / (leaf + inner)
    return Row(
        name,
        what,
        sum(words),
        of_tenon.tree_lstm(folder, trees),
        {
            "PyTorch eager": of_torch.tree_lstm(of_torch.TreeLSTM(), trees),
            "PyTorch eager, a Linear per gate": of_torch.tree_lstm(of_torch.TreeLSTMByGate(), trees),
            "ONNX Runtime, Loop": of_onnx.tree_lstm(trees),
        },
        {"PyTorch eager": 0.12, "ONNX Runtime, Loop": 0.5},
        [Weights(leaf + inner, often, often)],
    )


def lstm_row(folder: Path, name: str) -> Row:
    _, hidden, layers, *by_token = name.split("-")
    hidden, layers = int(hidden), int(layers)
    words = workloads.lengths(workloads.MEAN_WORDS)
    sentences = [workloads.sentence(n) for n in words]
    values = workloads.lstm_weights(hidden)
    what = f"LSTM 300/{hidden}, {layers} layer{'s' * (layers > 1)}"
    peers = {
        "PyTorch, LSTMCell loop": of_torch.lstm_cells(hidden, layers, sentences),
        "ONNX Runtime, Scan": of_onnx.lstm(of_onnx.lstm_scan(hidden, layers), sentences),
    }
    budgets = {"PyTorch, LSTMCell loop": 0.1 if hidden == 64 else 0.35, "ONNX Runtime, Scan": 0.5}
    if by_token:
        what += ", word by word"
        budgets = {}
        weights = [Weights(sum(size_of(values, f"w_{i}", f"r_{i}") for i in range(layers)))]
    else:
        peers["PyTorch, nn.LSTM"] = of_torch.lstm(hidden, layers, sentences)
        peers["ONNX Runtime, LSTM"] = of_onnx.lstm(of_onnx.lstm_operator(hidden, layers), sentences)
        if hidden == 512:
            budgets["PyTorch, nn.LSTM"] = 0.45
        weights = [Weights(size_of(values, f"r_{i}")) for i in range(layers)]
        weights += [Weights(size_of(values, f"w_{i}"), len(words) / sum(words)) for i in range(layers)]
    function = f"{'steps' if by_token else 'layers'}_{layers}"
    return Row(name, what, sum(words), of_tenon.lstm(folder, hidden, function, sentences), peers, budgets, weights)


def bert_row(folder: Path, name: str) -> Row:
    import bert

    torch_model, path = bert.make(folder)
    words = workloads.lengths(BERT_MEAN_WORDS)
    inputs = [bert.inputs(n) for n in words]
    session = of_onnx.session(str(path))
    names = [i.name for i in session.get_inputs()]
    on_onnx = [lambda i=i: session.run(None, dict(zip(names, i)))[0] for i in inputs]
    calls = of_tenon.model(path, inputs, output=0)

    def beyond(_: list[dict]) -> tuple[str, bool]:
        share = 100 * of_tenon.outside_kernels(path, dict(zip(names, bert.inputs(BERT_WORDS))))
        return f"{share:.2f} % outside kernels at {BERT_WORDS} tokens (0.1 %)", share <= 0.1

    weights = sum(p.numel() * 4 for n, p in torch_model.named_parameters() if "embeddings" not in n)
    return Row(
        name,
        f"BERT-base, {min(words)} to {max(words)} tokens",
        sum(words),
        calls,
        {"PyTorch eager": bert.of_torch(torch_model, inputs), "ONNX Runtime": on_onnx},
        {},
        [Weights(weights, len(words) / sum(words))],
        beyond_kernels=beyond,
    )


def loop_row(folder: Path, name: str) -> Row:
    kind = name.removeprefix("loop-")
    what = {"counter": "ONNX Loop, adds to a counter", "row": "ONNX Loop, scales 64 floats, tanh"}[kind]
    made = of_onnx.loop(kind, LOOP_TURNS)
    x = np.array(0, "int64") if kind == "counter" else np.linspace(-1, 1, 64, dtype="float32")
    run = of_onnx.session(made).run
    calls = of_tenon.model(made, [(x,)])
    twice = of_tenon.model(of_onnx.loop(kind, LOOP_TURNS, 2), [(x,)])

    # Doing it twice makes the same kernel's work longer by that much, and nothing else.
    def beyond(rounds: list[dict]) -> tuple[str, bool]:
        ns = 1000 * statistics.median(2 * r["Tenon"] - r["twice"] for r in rounds)
        return f"{ns:.0f} ns beyond kernels (100)", ns <= 100

    peers = {"ONNX Runtime, Loop": [lambda: run(None, {"x": x})[0]]}
    budgets = {"ONNX Runtime, Loop": 0.5}
    return Row(name, what, LOOP_TURNS, calls, peers, budgets, beside={"twice": twice}, beyond_kernels=beyond)


LSTMS = [f"lstm-{h}-{n}{by}" for by in ("", "-by-word") for h in workloads.LSTM_SIZES for n in (1, 2)]
ROWS = {
    **dict.fromkeys(["tree", "tree-degenerate"], tree_row),
    **dict.fromkeys(LSTMS, lstm_row),
    "bert": bert_row,
    **dict.fromkeys(["loop-counter", "loop-row"], loop_row),
}


# ---- measuring ----


class Limit:
    """How fast this machine can read weights and multiply by them."""

    def __init__(self, folder: Path):
        path = folder / "limit.so"
        subprocess.run(["cc", "-O3", "-march=native", "-shared", "-fPIC", HERE / "limit.c", "-o", path], check=True)
        library = ctypes.CDLL(str(path))
        self.read, self.multiply = library.read_floats, library.multiply_adds
        self.read.restype = self.multiply.restype = ctypes.c_float
        self.read.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t]
        self.multiply.argtypes = [ctypes.c_size_t]
        self.arrays: dict[int, np.ndarray] = {}

    def microseconds(self, weights: list[Weights], seconds: float) -> float:
        """CPU time for a token, at best."""
        count = 1 << 24
        product = min(microseconds([lambda: self.multiply(count)], seconds / 8) for _ in range(8)) / count
        reading = {size: self.reading(size, seconds) for size in {w.bytes for w in weights}}
        return sum(max(w.reads * reading[w.bytes], w.products * w.bytes / 4 * product) for w in weights)

    def reading(self, size: int, seconds: float) -> float:
        """CPU time of reading `size` bytes once, at best."""
        if size not in self.arrays:
            self.arrays[size] = np.ones(size // 4 + 16, "float32")
        start = -(-self.arrays[size].ctypes.data // 64) * 64
        times = max(1, (1 << 24) // size)  # so that calling C from Python doesn't count
        return min(microseconds([lambda: self.read(start, size // 4, times)], seconds / 8) for _ in range(8)) / times


def difference(found: np.ndarray, expected: np.ndarray) -> float:
    found, expected = np.asarray(found, "float64").ravel(), np.asarray(expected, "float64").ravel()
    if found.shape != expected.shape:
        raise AssertionError(f"{found.size} elements instead of {expected.size}")
    return float(np.abs(found - expected).max() / max(np.abs(expected).max(), 1e-30))


def compare_results(row: Row) -> float:
    """The greatest difference of a peer's result from Tenon's; an error beyond the tolerance."""
    worst = 0.0
    for peer, calls in row.peers.items():
        for own, other in zip(row.tenon, calls, strict=True):
            worst = max(worst, difference(own(), other()))
            if not worst <= TOLERANCE:
                sys.exit(f"compare.py: {row.name}: Tenon and {peer} differ by {worst:.1e} of the greatest magnitude")
    return worst


def microseconds(calls: list[Call], seconds: float) -> float:
    """Time of all calls once, of the CPU or, with several threads, the clock: the mean after an untimed round."""
    now = time.process_time_ns
    if workloads.threads > 1:
        now = time.perf_counter_ns
        time.sleep(PAUSE)
    for call in calls:
        call()
    rounds, start = 0, now()
    while (taken := now() - start) < seconds * 1e9 or rounds == 0:
        for call in calls:
            call()
        rounds += 1
    return taken / rounds / 1000


def measure(row: Row, options: argparse.Namespace, limit: Limit) -> dict:
    worst = compare_results(row)
    rounds = []
    for _ in range(options.rounds):
        times = {"Tenon": microseconds(row.tenon, options.seconds) / row.tokens}
        for name, calls in (row.peers | row.beside).items():
            times[name] = microseconds(calls, options.seconds) / row.tokens
        if row.weights and workloads.threads == 1:
            times["limit"] = limit.microseconds(row.weights, options.seconds / 4)
        rounds.append(times)
    found = {"row": row.name, "what": row.what, "tokens": row.tokens, "difference": worst, "rounds": rounds}
    if row.beyond_kernels:
        text, met = row.beyond_kernels(rounds)
        found["beyond_kernels"] = {"text": text, "met": met}
    return found


# ---- the table ----


def figure(us: float) -> str:
    return f"{us:.3g}" if us < 100 else f"{us:.0f}"


def lines_of(row: Row, found: dict) -> list[list[str]]:
    rounds = found["rounds"]
    median = lambda of: statistics.median(r[of] for r in rounds)
    ratio = lambda of: statistics.median(r["Tenon"] / r[of] for r in rounds)
    limit = min((r["limit"] for r in rounds if "limit" in r), default=None)
    to_limit = median("Tenon") / limit if limit else None
    first = [row.what, figure(median("Tenon"))]
    first += [figure(limit), f"{to_limit:.2f}"] if limit else ["", ""]
    lines = []
    for peer in row.peers:
        verdict, budget = "", row.budgets.get(peer)
        if budget:
            at_limit = to_limit is not None and to_limit <= AT_LIMIT
            verdict = "met" if ratio(peer) <= budget else "met: at the limit" if at_limit else "missed"
        cells = [peer, figure(median(peer)), f"{ratio(peer):.2f}", f"{budget:g}" if budget else "", verdict]
        lines.append((first if not lines else ["", "", "", ""]) + cells)
    if beyond := found.get("beyond_kernels"):
        lines.append([""] * 7 + [beyond["text"], "met" if beyond["met"] else "missed"])
    return lines


HEAD = ["row", "Tenon", "limit", "to the limit", "peer", "its time", "ratio", "budget", ""]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(ROWS))
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--seconds", type=float, default=0.1)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    if options.list:
        print("\n".join(ROWS))
        return
    names = options.only.split(",")
    if unknown := set(names) - set(ROWS):
        parser.error(f"there is no row {', '.join(sorted(unknown))}: see --list")
    if options.rounds < 1 or options.threads < 1:
        parser.error("--rounds and --threads take numbers of at least 1")
    workloads.threads = options.threads
    torch.set_num_threads(options.threads)
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        of_tenon.prepare(folder)
        limit = Limit(folder)
        lines, all_found = [HEAD, ["---"] * len(HEAD)], []
        for name in names:
            print(f"{name}: preparing", file=sys.stderr)
            row = ROWS[name](folder, name)
            all_found.append(measure(row, options, limit))
            lines += lines_of(row, all_found[-1])
            print(f"{name}: results differ by {all_found[-1]['difference']:.1e}", file=sys.stderr)
    threads = "one thread" if options.threads == 1 else f"{options.threads} threads"
    print(f"µs per token, {threads}, PyTorch {of_torch.VERSION}, ONNX Runtime {of_onnx.VERSION}:\n")
    print("\n".join(f"| {' | '.join(cells)} |" for cells in lines))
    if options.json:
        options.json.write_text(json.dumps(all_found, indent=1))


if __name__ == "__main__":
    main()
