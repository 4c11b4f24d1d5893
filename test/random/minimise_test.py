#!/usr/bin/env python3
"""Tests that minimise.py keeps what a failure needs and drops the rest."""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
PROGRAM = """fn @helper(%x: tensor[4; f32]) -> tensor[4; f32] {
  %y = tanh(%x)
  %y
}

fn @main(%x: tensor[4; f32]) -> tensor[4; f32] {
  %a = relu(%x)
  %b = @helper(%a)
  %c = exp(%b)
  %d = add(%c, %a)
  %d
}
"""
# "Fails" with 3 while the program's variables and functions are defined and @main says exp.
CHECK = """
import re, sys
text = open(sys.argv[1]).read()
known = set(re.findall(r"(%\\w+)(?=:| =)", text))
whole = text.count("{") == text.count("}") and re.search(r"fn @main\\(.*\\{", text)
called = all(f"fn {name}(" in text for name in re.findall(r"@\\w+", text))
sys.exit(3 if whole and called and "= exp(" in text and known >= set(re.findall(r"%\\w+", text)) else 0)
"""


class Minimise(unittest.TestCase):
    def minimise(self, command):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "program.tn"
            path.write_text(PROGRAM)
            run = [sys.executable, str(HERE / "minimise.py"), str(path), "--", *command, str(path)]
            return subprocess.run(run, capture_output=True, text=True)

    def test_keeps_what_the_failure_needs(self):
        found = self.minimise([sys.executable, "-c", CHECK])
        self.assertEqual(found.returncode, 0, found.stderr)
        self.assertEqual(
            found.stdout.splitlines()[0],
            "// RUN: tenon run -q %s --input x=random --seed 1 --compare interpret >/dev/null",
        )
        self.assertIn("= exp(%x)", found.stdout)
        for gone in ("tanh", "relu", "add", "@helper", "[4;"):
            self.assertNotIn(gone, found.stdout)

    def test_refuses_what_does_not_fail(self):
        found = self.minimise(["true"])
        self.assertEqual(found.returncode, 1)
        self.assertIn("does not fail", found.stderr)


if __name__ == "__main__":
    unittest.main()
