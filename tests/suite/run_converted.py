#!/usr/bin/env python3
# Converts judged cases to the newest opset and back to their own, and runs what came of them.
# SPDX-License-Identifier: Apache-2.0
"""usage: CAMEO=COMMAND run_converted.py CASES REFUSED

CASES has case folders of old operator versions. Each is brought to the newest opset, which must work, and from there back to the
opset it had; the results of both must be those that were judged. Cases whose newest form the old opset cannot express are listed in
REFUSED, with the reason; a case that is refused and not listed fails, and so does one that is listed and works.
"""

import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile


def convert(command, direction, model, version, out):
    """None, or why it could not be written."""
    opset = ["--opset", version] if version else []
    done = subprocess.run([*command, direction, model, *opset, "-o", out], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                          errors="replace", check=False)
    return None if done.returncode == 0 else done.stderr.strip()


def opset_of(command, model):
    info = subprocess.run([*command, "info", model], stdout=subprocess.PIPE, text=True, errors="replace", check=False).stdout
    return re.search(r"ai\.onnx\D*(\d+)", info).group(1)


def link(case, folder):
    folder.mkdir()
    for item in case.iterdir():
        if item.name != "model.onnx":
            (folder / item.name).symlink_to(item)
    return folder / "model.onnx"


def main():
    command, cases = shlex.split(os.environ["CAMEO"]), pathlib.Path(sys.argv[1]).resolve()
    with open(sys.argv[2], encoding="utf-8") as lines:
        listed = {line.split("#")[0].strip() for line in lines} - {""}
    failed, folders = [], 0
    with tempfile.TemporaryDirectory() as scratch:
        scratch = pathlib.Path(scratch)
        for case in sorted(cases.iterdir()):
            newest = link(case, scratch / f"{case.name}@newest")
            why = convert(command, "upgrade", case / "model.onnx", None, newest)
            if why:
                failed.append(f"{case.name}: {why}")
                continue
            folders += 1
            back = link(case, scratch / f"{case.name}@back")
            why = convert(command, "downgrade", newest, opset_of(command, case / "model.onnx"), back)
            if why:
                back.parent.rename(scratch / f".{case.name}")
            else:
                folders += 1
            if why and case.name not in listed:
                failed.append(f"{case.name}, on the way back: {why}")
            if not why and case.name in listed:
                failed.append(f"{case.name}: is listed as refused, and was written")
        folders = [str(f) for f in sorted(scratch.iterdir()) if not f.name.startswith(".") and (f / "model.onnx").exists()]
        passed = 0
        for i in range(0, len(folders), 200):
            done = subprocess.run([*command, "test", *folders[i:i + 200]], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                  errors="replace", check=False).stdout
            failed += re.findall(r"^FAIL .*", done, re.MULTILINE)
            passed += int(re.search(r"(\d+) passed, \d+ failed\s*$", done).group(1))
    for line in failed:
        print(line)
    print(f"# counts: {passed} passed, {len(failed)} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
