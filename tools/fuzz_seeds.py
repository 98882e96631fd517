#!/usr/bin/env python3
# Collects seeds for the fuzz targets from the models and files of the tests, and writes a dictionary.
# SPDX-License-Identifier: Apache-2.0
"""usage: fuzz_seeds.py [FOLDER]

Writes FOLDER/NAME/* for the targets (build/fuzz-seeds unless given) and FOLDER/words.dict. Committed seeds in
tests/fuzz/corpus are used beside these. What is not there is left out and said: ONNX's test cases
(build/onnx-suite, `make test` makes them) and what build/cameo writes (`make`).
"""

import hashlib
import re
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MODEL_TARGETS = ("api", "check", "decode", "grad", "optimize", "run", "train", "transform")
LARGEST_MODEL = 8 * 1024  # larger seeds are slow, and small ones reach the same code
LARGEST_FILE = 48 * 1024
EXPORTS = {  # format of `cameo export`: name of the file in a folder, None: a folder itself
    "flax": "checkpoint.msgpack", "huggingface": None, "keras-weights": "model.weights.h5", "lightning": "last.ckpt",
    "onnxruntime": "checkpoint", "orbax": None, "pytorch": "model.pt", "safetensors": "model.safetensors",
    "tensorflow": None, "torch-distributed": None,
}
NETWORK = """<ir_version: 8, opset_import: ["" : 17]>
g (float[N,2] x) => (float[N,2] y) <float[2,2] layer_weight = {1, 2, 3, 4}, float[2] layer_bias = {0, 0}>
{ t = Gemm <transB = 1> (x, layer_weight, layer_bias) y = Relu(t) }
"""


class Seeds:
    def __init__(self, folder):
        self.folder = folder
        self.counts = {}

    def add(self, target, data):
        path = self.folder / f"fuzz_{target}" / hashlib.sha256(data).hexdigest()[:16]
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            path.write_bytes(data)
        self.counts.setdefault(target, set()).add(path.name)


def names_of_folder_files(target):
    """The table `names` of a target that writes folders."""
    text = (ROOT / f"tests/fuzz/fuzz_{target}.c").read_text()
    table = re.search(r"names\[\] = \{(.*?)\};", text, re.S).group(1)
    return re.findall(r'"([^"]+)"', table)


def as_records(target, files):
    """Files by name as one input: see tests/fuzz/in_folder.h; None when a name is not in the target's table."""
    names = names_of_folder_files(target)
    out = b""
    for name, data in files.items():
        if name not in names or len(data) > 0xffff:
            return None
        out += bytes([names.index(name)]) + struct.pack("<H", len(data)) + data
    return out


def small_models():
    for pattern, every in (("build/onnx-suite/*/*/model.onnx", 4), ("tests/**/*.onnx", 1)):
        small = sorted(p for p in ROOT.glob(pattern) if p.stat().st_size <= LARGEST_MODEL)
        yield from (p.read_bytes() for p in small[::every])
    for target in MODEL_TARGETS:
        yield from (p.read_bytes() for p in (ROOT / f"tests/fuzz/corpus/fuzz_{target}").glob("*")
                    if p.stat().st_size <= LARGEST_MODEL)


def add_models(seeds):
    """Every small model goes to every target that takes models."""
    if not (ROOT / "build/onnx-suite").is_dir():
        print("no build/onnx-suite: its models are left out")
    for data in small_models():
        for target in MODEL_TARGETS:
            seeds.add(target, data)


