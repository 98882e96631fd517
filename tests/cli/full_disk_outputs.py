# Runs every command that writes files where the disk is full, as far as a limit on file sizes can tell.
# SPDX-License-Identifier: Apache-2.0
"""usage: full_disk_outputs.py, in an empty folder, with $CAMEO and $TESTS set

The rows below are command lines. Each runs three times in copies of one folder: as it is, to learn which files it
writes; then with an old file in the place of each of them and no room for a single byte; then with room for half of
the largest. The second and third must exit with 3 and a sentence, and leave every old file as it was and no other
file behind. An option of any command that takes a file or a folder must be in a row, or be known as one that is read:
a new command that writes is found by this.
"""

import os
import re
import resource
import shutil
import subprocess
import sys

CAMEO, TESTS = os.environ["CAMEO"], os.environ["TESTS"]
READ = "--input --data --validate --expected --map --set --loss --columns".split()
TRAIN = "train trainable.onnx --data data.csv --steps 2 --threads 1 --backend reference"
ROWS = """
check net.onnx --sarif found.sarif
checkpoint info weights.safetensors --dump tensors
compile net.onnx -o net.ll --emit llvm
compile net.onnx -o net.o
copy net.onnx -o copy.onnx
copy net.onnx -o copy.onnxtxt
copy net.onnx -o copy.onnx --external copy.bin --threshold 1
demo --dir demo
downgrade net.onnx --opset 16 -o old.onnx
downgrade net.onnx --opset 16 -o old.onnx --external old.bin
expand net.onnx --core -o core.onnx
export trainable.onnx --to pytorch -o net.pt
export trainable.onnx --to huggingface -o checkpoint-1
extract net.onnx --outputs a -o part.onnx
grad net.onnx --of y --wrt w -o gradient.onnx
graph net.onnx -o net.svg
graph net.onnx -o net.html
graph net.onnx -o net.dot
import net.onnx weights.safetensors --weights-only -o imported.onnx
infer net.onnx -o typed.onnx
merge net.onnx next.onnx --map y:p -o both.onnx
optimize net.onnx -o fast.onnx
optimize net.onnx -o fast.onnx --external fast.bin
optimize net.onnx -o fast.onnx --dump-after fold=folded.onnx
plot run.jsonl -o curve.svg
predict net.onnx --data x.csv --columns x=p,q -o y.csv
predict net.onnx --data x.csv --columns x=p,q -o y.npz
predict net.onnx --data x.csv --columns x=p,q -o y.npy
predict net.onnx --data x.csv --columns x=p,q -o y.safetensors
prepare net.onnx --loss mse --optimizer sgd -o prepared.onnx
prepare net.onnx --loss mse --optimizer sgd -o prepared.onnx --external prepared.bin
prepare net.onnx --loss mse --optimizer sgd --dump-after loss=loss.onnx
print net.onnx -o net.txt
print net.onnx -o net.mlir
rename net.onnx y=z -o renamed.onnx
run net.onnx --random-inputs -o results
run net.onnx --random-inputs --dump values
run net.onnx --random-inputs --profile run.json
set-shape net.onnx x=3,2 -o fixed.onnx
step trainable.onnx -o step.onnx
strip trainable.onnx -o bare.onnx
strip trainable.onnx -o bare.onnx --external bare.bin
test suite --junit results.xml
TRAIN -o trained.onnx
TRAIN -o trained.onnx --external trained.bin
train net.onnx --loss mse --optimizer sgd --data data.csv --steps 2 -o trained.onnx --dump-after loss=loss.onnx
TRAIN -o trained.onnx --log log.jsonl
TRAIN -o trained.onnx --profile step.json
TRAIN -o trained.onnx --checkpoint kept
TRAIN -o trained.onnx --tensorboard curves
TRAIN -o trained.onnx --best best.onnx --validate data.csv
upgrade net.onnx --opset 18 -o new.onnx
upgrade net.onnx --opset 18 -o new.onnx --external new.bin
""".replace("TRAIN", TRAIN).strip().splitlines()
SHARED = ["--sarif"]  # main writes it for every command alike; the row of check tries it
# What these write must not be there before, or has another name each time.
NEW = ("--to huggingface", "--tensorboard", "--checkpoint ", "demo")
OLD = b"/* compiled by cameo */\n"  # a header beside a compiled model must be one of ours

NET = """<ir_version: 9, opset_import: ["" : 17]>
net (float[N,2] x) => (float[N,1] y)
<float[2,1] w = {1, 2}, float[1] b = {0.5}>
{
    a = MatMul(x, w)
    y = Add(a, b)
}
"""
NEXT = """<ir_version: 9, opset_import: ["" : 17]>
next (float[N,1] p) => (float[N,1] q)
{
    q = Relu(p)
}
"""


