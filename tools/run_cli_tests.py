#!/usr/bin/env python3
# Runs scripts that use the command and compares what they print with what is expected.
# SPDX-License-Identifier: Apache-2.0
"""usage: run_cli_tests.py [--update] SCRIPT...

A script runs under `sh` in an empty folder with $CAMEO (the command) and $TESTS (the tests folder)
set. What it prints on stdout and stderr together must equal SCRIPT with .expected for .sh; a status
other than 0 shows as a last line `[exit N]`. Paths that differ between machines are written $DIR,
$TESTS and $CAMEO, the lists of losses and optimizers, which are those of data/training/, $LOSSES and $OPTIMIZERS.
--update rewrites the expected files, for review.
"""

import difflib
import os
import subprocess
import sys
import tempfile
from pathlib import Path

TIMEOUT = 600
RULES = Path(__file__).resolve().parent.parent / "data" / "training"


def rules(folder):
    """The header lines of each file of a folder, in the order that help and errors list them."""
    files = []
    for path in (RULES / folder).glob("*.txt"):
        header = [line.split(": ", 1) for line in path.read_text().splitlines() if ": " in line.split("(")[0]]
        files.append((int(dict(header)["order"]), path.stem, header))
    return [(name, header) for _, name, header in sorted(files)]


LOSSES = ", ".join(name for name, _ in rules("losses"))
PRESETS = [value.split()[0] for _, header in rules("optimizers") for key, value in header if key == "name"]
OPTIMIZERS = f"{', '.join(PRESETS[:-1])} and {PRESETS[-1]}"


def run(script):
    with tempfile.TemporaryDirectory(prefix="cameo-cli-") as folder:
        env = dict(os.environ, LC_ALL="C", COLUMNS="80", HOME=folder)
        env.setdefault("ASAN_OPTIONS", "detect_leaks=1:intercept_tls_get_addr=0")
        try:
            done = subprocess.run(["sh", str(script)], cwd=folder, env=env, timeout=TIMEOUT,
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT)
            output, status = done.stdout, done.returncode
        except subprocess.TimeoutExpired as late:
            output, status = late.stdout or b"", f"timeout after {TIMEOUT} s"
        text = output.decode("utf-8", "backslashreplace")
        for path, name in ((os.path.realpath(folder), "$DIR"), (folder, "$DIR"),
                           (env["CAMEO"], "$CAMEO"), (env["TESTS"], "$TESTS"),
                           (LOSSES, "$LOSSES"), (OPTIMIZERS, "$OPTIMIZERS")):
            text = text.replace(path, name)
    if text and not text.endswith("\n"):
        text += "\n[no newline]\n"
    if status != 0:
        text += f"[exit {status}]\n"
    return text


def main(arguments):
    update = "--update" in arguments
    scripts = [Path(a).resolve() for a in arguments if a != "--update" and Path(a).exists()]
    for name in ("CAMEO", "TESTS"):
        if name not in os.environ:
            print(f"run_cli_tests.py: ${name} is not set", file=sys.stderr)
            return 2

    passed = failed = 0
    for script in scripts:
        actual = run(script)
        expected_file = script.with_suffix(".expected")
        expected = expected_file.read_text() if expected_file.exists() else None
        if actual == expected:
            passed += 1
        elif update:
            expected_file.write_text(actual)
            print(f"updated {expected_file.name}")
            passed += 1
        else:
            failed += 1
            print(f"{script.name}: output differs from {expected_file.name}")
            sys.stdout.writelines(difflib.unified_diff((expected or "").splitlines(True),
                                                       actual.splitlines(True),
                                                       "expected", "actual"))
    print(f"# counts: {passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
