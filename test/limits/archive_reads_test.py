#!/usr/bin/env python3
"""An archive of inputs is read once, however many inputs of a function come from it.

Usage: archive_reads_test.py TENON

Counts the bytes that the command reads, as Linux accounts them, for functions that differ only in how many arrays of
one archive they take. Only the arrays themselves may add to them.
"""

import struct
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

ARRAYS = 64
COMMENT = b"c" * 50_000  # of each member, so that the directory outweighs everything else


def array() -> bytes:
    """A tensor[1; f32] as NumPy stores it."""
    header = "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }".ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + struct.pack("<f", 1)


def program(parameters: int) -> str:
    names = [f"%x{i}" for i in range(parameters)]
    list_of = ", ".join(f"{name}: tensor[1; f32]" for name in names)
    return f"fn @main({list_of}) -> tensor[1; f32] {{\n  relu({names[-1]})\n}}\n"


def bytes_read() -> int:
    """What this process and its ended children have read."""
    for line in Path("/proc/self/io").read_text().splitlines():
        if line.startswith("rchar: "):
            return int(line.split()[1])
    raise OSError("no rchar")


def main() -> int:
    tenon = str(Path(sys.argv[1]).resolve())
    try:
        bytes_read()
    except OSError as error:
        print(f"skipped: this system does not count what a process reads: {error}")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        archive = Path(folder, "inputs.npz")
        with zipfile.ZipFile(archive, "w") as out:
            for i in range(ARRAYS):
                member = zipfile.ZipInfo(f"x{i}.npy")
                member.comment = COMMENT
                out.writestr(member, array())

        def reads(parameters: int) -> int:
            path = Path(folder, f"{parameters}.tn")
            path.write_text(program(parameters))
            before = bytes_read()
            command = [tenon, "run", "-q", str(path), "--mode", "interpret", "--inputs", str(archive)]
            subprocess.run(command, check=True, capture_output=True, timeout=120)
            return bytes_read() - before

        directory = ARRAYS * len(COMMENT)
        one, all_of_them = reads(1), reads(ARRAYS)
    if one < directory:
        print(f"only {one} bytes were read with one input; the archive's directory alone has {directory}")
        return 1
    if all_of_them - one >= directory:
        print(f"{ARRAYS} inputs: {all_of_them} bytes read; 1 input: {one}; the archive's directory has {directory}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