def cameo(words, folder, limit=None):
    """limit: bytes that a file may grow to."""
    def restrict():
        if limit is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    return subprocess.run([CAMEO, *words], cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          errors="replace", preexec_fn=restrict)


def make_folder(folder):
    os.mkdir(folder)
    for name, text in (("net.onnxtxt", NET), ("next.onnxtxt", NEXT), ("data.csv", "p,q,t\n1,2,3\n3,4,7\n0,1,2\n"),
                       ("x.csv", "p,q\n1,2\n3,4\n"), ("run.jsonl", '{"step":1,"loss":2}\n{"step":2,"loss":1}\n')):
        with open(os.path.join(folder, name), "w", encoding="ascii") as file:
            file.write(text)
    for line in ("copy net.onnxtxt -o net.onnx", "copy next.onnxtxt -o next.onnx",
                 "prepare net.onnx --loss mse --optimizer sgd -o trainable.onnx",
                 "export trainable.onnx --to safetensors --weights-only -o weights.safetensors"):
        done = cameo(line.split(), folder)
        if done.returncode:
            sys.exit(f"cameo {line}: {done.stderr}")
    case = os.path.join(folder, "suite", "one")
    os.makedirs(os.path.join(case, "test_data_set_0"))
    shutil.copy(os.path.join(folder, "net.onnx"), os.path.join(case, "model.onnx"))


def content(folder):
    found = {}
    for where, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(where, name)
            with open(path, "rb") as file:
                found[os.path.relpath(path, folder)] = file.read()
    return found


def try_full(line, words, written, limit):
    """What is wrong with the command where files may grow to limit bytes, or None."""
    shutil.copytree("start", "full")
    if not any(mark in line for mark in NEW):
        for name in written:
            path = os.path.join("full", name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as file:
                file.write(OLD)
    before = content("full")
    done = cameo(words, "full", limit)
    after = content("full")
    shutil.rmtree("full")
    if done.returncode != 3:
        return f"exit {done.returncode}: {done.stderr}"
    if "cameo: " not in done.stderr:
        return f"no sentence: {done.stderr}"
    for name in sorted(before.keys() | after.keys()):
        # Room for half of the largest is room for what is smaller.
        whole = limit > 1 and after.get(name, b"").endswith(written.get(name, b"-")[-8:])
        if before.get(name) != after.get(name) and not whole:
            return f"'{name}' is " + ("gone" if name not in after else "left behind" if name not in before else
                                      "overwritten with " + repr(after[name][:40]))
    return None


def try_row(line):
    words = line.split()
    if words[0] == "train":
        words += ["--columns", "x=p,q target=t"]
    written = {}
    if words[0] != "demo":  # it would train for some seconds
        shutil.copytree("start", "free")
        before = content("free")
        done = cameo(words, "free")
        written = {name: data for name, data in content("free").items() if before.get(name) != data}
        shutil.rmtree("free")
        if words[0] == "compile" and done.returncode == 1:
            return  # the module for MLIR, or clang, is not there
        if done.returncode not in (0, 1 if words[0] == "test" else 0) or not written:
            print(f"cameo {line}: exit {done.returncode}, wrote {sorted(written)}: {done.stderr}")
            return
    largest = max(map(len, written.values()), default=0)
    for limit in (1, largest // 2)[:1 if any(mark in line for mark in NEW) else 2]:
        wrong = try_full(line, words, written, limit)
        if wrong:
            print(f"cameo {line}, files of at most {limit} bytes: {wrong}")


def unlisted():
    """Options that take a file or a folder and that no row has."""
    commands = re.findall(r"^  ([a-z][a-z-]*) +[a-z]", cameo(["help"], ".").stdout, re.M)
    for command in set(commands) - {"cameo"}:
        rows = [row.split() for row in ROWS if row.split()[0] == command]
        rows.append(SHARED)
        text = cameo(["help", command], ".").stdout
        for brief, name, what in re.findall(r"^  (?:(-\w), )?(--[\w-]+) (\S+)", text, re.M):
            if re.search(r"FILE|DIR|PATH", what) and name not in READ and \
                    not any(name in row or brief in row for row in rows):
                yield f"cameo {command} {name} {what}: no row has it"


if __name__ == "__main__":
    make_folder("start")
    for problem in unlisted():
        print(problem)
    for row in ROWS:
        try_row(row)
    print(len(ROWS), "command lines")
