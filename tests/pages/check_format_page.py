"""The pages on adding formats: their examples apply to the tree, and a command that is built with them reads the formats.

usage: check_format_page.py ROOT BUILD
"""
# SPDX-License-Identifier: Apache-2.0
import json
import os
import sys
import tempfile

from page_changes import apply, changes_of, commands_of, compile_file, link, refused, run

LINE = """<ir_version: 8, opset_import: ["" : 17]>
line (float[N,2] x) => (float[N,1] y) <float[2,1] w = {1, 2}> { y = MatMul(x, w) }
"""
MEANS = """<ir_version: 8, opset_import: ["" : 18]>
means (uint8[N,3,32,32] x) => (float[N] y) <int64[3] axes = {1, 2, 3}>
{ f = Cast <to = 1> (x) y = ReduceMean <keepdims = 0> (f, axes) }
"""


def check_checkpoint(command, work):
    weights = {"version": "7", "step": 12, "weights": {"w": {"shape": [2, 1], "values": [3, 4.5]}}}
    with open(os.path.join(work, "net.weights.json"), "w", encoding="utf-8") as file:
        json.dump(weights, file)
    told = json.loads(run(command, "checkpoint", "info", "net.weights.json", "--json", cwd=work))
    assert told["format"] == "weights in a .weights.json file" and told["version"] == "7", told
    run(command, "import", "line.onnxtxt", "net.weights.json", "--weights-only", "-o", "filled.onnx", cwd=work)
    assert "4.5" in run(command, "print", "filled.onnx", cwd=work), "the weight is not in the model"
    assert " json-weights" not in run(command, "export", "--list", cwd=work), "a format without a writer is listed"


def check_data(command, work):
    records = b"".join(bytes([label]) + bytes([label * 10]) * 3072 for label in (1, 2))
    for name, data in ("two.bin", records), ("cut.bin", records[:-1]):
        with open(os.path.join(work, name), "wb") as file:
            file.write(data)
    run(command, "predict", "means.onnxtxt", "--data", "two.bin", "-o", "means.csv", cwd=work)
    with open(os.path.join(work, "means.csv"), encoding="utf-8") as file:
        assert [float(line) for line in file.read().split()[1:]] == [10, 20], "the images are others"
    for name, why in ("cut.bin", "no multiple of 3073"), ("line.onnxtxt", ".safetensors, .csv or .bin file"):
        told = refused(command, "predict", "means.onnxtxt", "--data", name, "-o", "no.csv", cwd=work)
        assert why in told, told


def main():
    root, build = map(os.path.abspath, sys.argv[1:3])
    pages, commands = [f"adding-a-{kind}-format.md" for kind in ("checkpoint", "data")], commands_of(build)
    changes = [change for page in pages for change in changes_of(root, page)]
    assert len(changes) == 2, f"{len(changes)} changes are shown, expected 2"
    with tempfile.TemporaryDirectory(prefix="cameo-format-") as work:
        files = [name for change in changes for name in apply(root, work, change) if name.endswith(".c")]
        objects = {name: compile_file(root, build, work, name, commands) for name in files}
        command = link(build, work, [made for name, made in objects.items() if name.startswith("src/")])
        for name, text in ("line", LINE), ("means", MEANS):
            with open(os.path.join(work, name + ".onnxtxt"), "w", encoding="utf-8") as file:
                file.write(text)
        check_checkpoint(command, work)
        check_data(command, work)
    print("# counts: 2 passed, 0 failed")


if __name__ == "__main__":
    main()
