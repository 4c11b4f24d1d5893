#!/usr/bin/env python3
"""Times the machine's instructions in Tenon, TVM's VM, IREE's VM, Lua, OCaml and Chez Scheme in the same
run and prints a table of times, ratios and budgets.

Usage: compare.py --tenon build/release/bench/vm/bench_vm [--lua PROGRAM] [--rounds N] [--json FILE]

Engines take turns, one process each per round, so that a slow moment of the machine affects all of
them. A process prints nanoseconds of CPU time per operation, each the median of several. A time in the
table is the median over the rounds; the ratio after a peer's time is the median over the rounds of Tenon's
time divided by the peer's: below 1 is faster. Tenon has three rows: hand-written assembly, and the same
program in its language, as bytecode (.tn) and as machine code (.tn, compiled), whose ratios to the assembly
have a separate column. C is a program with the checks that compiled code makes: a budget is also met within
1.1 of it. Engines that aren't installed are left out.
"""

import argparse
import importlib.util
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
PEERS = {
    "tvm": "TVM",
    "iree": "IREE",
    "lua": "Lua",
    "ocaml": "OCaml",
    "ocaml_bytecode": "OCaml bytecode",
    "chez": "Chez Scheme",
    "petite": "Petite Chez Scheme",
    "c": "C",
}
# What builds run_ocaml.ml, by engine.
OCAML = {"ocaml": "ocamlopt", "ocaml_bytecode": "ocamlc"}
# A budget is also met within this of the floor that the C program shows.
FLOOR = 1.1
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
    floors: tuple[str, ...] = ()  # the C program's rows that are floors, where not just this one

    def of_peer(self) -> str:
        return self.peer_key or self.key

    def budgets_of(self, source: str) -> dict[str, float]:
        return self.compiled if source == "compiled" and self.compiled is not None else self.budgets


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
    Row(
        "list_fold",
        "list fold with an unknown function, per element",
        {"lua": 1},
        compiled={"ocaml": 3},
        floors=("list_fold_borrowed", "list_fold"),
    ),
    Row("closure", "call of an unknown closure", {"lua": 1}, compiled={"ocaml": 3}),
    Row(
        "match8",
        "match of 8 constructors, per cell of a chain",
        {},
        floors=("match8_borrowed", "match8"),
    ),
    Row("f64_loop", "loop iteration: a step of the Mandelbrot set in f64", {}),
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


def ratio(rounds: list[dict], row: Row, source: str, peer: str, key: str = "") -> float | None:
    """The ratio of Tenon's time to the peer's, or of the compiled program's to the assembly's."""
    if peer not in rounds[0]:
        return None
    key = key or (row.key if peer == "tenon" else row.of_peer())
    if key not in rounds[0][peer]["rows"]:
        return None
    return statistics.median(r["tenon"][source][row.key] / r[peer]["rows"][key] for r in rounds)


def time(rounds: list[dict], key: str, engine: str, source: str = "rows") -> float | None:
    if key not in rounds[0][engine][source]:
        return None
    return statistics.median(r[engine][source][key] for r in rounds)


def verdict(rounds: list[dict], row: Row, source: str, measured: dict[str, float | None]) -> str:
    """Whether the budgets with a measurement are met, and of what."""
    budgets = row.budgets_of(source)
    known = {of: figure for of in budgets if (figure := measured.get(of)) is not None}
    if not known:
        return ""
    figures = ", ".join(f"{figure:.{1 if of == 'ns' else 2}f}" for of, figure in known.items())
    if all(figure <= budgets[of] for of, figure in known.items()):
        return f"met: {figures}"
    for key in row.floors or (row.of_peer(),):
        to_floor = ratio(rounds, row, source, "c", key)
        if to_floor is not None and to_floor <= FLOOR:
            return f"met by the floor: {to_floor:.2f} of C's {key}"
    return f"missed: {figures}"


def row_cells(rounds: list[dict], row: Row, source: str, peers: list[str]) -> list[str]:
    own = time(rounds, row.key, "tenon", source)
    cells = [row.what, SOURCES[source], f"{own:.1f}"]
    to_assembly = None if source == "rows" else ratio(rounds, row, source, "tenon")
    cells.append("" if to_assembly is None else f"{to_assembly:.2f}")
    ratios = {p: ratio(rounds, row, source, p) for p in peers}
    for peer, r in ratios.items():
        t = time(rounds, row.of_peer(), peer)
        cells.append("none" if t is None else f"{t:.1f} ({r:.2f})")
    cells.append(
        ", ".join(
            f"{b:g} ns" if of == "ns" else f"{b:g} of {PEERS[of]}'s"
            for of, b in row.budgets_of(source).items()
        )
    )
    cells.append(verdict(rounds, row, source, ratios | {"ns": own}))
    return cells


def depth_cell(figures: dict) -> str:
    depth = f"{figures['depth']:,}"
    return depth if figures["end"] == "reached" else f"{depth}, then {figures['end']}"


def table(rounds: list[dict], depths: dict[str, dict]) -> str:
    first = rounds[0]
    peers = [p for p in PEERS if p in first]
    names = [f"{PEERS[p]} {first[p]['version'].removeprefix(PEERS[p]).strip()}".strip() for p in peers]
    head = ["row, in ns", "from", "Tenon", "to assembly", *names, "budget", ""]
    lines = [head, ["---"] * len(head)]
    for row in ROWS:
        lines += [row_cells(rounds, row, s, peers) for s in SOURCES if row.key in first["tenon"][s]]
    own = depths["tenon"]
    met = own["depth"] >= 1_000_000 and own["megabytes"] <= 256
    depth = f"{own['depth']:,} in {own['megabytes']} MB"
    lines.append(
        ["recursion depth", ".tn, compiled", depth, ""]
        + ["none" if p == "c" else depth_cell(depths[p]) for p in peers]
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
    programs = {"lua": (lua, "lua5.4, or name another with --lua")}
    programs |= {engine: (compiler, "ocaml-nox") for engine, compiler in OCAML.items()}
    programs |= {"chez": ("chezscheme", "chezscheme"), "petite": ("petite", "chezscheme")}
    for engine, (program, package) in programs.items():
        if shutil.which(program) is None:
            out[engine] = f"there is no program {program}: install the Debian package {package}"
    if not c.exists():
        out["c"] = f"there is no program {c}: the target bench_vm builds it"
    return out


def build_ocaml(compiler: str, program: Path) -> None:
    source = shutil.copy(HERE / "run_ocaml.ml", program.with_suffix(".ml"))  # outputs lie beside it
    if subprocess.run([compiler, "-o", program, source]).returncode != 0:
        sys.exit(f"compare.py: {compiler} can't build run_ocaml.ml")


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
    folder = tempfile.TemporaryDirectory()
    engines = {
        "tenon": [options.tenon],
        "tvm": [sys.executable, HERE / "run_tvm.py"],
        "iree": [sys.executable, HERE / "run_iree.py"],
        "lua": [options.lua, HERE / "run_lua.lua"],
        **{engine: [Path(folder.name, engine)] for engine in OCAML},
        "chez": ["chezscheme", "--script", HERE / "run_chez.ss"],
        "petite": ["petite", "--script", HERE / "run_chez.ss"],
        "c": [Path(options.tenon).with_name("bench_vm_c")],
    }
    for engine, why in missing(options.lua, engines["c"][0]).items():
        print(f"compare.py: without {PEERS[engine]}: {why}", file=sys.stderr)
        del engines[engine]
    for engine, compiler in OCAML.items():
        if engine in engines:
            build_ocaml(compiler, engines[engine][0])
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
