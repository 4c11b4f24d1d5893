"""slow_input.py FILE COMMAND...: gives the command FILE as standard input, two seconds late, and a
terminal as standard error. Prints the first line that was shown for a while, and then what the terminal
keeps.
"""

import os
import pty
import re
import subprocess
import sys
import time

path, command = sys.argv[1], sys.argv[2:]
terminal, side = pty.openpty()
process = subprocess.Popen(
    command, stdin=subprocess.PIPE, stderr=side, env={**os.environ, "TERM": "xterm"}
)
os.close(side)
time.sleep(2)
with open(path, "rb") as file:
    process.communicate(file.read())
shown = b""
while True:
    try:
        part = os.read(terminal, 65536)
    except OSError:  # Linux's end of a terminal
        break
    if not part:
        break
    shown += part
text = shown.decode().replace("\r\n", "\n")
FRAME = re.compile(r"\r\x1b\[K(?:(compiling[^\r\n]*?), \d+ s)?")
frames = [frame for frame in FRAME.findall(text) if frame]
print("first shown:", frames[0] if frames else "nothing")
print(FRAME.sub("", text).replace("\x1b", "ESC").replace("\r", "CR"), end="")
sys.exit(process.returncode)
