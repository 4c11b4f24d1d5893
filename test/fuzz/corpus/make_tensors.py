#!/usr/bin/env python3
"""Writes the small files of tensor/, the seeds of tensor_mutants and tensor_fuzzer.

The tests use the committed files; after a change, run this with the packages of test/requirements.txt.
"""

import json
from pathlib import Path

import numpy as np
from onnx import TensorProto, helper, numpy_helper

HERE = Path(__file__).resolve().parent / "tensor"

ROWS = np.arange(6, dtype="<f4").reshape(2, 3)

np.save(HERE / "rows.npy", ROWS)
np.save(HERE / "columns_big_endian.npy", np.asfortranarray(ROWS.reshape(3, 1, 2).astype(">i2")))
np.save(HERE / "scalar.npy", np.float64(0.5))
np.save(HERE / "empty.npy", np.zeros((0, 4), bool))
with (HERE / "version_3.npy").open("wb") as file:
    np.lib.format.write_array(file, np.arange(5, dtype="u1"), version=(3, 0))
# Without elements, although the product of the other sizes is no 64-bit integer.
with (HERE / "empty_columns.npy").open("wb") as file:
    header = {"descr": "|u1", "fortran_order": True, "shape": (1 << 32, 1 << 31, 0)}
    np.lib.format.write_array_header_1_0(file, header)
np.save(HERE / "strings.npy", np.array([["a", "é"], ["", "漢字"]]))
np.save(HERE / "strings_big_endian.npy", np.asfortranarray(np.array([["a", "é"], ["", "bc"]]).astype(">U2")))
np.save(HERE / "byte_strings.npy", np.array([b"abc", b"", b"\xc3\xa9"]))
np.savez(HERE / "stored.npz", ROWS, mask=ROWS > 2)
np.savez_compressed(HERE / "deflated.npz", zeros=np.zeros((40, 8), "<f2"), columns=np.asfortranarray(ROWS))


def write_message(name: str, message: object) -> None:
    (HERE / f"{name}.pb").write_bytes(message.SerializeToString())


write_message("raw", numpy_helper.from_array(ROWS, "rows"))
write_message("fields", helper.make_tensor("fields", TensorProto.INT8, [3], [1, -2, 3]))
write_message("half", helper.make_tensor("half", TensorProto.BFLOAT16, [2], [0.5, -1.0]))
write_message("packed", helper.make_tensor("packed", TensorProto.INT4, [3], [1, -2, 7]))
write_message("complex", helper.make_tensor("complex", TensorProto.COMPLEX64, [2], [1 + 2j, 3j]))
write_message("text", helper.make_tensor("text", TensorProto.STRING, [2], [b"a", "é".encode()]))
sequence = helper.make_sequence("s", 1, [numpy_helper.from_array(ROWS), numpy_helper.from_array(ROWS[:1])])
write_message("sequence", sequence)
write_message("optional", helper.make_optional("o", 1, numpy_helper.from_array(ROWS)))

tensors = {"rows": ("F32", [2, 3], ROWS.tobytes()), "mask": ("BOOL", [3], b"\1\0\1"), "half": ("BF16", [1, 1], b"\0\x3f")}
header, at = {}, 0
for key, (dtype, shape, data) in tensors.items():
    header[key] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + len(data)]}
    at += len(data)
text = json.dumps({"__metadata__": {"format": "pt"}, **header}).encode()
data = b"".join(data for _, _, data in tensors.values())
(HERE / "weights.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + data)
