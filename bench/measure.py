#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The benchmark: networks beside ONNX Runtime and PyTorch, measured in turns in the same minutes.

usage: measure.py [--threads N[,N..]] [--rounds N] [--seconds S] [--only inference|training] [--no-compiled]
                  [--cameo FILE] [--models FOLDER] [--out FOLDER] [NAME...]

Results are compared first: outputs with ONNX Runtime's, the losses of three training steps with PyTorch's. Then each side is
a process of its own with its default way of waiting, and runs a while, then the other, several rounds. A network that fails,
or whose results differ, counts as 0. Ratios are the peer's best time over ours: above 1 we are faster.
Writes results.json, benchmarks.md and benchmarks.svg into FOLDER (build/bench-results).
"""

import argparse
import datetime
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time

import numpy

import chart
import models
from side import Side

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
HERE = os.path.dirname(os.path.abspath(__file__))


def training_flags(case):
    flags = ["--loss", case.train["loss"], "--optimizer", case.train["optimizer"]]
    return flags + (["--momentum", "0.9"] if case.train["optimizer"] == "momentum" else [])


def command(kind, case, threads, training, options):
    """What starts a side: ours, ort, torch or compiled."""
    stem = os.path.join(options.models, case.name + (".train" if training else ""))
    if kind == "ours":
        words = [options.cameo, "bench", stem + ".onnx", "--input", stem + ".npz", "--on-request",
                 "--threads", str(threads)]
        return words + (["--train"] + training_flags(case) if training else [])
    words = [sys.executable, os.path.join(HERE, "peer.py"), kind, "--threads", str(threads), "--folder", options.models]
    return words + (["--train"] if training else []) + [case.name]


# ---- do they agree? ----

def run(words):
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr.strip()[-300:])
    return done.stdout


def outputs_differ(case, options):
    """The largest difference of our outputs from ONNX Runtime's, as a share of their largest element."""
    import onnxruntime
    stem = os.path.join(options.models, case.name)
    settings = onnxruntime.SessionOptions()
    settings.log_severity_level = 3
    session = onnxruntime.InferenceSession(stem + ".onnx", settings, providers=["CPUExecutionProvider"])
    feeds = dict(numpy.load(stem + ".npz"))
    worst = 0.0
    with tempfile.TemporaryDirectory() as folder:
        run([options.cameo, "run", stem + ".onnx", "--input", stem + ".npz", "-o", folder])
        for output, value in zip(session.get_outputs(), session.run(None, feeds)):
            ours = numpy.load(os.path.join(folder, output.name.replace("/", "_") + ".npy"))
            worst = max(worst, float(numpy.abs(ours - value).max() / max(numpy.abs(value).max(), 1e-30)))
    return worst


def torch_losses(case, arrays, steps, dtype):
    import torch
    module = models.module_of(case, training=True).to(dtype)
    optimizer = models.optimizer_of(case, module)
    loss_of = torch.nn.functional.mse_loss if case.train["loss"] == "mse" else torch.nn.functional.cross_entropy
    values = {name: torch.from_numpy(arrays[name]) for name in arrays.files}
    values = {name: value.to(dtype) if value.is_floating_point() else value for name, value in values.items()}
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = loss_of(module(*[values[name] for name in case.input_names]), values["target"])
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def losses_differ(case, options, steps=3):
    """How far our losses are from PyTorch's in double precision, beyond four times as far as its own floats are."""
    import torch
    stem = os.path.join(options.models, case.name + ".train")
    arrays = numpy.load(stem + ".npz")
    exact = torch_losses(case, arrays, steps, torch.float64)
    theirs = torch_losses(case, arrays, steps, torch.float32)
    with tempfile.TemporaryDirectory() as folder:
        log = os.path.join(folder, "log.jsonl")
        run([options.cameo, "train", stem + ".onnx", "--data", stem + ".npz", "--steps", str(steps), "--no-shuffle",
             "-b", str(len(arrays["target"])), "--lr", str(case.train["lr"]), "--log", log,
             "-o", os.path.join(folder, "out.onnx")] + training_flags(case))
        with open(log) as lines:
            ours = [row["loss"] for row in map(json.loads, lines) if "loss" in row]
    return max((abs(a - c) - 4 * abs(b - c)) / abs(c) for a, b, c in zip(ours, theirs, exact))


# ---- measuring ----

