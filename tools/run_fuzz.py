#!/usr/bin/env python3
# Runs every libFuzzer program of the fuzz build for FUZZ_SECONDS, from the committed seeds on.
# SPDX-License-Identifier: Apache-2.0
"""New inputs go to build/fuzz/corpus/NAME, what broke the target to build/fuzz/crashes/NAME."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build/fuzz"


def run(program, seconds):
    name = program.name
    corpus = BUILD / "corpus" / name
    crashes = BUILD / "crashes" / name
    seeds = ROOT / "tests/fuzz/corpus" / name
    words = ROOT / "tests/fuzz" / (name + ".dict")
    corpus.mkdir(parents=True, exist_ok=True)
    crashes.mkdir(parents=True, exist_ok=True)
    command = [str(program), f"-max_total_time={seconds}", f"-artifact_prefix={crashes}/",
               "-timeout=20", "-rss_limit_mb=2048", "-malloc_limit_mb=1024",
               "-print_final_stats=1", "-verbosity=0"]
    if words.exists():
        command.append(f"-dict={words}")
    command.append(str(corpus))
    if seeds.is_dir():
        command.append(str(seeds))
    env = dict(os.environ)
    env.setdefault("ASAN_OPTIONS", "allocator_may_return_null=1")
    env.setdefault("UBSAN_OPTIONS", "print_stacktrace=1")
    before = set(crashes.iterdir())
    done = subprocess.run(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, errors="replace")
    runs = [line.rsplit(":", 1)[1].strip() for line in done.stdout.splitlines()
            if line.startswith("stat::number_of_executed_units")]
    if done.returncode == 0:
        print(f"ok   {name}: {runs[0] if runs else '?'} runs in {seconds} s")
        return True
    print(done.stdout[-6000:])
    print(f"FAIL {name}: exit {done.returncode}")
    for found in sorted(set(crashes.iterdir()) - before):
        print(f"     reproduce: {program.relative_to(ROOT)} {found.relative_to(ROOT)}")
    return False


def main():
    seconds = int(os.environ.get("FUZZ_SECONDS") or 60)
    programs = sorted(p for p in (BUILD / "fuzzers").glob("fuzz_*") if os.access(p, os.X_OK)
                      and (ROOT / "tests/fuzz" / (p.name + ".c")).exists())
    results = [run(program, seconds) for program in programs]
    if not programs:
        print("no fuzz targets here")
    print(f"{sum(results)} passed, {len(results) - sum(results)} failed")
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
