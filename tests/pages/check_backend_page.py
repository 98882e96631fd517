"""The page on adding a backend: its example applies to the tree, and a command that is built with it has the backend.

usage: check_backend_page.py ROOT BUILD
"""
# SPDX-License-Identifier: Apache-2.0
import glob
import os
import sys
import tempfile

import numpy as np
from page_changes import apply, changes_of, commands_of, compile_file, link, run

ROOTS = """<ir_version: 8, opset_import: ["" : 17]>
roots (float16[N] x, float[N] z) => (float16[N] y, float[N] w) { y = Sqrt(x) w = Sqrt(z) }
"""


def list_kernels(root, build, work, files):
    """What the build makes of the list of backends and of their kernels, the new one with them."""
    os.makedirs(os.path.join(work, "build/generated"), exist_ok=True)
    sources = glob.glob(os.path.join(root, "src/backends/**/*.c"), recursive=True)
    sources += [os.path.join(work, name) for name in files if name.endswith(".c")]
    run(os.path.join(build, "tools/scan"), "kernels", os.path.join(work, "build/generated/kernel_list.c"),
        os.path.join(work, "data/backends.list"), *sorted(sources))
    return "build/generated/kernel_list.c"


def check(command, work):
    with open(os.path.join(work, "roots.onnxtxt"), "w", encoding="utf-8") as file:
        file.write(ROOTS)
    numbers = np.concatenate([np.arange(0, 0x7c01), [0x8000]]).astype(np.uint16).view(np.float16)  # to infinity
    np.save(os.path.join(work, "x.npy"), numbers)
    np.save(os.path.join(work, "z.npy"), numbers.astype(np.float32))
    inputs = ["--input", "x=x.npy", "--input", "z=z.npy", "--explain"]
    told = run(command, "run", "roots.onnxtxt", *inputs, "--output", "out", cwd=work)
    assert "table of roots: operand 'X' is float" in told, f"the backend does not say why it declines: {told}"
    alone = run(command, "run", "roots.onnxtxt", *inputs, "--output", "plain", "--backend", "reference", cwd=work)
    assert "table" not in alone, f"the reference asks the backend: {alone}"
    for name in "y", "w":
        got, expected = (np.load(os.path.join(work, folder, name + ".npy")) for folder in ("out", "plain"))
        assert got.tobytes() == expected.tobytes(), f"{name} is not as the reference computes it"


def main():
    root, build = map(os.path.abspath, sys.argv[1:3])
    changes, commands = changes_of(root, "adding-a-backend.md"), commands_of(build)
    with tempfile.TemporaryDirectory(prefix="cameo-backend-") as work:
        files = [name for change in changes for name in apply(root, work, change)]
        assert len(files) == 2, f"the example changes {files}"
        sources = [name for name in files if name.endswith(".c")] + [list_kernels(root, build, work, files)]
        check(link(build, work, [compile_file(root, build, work, name, commands) for name in sources]), work)
    print("# counts: 1 passed, 0 failed")


if __name__ == "__main__":
    main()
