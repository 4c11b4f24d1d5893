#!/usr/bin/env python3
"""Writes a dictionary for libFuzzer: the words and signs that stand in two or more of the given files.

Usage: make_dictionary.py OUT FILE...
"""

import collections
import re
import sys
from pathlib import Path

TOKENS = re.compile(rb"[%@]?[A-Za-z_][A-Za-z0-9_.]{1,30}|[^\w\s\x00-\x1f\x7f-\xff]{1,2}")


def main() -> int:
    out, *files = map(Path, sys.argv[1:])
    times = collections.Counter(token for file in files for token in set(TOKENS.findall(file.read_bytes())))
    words = sorted(token for token, count in times.items() if count > 1)
    out.write_text("".join('"' + re.sub(r'(["\\])', r"\\\1", word.decode()) + '"\n' for word in words))
    return 0


if __name__ == "__main__":
    sys.exit(main())
