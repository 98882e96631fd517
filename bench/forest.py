#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Forests of decision trees beside ONNX Runtime, measured in turns in the same minutes.

usage: forest.py [--trees N] [--depth N] [--features N] [--rows N[,N]] [--classes N] [--double]
                 [--threads N[,N]] [--rounds N] [--keep FILE]
The trees are random, the same for the same numbers: nodes split until --depth, from depth 4 on one in ten is a
leaf before. Without --classes it is a regression with one target; with it each leaf has a weight for every class. The ratio is ONNX
Runtime's time over ours: above 1 we are faster. Results of both are compared first.
"""

import argparse
import os
import random
import statistics
import subprocess
import sys
import tempfile

import numpy
import onnx
import onnxruntime
from onnx import TensorProto, helper

from peers import ROOT, Ours, Peer


def grow(rng, depth, features, lists, tree):
    """Adds one tree to the lists of nodes; returns the numbers of its leaves."""
    leaves = []

    def node(level):
        number = len(own)
        own.append(None)
        if level == depth or (level >= 4 and rng.random() < 0.1):
            own[number] = ("LEAF", 0, 0.0, 0, 0)
            leaves.append(number)
        else:
            feature, value = rng.randrange(features), rng.uniform(0.1, 0.9)
            yes, no = node(level + 1), node(level + 1)
            own[number] = ("BRANCH_LEQ", feature, value, yes, no)
        return number

    own = []
    node(0)
    for number, (mode, feature, value, yes, no) in enumerate(own):
        for name, item in (("treeids", tree), ("nodeids", number), ("modes", mode), ("featureids", feature),
                           ("values", value), ("truenodeids", yes), ("falsenodeids", no)):
            lists["nodes_" + name].append(item)
    return leaves


def make_model(options, rows):
    rng = random.Random(options.trees * 1000 + options.depth)
    names = ("treeids", "nodeids", "modes", "featureids", "values", "truenodeids", "falsenodeids")
    lists = {"nodes_" + name: [] for name in names}
    weights = []
    for tree in range(options.trees):
        for leaf in grow(rng, options.depth, options.features, lists, tree):
            weights += [(tree, leaf, target, rng.random() / options.trees)
                        for target in range(options.classes or 1)]
    kind, prefix = ("Classifier", "class") if options.classes else ("Regressor", "target")
    for name, column in (("treeids", 0), ("nodeids", 1), ("ids", 2), ("weights", 3)):
        lists[f"{prefix}_{name}"] = [weight[column] for weight in weights]
    outputs = [helper.make_tensor_value_info("scores", TensorProto.FLOAT, [rows, options.classes or 1])]
    if options.classes:
        lists["classlabels_int64s"] = list(range(options.classes))
        outputs.insert(0, helper.make_tensor_value_info("label", TensorProto.INT64, [rows]))
    else:
        lists["n_targets"] = 1
    node = helper.make_node("TreeEnsemble" + kind, ["x"], [output.name for output in outputs],
                            domain="ai.onnx.ml", **lists)
    dtype = TensorProto.DOUBLE if options.double else TensorProto.FLOAT
    graph = helper.make_graph([node], "forest",
                              [helper.make_tensor_value_info("x", dtype, [rows, options.features])], outputs)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("ai.onnx.ml", 3)], ir_version=9)


def compare(model, options):
    """Largest difference of the scores of a few rows, ours from ONNX Runtime's."""
    x = numpy.random.default_rng(1).random((64, options.features))
    x = x.astype(numpy.float64 if options.double else numpy.float32)
    for value in list(model.graph.input) + list(model.graph.output):
        value.type.tensor_type.shape.dim[0].dim_value = len(x)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "forest.onnx")
        onnx.save(model, path)
        numpy.save(os.path.join(folder, "x.npy"), x)
        subprocess.run([os.path.join(ROOT, "build", "cameo"), "run", path, "--input",
                        "x=" + os.path.join(folder, "x.npy"), "-o", folder], check=True,
                       capture_output=True)
        ours = numpy.load(os.path.join(folder, "scores.npy"))
        session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
        return float(numpy.abs(ours - session.run(["scores"], {"x": x})[0]).max())


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--trees", type=int, default=1000)
    parser.add_argument("--depth", type=int, default=10)
    parser.add_argument("--features", type=int, default=50)
    parser.add_argument("--rows", default="100000")
    parser.add_argument("--classes", type=int, default=0)
    parser.add_argument("--double", action="store_true")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--keep")
    options = parser.parse_args()
    for rows in [int(word) for word in options.rows.split(",")]:
        model = make_model(options, rows)
        with tempfile.TemporaryDirectory() as folder:
            path = options.keep or os.path.join(folder, "forest.onnx")
            onnx.save(model, path)
            nodes = sum(len(a.strings) for a in model.graph.node[0].attribute if a.name == "nodes_modes")
            print(f"{options.trees} trees of depth {options.depth}, {nodes} nodes, {options.features} features,"
                  f" {rows} rows; scores differ by {compare(model, options):.1e}", flush=True)
            for threads in [int(word) for word in options.threads.split(",")]:
                ours = Ours(os.path.join(ROOT, "build", "bench", "run_model"), path, threads)
                peer = Peer(path, threads)
                times = [], []
                for _ in range(options.rounds):
                    for side, taken in ((ours, times[0]), (peer, times[1])):
                        taken += side.run(max(1, min(50, 20000 // rows)))
                ours.close()
                print(f"  {threads}T  best {min(times[0]):9.3f} ms  onnxruntime {min(times[1]):9.3f} ms"
                      f"  {min(times[1]) / min(times[0]):5.2f}x   median {statistics.median(times[0]):9.3f} ms"
                      f"  onnxruntime {statistics.median(times[1]):9.3f} ms"
                      f"  {statistics.median(times[1]) / statistics.median(times[0]):5.2f}x", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
