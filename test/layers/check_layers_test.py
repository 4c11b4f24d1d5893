"""Tests the layers check on a small tree that violates each rule once."""

import tempfile
import unittest
from pathlib import Path

from check_layers import check

LAYERS = """
src/low:   # the lowest
src/mid:   src/low
src/top:   src/low src/mid
src/low+test: src/mid
end of runtime
test:      *
<heavy/>:  src/mid
"""

GOOD = {
    "src/low/a.h": "#include <vector>\n",
    "src/low/a.cc": '#include "low/a.h"\n',
    "src/low/a_test.cc": '#include "low/a.h"\n#include "mid/b.h"\n',
    "src/mid/b.h": '#include "low/a.h"\n#include <heavy/h.h>\n#include "tenon/c_api.h"\n',
    "src/mid/deep/c.cc": '#include "mid/b.h"\n#include "schema_generated.h"\n',
    "src/top/t.cc": '#include "mid/b.h"\n#include "low/a.h"\n',
    "include/tenon/c_api.h": "#include <stdint.h>\n",
    "test/e2e/x_test.cc": '#include "top/t.h"\n#include "low/a.h"\n',
}


class CheckLayersTest(unittest.TestCase):
    def violations(self, changed: dict[str, str], layers: str = LAYERS) -> list[str]:
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            (root / "layers.txt").write_text(layers)
            for path, text in {**GOOD, **changed}.items():
                (root / path).parent.mkdir(parents=True, exist_ok=True)
                (root / path).write_text(text)
            return check(root)[1]

    def test_accepts_what_layers_allow(self):
        self.assertEqual(self.violations({}), [])

    def test_names_line_found_and_allowed(self):
        self.assertEqual(
            self.violations({"src/mid/b.cc": '#include "mid/b.h"\n\n#include "top/t.h"\n'}),
            ["src/mid/b.cc:3: includes top/t.h of src/top; src/mid may include src/low"],
        )

    def test_sources_may_not_include_what_only_tests_may(self):
        self.assertEqual(
            self.violations({"src/low/c.cc": '#  include "mid/b.h"\n'}),
            ["src/low/c.cc:1: includes mid/b.h of src/mid; src/low may include nothing else"],
        )

    def test_one_file_may_include_a_third_party_header(self):
        layers = LAYERS.replace("<heavy/>:  src/mid", "<heavy/>:  src/mid/b.h")
        self.assertEqual(self.violations({}, layers), [])
        self.assertEqual(
            self.violations({"src/mid/c.h": "#include <heavy/h.h>\n"}, layers),
            ["src/mid/c.h:1: includes heavy/h.h; only src/mid/b.h may"],
        )

    def test_headers_for_tests_may_include_what_tests_may(self):
        self.assertEqual(self.violations({"src/low/a_testing.h": '#include "mid/b.h"\n'}), [])

    def test_headers_that_only_tests_include_are_named_so(self):
        self.assertEqual(
            self.violations({"src/low/h.h": "", "src/low/b_test.cc": '#include "low/h.h"\n'}),
            ["src/low/h.h:1: only tests include it, so its name must end in _testing.h"],
        )

    def test_edges_that_nothing_uses(self):
        self.assertEqual(
            self.violations({"src/top/t.cc": '#include "mid/b.h"\n', "src/low/a_test.cc": ""}),
            [
                "layers.txt:4: nothing in src/top includes src/low",
                "layers.txt:5: nothing in src/low+test includes src/mid",
            ],
        )

    def test_an_edge_that_only_tests_use_belongs_to_their_line(self):
        self.assertEqual(
            self.violations(
                {
                    "src/top/t.cc": '#include "mid/b.h"\n',
                    "src/top/t_test.cc": '#include "low/a.h"\n',
                }
            ),
            ["layers.txt:4: nothing in src/top includes src/low"],
        )

    def test_relative_include_cannot_slip_past(self):
        self.assertEqual(
            self.violations({"src/low/c.cc": '#include "../mid/b.h"\n'}),
            ["src/low/c.cc:1: includes ../mid/b.h of src/mid; src/low may include nothing else"],
        )

    def test_third_party_header_outside_its_folder(self):
        self.assertEqual(
            self.violations({"src/top/u.cc": "#include <heavy/h.h>\n"}),
            ["src/top/u.cc:1: includes heavy/h.h; only src/mid may"],
        )

    def test_third_party_header_in_quotes(self):
        self.assertEqual(
            self.violations({"src/top/u.cc": '#include "heavy/h.h"\n'}),
            ["src/top/u.cc:1: includes heavy/h.h; only src/mid may"],
        )

    def test_public_header_includes_nothing_of_ours(self):
        self.assertEqual(
            self.violations({"include/tenon/c_api.h": '#include "low/a.h"\n'}),
            [
                "include/tenon/c_api.h:1: includes low/a.h of src/low; "
                "include/tenon may include nothing else"
            ],
        )

    def test_own_header_comes_first(self):
        self.assertEqual(
            self.violations({"src/mid/b.cc": '#include "low/a.h"\n#include "mid/b.h"\n'}),
            ["src/mid/b.cc:1: includes something before its own header src/mid/b.h"],
        )

    def test_folder_without_a_line(self):
        self.assertEqual(
            self.violations({"src/stray/s.cc": ""}),
            ["src/stray/s.cc:1: is not in any folder of layers.txt"],
        )

    def test_layers_only_look_down(self):
        self.assertEqual(
            self.violations({}, LAYERS.replace("src/low:  ", "src/low: src/top")),
            [
                "layers.txt:2: src/low may not include src/top: it is not above it",
                "layers.txt:2: nothing in src/low includes src/top",
            ],
        )


if __name__ == "__main__":
    unittest.main()
