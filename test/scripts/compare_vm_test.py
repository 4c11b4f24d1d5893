"""Tests that bench/vm/compare.py ends in a message where something is missing."""

import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[2] / "bench" / "vm" / "compare.py"
KEYS = ("packed", "kernel", "call", "pool", "pool_one", "shape", "loop", "sum", "fib")
FIGURES = {
    "rows": dict.fromkeys(KEYS, 1.0),
    "bytecode": {"fib": 2.0},
    "compiled": {"fib": 0.5},
    "depth": 1000000,
    "megabytes": 1,
}


class CompareVmTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.bench = Path(folder.name, "bench_vm")
        self.bench.write_text(f"#!{sys.executable}\nprint({json.dumps(json.dumps(FIGURES))})\n")
        self.bench.chmod(0o755)

    def compare(self, *arguments: str, bench: str | None = None) -> subprocess.CompletedProcess:
        # -S leaves out installed packages, and so the engines that are packages.
        command = [sys.executable, "-S", str(SCRIPT), "--tenon", bench or str(self.bench), "--lua", "no-lua"]
        done = subprocess.run([*command, *arguments], capture_output=True, text=True)
        self.assertNotIn("Traceback", done.stderr)
        return done

    def test_engines_that_are_missing_are_left_out(self):
        done = self.compare("--rounds", "1")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("without Lua: there is no program no-lua", done.stderr)
        self.assertIn("without C: there is no program", done.stderr)
        self.assertIn("| fib, per call | .tn | 2.0 |", done.stdout)
        self.assertIn("| fib, per call | .tn, compiled | 0.5 |", done.stdout)
        self.assertNotIn("to Lua", done.stdout)

    def test_mistakes_end_in_a_message(self):
        for arguments, bench, message in [
            ((), "/nowhere/bench_vm", "can't be run"),
            ((), "/bin/false", "failed with exit code"),
            ((), "/bin/echo", "printed no JSON"),
            (("--rounds", "0"), None, "at least 1"),
            (("--rounds", "1", "--json", "/nowhere/x.json"), None, "can't write '/nowhere/x.json'"),
        ]:
            with self.subTest(message):
                done = self.compare(*arguments, bench=bench)
                self.assertNotEqual(done.returncode, 0)
                self.assertIn(message, done.stderr)


if __name__ == "__main__":
    unittest.main()
