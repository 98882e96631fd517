#!/usr/bin/env python3
# Builds from a checkout in an unusual place and runs a sample of every kind of test there.
# SPDX-License-Identifier: Apache-2.0
"""usage: check_places.py SOURCE [--compiled]

The path of the copy holds a folder named src, a space, an accent and a link. The copy is read-only, the build folder stands
elsewhere, and where this test runs as root, everything runs as a user who is not. The last line counts the tests that ran.
"""

import os
import pathlib
import pwd
import re
import shutil
import subprocess
import sys
import tempfile

# One of each kind: what embeds sources, reads test files by path, calls a compiler, starts the command, installs.
TARGETS = ["product", "examples", "unit_check_test_check_cases", "unit_mlir_test_compiled_runtime", "unit_onnx_test_external", "run_cases",
           "fuzz_decode"]
COMPILED = ["cli/compile_native"]  # it needs MLIR
JUDGED = ["suite/make_fused", "suite/fused"]  # they need the virtual environment
TESTS = ["unit/check/check_cases", "unit/mlir/compiled_runtime", "unit/onnx/external", "fuzz/fuzz_decode", "ops/reduce", "networks/run",
         "cli/check_large", "cli/examples", "cli/external", "cli/train_mistakes", "cli/compile", "package/install",
         "package/exports"]


def copy_sources(source, to):
    """The copy of a checkout without what was built in it."""
    shutil.copytree(source, to, symlinks=True,
                    ignore=lambda folder, _: {"build", ".git"} if pathlib.Path(folder) == source else set())
    venv = source / "build" / "venv"
    if venv.exists():  # judges that the tests call
        (to / "build").mkdir()
        (to / "build" / "venv").symlink_to(venv)


def lock(folder):
    for path in [folder, *folder.rglob("*")]:
        if not path.is_symlink():
            path.chmod(path.stat().st_mode & ~0o222)


def other_user():
    """What makes a child process of root one of a user who is not root."""
    if os.geteuid() != 0:
        return {}
    nobody = pwd.getpwnam("nobody")
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}


def may_start(program, who):
    """May that user start the program? The Python of the virtual environment may belong to root alone."""
    try:
        return subprocess.run([program, "-c", ""], check=False, **who).returncode == 0
    except OSError:
        return False


def main():
    source = pathlib.Path(sys.argv[1]).resolve()
    tests = TESTS + (COMPILED if "--compiled" in sys.argv else [])
    who = other_user()
    with tempfile.TemporaryDirectory(prefix="cameo-places-") as scratch:
        top = pathlib.Path(scratch)
        (top / "src" / "ein Plätz" / "src").mkdir(parents=True)
        (top / "link").symlink_to(top / "src" / "ein Plätz")
        checkout, build, home = top / "link" / "src" / "my cameo", top / "link" / "my build", top / "home"
        copy_sources(source, checkout)
        for folder in (build, home):
            folder.mkdir()
            if who:
                os.chown(folder, who["user"], who["group"])
        top.chmod(0o755)
        lock(checkout)
        env = {**os.environ, "HOME": str(home), "TMPDIR": str(home), "PYTHONDONTWRITEBYTECODE": "1"}

        def run(command, who):
            return subprocess.run(list(map(str, command)), env=env, cwd=home, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True, errors="replace", check=False, **who)

        def ctest(names):
            return ["ctest", "--test-dir", build, "--output-on-failure", "-R", f"^({'|'.join(map(re.escape, names))})$"]

        judges = source / "build" / "venv" / "bin" / "python3"
        steps = [(["cmake", "-S", checkout, "-B", build, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Debug",
                   "-DCMAKE_C_FLAGS_DEBUG=-O0"], who),
                 (["cmake", "--build", build, "--target", *TARGETS], who), (ctest(tests), who)]
        if judges.exists():
            tests += JUDGED
            steps.append((ctest(JUDGED), who if may_start(judges, who) else {}))
        passed = 0
        for command, as_whom in steps:
            done = run(command, as_whom)
            passed += len(re.findall(r" Test +#\d+: \S+ \.+ +Passed", done.stdout))
            if done.returncode:
                print(done.stdout[-8000:])
                break
    failed = len(tests) - passed
    if failed:
        print(f"{failed} of these did not pass: {' '.join(tests)}")
    print(f"# counts: {passed} passed, {failed} failed")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
