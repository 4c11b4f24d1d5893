#!/usr/bin/env python3
"""Times the machine's instructions in Tenon, TVM's VM, IREE's VM and Lua in the same run and prints
a table of times, ratios and budgets.

Usage: compare.py --tenon build/release/bench/vm/bench_vm [--lua PROGRAM] [--rounds N] [--json FILE]

Engines take turns, one process each per round, so that a slow moment of the machine falls on all. A
process prints nanoseconds of CPU time per operation, each the median of several; a time in the table
is the median over the rounds, and a ratio is the median of the rounds' ratios of Tenon's time to the
peer's: below 1 is faster.
"""

import argparse
import json
import statistics
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
PEERS = {"tvm": "TVM", "iree": "IREE", "lua": "Lua"}


@dataclass
class Row:
    key: str
    what: str
    budgets: dict[str, float]  # of the ratio to a peer; "ns": of the time
    peer_key: str = ""  # where the peers' figure has another name

    def of_peer(self) -> str:
        return self.peer_key or self.key


ROWS = [
    Row("packed", "packed call of an empty function, three tensors", {"tvm": 0.2}),
    Row("kernel", "kernel entry's checks, three rank-4 tensors without elements", {"ns": 15}),
    Row("call", "call and return", {"tvm": 0.1, "lua": 0.6}),
    Row("pool", "allocate and free a tensor from the pool", {"tvm": 0.15}),
    Row("pool_one", "the same in one instruction", {"tvm": 0.15}, "pool"),
    Row("shape", "bind and build a rank-2 shape", {"tvm": 0.12}),
    Row("loop", "loop iteration: add, compare, branch", {"lua": 0.4}),
    Row("sum", "loop iteration: compare, two adds, jump", {}),
    Row("fib", "fib, per call", {"lua": 0.5}),
]


def run(command: list) -> dict:
    done = subprocess.run([str(c) for c in command], stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(f"compare.py: '{command[0]}' failed with exit code {done.returncode}")
    return json.loads(done.stdout)


def ratio(rounds: list[dict], row: Row, peer: str) -> float | None:
    if row.of_peer() not in rounds[0][peer]["rows"]:
        return None
    return statistics.median(
        r["tenon"]["rows"][row.key] / r[peer]["rows"][row.of_peer()] for r in rounds
    )


def time(rounds: list[dict], key: str, engine: str) -> float | None:
    if key not in rounds[0][engine]["rows"]:
        return None
    return statistics.median(r[engine]["rows"][key] for r in rounds)


def table(rounds: list[dict], depths: dict[str, dict]) -> str:
    first = rounds[0]
    names = {p: f"{PEERS[p]} {first[p]['version'].removeprefix(PEERS[p]).strip()}" for p in PEERS}
    lines = [
        f"| row, in ns | Tenon | {' | '.join(names.values())} | to TVM | to IREE | to Lua | budget | |",
        "| --- " * 9 + "|",
    ]
    for row in ROWS:
        own = time(rounds, row.key, "tenon")
        cells = [row.what, f"{own:.1f}"]
        for peer in PEERS:
            t = time(rounds, row.of_peer(), peer)
            cells.append("none" if t is None else f"{t:.1f}")
        ratios = {p: ratio(rounds, row, p) for p in PEERS}
        cells += ["" if r is None else f"{r:.2f}" for r in ratios.values()]
        measured = ratios | {"ns": own}
        cells.append(
            ", ".join(
                f"{b:g} ns" if of == "ns" else f"{b:g} of {PEERS[of]}'s"
                for of, b in row.budgets.items()
            )
        )
        met = all(measured[of] <= b for of, b in row.budgets.items())
        cells.append(("met" if met else "missed") if row.budgets else "")
        lines.append(f"| {' | '.join(cells)} |")
    own = depths["tenon"]
    cells = ["recursion depth", f"{own['depth']:,} in {own['megabytes']} MB"]
    cells += [f"{depths[p]['depth']:,}, then {depths[p]['end']}" for p in PEERS]
    met = own["depth"] >= 1_000_000 and own["megabytes"] <= 256
    cells += ["", "", "", "1,000,000 in 256 MB", "met" if met else "missed"]
    lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tenon", required=True, help="the program bench_vm")
    parser.add_argument("--lua", default="lua5.4")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json", type=Path, help="also write every round's figures there")
    options = parser.parse_args()
    engines = {
        "tenon": [options.tenon],
        "tvm": [sys.executable, HERE / "run_tvm.py"],
        "iree": [sys.executable, HERE / "run_iree.py"],
        "lua": [options.lua, HERE / "run_lua.lua"],
    }
    depths = {name: run([*command, "depth"]) for name, command in engines.items()}
    rounds = []
    for i in range(options.rounds):
        print(f"round {i + 1} of {options.rounds}", file=sys.stderr)
        rounds.append({name: run(command) for name, command in engines.items()})
    print(table(rounds, depths))
    if options.json:
        options.json.write_text(json.dumps({"rounds": rounds, "depths": depths}, indent=1))


if __name__ == "__main__":
    main()
