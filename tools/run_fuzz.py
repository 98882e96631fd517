#!/usr/bin/env python3
# Runs every libFuzzer program of the fuzz build for FUZZ_SECONDS, from the committed seeds on.
# SPDX-License-Identifier: Apache-2.0
"""New inputs go to build/fuzz/corpus/NAME, what broke the target to build/fuzz/crashes/NAME.
FUZZ_SEED (1 unless given) is where chance begins, so that the same commit is tried the same way as
far as time allows. A failure prints its input, so that it can be repeated from the output alone."""

import base64
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build/fuzz"
MOST_PRINTED = 16 * 1024
FRAMES = 12


def report_head(output):
    """The first sentence of the sanitizer and the frames under it."""
    lines = output.splitlines()
    starts = [i for i, line in enumerate(lines)
              if re.search(r"ERROR: |runtime error: |^ALARM: ", line)]
    if not starts:
        return []
    head, frames = [lines[starts[0]]], 0
    for line in lines[starts[0] + 1:]:
        if re.match(r"\s*#\d+ ", line):
            frames += 1
            head.append(line)
            if frames == FRAMES:
                break
        elif frames:
            break
    return head


def print_input(path):
    data = path.read_bytes()
    if len(data) > MOST_PRINTED:
        print(f"     {len(data)} bytes, too many to print")
        return
    print(f"     {len(data)} bytes; the lines below through base64 -d give the file back")
    text = base64.b64encode(data).decode()
    for at in range(0, len(text), 100):
        print(text[at:at + 100])


def run(program, seconds, seed):
    name = program.name
    corpus = BUILD / "corpus" / name
    crashes = BUILD / "crashes" / name
    seeds = ROOT / "tests/fuzz/corpus" / name
    words = ROOT / "tests/fuzz" / (name + ".dict")
    corpus.mkdir(parents=True, exist_ok=True)
    crashes.mkdir(parents=True, exist_ok=True)
    command = [str(program), f"-max_total_time={seconds}", f"-artifact_prefix={crashes}/",
               f"-seed={seed}", "-timeout=20", "-rss_limit_mb=2048", "-malloc_limit_mb=1024",
               "-print_final_stats=1", "-verbosity=0"]
    if words.exists():
        command.append(f"-dict={words}")
    command.append(str(corpus))
    if seeds.is_dir():
        command.append(str(seeds))
    env = dict(os.environ)
    env.setdefault("ASAN_OPTIONS", "allocator_may_return_null=1:intercept_tls_get_addr=0")
    env.setdefault("UBSAN_OPTIONS", "print_stacktrace=1")
    done = subprocess.run(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, errors="replace")
    runs = [line.rsplit(":", 1)[1].strip() for line in done.stdout.splitlines()
            if line.startswith("stat::number_of_executed_units")]
    if done.returncode == 0:
        print(f"ok   {name}: {runs[0] if runs else '?'} runs in {seconds} s")
        return True
    print(done.stdout[-6000:])
    print(f"FAIL {name}: exit {done.returncode}, seed {seed}")
    for line in report_head(done.stdout):
        print(f"     {line.strip()}")
    for found in map(Path, re.findall(r"Test unit written to (\S+)", done.stdout)):
        print(f"     reproduce: {program.relative_to(ROOT)} {found.relative_to(ROOT)}")
        print_input(found)
    return False


def main():
    seconds = int(os.environ.get("FUZZ_SECONDS") or 60)
    seed = int(os.environ.get("FUZZ_SEED") or 1)
    programs = sorted(p for p in (BUILD / "fuzzers").glob("fuzz_*") if os.access(p, os.X_OK)
                      and (ROOT / "tests/fuzz" / (p.name + ".c")).exists())
    results = [run(program, seconds, seed) for program in programs]
    if not programs:
        print("no fuzz targets here")
    print(f"{sum(results)} passed, {len(results) - sum(results)} failed")
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
