#!/usr/bin/env python3
"""Sums JUnit files and prints `N passed, N failed, N skipped`, after the failures and skips by name.

A test that was not run, was disabled or skipped itself counts as skipped and is listed with its
reason, so that none vanishes from the count. Exits 1 when a test failed, or when none passed.
"""

import re
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")


def reason(case: ElementTree.Element) -> str:
    """The line in which a skipped test says why, else the runner's own word."""
    skipped = case.find("skipped")
    word = skipped.get("message", "") if skipped is not None else case.get("status", "")
    output = [line.strip() for line in (case.findtext("system-out") or "").splitlines()]
    for index, line in enumerate(output):
        if line.lower().startswith("skipped:"):
            return line[len("skipped:") :].strip()
        if line.endswith(": Skipped"):  # GoogleTest: file and line, then the message
            return output[index + 1] if index + 1 < len(output) and output[index + 1] else line
    return word


def main() -> int:
    passed, failed, skipped = 0, [], []
    for path in sys.argv[1:]:
        # A test may print bytes that XML does not allow; ctest writes them as they are.
        text = FORBIDDEN.sub("?", Path(path).read_text(errors="replace"))
        for case in ElementTree.fromstring(text).iter("testcase"):
            status = case.get("status")
            if case.find("failure") is not None or status == "fail":
                failed.append(case.get("name"))
            elif case.find("skipped") is not None or status in ("notrun", "disabled"):
                skipped.append((case.get("name"), reason(case)))
            else:
                passed += 1
    for name, why in skipped:
        print(f"skipped: {name}: {why}")
    for name in failed:
        print(f"FAILED: {name}")
    print(f"{passed} passed, {len(failed)} failed, {len(skipped)} skipped")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
