"""Tests that runtime-size refuses a library above the limit: runtime_size_test.py FOLDER_OF_LIBRARY"""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "runtime-size"
FOLDER = sys.argv.pop()


def runtime_size(*arguments: str) -> subprocess.CompletedProcess:
    return subprocess.run([SCRIPT, *arguments], capture_output=True, text=True)


class RuntimeSizeTest(unittest.TestCase):
    def test_limit(self):
        self.assertEqual(runtime_size(FOLDER, "1000000").returncode, 0)
        done = runtime_size(FOLDER, "1")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stdout, r"^libtenon_runtime.so: \d+ bytes stripped \(\d+ KB\)\n$")
        self.assertIn("more than the limit of 1 KB", done.stderr)

    def test_without_library(self):
        with tempfile.TemporaryDirectory() as folder:
            for missing in folder, f"{folder}/nowhere":
                self.assertEqual(runtime_size(missing, "1000000").returncode, 77)


if __name__ == "__main__":
    unittest.main()
