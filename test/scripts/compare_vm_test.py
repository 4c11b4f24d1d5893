"""Tests which rows and budgets bench/vm/compare.py prints, and that it ends in a message where something is
missing."""

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[2] / "bench" / "vm" / "compare.py"
KEYS = ("packed", "kernel", "call", "pool", "pool_one", "shape", "loop", "sum", "fib")
LANGUAGE_KEYS = ("call", "loop", "sum", "fib", "list_fold", "closure", "match8", "f64_loop")
FIGURES = {
    "rows": dict.fromkeys(KEYS, 1.0),
    "bytecode": dict.fromkeys(LANGUAGE_KEYS, 2.0),
    "compiled": dict.fromkeys(LANGUAGE_KEYS, 0.5),
    "depth": 1000000,
    "megabytes": 1,
}
# What an engine prints for which every row takes 1 ns.
PEER = {"version": "5.4", "rows": dict.fromkeys(LANGUAGE_KEYS, 1.0), "depth": 9, "end": "error"}


class CompareVmTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.bench = self.program("bench_vm", FIGURES)

    def program(self, name: str, figures: dict) -> Path:
        path = self.folder / name
        path.write_text(f"#!{sys.executable}\nprint({json.dumps(json.dumps(figures))})\n")
        path.chmod(0o755)
        return path

    def compare(self, *arguments: str, bench: str | None = None) -> subprocess.CompletedProcess:
        # -S leaves out installed packages, and so the engines that are packages; PATH leaves out the others.
        command = [sys.executable, "-S", str(SCRIPT), "--tenon", bench or str(self.bench)]
        done = subprocess.run(
            [*command, *arguments],
            capture_output=True,
            text=True,
            env=os.environ | {"PATH": str(self.folder)},
        )
        self.assertNotIn("Traceback", done.stderr)
        return done

    def table(self) -> dict[tuple[str, str], dict[str, str]]:
        """The cells of the rows, by what and from, by the first word of their columns."""
        done = self.compare("--rounds", "1")
        self.assertEqual(done.returncode, 0, done.stderr)
        head, _, *rows = [[c.strip() for c in line.split("|")[1:-1]] for line in done.stdout.splitlines()]
        names = [(title.split() or ["verdict"])[0] for title in head]
        return {(row[0], row[1]): dict(zip(names, row)) for row in rows}

    def test_engines_that_are_missing_are_left_out(self):
        done = self.compare("--rounds", "1")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("without Lua: there is no program lua5.4: install the", done.stderr)
        self.assertIn("without OCaml: there is no program ocamlopt: install", done.stderr)
        self.assertIn("without OCaml bytecode: there is no program ocamlc", done.stderr)
        self.assertIn("without Chez Scheme: there is no program chezscheme", done.stderr)
        self.assertIn("without Petite Chez Scheme: there is no program petite", done.stderr)
        self.assertIn("without C: there is no program", done.stderr)
        self.assertIn("| fib, per call | .tn | 2.0 |", done.stdout)
        self.assertIn("| fib, per call | .tn, compiled | 0.5 |", done.stdout)
        self.assertNotIn("Lua 5.4", done.stdout)

    def test_every_engine_has_the_rows_of_the_language(self):
        engines = ("run_tenon.cc", "run_lua.lua", "run_ocaml.ml", "run_chez.ss", "run_c.c")
        for name in ("programs.tn", *engines):
            text = SCRIPT.with_name(name).read_text().replace("\\", "")
            for key in ("list_fold", "closure", "match8", "f64_loop"):
                with self.subTest(name, key=key):
                    self.assertIn(f"fn @{key}(" if name == "programs.tn" else f'"{key}"', text)

    def test_budgets_of_bytecode_and_compiled_code_differ(self):
        self.program("lua5.4", PEER)
        rows = self.table()
        closure = rows["call of an unknown closure", ".tn"]
        self.assertEqual(closure["Lua"], "1.0 (2.00)")
        self.assertEqual(closure["budget"], "1 of Lua's")
        self.assertEqual(closure["verdict"], "missed: 2.00")
        self.assertEqual(rows["call of an unknown closure", ".tn, compiled"]["budget"], "3 of OCaml's")
        self.assertEqual(rows["call of an unknown closure", ".tn, compiled"]["verdict"], "")
        fold = "list fold with an unknown function, per element"
        self.assertEqual(rows[fold, ".tn"]["budget"], "1 of Lua's")
        match = rows["match of 8 constructors, per cell of a chain", ".tn"]
        self.assertEqual((match["Lua"], match["budget"], match["verdict"]), ("1.0 (2.00)", "", ""))
        loop = rows["loop iteration: a step of the Mandelbrot set in f64", ".tn, compiled"]
        self.assertEqual(loop["Lua"], "1.0 (0.50)")
        self.assertEqual(rows["recursion depth", ".tn, compiled"]["Lua"], "9, then error")

    def test_a_budget_is_also_met_within_a_tenth_of_the_floor(self):
        self.program("lua5.4", PEER)
        floor = dict.fromkeys(LANGUAGE_KEYS, 1.9)
        self.program("bench_vm_c", PEER | {"rows": floor | {"loop": 1.5, "list_fold_borrowed": 0.1}})
        rows = self.table()
        closure = rows["call of an unknown closure", ".tn"]
        self.assertEqual(closure["verdict"], "met by the floor: 1.05 of C's closure")
        # Which of two floors is printed.
        fold = rows["list fold with an unknown function, per element", ".tn"]
        self.assertEqual(fold["verdict"], "met by the floor: 1.05 of C's list_fold")
        self.assertEqual(rows["loop iteration: add, compare, branch", ".tn"]["verdict"], "missed: 2.00")

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
