#!/usr/bin/env python3
"""Lets allocations of the command line fail, each in a process of its own: once, or for good.

Usage: command_line.py TENON LIBRARY [RUNS]

LIBRARY is fail_allocation.c's, to be preloaded. Of all allocations of a command, RUNS (40) are tried
that are spread over it. The command must succeed, or end with exit code 5 and an error on standard
error; a signal means that lack of memory ended the process. Its output is then the old file, else the
new one, and nothing else is left.
"""

import os
import shutil
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
OLD = b"the old output"


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
        corpus = Path(__file__).resolve().parent.parent / "fuzz/corpus/onnx"
        for name in ("external.onnx", "external.bin", "if_and_loop.onnx"):
            shutil.copy(corpus / name, folder)
        inputs = ["--dim", "n=2", "--input", "x=random", "--threads", "1"]
        given = set(os.listdir(folder))
        for arguments, output in (
            (["verify", "p.tnx"], ""),
            (["run", "p.tnx", "--input", "x=random"], ""),
            (["none"], ""),
            (["run", "-q", "--untrusted", "c.tnx", *inputs], ""),
            (["run", "-q", "--mode", "interpret", "c.tn", *inputs], ""),
            (["compile", "-q", "c.tn", "-o", "o.tnx"], "o.tnx"),
            (["compile", "-q", "external.onnx", "-o", "o.tnx"], "o.tnx"),
            (["compile", "-q", "if_and_loop.onnx", "-o", "o.tnx"], "o.tnx"),
            (["asm", "-q", "p.tna", "-o", "o.tnx"], "o.tnx"),
            (["opt", "c.tn", "-o", "o.tn"], "o.tn"),
            (["dump", "c.tnx"], ""),
        ):
            whole = run(folder, arguments, FAIL_COUNT="1")
            new = Path(folder, output).read_bytes() if output else b""
            count = int(whole.stderr.split("allocations ")[-1])
            tried = sorted({i * count // runs for i in range(runs)})
            stopped = 0
            for lasting in ({}, {"FAIL_LASTING": "1"}):
                for at in tried:
                    if output:
                        Path(folder, output).write_bytes(OLD)
                    done = run(folder, arguments, FAIL_AT=str(at), **lasting)
                    errors = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
                    problem = ""
                    if done.returncode != whole.returncode:
                        stopped += 1
                        if done.returncode != OUT_OF_MEMORY or not errors:
                            problem = f"exit code {done.returncode}: {done.stderr.strip()[:300]}"
                    if output:
                        found = Path(folder, output).read_bytes()
                        if found != new and (found != OLD or done.returncode == 0):
                            problem = f"exit code {done.returncode}, and the output is {found[:40]!r}"
                    left = set(os.listdir(folder)) - given - {output}
                    if left:
                        problem = f"it left {', '.join(left)}"
                    if not problem:
                        continue
                    failures += 1
                    how = "and all later ones" if lasting else "alone"
                    print(f"tenon {' '.join(arguments)}: allocation {at} of {count} {how}:")
                    print(f"  {problem}")
            print(f"tenon {' '.join(arguments)}: {count} allocations, {stopped} failures reported", flush=True)
            if stopped == 0:
                print("  no failure was noticed: is the library preloaded?")
                failures += 1
            if output:
                Path(folder, output).unlink()
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
