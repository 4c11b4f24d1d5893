#!/usr/bin/env python3
"""Times the machine's instructions in Tenon, TVM's VM, IREE's VM and Lua in the same run and prints
a table of times, ratios and budgets.

Usage: compare.py --tenon build/release/bench/vm/bench_vm [--lua PROGRAM] [--rounds N] [--json FILE]

Engines take turns, one process each per round, so that a slow moment of the machine affects all of
them. A process prints nanoseconds of CPU time per operation, each the median of several. A time in the
table is the median over the rounds; a ratio is the median over the rounds of Tenon's time divided by
the peer's: below 1 is faster. Tenon has three rows: hand-written assembly, and the same program in its
language, as bytecode (.tn) and as machine code (.tn, compiled), whose ratios to the assembly have a separate
column. C is a program with the checks that compiled code makes. Engines that aren't installed are left out.
"""

import argparse
import importlib.util
import json
import shutil
import statistics
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
PEERS = {"tvm": "TVM", "iree": "IREE", "lua": "Lua", "c": "C"}
REQUIREMENTS = "install bench/vm/requirements.txt into the Python that runs this"
# Rows of Tenon in the JSON: of assembly, and of programs.tn.
SOURCES = {"rows": "assembly", "bytecode": ".tn", "compiled": ".tn, compiled"}


@dataclass
class Row:
    key: str
    what: str
    budgets: dict[str, float]  # of the ratio to a peer; "ns": of the time
    peer_key: str = ""  # where the peers' figure has another name
    compiled: dict[str, float] | None = None  # budgets of compiled code, where they differ

    def of_peer(self) -> str:
        return self.peer_key or self.key


ROWS = [
    Row("packed", "packed call of an empty function, three tensors", {"tvm": 0.2}),
    Row("kernel", "kernel entry's checks, three rank-4 tensors without elements", {"ns": 15}),
    Row("call", "call and return", {"tvm": 0.1, "lua": 0.6}),
    Row("pool", "allocate and free a tensor from the pool", {"tvm": 0.15}),
    Row("pool_one", "the same in one instruction", {"tvm": 0.15}, "pool"),
    Row("shape", "bind and build a rank-2 shape", {"tvm": 0.12}),
    Row("loop", "loop iteration: add, compare, branch", {"lua": 0.5}, compiled={"lua": 0.15}),
    Row("sum", "loop iteration: two adds, compare, branch", {}),
    Row("fib", "fib, per call", {"lua": 0.5}, compiled={"c": 1.3}),
]


def run(command: list) -> dict:
    try:
        done = subprocess.run([str(c) for c in command], stdout=subprocess.PIPE, text=True)
    except OSError as e:
        sys.exit(f"compare.py: '{command[0]}' can't be run: {e.strerror}")
    if done.returncode != 0:
        sys.exit(f"compare.py: '{command[0]}' failed with exit code {done.returncode}")
    try:
        return json.loads(done.stdout)
    except ValueError:
        sys.exit(f"compare.py: '{command[0]}' printed no JSON: is it bench_vm, or an engine's script?")


def ratio(rounds: list[dict], row: Row, source: str, peer: str) -> float | None:
    """The ratio of Tenon's time to the peer's, or of the compiled program's to the assembly's."""
    if peer not in rounds[0]:
        return None
    key = row.key if peer == "tenon" else row.of_peer()
    if key not in rounds[0][peer]["rows"]:
        return None
    return statistics.median(r["tenon"][source][row.key] / r[peer]["rows"][key] for r in rounds)


def time(rounds: list[dict], key: str, engine: str, source: str = "rows") -> float | None:
    if key not in rounds[0][engine][source]:
        return None
    return statistics.median(r[engine][source][key] for r in rounds)


