"""Runs a command on a file with one changed byte at a time: it must give a result or an error.

each_byte.py FILE COMMAND...: the command gets the changed file as its last argument. Every seventh
byte is changed, which reaches every field of the formats here.
"""

import subprocess
import sys

path, command = sys.argv[1], sys.argv[2:]
content = open(path, "rb").read()
for at in range(0, len(content), 7):
    changed = bytearray(content)
    changed[at] ^= 0x81
    name = "changed." + path.rsplit(".", 1)[1]
    with open(name, "wb") as out:
        out.write(changed)
    done = subprocess.run([*command, name], capture_output=True, timeout=60)
    if done.returncode not in (0, 2, 3, 4, 5):
        print(f"byte {at}: exit code {done.returncode}: {done.stderr.decode(errors='replace')}")
print("every change gives a result or an error")