def in_turns(sides, rounds, seconds):
    """Sides that fail leave; the others go on."""
    counts, failed = {}, {}
    for turn in range(rounds + 1):
        for name, side in list(sides.items()):
            time.sleep(0.05)  # until the other's threads have stopped spinning
            try:
                if turn == 0:
                    counts[name] = max(1, int(seconds * 1e3 / min(side.run(2))))
                    side.times.clear()
                else:
                    side.run(counts[name])
            except (RuntimeError, BrokenPipeError, ValueError) as error:
                failed[name] = str(error)
                del sides[name]
    return failed


def measure(case, threads, training, options):
    """One row: for each side its best and median time, memory, time to the first result; or why it failed."""
    row = {"name": case.name, "training": training, "threads": threads, "kind": case.kind}
    kinds = ["ours"] + (["torch", "compiled"] if training else ["ort"])
    if training and not options.compiled:
        kinds.remove("compiled")
    sides = {}
    for kind in kinds:
        try:
            sides[kind] = Side(command(kind, case, threads, training, options))
        except RuntimeError as error:
            row[kind] = {"failed": str(error)}
    for kind, why in in_turns(sides, options.rounds, options.seconds).items():
        row[kind] = {"failed": why}
    for kind, side in sides.items():
        facts = side.close()
        row[kind] = {"best_ms": min(side.times), "median_ms": statistics.median(side.times),
                     "peak_bytes": facts["peak_bytes"], "first_result_ms": facts["first_result_ms"]}
        if kind == "ours":
            row["flops"], row["machine"] = facts["flops"], facts["machine_flops_per_second"]
    return row


def ratio(row, peer, key="best_ms"):
    """The peer's figure over ours; None: the peer has none; 0: we failed."""
    if "failed" in row.get(peer, {"failed": ""}):
        return None
    if row.get("differs") or "failed" in row["ours"]:
        return 0.0
    return row[peer][key] / max(row["ours"][key], 1e-9)


def mean(ratios):
    ratios = [value for value in ratios if value is not None]
    if not ratios:
        return None
    return 0.0 if min(ratios) == 0 else math.exp(statistics.fmean(map(math.log, ratios)))


# ---- telling ----

def show(value, form="{:.2f}"):
    return "" if value is None else form.format(value)


def share(row, kind):
    if not row.get("flops") or "failed" in row.get(kind, {"failed": ""}):
        return None
    return 100 * row["flops"] / (row[kind]["best_ms"] / 1e3) / row["machine"]


def table(rows, peers):
    names = {"ort": "ONNX Runtime", "torch": "PyTorch", "compiled": "torch.compile"}
    head = ["network", "Cameo ms"] + [f"{names[peer]} ms" for peer in peers] + [f"against {names[peer]}" for peer in peers]
    head += ["share of peak, ours and theirs", "memory MB, ours and theirs", "first result ms, ours and theirs"]
    lines = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    for row in rows:
        ours, first = row["ours"], row.get(peers[0], {})
        cells = [row["name"], show(ours.get("best_ms"), "{:.3g}") or "failed"]
        cells += [show(row.get(peer, {}).get("best_ms"), "{:.3g}") for peer in peers]
        cells += [show(ratio(row, peer)) for peer in peers]
        cells.append(", ".join(show(share(row, kind), "{:.0f} %") for kind in ("ours", peers[0]) if share(row, kind)))
        for key, scale in (("peak_bytes", 1e6), ("first_result_ms", 1)):
            cells.append(", ".join(show(side[key] / scale, "{:.0f}") for side in (ours, first) if key in side))
        lines.append("| " + " | ".join(cells) + " |")
    cells = ["**geometric mean** (least)", ""] + [""] * len(peers)
    for peer in peers:
        ratios = [value for value in (ratio(row, peer) for row in rows) if value is not None]
        cells.append(f"**{mean(ratios):.2f}** ({min(ratios):.2f})" if ratios else "")
    cells.append("")
    for key in ("peak_bytes", "first_result_ms"):
        cells.append(show(mean([ratio(row, peers[0], key) for row in rows]), "{:.2f} times less"))
    lines.append("| " + " | ".join(cells) + " |")
    return lines


def scaling(rows, kind):
    """From one thread to two, of networks that are bound by products: the geometric mean."""
    best = {(row["name"], row["threads"]): row[kind]["best_ms"] for row in rows
            if row["kind"] and not row["training"] and "best_ms" in row.get(kind, {})}
    return mean([best[name, 1] / best[name, 2] for name, threads in best if threads == 2 and (name, 1) in best])


