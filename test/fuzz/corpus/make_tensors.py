#!/usr/bin/env python3
"""Writes the small files of tensor/, the seeds of tensor_mutants and tensor_fuzzer.

The tests use the committed files; after a change, run this with the packages of test/requirements.txt.
"""

from pathlib import Path

import numpy as np

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
