"""Writes .npy and .npz files as NumPy does, and damaged ones; for Python without NumPy.

make_npz.py KIND FILE: see KINDS below.
"""

import struct
import sys
import zipfile

FLOATS = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]


def npy(shape, elements, code="<f4", fortran=False):
    order = ">" if code[0] == ">" else "<"
    kind = {"f4": "f", "i8": "q", "f2": "e", "b1": "?"}[code[1:]]
    header = f"{{'descr': '{code}', 'fortran_order': {fortran}, 'shape': {shape}, }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    data = struct.pack(f"{order}{len(elements)}{kind}", *elements)
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + data


def archive(path, members, method=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "w", method) as out:
        for name, content in members.items():
            with out.open(name, "w", force_zip64=True) as member:
                member.write(content)


def patch(path, at, new):
    """Overwrites bytes of a file; a negative `at` counts from its end."""
    with open(path, "r+b") as file:
        content = bytearray(file.read())
        at = at if at >= 0 else len(content) + at
        content[at : at + len(new)] = new
        file.seek(0)
        file.write(content)


def in_directory(path, field, new):
    """Overwrites a field of the first entry of the central directory."""
    with open(path, "rb") as file:
        patch(path, file.read().index(b"PK\x01\x02") + field, new)


def x_and_n(path, method=zipfile.ZIP_STORED):
    archive(path, {"x.npy": npy((2, 3), FLOATS), "n.npy": npy((), [7], "<i8")}, method)


def one(path, method=zipfile.ZIP_STORED):
    archive(path, {"x.npy": npy((2, 3), FLOATS)}, method)


def bomb(path):
    """A member that says that it expands further than deflate can."""
    one(path, zipfile.ZIP_DEFLATED)
    in_directory(path, 24, struct.pack("<I", 1 << 30))


def truncated(path):
    one(path)
    with open(path, "r+b") as file:
        file.truncate(100)


def overlapping(path):
    """Two members whose data are the same bytes."""
    archive(path, {"x.npy": npy((2, 3), FLOATS), "y.npy": npy((2, 3), FLOATS)})
    with open(path, "rb") as file:
        second = file.read().rindex(b"PK\x01\x02")
    patch(path, second + 42, struct.pack("<I", 1))


def encrypted(path):
    one(path)
    in_directory(path, 8, b"\x01\x00")


def other_method(path):
    one(path)
    in_directory(path, 10, b"\x0c\x00")


def wrong_checksum(path):
    one(path)
    in_directory(path, 16, b"\x00\x00\x00\x00")


def longer(path):
    """A member with more bytes than the directory says."""
    array = npy((2, 3), FLOATS)
    archive(path, {"x.npy": array + b"more"}, zipfile.ZIP_DEFLATED)
    in_directory(path, 24, struct.pack("<I", len(array)))


def bad_stream(path):
    one(path, zipfile.ZIP_DEFLATED)
    patch(path, 30 + 5 + 20, b"\xff\xff\xff\xff")


def twice(path):
    archive(path, {"x.npy": npy((2, 3), FLOATS), "y.npy": npy((2, 3), FLOATS)})
    with open(path, "rb") as file:
        second = file.read().rindex(b"PK\x01\x02")
    patch(path, second + 46, b"x")


KINDS = {
    "x_and_n": x_and_n,
    "compressed": lambda path: x_and_n(path, zipfile.ZIP_DEFLATED),
    "by_position": lambda path: archive(
        path, {"arr_0.npy": npy((2, 3), FLOATS), "arr_1.npy": npy((), [7], "<i8")}
    ),
    "one": one,
    "empty": lambda path: archive(path, {}),
    "no_array": lambda path: archive(path, {"x.npy": b"text"}),
    "bomb": bomb,
    "truncated": truncated,
    "overlapping": overlapping,
    "encrypted": encrypted,
    "other_method": other_method,
    "wrong_checksum": wrong_checksum,
    "longer": longer,
    "bad_stream": bad_stream,
    "twice": twice,
}
ARRAYS = {
    "fortran": lambda: npy((2, 3), [1.0, 4.0, 2.0, 5.0, 3.0, 6.0], fortran=True),
    "big_endian": lambda: npy((2, 3), FLOATS, ">f4"),
    "big_fortran": lambda: npy((2, 3), [1.0, 4.0, 2.0, 5.0, 3.0, 6.0], ">f4", True),
    "nan": lambda: npy((2, 3), [float("nan")] * 6),
}

kind, target = sys.argv[1:]
if kind in ARRAYS:
    with open(target, "wb") as out:
        out.write(ARRAYS[kind]())
else:
    KINDS[kind](target)