def report(rows, facts):
    lines = [f"Measured on {facts['date']}: {facts['machine']}. " + ", ".join(facts["versions"]) + ".", "",
             "Best times; ratios are the peer's time over ours, above 1 we are faster.", ""]
    for training, peers in ((False, ["ort"]), (True, ["torch", "compiled"])):
        for threads in facts["threads"]:
            some = [row for row in rows if row["training"] == training and row["threads"] == threads]
            if some:
                present = [peer for peer in peers if any(peer in row for row in some)]
                what = "Training steps" if training else "Inference"
                lines += [f"### {what}, {threads} thread{'s' if threads > 1 else ''}", ""] + table(some, present) + [""]
    if scaling(rows, "ours"):
        lines += [f"From 1 to 2 threads, networks of products and convolutions: {scaling(rows, 'ours'):.2f} times faster "
                  f"(ONNX Runtime {show(scaling(rows, 'ort'))}).", ""]
    troubles = [f"- {row['name']}{' training' if row['training'] else ''}, {row['threads']}T, {kind}: {row[kind]['failed']}"
                for row in rows for kind in ("ours", "ort", "torch", "compiled") if "failed" in row.get(kind, {})]
    troubles += [f"- {row['name']}: {row['differs']}" for row in rows if row.get("differs")]
    return lines + (["Failed:", ""] + troubles + [""] if troubles else [])


def machine_facts(options):
    import onnxruntime
    import torch
    model = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), "?")
    ours = subprocess.run([options.cameo, "--version"], capture_output=True, text=True).stdout.split("\n")[0]
    return {"date": datetime.date.today().isoformat(), "machine": f"{model}, {os.cpu_count()} cores",
            "threads": options.thread_list, "versions": [ours, f"onnxruntime {onnxruntime.__version__}",
                                                         f"torch {torch.__version__}"]}


def save(rows, options):
    facts = machine_facts(options)
    os.makedirs(options.out, exist_ok=True)
    with open(os.path.join(options.out, "results.json"), "w") as file:
        json.dump({"facts": facts, "rows": rows}, file, indent=1)
    lines = report(rows, facts)
    with open(os.path.join(options.out, "benchmarks.md"), "w") as file:
        file.write("\n".join(lines))
    bars = [(("training " if row["training"] else "") + row["name"], row["threads"], peer, ratio(row, peer))
            for row in rows for peer in ("ort", "torch", "compiled") if ratio(row, peer) is not None]
    with open(os.path.join(options.out, "benchmarks.svg"), "w") as file:
        file.write(chart.draw(bars))
    return lines


def check(case, training, options):
    """What is wrong with our results, or None."""
    try:
        differs = (losses_differ if training else outputs_differ)(case, options)
    except (RuntimeError, OSError) as error:
        return f"it cannot be compared: {error}"
    limit = 0.1 if case.flavour in ("qdq", "dynamic") else 1e-3
    return None if differs <= limit else f"results differ by {differs:.1e}"


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--threads", default=",".join(str(n) for n in sorted({1, 2, os.cpu_count()})))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument("--only", choices=["inference", "training"])
    parser.add_argument("--no-compiled", dest="compiled", action="store_false")
    parser.add_argument("--cameo", default=os.path.join(ROOT, "build", "cameo"))
    parser.add_argument("--models", default=os.path.join(ROOT, "build", "bench-models"))
    parser.add_argument("--out", default=os.path.join(ROOT, "build", "bench-results"))
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    options.thread_list = [int(word) for word in options.threads.split(",")]
    os.makedirs(options.models, exist_ok=True)
    rows = []
    for training in (False, True):
        for case in models.CASES:
            if (options.names and case.name not in options.names) or options.only == ("inference" if training else "training"):
                continue
            if not models.write(case, options.models, training):
                continue
            differs = check(case, training, options)
            for threads in options.thread_list:
                row = measure(case, threads, training, options)
                row["differs"] = differs
                rows.append(row)
                peers = [peer for peer in ("ort", "torch", "compiled") if peer in row]
                print(f"{'training ' if training else ''}{case.name:20s} {threads:2d}T  "
                      f"{show(row['ours'].get('best_ms'), '{:10.3f}') or 'failed'} ms  "
                      + "  ".join(f"{peer} {show(row[peer].get('best_ms'), '{:.3f}')} ({show(ratio(row, peer))})"
                                  for peer in peers) + (f"  {differs}" if differs else ""), flush=True)
                save(rows, options)
    print("\n" + "\n".join(save(rows, options)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
