"""Makes a library look as if it came from another build: other_build.py LIBRARY.so"""

import re
import sys

path = sys.argv[1]
with open(path, "rb") as file:
    data = file.read()
data, count = re.subn(rb"TENON_PRIVATE_[0-9a-f]{16}", b"TENON_PRIVATE_" + b"0" * 16, data)
assert count > 0, f"{path} names no build"
with open(path, "wb") as file:
    file.write(data)
