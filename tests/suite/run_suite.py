#!/usr/bin/env python3
# Runs test folders with the command and holds the result against the list of known failures.
# SPDX-License-Identifier: Apache-2.0
"""usage: CAMEO=COMMAND run_suite.py KNOWN [--half-without TEXT] TEST-ARGUMENT...

Runs `COMMAND test TEST-ARGUMENT...`; with --half-without, on every other case of the one folder named whose name does not hold TEXT. A case that fails and is not listed in KNOWN fails; so does one that is listed and passes, until its line is removed. Listed
failures are counted apart, never as passed.
"""

import os
import pathlib
import re
import subprocess
import sys


def main():
    command, known_file, arguments = [os.environ["CAMEO"]], sys.argv[1], sys.argv[2:]
    if arguments[0] == "--half-without":
        folder = pathlib.Path(arguments[2])
        arguments = [str(case) for case in sorted(folder.iterdir()) if arguments[1] not in case.name][::2]
    with open(known_file, encoding="utf-8") as lines:
        known = {line.split("#")[0].strip() for line in lines} - {""}
    done = subprocess.run([*command, "test", *arguments], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, errors="replace", check=False)
    failed = {}
    for line in done.stdout.splitlines():
        match = re.match(r"FAIL (\S+?): (.*)", line)
        if match:
            failed[match.group(1)] = match.group(2)
    closing = re.search(r"(\d+) passed, (\d+) failed\s*$", done.stdout)
    if done.returncode not in (0, 1) or not closing or int(closing.group(2)) != len(failed):
        print(done.stdout[-3000:])
        print(f"`cameo test` ended with status {done.returncode} and without a sound count")
        print("# counts: 0 passed, 1 failed")
        return 1
    passed = int(closing.group(1))
    listing = subprocess.run([*command, "test", "--list", *arguments], stdout=subprocess.PIPE,
                             text=True, check=False).stdout.split()
    names = set(listing)
    fixed = sorted(name for name in known & names if name not in failed)
    new = sorted(set(failed) - known)
    for name in new:
        print(f"FAIL {name}: {failed[name]}")
    for name in fixed:
        print(f"{name} passes now: take its line out of {known_file}")
    table = done.stdout[done.stdout.find("\noperator") + 1:]
    total = f"{passed} of {passed + len(failed)} cases pass; {len(failed) - len(new)} known failures"
    print(table, total, sep="\n")
    plain = not {"--expanded", "--core", "--erase", "--half-without"} & set(sys.argv[2:])
    if "BUILD" in os.environ and plain:
        # What the runner of all tests shows at its end: the counts by operator.
        shown = pathlib.Path(os.environ["BUILD"], "shown")
        shown.mkdir(exist_ok=True)
        name = "+".join(pathlib.Path(a).name for a in arguments if "/" in a)
        (shown / f"{name}.txt").write_text(f"{name}: {total}\n" + (table if name == "node" else ""))
    print(f"# counts: {passed - len(fixed)} passed, {len(new) + len(fixed)} failed")
    return 1 if new or fixed else 0


if __name__ == "__main__":
    sys.exit(main())