def row_cells(rounds: list[dict], row: Row, source: str, peers: list[str]) -> list[str]:
    own = time(rounds, row.key, "tenon", source)
    cells = [row.what, SOURCES[source], f"{own:.1f}"]
    to_assembly = None if source == "rows" else ratio(rounds, row, source, "tenon")
    budgets = row.compiled if source == "compiled" and row.compiled else row.budgets
    cells.append("" if to_assembly is None else f"{to_assembly:.2f}")
    for peer in peers:
        t = time(rounds, row.of_peer(), peer)
        cells.append("none" if t is None else f"{t:.1f}")
    ratios = {p: ratio(rounds, row, source, p) for p in peers}
    cells += ["" if r is None else f"{r:.2f}" for r in ratios.values()]
    cells.append(
        ", ".join(
            f"{b:g} ns" if of == "ns" else f"{b:g} of {PEERS[of]}'s"
            for of, b in budgets.items()
        )
    )
    measured = ratios | {"ns": own}
    known = [measured[of] <= b for of, b in budgets.items() if measured.get(of) is not None]
    cells.append(("met" if all(known) else "missed") if known else "")
    return cells


def table(rounds: list[dict], depths: dict[str, dict]) -> str:
    first = rounds[0]
    peers = [p for p in PEERS if p in first]
    names = [f"{PEERS[p]} {first[p]['version'].removeprefix(PEERS[p]).strip()}" for p in peers]
    head = ["row, in ns", "from", "Tenon", "to assembly", *names]
    head += [f"to {PEERS[p]}" for p in peers] + ["budget", ""]
    lines = [head, ["---"] * len(head)]
    for row in ROWS:
        lines += [row_cells(rounds, row, s, peers) for s in SOURCES if row.key in first["tenon"][s]]
    own = depths["tenon"]
    met = own["depth"] >= 1_000_000 and own["megabytes"] <= 256
    depth = f"{own['depth']:,} in {own['megabytes']} MB"
    lines.append(
        ["recursion depth", ".tn", depth, ""]
        + ["none" if p == "c" else f"{depths[p]['depth']:,}, then {depths[p]['end']}" for p in peers]
        + [""] * len(peers)
        + ["1,000,000 in 256 MB", "met" if met else "missed"]
    )
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def missing(lua: str, c: Path) -> dict[str, str]:
    """The engines that aren't installed, and how to get each."""
    needs = {"tvm": ["tvm"], "iree": ["iree.compiler", "iree.runtime", "numpy"]}
    out = {}
    for engine, packages in needs.items():
        for package in packages:
            try:
                found = importlib.util.find_spec(package)
            except ModuleNotFoundError:  # of the package around it
                found = None
            if found is None:
                out[engine] = f"there is no Python package {package}: {REQUIREMENTS}"
                break
    if shutil.which(lua) is None:
        out["lua"] = f"there is no program {lua}: install the Debian package lua5.4, or name another with --lua"
    if not c.exists():
        out["c"] = f"there is no program {c}: the target bench_vm builds it"
    return out


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tenon", required=True, help="the program bench_vm")
    parser.add_argument("--lua", default="lua5.4")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json", type=Path, help="also write every round's figures there")
    options = parser.parse_args()
    if options.rounds < 1:
        parser.error("--rounds takes a number of at least 1")
    engines = {
        "tenon": [options.tenon],
        "tvm": [sys.executable, HERE / "run_tvm.py"],
        "iree": [sys.executable, HERE / "run_iree.py"],
        "lua": [options.lua, HERE / "run_lua.lua"],
        "c": [Path(options.tenon).with_name("bench_vm_c")],
    }
    for engine, why in missing(options.lua, engines["c"][0]).items():
        print(f"compare.py: without {PEERS[engine]}: {why}", file=sys.stderr)
        del engines[engine]
    depths = {name: run([*command, "depth"]) for name, command in engines.items() if name != "c"}
    rounds = []
    for i in range(options.rounds):
        print(f"round {i + 1} of {options.rounds}", file=sys.stderr)
        rounds.append({name: run(command) for name, command in engines.items()})
    print(table(rounds, depths))
    if options.json:
        try:
            options.json.write_text(json.dumps({"rounds": rounds, "depths": depths}, indent=1))
        except OSError as e:
            sys.exit(f"compare.py: can't write '{options.json}': {e.strerror}")


if __name__ == "__main__":
    main()
