#!/usr/bin/env python3
"""Processes that load, call, cancel and damage the same files at once.

Usage: many_processes.py TENON WORKER [--processes N] [--seconds S] [--seed N]

Compiles work.tn in each form, starts N (4) workers of two threads for S (10) seconds, and requires that each ends well,
that the greatest resident memory of none grew by more than an eighth and 8 MB between the first quarter of the time and
the last, and that no file is left beside those that were there, in TMPDIR or in /dev/shm. worker.cc says what a worker
does.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
FORMS = {
    "native.tnx": ["--libraries", "none"],
    "bytecode.tnx": ["--libraries", "none", "--mode", "bytecode"],
    "kept.tnx": ["--libraries", "none", "--keep-computes"],
    "shared.so": ["--libraries", "none", "--shared"],
}


def problems(arguments: argparse.Namespace, folder: Path) -> list[str]:
    good, used, temporary = folder / "good", folder / "used", folder / "tmp"
    for made in (good, used, temporary):
        made.mkdir()
    for name, flags in FORMS.items():
        command = [arguments.tenon, "compile", HERE / "work.tn", "-o", good / name, "--quiet", *flags]
        subprocess.run(command, check=True)
        shutil.copy(good / name, used / name)
    shared_memory = Path("/dev/shm")
    before = set(os.listdir(shared_memory)) if shared_memory.is_dir() else set()
    seed = arguments.seed if arguments.seed is not None else time.time_ns() % 1_000_000_000
    print(f"--seed {seed}")
    environment = {**os.environ, "TMPDIR": str(temporary)}
    workers = [
        subprocess.Popen(
            [arguments.worker, folder, str(arguments.seconds), str(seed + i)],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for i in range(arguments.processes)
    ]
    found, total = [], [0, 0, 0, 0]
    for worker in workers:
        out, errors = worker.communicate()
        if worker.returncode != 0:
            found.append(f"a worker ended with {worker.returncode}: {errors.strip()[:2000]}")
            continue
        *memory, calls, refusals, cancelled, replaced = map(int, out.split())
        total = [a + b for a, b in zip(total, (calls, refusals, cancelled, replaced))]
        if memory[-1] > memory[0] * 9 // 8 + 8192:
            found.append(f"memory grew: {memory} KB")
        print("resident KB:", *memory)
    print("{} calls, {} refused files, {} cancelled calls, {} files replaced".format(*total))
    if not found and min(total) == 0:
        found.append("something was never done")
    if left := sorted(path.name for path in used.iterdir() if path.name not in FORMS):
        found.append(f"files are left beside the executables: {left[:10]}")
    if left := sorted(path.name for path in temporary.iterdir()):
        found.append(f"files are left in TMPDIR: {left[:10]}")
    if shared_memory.is_dir() and (left := {name for name in os.listdir(shared_memory) if "tenon" in name} - before):
        found.append(f"files are left in {shared_memory}: {sorted(left)[:10]}")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tenon")
    parser.add_argument("worker")
    parser.add_argument("--processes", type=int, default=4)
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--seed", type=int)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = problems(arguments, Path(folder))
    for problem in found:
        print(problem)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
