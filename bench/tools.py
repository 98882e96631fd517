#!/usr/bin/env python3
# How long the tools take on models of very many nodes, beside those of the onnx package.
# SPDX-License-Identifier: Apache-2.0
"""usage: tools.py CAMEO FOLDER [NODES...]

Writes chains of small nodes to FOLDER and times each tool from file to verdict, ours and the peer's each in a
process of its own, best of three; what starting Python and importing onnx costs is not counted for the peer. Ours
must stay linear: the last column is the time per node beside that of the shortest chain.
"""

import pathlib
import subprocess
import sys

from many_nodes import seconds, write_chain

REPEATS = 3

# A row: name, our arguments before the model, what the peer does with the path `path`.
TOOLS = [
    ("check", ["check"], "onnx.checker.check_model(path, full_check=True)"),
]


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    cameo, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    empty = seconds([sys.executable, "-c", "import onnx"], REPEATS)
    print(f"{'tool':<8}{'nodes':>8}{'cameo':>10}{'onnx':>10}{'ratio':>8}{'per node':>10}")
    for name, arguments, peer in TOOLS:
        first = None
        for nodes in [int(n) for n in sys.argv[3:]] or [10000, 40000, 160000]:
            path = folder / f"chain_{nodes}.onnx"
            write_chain(path, nodes)
            ours = seconds([cameo, *arguments, str(path)], REPEATS)
            script = f"import onnx\npath = {str(path)!r}\n{peer}\n"
            theirs = seconds([sys.executable, "-c", script], REPEATS) - empty
            first = first or ours / nodes
            print(f"{name:<8}{nodes:>8}{ours:>9.3f}s{theirs:>9.3f}s{theirs / ours:>7.1f}x"
                  f"{ours / nodes / first:>9.2f}x", flush=True)


if __name__ == "__main__":
    main()
