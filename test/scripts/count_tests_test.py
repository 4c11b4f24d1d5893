"""Tests that count_tests.py counts each status that ctest writes in the right sum."""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "count_tests.py"

GTEST_SKIP = "a_test.cc:3: Skipped\nthe data is not here\n\n[  SKIPPED ] A.b"


def case(name: str, status: str, inner: str = "") -> str:
    return f'<testcase name="{name}" status="{status}">{inner}</testcase>'


class CountTestsTest(unittest.TestCase):
    def count(self, *cases: str) -> tuple[int, list[str]]:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "ctest.xml")
            file.write_text(f"<testsuite>{''.join(cases)}</testsuite>")
            done = subprocess.run([sys.executable, SCRIPT, file], capture_output=True, text=True)
        return done.returncode, done.stdout.splitlines()

    def test_sums_each_status(self):
        code, lines = self.count(
            case("a", "run"),
            case("b", "run"),
            case("c", "fail", '<failure message=""/>'),
            case("d", "notrun", f'<skipped message="X"/><system-out>{GTEST_SKIP}</system-out>'),
            case("e", "disabled"),
        )
        self.assertEqual(code, 1)
        self.assertEqual(lines[-1], "2 passed, 1 failed, 2 skipped")
        self.assertIn("skipped: d: the data is not here", lines)
        self.assertIn("FAILED: c", lines)

    def test_all_passed(self):
        self.assertEqual(self.count(case("a", "run")), (0, ["1 passed, 0 failed, 0 skipped"]))

    def test_bytes_that_xml_forbids(self):
        self.assertEqual(self.count(case("a", "run", "<system-out>\x1b[1m\x01</system-out>"))[0], 0)

    def test_nothing_passed_is_a_failure(self):
        self.assertEqual(self.count()[0], 1)
        self.assertEqual(self.count(case("a", "disabled"))[0], 1)


if __name__ == "__main__":
    unittest.main()
