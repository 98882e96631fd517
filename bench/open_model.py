#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Opening a model of 1 GiB: Cameo's time and memory beside those of onnx.load.

usage: open_model.py [PROGRAM]    PROGRAM is build/bench/open_model unless given
Both read the same file from a warm page cache; the best of several tries counts.
"""

import os
import subprocess
import sys
import tempfile

TENSORS = 64
TENSOR_BYTES = 16 << 20

PEER = """
import sys, time
import onnx
best = 1e30
for _ in range(3):
    start = time.perf_counter()
    model = onnx.load(sys.argv[1])
    best = min(best, time.perf_counter() - start)
    assert len(model.graph.initializer) == int(sys.argv[2])
    del model
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM:"))
print(best * 1e3, "ms", peak.split()[1], "KiB")
"""


def varint(value):
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def field(number, content):
    return varint(number << 3 | 2) + varint(len(content)) + content


def write_model(path):
    """By hand, as a message of this size is slow to build in Python."""
    block = os.urandom(1 << 20) * (TENSOR_BYTES >> 20)
    heads = []
    for i in range(TENSORS):
        head = b"\x08" + varint(TENSOR_BYTES // 4) + b"\x10\x01" + field(8, b"W%d" % i)
        head += varint(9 << 3 | 2) + varint(TENSOR_BYTES)
        heads.append(varint(5 << 3 | 2) + varint(len(head) + TENSOR_BYTES) + head)
    size = sum(len(head) + TENSOR_BYTES for head in heads)
    with open(path, "wb") as file:
        file.write(b"\x08\x09" + varint(7 << 3 | 2) + varint(size))
        for head in heads:
            file.write(head)
            file.write(block)


def measure(command):
    words = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    return float(words[0]), float(words[2]) / 1024


def main():
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    default = os.path.join(root, "build", "bench", "open_model")
    program = sys.argv[1] if len(sys.argv) > 1 else default
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "large.onnx")
        write_model(path)
        ours = measure([program, path])
        peer = measure([sys.executable, "-c", PEER, path, str(TENSORS)])
    print(f"open 1 GiB model  {ours[0]:.3f} ms  {ours[1]:.1f} MiB"
          f"  onnx.load {peer[0]:.0f} ms ({peer[0] / ours[0]:.0f}x)"
          f"  {peer[1]:.0f} MiB ({peer[1] / ours[1]:.0f}x)")


if __name__ == "__main__":
    main()
