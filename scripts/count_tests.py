#!/usr/bin/env python3
"""Sums JUnit files: lists failed and skipped tests, then prints `N passed, N failed, N skipped`.

Tests that were not run, are disabled or skipped themselves count as skipped and are listed with their
reason, so that no test vanishes from the count. Exits with 1 if a test failed or none passed.
"""

import re
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")


def reason(case: ElementTree.Element) -> str:
    """The reason that a skipped test printed, else the runner's status."""
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
        # Tests may print bytes that XML does not allow, and ctest writes them unchanged.
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
