#!/usr/bin/env python3
"""Checks that inject_fault refuses malformed options instead of running the command without a fault.

Usage: options_test.py INJECT
"""

import subprocess
import sys

REFUSED = {
    "write@0": "'write@0' is not KIND@N=HOW",
    "wirte@0=ENOSPC": "unknown kind 'wirte'",
    "write,wirte@0=ENOSPC": "unknown kind 'wirte'",
    "@0=ENOSPC": "unknown kind ''",
    "write@x=ENOSPC": "'x' is not a number",
    "write@=ENOSPC": "'' is not a number",
    "write@-1=ENOSPC": "'-1' is not a number",
    "write@1.=ENOSPC": "'1.' is not a number",
    "write@0=ENOSPCE": "unknown error 'ENOSPCE'",
}


def main() -> int:
    failures = 0
    for fault, message in REFUSED.items():
        done = subprocess.run([sys.argv[1], "--fault", fault, "--", "true"], capture_output=True, text=True)
        if done.returncode != 2 or done.stderr != f"inject: {message}\n":
            print(f"{fault}: exit code {done.returncode}, {done.stderr!r}")
            failures += 1
    print(f"{len(REFUSED)} malformed faults, {failures} accepted or refused for another reason")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
