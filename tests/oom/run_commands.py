#!/usr/bin/env python3
# Runs every subcommand with one allocation of the process failing, each in turn.
# SPDX-License-Identifier: Apache-2.0
"""usage: run_commands.py LIBRARY [--all | --stacks] [--only WORDS] [--at N [--after]]

LIBRARY is the preloaded library that makes allocations fail. A run with a failed allocation must end as
the run without: same exit code, same stdout, same stderr, same files; or with exit code 3 and a sentence
about memory on stderr, and then each file it wrote is the whole file or is not there; a training may also leave
the model as far as it came, if it names the file and the file is legal. A signal is a failure.

Allocations with the same call stack fail alike, so a sample of distinct stacks is tried for each row; --stacks
tries every distinct stack. --all tries the first allocations one by one and then every so many, alone and
together with all that follow. Rows marked `limits` also run under limits of address space (ulimit -v), from
just enough down to where the command cannot start. --only runs rows that contain WORDS; --at tries one
allocation and shows what the command said and where the allocation was made.

$CAMEO is the command, $TESTS the folder of tests.
"""

import argparse
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

CAMEO = os.environ["CAMEO"]
TESTS = Path(os.environ["TESTS"])
SANITIZED = os.environ.get("SANITIZED") == "1"
SAMPLE = 10          # allocations of a row without --all
ROOM = 1 << 14       # stacks that are recorded
EACH, MORE = 1500, 500  # of --all: the first so many, then so many of the rest
TIMEOUT = 120
SENTENCE = re.compile(r"^cameo: .*memory", re.I | re.M)

# What rows read, made once without failures. {M} is tests/models, {P} the folder of these files.
MADE = [
    "prepare {M}/train/regress/model.onnx --loss mse --optimizer adam -o {P}/trainable.onnx",
    "train {P}/trainable.onnx --data {M}/train/regress/data.npz --batch-size 16 --steps 3 --log {P}/log.jsonl"
    " -o {P}/trained.onnx --threads 1",
    "export {P}/trained.onnx --to pytorch -o {P}/trained.pt",
    "print {M}/linear.onnx -o {P}/linear.onnxtxt",
    "copy {M}/train/regress/model.onnx --external apart.data -o {P}/apart.onnx",
]

