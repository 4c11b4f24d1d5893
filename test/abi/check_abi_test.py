"""Tests that check_abi.py notices changes of a released interface: check_abi_test.py COMPILER"""

import sys
import tempfile
import unittest
from pathlib import Path

from check_abi import described, violations

COMPILER = sys.argv.pop()
HEADER = """
#include <stdint.h>
#define TENON_C_API_VERSION 1
#define TENON_API
enum { TENON_A = 1, /* a comment = 3 */ TENON_B = 2 };
typedef struct tenon_value {
  int32_t kind;
  union {
    int64_t i;
    char bytes[8];
  } v;
} tenon_value;
typedef struct tenon_options {
  uint32_t size;
  int32_t flags;
} tenon_options;
typedef int (*tenon_call)(void* context, int32_t n);
/* Does it. */
TENON_API int tenon_do(const tenon_value* value,
                       tenon_call call);
"""


class CheckAbiTest(unittest.TestCase):
    def described(self, text: str) -> list[str]:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "tenon", "a.h")
            path.parent.mkdir()
            path.write_text(text)
            return described(COMPILER, path)

    def changed(self, old: str, new: str) -> list[str]:
        self.assertIn(old, HEADER)
        return violations(self.described(HEADER), self.described(HEADER.replace(old, new)))

    def test_describes_everything(self):
        self.assertEqual(self.described(HEADER), [
            "constant TENON_A = 1",
            "constant TENON_B = 2",
            "constant TENON_C_API_VERSION = 1",
            "field tenon_options.flags at 4, 4 bytes: int32_t flags",
            "field tenon_options.size at 0, 4 bytes: uint32_t size",
            "field tenon_value.kind at 0, 4 bytes: int32_t kind",
            "field tenon_value.v at 8, 8 bytes: union",
            "field tenon_value.v.bytes at 8, 8 bytes: char bytes[8]",
            "field tenon_value.v.i at 8, 8 bytes: int64_t i",
            "function int tenon_do(const tenon_value* value, tenon_call call)",
            "struct tenon_options: 8 bytes",
            "struct tenon_value: 16 bytes",
            "type int (*tenon_call)(void* context, int32_t n)",
        ])

    def test_comments_and_layout_of_the_text_do_not_matter(self):
        self.assertEqual(self.changed("/* Does it. */", "/* Does it\n * well; really. */"), [])
        self.assertEqual(self.changed("value,\n                       tenon", "value, tenon"), [])

    def test_additions_are_allowed(self):
        self.assertEqual(self.changed("TENON_B = 2", "TENON_B = 2, TENON_C = 3"), [])
        self.assertEqual(self.changed("/* Does it. */", "TENON_API int tenon_more(void);"), [])
        self.assertEqual(self.changed("int32_t flags;", "int32_t flags;\n  int64_t more;"), [])

    def test_changes_are_violations(self):
        for old, new, broken in [
            ("TENON_B = 2", "TENON_B = 3", "constant TENON_B = 2"),
            ("int32_t kind;", "int64_t kind;", "field tenon_value.kind at 0, 4 bytes: int32_t kind"),
            ("  int32_t flags;", "  int32_t more;\n  int32_t flags;",
             "field tenon_options.flags at 4, 4 bytes: int32_t flags"),
            ("  } v;", "  } v;\n  int64_t more;", "struct tenon_value: 16 bytes"),
            ("TENON_API int tenon_do", "TENON_API void tenon_do",
             "function int tenon_do(const tenon_value* value, tenon_call call)"),
            ("void* context, int32_t n", "void* context", "type int (*tenon_call)(void* context, int32_t n)"),
        ]:
            with self.subTest(new):
                self.assertIn(broken, self.changed(old, new))

    def test_what_vanishes_is_a_violation(self):
        without = HEADER[: HEADER.index("TENON_API int")]
        self.assertEqual(violations(self.described(HEADER), self.described(without)),
                         ["function int tenon_do(const tenon_value* value, tenon_call call)"])


if __name__ == "__main__":
    unittest.main()
