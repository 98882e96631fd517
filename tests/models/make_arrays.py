#!/usr/bin/env python3
# Writes the array files that tests read: NumPy's own, and .safetensors by hand.
# SPDX-License-Identifier: Apache-2.0
"""usage: make_arrays.py FOLDER"""

import io
import json
import pathlib
import struct
import sys
import zipfile

import numpy as np


def npy(array, version=None):
    out = io.BytesIO()
    np.lib.format.write_array(out, array, version=version, allow_pickle=True)
    return out.getvalue()


def safetensors(header, data):
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def zipped(members, method):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        for name, data in members.items():
            archive.writestr(zipfile.ZipInfo(name), data, method)
    return out.getvalue()


def overlapping(member, count):
    """A zip file whose entries all name the bytes of one member: how bombs are made."""
    whole = zipped({"A.npy": member}, zipfile.ZIP_STORED)
    begin, end = whole.rindex(b"PK\x01\x02"), whole.rindex(b"PK\x05\x06")
    entries = b"".join(
        whole[begin:end].replace(b"A.npy", b"%c.npy" % (ord("A") + i)) for i in range(count)
    )
    tail = struct.pack("<4sHHHHIIH", b"PK\x05\x06", 0, 0, count, count, len(entries), begin, 0)
    return whole[:begin] + entries + tail


def main():
    folder = pathlib.Path(sys.argv[1])
    ramp = np.arange(6).reshape(2, 3)
    files = {}
    for code in "b1 i1 i2 i4 i8 u1 u2 u4 u8 f2 f4 f8 c8 c16".split():
        files[f"{code}.npy"] = npy(ramp.astype(code))
    files["columns.npy"] = npy(np.asfortranarray(ramp.astype("f4")))
    files["cube.npy"] = npy(np.asfortranarray(np.arange(24, dtype="i4").reshape(2, 3, 4)))
    files["version2.npy"] = npy(ramp.astype("f4"), (2, 0))
    files["version3.npy"] = npy(ramp.astype("f4"), (3, 0))
    files["scalar.npy"] = npy(np.array(7, "i8"))
    files["empty.npy"] = npy(np.zeros((2, 0, 3), "f4"))
    files["text.npy"] = npy(np.array([["a", "größe"], ["", "日本𝄞"]]))
    files["bytes.npy"] = npy(np.array([b"a", b"\xff\x00b"]))
    files["big.npy"] = npy(ramp.astype(">f4"))
    files["object.npy"] = npy(np.array([None, 1], dtype=object))
    files["record.npy"] = npy(np.zeros(2, dtype=[("a", "f4"), ("b", "i4")]))
    files["bfloat16.npy"] = files["u2.npy"].replace(b"'<u2'", b"'<V2'")
    members = {"x.npy": npy(ramp.astype("f4")), "größe.npy": npy(ramp.astype("i8"))}
    files["stored.npz"] = zipped(members, zipfile.ZIP_STORED)
    files["deflated.npz"] = zipped(members, zipfile.ZIP_DEFLATED)
    files["zeros.npz"] = zipped({"z.npy": npy(np.zeros(100000, "f4"))}, zipfile.ZIP_DEFLATED)
    files["other.npz"] = zipped({"readme.txt": b"hello"}, zipfile.ZIP_STORED)
    files["bzip2.npz"] = zipped(members, zipfile.ZIP_BZIP2)
    files["overlap.npz"] = overlapping(npy(np.zeros(4000, "f4")), 20)
    f4 = ramp.astype("<f4").tobytes()
    files["two.safetensors"] = safetensors(
        {
            "__metadata__": {"made by": "hand"},
            "x": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]},
            "fl\"ag\u00e9": {"dtype": "BOOL", "shape": [3], "data_offsets": [24, 27]},
            "half": {"dtype": "BF16", "shape": [2], "data_offsets": [27, 31]},
        },
        f4 + b"\1\0\1" + b"\x80\x3f\x00\x40",
    )
    for name, data in files.items():
        (folder / name).write_bytes(data)


if __name__ == "__main__":
    main()