# Each subcommand has at least one row. OUT is the folder that the command may write to. Options that follow
# a bar: `numbers` are not compared (they are times, and tables are sorted by them), nor is anything that a `loose`
# command prints; `streams` may be cut short; of `slow` commands a tenth is tried; `limits` are tried too.
ROWS = """
bench {M}/train/regress/model.onnx --runs 2 --threads 1 | loose
bench {M}/train/regress/model.onnx --train --loss mse --optimizer sgd --runs 2 --threads 1 --json | numbers
check {M}/train/lenet/model.onnx --can-run
check {M}/elements.onnx {M}/functions.onnx --json --sarif OUT/findings.sarif
checkpoint info {T}/checkpoints/ort-mlp-adamw --all
checkpoint info {T}/checkpoints/keras-adamw.weights.h5 --json --dump OUT/dump
checkpoint info {P}/trained.pt
compare {P}/trainable.onnx {P}/trained.onnx
compare {M}/train/regress/model.onnx {M}/train/regress/model_eval.onnx --only results --data {M}/train/regress/data.npz
compile {M}/train/regress/model.onnx --emit core
compile {M}/train/regress/model.onnx --emit linalg
compile {M}/train/regress/model.onnx -o OUT/net.o | slow limits
compile {P}/trainable.onnx --train-step -o OUT/step.o | slow
copy {M}/train/lenet/model.onnx -o OUT/copy.onnx --external copy.data
copy {P}/linear.onnxtxt -o OUT/copy.onnx
demo --dir OUT --epochs 1 | numbers streams
downgrade {M}/train/lenet/model.onnx --opset 13 -o OUT/old.onnx
evaluate {P}/trained.onnx --data {M}/train/regress/data.npz --threads 1
evaluate {M}/train/lenet/model_eval.onnx --data {M}/train/lenet/data.npz --loss cross-entropy --json --threads 1 | numbers limits
expand {M}/functions.onnx -o OUT/flat.onnx
expand {M}/train/lenet/model.onnx --core -o OUT/core.onnx
export {P}/trained.onnx --to pytorch -o OUT/trained.pt
export {P}/trained.onnx --to safetensors --weights-only -o OUT/trained.safetensors
export {P}/trained.onnx --to keras-weights -o OUT/net.weights.h5
export {P}/trainable.onnx --to savedmodel -o OUT/tf
export {P}/trained.onnx --to pytorch-code -o OUT/code
export {P}/trained.onnx --to jax-code -o OUT/code
export --list
extract {M}/train/lenet/model.onnx --outputs logits -o OUT/part.onnx
grad {M}/train/regress/model.onnx --of logits --wrt x -o OUT/grad.onnx
grad --operator Relu
gradcheck {M}/train/regress/model.onnx --samples 2
graph {M}/train/lenet/model.onnx -o OUT/net.svg
graph {M}/train/lenet/model_eval.onnx -o OUT/net.html
graph {M}/branches.onnx -o OUT/net.dot
import {M}/train/regress/model.onnx {P}/trained.pt --loss mse -o OUT/imported.onnx
infer {M}/train/lenet/model.onnx -o OUT/typed.onnx
infer {M}/train/lenet/model.onnx --json
info {M}/train/lenet/model.onnx
info {P}/trainable.onnx --json
merge {M}/train/regress/model.onnx {M}/train/regress/model.onnx --map logits:x --prefix1 a/ --prefix2 b/ -o OUT/both.onnx
optimize {M}/train/lenet/model.onnx -o OUT/fast.onnx
optimize {M}/train/lenet/model_eval.onnx -o OUT/fast.onnx --portable
plot {P}/log.jsonl
plot {P}/log.jsonl -o OUT/curve.svg
predict {P}/trained.onnx --data {M}/train/regress/data.npz -o OUT/predictions.npz --threads 1
predict {P}/trained.onnx --data {M}/train/regress/data.npz -o OUT/predictions.csv --threads 1
prepare {M}/train/lenet/model.onnx --loss cross-entropy --optimizer adam -o OUT/trainable.onnx
prepare {M}/train/lenet/model.onnx --loss cross-entropy --optimizer adam --list
print {M}/train/regress/model.onnx
print {P}/apart.onnx --form mlir -o OUT/net.mlir
rename {M}/train/lenet/model.onnx logits=scores dim:batch=N -o OUT/named.onnx
run {M}/train/regress/model.onnx --random-inputs --threads 1
run {M}/train/lenet/model.onnx --random-inputs --dim batch=4 -o OUT --threads 1
run {M}/train/lenet/model.onnx --random-inputs --dim batch=64 --threads 2 | limits
run {M}/branches.onnx --random-inputs --explain --threads 1 | numbers
run {P}/apart.onnx --random-inputs --dump OUT --threads 1
run {M}/train/lstm/model.onnx --random-inputs --profile OUT/profile.json --threads 1 | numbers
set-shape {M}/train/lenet/model.onnx batch=8 -o OUT/eight.onnx
step {P}/trainable.onnx -o OUT/step.onnx
step {P}/trainable.onnx -o OUT/step.onnx --portable
strip {P}/trained.onnx -o OUT/net.onnx
test {T}/networks/lstm --tolerance-scaled 1e-3 --junit OUT/junit.xml | numbers
train {M}/train/regress/model.onnx --loss mse --optimizer adam --data {M}/train/regress/data.npz --batch-size 16 --steps 3 --log OUT/log.jsonl --checkpoint OUT/kept --checkpoint-every 2 -o OUT/trained.onnx --threads 1 | numbers streams
train {M}/train/lenet/model.onnx --loss cross-entropy --optimizer sgd --data {M}/train/lenet/data.npz --validate {M}/train/lenet/data.npz --best OUT/best.onnx --batch-size 64 --epochs 1 -o OUT/trained.onnx --threads 2 | numbers limits
upgrade {M}/train/lenet/model.onnx -o OUT/new.onnx
--version
--help
help train
"""


class Row:
    def __init__(self, line):
        words, _, options = line.partition("|")
        self.name = words.strip()
        self.words = self.name.split()
        self.options = options.split()

    def command(self, places, out):
        return [word.format(**places).replace("OUT", str(out)) for word in self.words]