def add_texts(seeds, command):
    texts = [p.read_bytes() for p in ROOT.glob("tests/**/*.onnxtxt")]
    for text in texts:
        if len(text) <= LARGEST_FILE:
            seeds.add("text", text)
    models = sorted(p for p in ROOT.glob("tests/models/*.onnx") if p.stat().st_size <= LARGEST_MODEL)
    models += sorted(ROOT.glob("build/onnx-suite/node/*/model.onnx"))[::12]
    for model in models if command else []:
        for target, how in (("text", ["print", model]), ("mlir", ["print", "--form", "mlir", model])):
            done = subprocess.run([command, *how], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
            if done.returncode == 0 and 0 < len(done.stdout) <= LARGEST_FILE:
                seeds.add(target, done.stdout)


def add_arrays(seeds):
    formats = {".npy": 0, ".npz": 1, ".pb": 2, ".safetensors": 3}
    for path in sorted((ROOT / "tests/models").rglob("*")):
        if path.suffix in formats and path.stat().st_size <= LARGEST_FILE:
            data = path.read_bytes()
            seeds.add("arrays", bytes([formats[path.suffix]]) + data)
            if path.suffix in (".npz", ".safetensors"):
                seeds.add("dataset", bytes([3 if path.suffix == ".npz" else 4]) + data)


def add_file(seeds, name, data):
    """A checkpoint that is one file, for the targets that its ending says."""
    if len(data) > LARGEST_FILE:
        return
    seeds.add("saved", b"\0" + data)
    if name.endswith((".pt", ".ckpt", ".bin")):
        seeds.add("pickle", data)
    elif name.endswith(".msgpack"):
        seeds.add("msgpack", data)
    elif name.endswith((".h5", ".keras")):
        seeds.add("hdf5", bytes([0 if name.endswith(".weights.h5") else 2 if name.endswith(".keras") else 1]) + data)
    elif name == "checkpoint" and data[4:8].isalpha():
        seeds.add("ort", data)


def add_folder(seeds, folder):
    files = {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}
    for name, data in files.items():
        add_file(seeds, Path(name).name, data)
    for target, head in (("saved", b"\1"), ("orbax", b"")):
        known = {name: data for name, data in files.items() if name in names_of_folder_files(target)}
        records = as_records(target, known)
        if records:
            seeds.add(target, head + records)


def add_checkpoints(seeds, command):
    for path in sorted((ROOT / "tests/checkpoints").iterdir()):
        if path.is_dir() and not path.name.startswith("_"):
            add_folder(seeds, path)
        elif path.suffix in (".h5", ".keras"):
            add_file(seeds, path.name, path.read_bytes())
    if not command:
        print("no build/cameo: what it would export is left out")
        return
    with tempfile.TemporaryDirectory() as scratch:
        model = Path(scratch, "model.onnxtxt")
        model.write_text(NETWORK)
        prepared = Path(scratch, "prepared.onnx")
        flags = ["--loss", "mse", "--optimizer", "adam", "--schedule", "cosine", "--schedule-steps", "9"]
        subprocess.run([command, "prepare", model, *flags, "-o", prepared], check=True, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)
        for name, file in EXPORTS.items():
            folder = Path(scratch, name)
            folder.mkdir()
            out = folder / (file or "out")
            for more in ([], ["--weights-only"]):
                if subprocess.run([command, "export", prepared, "--to", name, "-o", out, *more], stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL).returncode == 0:
                    break
            add_folder(seeds, out if out.is_dir() else folder)


def write_dictionary(folder):
    """Operators, attributes and element types of data/*.txt, as libFuzzer reads them."""
    words = {"ir_version", "opset_import", "module", "func.func", "return", "tensor<", "dense<", "onnx.Return"}
    for path in sorted((ROOT / "data").glob("*.txt")):
        for line in path.read_text().splitlines():
            found = re.match(r"([A-Z]\w*) \d|\s+attr (\w+):|group \w+: (.*)", line)
            if found:
                words.update(w for part in found.groups() if part for w in part.split())
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "words.dict").write_text("".join(f'"{w}"\n' for w in sorted(words)))
    return len(words)


def make(folder):
    command = ROOT / "build/cameo"
    command = str(command) if command.exists() else None
    seeds = Seeds(folder)
    add_models(seeds)
    add_texts(seeds, command)
    add_arrays(seeds)
    add_checkpoints(seeds, command)
    words = write_dictionary(folder)
    for target, found in sorted(seeds.counts.items()):
        print(f"{len(found):6} seeds for fuzz_{target}")
    print(f"{words:6} words in the dictionary")


if __name__ == "__main__":
    make(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "build/fuzz-seeds")
