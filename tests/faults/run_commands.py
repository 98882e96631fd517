#!/usr/bin/env python3
# Runs every command that writes with one of its system calls on files failing, or a signal at it, each in turn.
# SPDX-License-Identifier: Apache-2.0
"""usage: run_commands.py LIBRARY [WORDS]

LIBRARY is the preloaded library that makes calls fail. The command lines are those of tests/cli/full_disk_outputs.py
and EXPORTS; WORDS picks those that contain them. After a failed call the command must exit with 3 and a sentence, or
as it does without; no temporary file may stay, and each file is the old one or the whole new one. Which one it is the
sentence must say: an old one, unless only its folder could not be synced.
"""

import errno
import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

LIBRARY = os.path.abspath(sys.argv[1])
EXPORTS = """
export trainable.onnx --to flax -o net.msgpack
export trainable.onnx --to onnxruntime -o net.ckpt
export trainable.onnx --to orbax -o net.orbax
export trainable.onnx --to safetensors -o net.safetensors
export trainable.onnx --to tensorflow -o net.tf
""".strip().splitlines()
# Several results, one after the other; those before the failure are there.
SEVERAL = ("--dump", "-o results", "train ")

spec = importlib.util.spec_from_file_location("rows", os.path.join(os.environ["TESTS"], "cli", "full_disk_outputs.py"))
rows = importlib.util.module_from_spec(spec)
spec.loader.exec_module(rows)


def run(words, folder, **settings):
    environment = {**os.environ, "LD_PRELOAD": LIBRARY, "FAIL_FOLDER": os.path.realpath(folder),
                   "HOME": os.path.dirname(os.path.realpath(folder)), **{name: str(value) for name, value in settings.items()}}
    done = subprocess.run([rows.CAMEO, *words], cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          errors="replace", env=environment, timeout=300)
    return done.returncode, done.stderr


def make(folder, line, written):
    shutil.copytree("start", folder)
    if not any(mark in line for mark in rows.NEW + ("--to orbax", "--to tensorflow")):
        for name in written:
            path = os.path.join(folder, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as file:
                file.write(rows.OLD)


def changes(call, calls, line):
    """May files be the new ones after this call failed?"""
    before = calls[:call - 1]
    synced = calls[call - 1] == "fsync" and before[-1:] and before[-1] in ("rename", "fsync") and "rename" in before
    return synced or calls[call - 1] == "rename" and "rename" in before or any(mark in line for mark in SEVERAL)


def wrong_after(line, call, calls, base, code, said, before, after, written):
    """What is wrong after that call failed, or None."""
    left = [name for name in after if ".tmp-" in name]
    if left:
        return f"'{left[0]}' is left behind"
    what = calls[call - 1]
    if code == base:
        asked = what == "close" and calls[call - 2] == "open"  # whether the file could be written
        return None if asked else "nobody noticed"
    if code != 3 or "cameo: " not in said:
        return f"exit {code}"
    for name in sorted(before.keys() | set(written)):
        old, new = before.get(name), after.get(name)
        if old == new:
            continue
        if not changes(call, calls, line):
            return f"'{name}' is not the old one"
        if new is None or "profile" not in line and "tfevents" not in name and new[-8:] != written.get(name, b"-")[-8:]:
            return f"'{name}' is neither the old one nor the new one"
        if what == "fsync" and "is written, but" not in said and not any(mark in line for mark in SEVERAL):
            return "the sentence does not say that the new file is there"
    return None


def try_call(line, words, base, calls, written, call, deadly):
    with tempfile.TemporaryDirectory(dir=".") as folder:
        place = os.path.join(os.path.realpath(folder), "full")
        make(place, line, written)
        before = rows.content(place)
        error = errno.ENOSPC if calls[call - 1] in ("open", "write", "pwrite", "mkdir") else errno.EIO
        settings = {"FAIL_SIGNAL": int(signal.SIGTERM)} if deadly else {"FAIL_ERROR": error}
        code, said = run(words, place, FAIL_AT=call, **settings)
        after = rows.content(place)
        folders = [name for _, names, _ in os.walk(place) for name in names if ".tmp-" in name]
    if folders:
        return f"'{folders[0]}' is left behind"
    if deadly:
        left = [name for name in after if ".tmp-" in name]
        return f"'{left[0]}' is left behind" if left else None if code in (base, 130, -15) else f"exit {code}: {said}"
    return wrong_after(line, call, calls, base, code, said, before, after, written)


def try_row(line, pool):
    words = line.split() + (["--columns", "x=p,q target=t"] if line.startswith("train") else [])
    shutil.copytree("start", "free")
    before = rows.content("free")
    base, said = run(words, "free")
    written = {name: data for name, data in rows.content("free").items() if before.get(name) != data}
    shutil.rmtree("free")
    if line.startswith("compile") and base == 1:
        return 0, []  # the module for MLIR, or clang, is not there
    if base != (1 if line.startswith("test") else 0) or not written:
        return 1, [f"exit {base}, wrote {sorted(written)}: {said}"]
    make("free", line, written)
    run(words, "free", FAIL_LOG=os.path.abspath("calls"))
    shutil.rmtree("free")
    with open("calls", encoding="ascii") as file:
        calls = file.read().split()
    os.unlink("calls")
    tries = [(call, False) for call in range(1, len(calls) + 1)]
    tries += [(call, True) for call in range(1, len(calls) + 1) if calls[call - 1] in ("write", "pwrite", "fsync")]
    told = pool.map(lambda each: try_call(line, words, base, calls, written, *each), tries)
    return len(tries), [f"call {call}, {calls[call - 1]}{', SIGTERM' * deadly}: {wrong}"
                        for (call, deadly), wrong in zip(tries, told) if wrong]


def main():
    passed = failed = 0
    with tempfile.TemporaryDirectory(prefix="cameo-faults-") as folder, \
            ThreadPoolExecutor(int(os.environ.get("JOBS") or os.cpu_count() or 2)) as pool:
        os.chdir(folder)
        rows.make_folder("start")
        for line in rows.ROWS + EXPORTS:
            if line.startswith("demo") or " ".join(sys.argv[2:]) not in line:
                continue
            tried, wrong = try_row(line, pool)
            passed += tried - len(wrong)
            failed += len(wrong)
            for sentence in wrong:
                print(f"FAIL cameo {line}: {sentence}", flush=True)
        os.chdir("/")
    print(f"# counts: {passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