def is_legal(model):
    """Does another run of the command, with all its memory, accept the model?"""
    return subprocess.run([*CAMEO.split(), "check", model], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0


class Ended:
    """What a run left behind; as the row compares it."""

    def __init__(self, row, done, out):
        def seen(data):
            data = data.replace(str(out).encode(), b"OUT")
            # what a slow machine prints and a fast one does not: progress, and the time that a part of the demo took
            data = re.sub(rb"(?m)^(.* (samples|steps)/s\b.*| *[\d.]+ s)\n", b"", data)
            if "loose" in row.options:
                return b""
            if "numbers" not in row.options:
                return data
            data = re.sub(rb"-?\d[\d.,]*(e[-+]?\d+)?|\b[mun]?s\b|\b[kMG]?(FLOP|B|iB)|#+", b"N", data)
            return b"\n".join(sorted(re.sub(rb" +", b" ", data).split(b"\n")))
        self.code = done.returncode
        self.stdout, self.stderr, self.said = seen(done.stdout), seen(done.stderr), done.stderr
        self.files = {}
        # A training that ends early saves its weights so far, and one whose output cannot be written saves them in
        # another folder. Both name the file.
        named = re.findall(rb"what was trained so far is in (.*)|the trained model is in (.*) instead", self.said)
        saved = [out / os.fsdecode(early or rescued) for early, rescued in named]
        self.kept_early = {str(path.relative_to(out)) for path in saved if path.is_relative_to(out) and is_legal(path)}
        for path in sorted(out.rglob("*")):
            if path.is_file() and path.name != ".lock":  # empty of meaning once its process has ended
                data = path.read_bytes()
                self.files[str(path.relative_to(out))] = seen(data) if path.suffix in (
                    ".json", ".jsonl", ".xml") else data

    def differences(self, other):
        """Names of what is not as in other."""
        found = [name for name in ("code", "stdout", "stderr") if getattr(self, name) != getattr(other, name)]
        names = self.files.keys() | other.files.keys()
        return found + sorted(n for n in names if self.files.get(n) != other.files.get(n))


class Runner:
    def __init__(self, library, folder):
        self.library, self.folder = library, Path(folder)
        self.places = {"M": TESTS / "models", "T": TESTS, "P": self.folder / "made"}
        (self.folder / "made").mkdir()

    def make(self):
        for line in MADE:
            subprocess.run([*CAMEO.split(), *[w.format(**self.places) for w in line.split()]], check=True,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=self.folder)

    def run(self, row, at=0, after=False, trace=False, limit=0):
        """(Ended, number of allocations, their stacks); limit is in KiB of address space."""
        with tempfile.TemporaryDirectory(dir=self.folder) as place:
            out, record = Path(place) / "OUT", Path(place) / "stacks"
            out.mkdir()
            with open(record, "wb") as file:
                file.truncate(8 * (1 if at else ROOM))
            env = dict(os.environ, LC_ALL="C", COLUMNS="100", FAIL_FILE=str(record), FAIL_AT=str(at),
                       FAIL_ALL="1" if after else "0", LD_PRELOAD=str(self.library), TMPDIR=place)
            if trace:
                env["FAIL_TRACE"] = "1"
            if limit:
                del env["LD_PRELOAD"]
            if SANITIZED:
                env["ASAN_OPTIONS"] = "verify_asan_link_order=0:detect_leaks=0:intercept_tls_get_addr=0:" \
                                      "allocator_may_return_null=1:handle_segv=0:handle_abort=0"
            try:
                bounds = ["sh", "-c", 'ulimit -v "$0" && exec "$@"', str(limit)] if limit else []
                done = subprocess.run([*bounds, *CAMEO.split(), *row.command(self.places, out)], env=env, cwd=out,
                                      stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                      stderr=subprocess.PIPE, timeout=TIMEOUT)
            except subprocess.TimeoutExpired:
                done = subprocess.CompletedProcess([], "timeout", b"", b"")
            data = record.read_bytes()
            count = struct.unpack("Q", data[:8])[0]
            kept = min(count, len(data) // 8 - 1)
            return Ended(row, done, out), count, struct.unpack(f"{kept}Q", data[8:8 + 8 * kept])

    def judge(self, row, wanted, ended):
        """What is wrong with how a run ended, or None."""
        if ended.code == 3:
            if not SENTENCE.search(ended.said.decode("utf-8", "replace")):
                return f"exit 3 without a sentence about memory: {ended.stderr[-200:]!r}"
            torn = [name for name, data in ended.files.items()
                    if wanted.files.get(name) != data and name not in ended.kept_early
                    and not ("streams" in row.options and name.endswith(".jsonl"))]
            return f"left behind: {', '.join(torn)}" if torn else None
        if ended.code != wanted.code:
            return f"exit {ended.code}, expected {wanted.code} or 3: {ended.stderr[-200:]!r}"
        other = ended.differences(wanted)
        return f"exit {ended.code} with different {', '.join(other)}" if other else None


def sample(stacks, count):
    """The first allocation of each distinct stack, of these as many as asked, evenly."""
    first = {}
    for number, stack in enumerate(stacks, 1):
        first.setdefault(stack, number)
    numbers = sorted(first.values())
    if count is None or len(numbers) <= count:
        return numbers
    return sorted({numbers[i * (len(numbers) - 1) // (count - 1)] for i in range(count)})


def every(count, each, more):
    """1, 2, .. each, and of the rest evenly as many as more says"""
    step = max(1, -(-(count - each) // more))
    return [*range(1, min(each, count) + 1), *range(each + step, count + 1, step)]


def subcommands():
    words = re.search(r"compgen -W '([^']*)'", subprocess.run(
        [*CAMEO.split(), "--generate", "bash"], stdout=subprocess.PIPE, text=True, check=True).stdout).group(1)
    return words.split()


def show(runner, row, args):
    ended, count, _ = runner.run(row, args.at, args.after, trace=True)
    print(f"{row.name}: allocation {args.at} of {count}: exit {ended.code}, files {sorted(ended.files)}")
    print(ended.stdout.decode("utf-8", "replace")[-2000:])
    print(ended.stderr.decode("utf-8", "replace"))


def try_row(runner, row, args, pool):
    """(tried, what is wrong: the allocations that cause it)"""
    wanted, count, stacks = runner.run(row)
    again, _, _ = runner.run(row)
    if wanted.code not in (0, 1) or again.differences(wanted):
        return 1, {f"exit {wanted.code}, two runs differ in {again.differences(wanted)}: {wanted.stderr[-300:]!r}":
                   ["0"]}
    if args.all:
        numbers = every(count, *((EACH // 10, MORE // 10) if "slow" in row.options else (EACH, MORE)))
        tries = [(n, after) for n in numbers for after in (False, True)]
    elif args.stacks:
        tries = [(n, False) for n in sample(stacks, 60 if "slow" in row.options else None)]
    else:
        tries = [(n, n % 2 == 0) for n in sample(stacks, SAMPLE)]

    def one(attempt):
        ended, _, _ = runner.run(row, *attempt)
        return runner.judge(row, wanted, ended)
    wrong = {}
    for (number, after), reason in zip(tries, pool.map(one, tries)):
        if reason:
            wrong.setdefault(reason, []).append(f"{number}+" if after else str(number))
    return len(tries), wrong


def try_limits(runner, row, steps, pool):
    """The same for limits of address space."""
    wanted, _, _ = runner.run(row)
    floor = 4096
    while runner.run(Row("--version"), limit=floor)[0].code not in (0, 3):
        floor += 1024
    enough = floor
    while runner.run(row, limit=enough)[0].differences(wanted):
        enough *= 2
        if enough > 1 << 26:
            return 1, {"no limit is enough": [str(enough)]}
    tries = [int(floor * (enough / floor) ** (i / steps)) for i in range(steps)]
    wrong = {}
    for limit, ended in zip(tries, pool.map(lambda limit: runner.run(row, limit=limit)[0], tries)):
        reason = runner.judge(row, wanted, ended)
        if reason:
            wrong.setdefault(reason, []).append(f"{limit}K")
    return len(tries), wrong


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("library", type=Path)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--stacks", action="store_true")
    parser.add_argument("--only", default="")
    parser.add_argument("--at", type=int, default=0)
    parser.add_argument("--after", action="store_true")
    args = parser.parse_args()
    rows = [Row(line) for line in ROWS.strip().splitlines()]
    passed = failed = 0
    missing = set(subcommands()) - {row.words[0] for row in rows}
    if missing:
        print(f"FAIL no row for {', '.join(sorted(missing))}")
        failed += 1
    with tempfile.TemporaryDirectory(prefix="cameo-oom-") as folder:
        runner = Runner(args.library.resolve(), folder)
        runner.make()
        with ThreadPoolExecutor(int(os.environ.get("JOBS") or os.cpu_count() or 2)) as pool:
            for row in rows:
                if args.only not in row.name:
                    continue
                if args.at:
                    show(runner, row, args)
                    continue
                tried, wrong = try_row(runner, row, args, pool)
                if "limits" in row.options and not SANITIZED:
                    more, also = try_limits(runner, row, 100 if args.all else 16, pool)
                    tried += more
                    wrong.update(also)
                bad = sum(map(len, wrong.values()))
                passed += tried - bad
                failed += bad
                print(f"{'FAIL' if bad else 'ok':4} {row.name}: {tried} failures tried"
                      + (f", {bad} wrong" if bad else ""), flush=True)
                for reason, numbers in wrong.items():
                    print(f"     at {' '.join(numbers)}: {reason}", flush=True)
    print(f"# counts: {passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
