"""Tests the golden runner with a small script in place of `tenon`."""

import contextlib
import io
import tempfile
import unittest
from pathlib import Path

import run

# `tenon echo FILE` prints the program lines in capitals; a line with "bad" is an error at its place.
# `tenon opt FILE` prints the program without its comments; with "loses" in it, one line fewer.
TENON = r"""#!/bin/bash
file=$2
grep -v '^//' "$file" | sed 's, *//.*,,' | grep . > program
if grep -q bad program; then
  grep -n bad "$file" | grep -v '^[0-9]*://' | while IFS=: read -r line text; do
    echo "error: bad word in '${text%% *}'"
    echo "  at  $file:$line:1"
  done >&2
  exit 2
fi
case $1 in
  echo) tr a-z A-Z < program; echo progress >&2 ;;
  opt) if grep -q loses program; then tail -n +2 program; else cat program; fi ;;
  crash) kill -SEGV $$ ;;
esac
"""


class RunTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.root = Path(self.folder.name)
        self.tenon = self.root / "tool" / "fake"
        self.tenon.parent.mkdir()
        self.tenon.write_text(TENON)
        self.tenon.chmod(0o755)

    def run_on(self, text: str, *flags: str, name: str = "a.tn") -> tuple[int, str, str]:
        """Exit code, output and the file's text afterwards."""
        (self.root / "files").mkdir(exist_ok=True)
        file = self.root / "files" / name
        file.write_text(text)
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            code = run.main(["--tenon", str(self.tenon), *flags, str(file)])
        return code, printed.getvalue(), file.read_text()

    def test_passes_when_output_is_as_expected(self):
        code, _, _ = self.run_on("// RUN: tenon echo %s\nabc\n\n// EXPECT:\n// ABC\n")
        self.assertEqual(code, 0)

    def test_fails_with_a_diff(self):
        code, output, _ = self.run_on("// RUN: tenon echo %s\nabc\n\n// EXPECT:\n// ABD\n")
        self.assertEqual(code, 1)
        self.assertIn("-ABD\n+ABC", output)

    def test_poison_is_added_where_a_machine_runs(self):
        code, output, _ = self.run_on("// RUN: tenon run %s | tenon run --mode interpret\n\n// EXPECT:\n// x\n", "--poison")
        self.assertEqual(code, 1)
        self.assertIn("`tenon run --poison %s | tenon run --mode interpret`", output)
        _, output, _ = self.run_on("// RUN: tenon echo %s\nabc\n\n// EXPECT:\n// ABD\n", "--poison")
        self.assertEqual(output, "golden: 0 files, 0 failed\n")

    def test_missing_expectation_fails(self):
        code, output, _ = self.run_on("// RUN: tenon echo %s\nabc\n")
        self.assertEqual(code, 1)
        self.assertIn("1 RUN lines and 0 EXPECT blocks", output)

    def test_file_without_run_line_fails(self):
        self.assertEqual(self.run_on("abc\n")[0], 1)

    def test_bless_writes_every_block_and_is_stable(self):
        text = "// RUN: tenon echo %s\n// RUN: tenon opt %s\nabc\n\n// -----\nd\ne\n"
        code, _, blessed = self.run_on(text, "--bless")
        self.assertEqual(code, 0)
        self.assertEqual(
            blessed,
            "// RUN: tenon echo %s\n// RUN: tenon opt %s\nabc\n\n// EXPECT:\n// ABC\n\n"
            "// EXPECT:\n// abc\n\n// -----\nd\ne\n\n// EXPECT:\n// D\n// E\n\n"
            "// EXPECT:\n// d\n// e\n",
        )
        self.assertEqual(self.run_on(blessed)[0], 0)
        self.assertEqual(self.run_on(blessed, "--bless")[2], blessed)

    def test_error_beside_its_line(self):
        code, _, _ = self.run_on("// RUN: tenon opt %s\nok\nbad  // error: bad word\n")
        self.assertEqual(code, 0)

    def test_error_of_the_line_before(self):
        code, _, _ = self.run_on("// RUN: tenon opt %s\nbad\n// error@-1: bad word\n")
        self.assertEqual(code, 0)

    def test_error_keeps_its_line_in_a_later_case(self):
        text = "// RUN: tenon opt %s\nbad // error: bad\n// -----\nok\nbad  // error: bad word\n"
        self.assertEqual(self.run_on(text)[0], 0)

    def test_missing_and_unexpected_errors_fail(self):
        code, output, _ = self.run_on("// RUN: tenon opt %s\nok // error: bad word\nbad\n")
        self.assertEqual(code, 1)
        self.assertIn("a.tn:2: expected at line 2: error: bad word", output)
        self.assertIn("a.tn:3: unexpected error: bad word in 'bad'", output)

    def test_wrong_message_fails(self):
        self.assertEqual(self.run_on("// RUN: tenon opt %s\nbad // error: other\n")[0], 1)

    def test_expected_error_that_does_not_come_fails(self):
        self.assertEqual(self.run_on("// RUN: tenon opt %s\nok // error: bad\n")[0], 1)

    def test_bless_of_errors(self):
        text = "// RUN: tenon opt %s\nbad // error: old\nok // error: gone\nbad\n"
        blessed = self.run_on(text, "--bless")[2]
        self.assertEqual(
            blessed,
            "// RUN: tenon opt %s\nbad  // error: bad word in 'bad'\nok\n"
            "bad  // error: bad word in 'bad'\n",
        )
        self.assertEqual(self.run_on(blessed)[0], 0)

    def test_exit_code_is_compared(self):
        text = "// RUN 3: tenon opt %s\nbad\n\n// EXPECT:\n// error: bad word in 'bad'\n//   at  a.tn:2:1\n"
        code, output, _ = self.run_on(text)
        self.assertEqual(code, 1)
        self.assertIn("exited with 2, expected 3", output)
        self.assertEqual(self.run_on(text.replace("RUN 3", "RUN 2"))[0], 0)

    def test_crash_is_never_what_was_expected(self):
        code, output, _ = self.run_on("// RUN: tenon crash %s\nx // error: any\n")
        self.assertEqual(code, 1)
        self.assertIn("exited with 139", output)

    def test_roundtrip(self):
        self.assertEqual(self.run_on("// RUN: tenon opt %s\na\nb\n", "--roundtrip")[0], 0)
        self.assertEqual(self.run_on("// RUN: tenon opt %s\na\nb\nloses\n", "--roundtrip")[0], 1)


if __name__ == "__main__":
    unittest.main()
