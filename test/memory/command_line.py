#!/usr/bin/env python3
"""Lets allocations of the command line fail, each in a process of its own: once, or for good.

Usage: command_line.py TENON LIBRARY [RUNS]

LIBRARY is fail_allocation.c's, to be preloaded. Of all allocations of a command, RUNS (40) are tried
that are spread over it. The command must succeed, or end with exit code 5 and an error on standard
error; a signal means that lack of memory ended the process.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

PROGRAM = """\
const "w" = tensor[2; u8] hex "0102"
func @main(x: tensor[n; f32]) -> any {
  %1 = shape_of %0
  ret %1
}
"""
COMPUTES = """\
fn @main(%x: tensor[n; f32]) -> tensor[n; f32] {
  %y = exp(%x)
  add(%y, %x)
}
"""
OUT_OF_MEMORY = 5


def main() -> int:
    tenon, library = (Path(arg).resolve() for arg in sys.argv[1:3])
    runs = int(sys.argv[3]) if len(sys.argv) > 3 else 40
    # With a bound for spinning threads, the command doesn't start itself anew.
    base = {**os.environ, "GOMP_SPINCOUNT": "1000"}

    def run(folder: str, arguments: list[str], **environment: str) -> subprocess.CompletedProcess:
        env = {**base, "LD_PRELOAD": str(library), **environment}
        return subprocess.run(
            [str(tenon), *arguments], cwd=folder, env=env, capture_output=True, text=True, timeout=120
        )

    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "p.tna").write_text(PROGRAM)
        made = subprocess.run([str(tenon), "asm", "-q", "p.tna", "-o", "p.tnx"], cwd=folder, env=base)
        if made.returncode != 0:
            return 1
        Path(folder, "c.tn").write_text(COMPUTES)
        keep = ["compile", "-q", "--keep-computes", "c.tn", "-o", "c.tnx"]
        if subprocess.run([str(tenon), *keep], cwd=folder, env=base).returncode != 0:
            return 1
        inputs = ["--dim", "n=2", "--input", "x=random", "--threads", "1"]
        for arguments in (
            ["verify", "p.tnx"],
            ["run", "p.tnx", "--input", "x=random"],
            ["none"],
            ["run", "-q", "--untrusted", "c.tnx", *inputs],
            ["run", "-q", "--mode", "interpret", "c.tn", *inputs],
        ):
            whole = run(folder, arguments, FAIL_COUNT="1")
            count = int(whole.stderr.split("allocations ")[-1])
            tried = sorted({i * count // runs for i in range(runs)})
            stopped = 0
            for lasting in ({}, {"FAIL_LASTING": "1"}):
                for at in tried:
                    done = run(folder, arguments, FAIL_AT=str(at), **lasting)
                    if done.returncode == whole.returncode:
                        continue
                    stopped += 1
                    errors = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
                    if done.returncode == OUT_OF_MEMORY and errors:
                        continue
                    failures += 1
                    how = "and all later ones" if lasting else "alone"
                    print(f"tenon {' '.join(arguments)}: allocation {at} of {count} {how}:")
                    print(f"  exit code {done.returncode}: {done.stderr.strip()[:300]}")
            print(f"tenon {' '.join(arguments)}: {count} allocations, {stopped} failures reported")
            if stopped == 0:
                print("  no failure was noticed: is the library preloaded?")
                failures += 1
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
