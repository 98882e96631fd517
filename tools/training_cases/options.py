# Options of a training: schedules, clipping, accumulation, numbers of the optimizers, what is trained, what is fed.
# SPDX-License-Identifier: Apache-2.0
"""Each on a small network, one option or a few together at a time."""

import torch
import torch.nn.functional as F

from . import networks, training

HEADER = networks.HEADER
real = networks.real
MLP = {"w1": real(4, 5), "b1": real(4), "w2": real(3, 4), "b2": real(3)}
NODES = f"a = Gemm <transB = 1> (x, w1, b1)\n h = Tanh(a)\n {networks.GEMM.format('h')}"


def mlp_text(nodes=NODES, outputs="float[4,3] y", end="y = Identity(s)", header=HEADER, x="float[4,5] x"):
    return f"{header}mlp ({x}) => ({outputs}) {{\n {nodes}\n {end}\n}}"


def doubles(weights):
    return {name: ["double", *spec[1:]] for name, spec in weights.items()}


def pixels(w, batch, training_mode):
    return F.conv2d(batch["image"], w["w"], w["b"], padding=1)


def two_heads(w, batch, training_mode):
    return F.linear(torch.tanh(F.linear(batch["x"], w["w1"], w["b1"])), w["w3"])


def tied(w, batch, training_mode):
    """One matrix, read twice."""
    return F.linear(F.linear(batch["x"], w["w1"]), w["w1"].T) @ w["w2"].T


def scan(w, batch, training_mode):
    """The rows of x one after the other through h = tanh(w1 h + row)."""
    h, all_h = torch.zeros(5, dtype=w["w1"].dtype), []
    for row in batch["x"]:
        h = torch.tanh(w["w1"] @ h + row)
        all_h.append(h)
    return F.linear(torch.stack(all_h), w["w2"], w["b2"])


def branch(w, batch, training_mode):
    return F.linear(batch["x"], w["w1"] if batch["x"].sum() > 0 else w["w3"]) + w["b2"]


def batch_wise(w, batch, training_mode):
    """A model that computes its loss itself; the mean of it is trained."""
    return (networks.mlp(w, batch, training_mode) - batch["wanted"]) ** 2


MODELS = {
    "mlp": {"text": mlp_text(), "weights": MLP},
    "double": {"text": mlp_text(outputs="double[4,3] y", x="double[4,5] xd").replace("(x, w1", "(xd, w1"),
               "weights": doubles(MLP)},
    "opset12": {"text": mlp_text(header='<ir_version: 6, opset_import: ["" : 12]>\n'), "weights": MLP},
    "batches": {"text": mlp_text(outputs="float[N,3] y", x="float[N,5] x"), "weights": MLP},
    "pixels": {"text": f"{HEADER}pixels (float[2,1,3,3] image) => (float[2,3,3,3] y) {{\n"
               " y = Conv <kernel_shape = [3, 3], pads = [1, 1, 1, 1]> (image, w, b)\n}",
               "weights": {"w": real(3, 1, 3, 3), "b": real(3)}},
    "two": {"text": mlp_text(f"{NODES}\n t = Transpose <perm = [1, 0]> (w3)\n z = MatMul(h, t)",
                             "float[4,3] y, float[4,2] z"), "weights": {**MLP, "w3": real(2, 4)}},
    "tied": {"text": f"{HEADER}tied (float[4,5] x) => (float[4,3] y) {{\n t1 = Transpose <perm = [1, 0]> (w1)\n"
             " a = MatMul(x, t1)\n b = MatMul(a, w1)\n t2 = Transpose <perm = [1, 0]> (w2)\n y = MatMul(b, t2)\n}",
             "weights": {"w1": real(4, 5), "w2": real(3, 5)}},
    "function": {"text": '<ir_version: 8, opset_import: ["" : 17, "local" : 1]>\n'
                 "mlp (float[4,5] x) => (float[4,3] y) {\n h = local.layer (x, w1, b1)\n"
                 " y = Gemm <transB = 1> (h, w2, b2)\n}\n"
                 '<domain: "local", opset_import: ["" : 17]>\nlayer (x, w, b) => (y) {\n'
                 " a = Gemm <transB = 1> (x, w, b)\n y = Tanh(a)\n}", "weights": MLP},
    "scan": {"text": f"{HEADER}scan (float[4,5] x) => (float[4,3] y) {{\n"
             " zeros = Constant <value = float[5] {0, 0, 0, 0, 0}> ()\n"
             " last, h = Scan <num_scan_inputs = 1, body = turn (float[5] a, float[5] row) => (float[5] n, float[5] o) {\n"
             "  p = MatMul(w1, a)\n  s = Add(p, row)\n  n = Tanh(s)\n  o = Identity(n)\n }> (zeros, x)\n"
             " y = Gemm <transB = 1> (h, w2, b2)\n}",
             "weights": {"w1": real(5, 5), "w2": real(3, 5), "b2": real(3)}},
    "branch": {"text": f"{HEADER}branch (float[4,5] x) => (float[4,3] y) {{\n total = ReduceSum <keepdims = 0> (x)\n"
               " zero = Constant <value = float {0}> ()\n up = Greater(total, zero)\n"
               " s = If (up) <then_branch = one () => (float[4,3] p) {\n  t = Transpose <perm = [1, 0]> (w1)\n"
               "  p = MatMul(x, t)\n }, else_branch = other () => (float[4,3] r) {\n"
               "  u = Transpose <perm = [1, 0]> (w3)\n  r = MatMul(x, u)\n }>\n y = Add(s, b2)\n}",
               "weights": {"w1": real(3, 5), "w3": real(3, 5), "b2": real(3)}},
    "own-loss": {"text": mlp_text(f"{NODES}\n d = Sub(s, wanted)\n squares = Mul(d, d)",
                                  x="float[4,5] x, float[4,3] wanted"), "weights": MLP},
}
INPUTS = {"x": ["float", [4, 5], -1, 1], "xd": ["double", [4, 5], -1, 1], "numbers": ["float", [4, 3], -2, 2],
          "numbersd": ["double", [4, 3], -2, 2], "labels": ["int64", [4], 0, 3], "wanted": ["float", [4, 3], -2, 2],
          "image": ["float", [2, 1, 3, 3], -1, 1], "classes": ["int64", [2, 3, 3], 0, 3],
          "some": ["int64", [4], [0, -100, 2, 1], [-100, -100, 1, 0], [2, 2, 2, -100], [0, 1, 2, 0]],
          "pair": ["float", [4, 2], -2, 2]}

# name: loss, optimizer, options
ON_MLP = {
    "warmup": ("mse", "sgd", {"lr": 0.2, "warmup": 4}),
    "schedule_step": ("mse", "sgd", {"lr": 0.3, "schedule": "step", "schedule_steps": 2, "schedule_factor": 0.5}),
    "schedule_step_warmup": ("mse", "adam", {"lr": 0.03, "schedule": "step", "schedule_steps": 2, "warmup": 2}),
    "schedule_cosine": ("mse", "momentum", {"lr": 0.2, "schedule": "cosine", "schedule_steps": 8}),
    "schedule_cosine_warmup": ("mse", "adamw", {"lr": 0.03, "schedule": "cosine", "schedule_steps": 8, "warmup": 3}),
    "schedule_cosine_end": ("mse", "sgd", {"lr": 0.2, "schedule": "cosine", "schedule_steps": 3}),
    "schedule_linear": ("mse", "nesterov", {"lr": 0.1, "schedule": "linear", "schedule_steps": 7}),
    "schedule_linear_warmup": ("mse", "sgd", {"lr": 0.3, "schedule": "linear", "schedule_steps": 6, "warmup": 2}),
    "clip": ("mse", "sgd", {"lr": 0.5, "clip_norm": 0.3}),
    "clip_adam": ("mse", "adam", {"lr": 0.03, "clip_norm": 0.2}),
    "clip_above": ("mse", "sgd", {"lr": 0.2, "clip_norm": 1e6}),
    "accumulate_two": ("mse", "sgd", {"lr": 0.3, "accumulate": 2}),
    "accumulate_three": ("mse", "adam", {"lr": 0.05, "accumulate": 3}),
    "accumulate_clip_schedule": ("mse", "momentum", {"lr": 0.3, "accumulate": 2, "clip_norm": 0.5, "schedule": "linear",
                                                     "schedule_steps": 5, "warmup": 1}),
    "sgd_default_rate": ("mse", "sgd", {"lr": 0.1}),
    "sgd_momentum": ("mse", "sgd", {"lr": 0.1, "momentum": 0.5}),
    "sgd_weight_decay": ("mse", "sgd", {"lr": 0.2, "weight_decay": 0.2}),
    "momentum_weight_decay": ("mse", "momentum", {"lr": 0.1, "momentum": 0.7, "weight_decay": 0.1}),
    "nesterov_weight_decay": ("mse", "nesterov", {"lr": 0.1, "momentum": 0.6, "weight_decay": 0.1}),
    "adam_weight_decay": ("mse", "adam", {"lr": 0.03, "weight_decay": 0.1}),
    "adam_betas": ("mse", "adam", {"lr": 0.03, "beta1": 0.7, "beta2": 0.9, "epsilon": 1e-3}),
    "adamw_defaults": ("mse", "adamw", {"lr": 0.03}),
    "adamw_betas": ("mse", "adamw", {"lr": 0.03, "beta1": 0.8, "beta2": 0.95, "epsilon": 1e-4, "weight_decay": 0.3}),
    "adagrad_defaults": ("mse", "adagrad", {}),
    "adagrad_weight_decay": ("mse", "adagrad", {"lr": 0.05, "weight_decay": 0.2, "epsilon": 1e-3}),
    "rmsprop_defaults": ("mse", "rmsprop", {}),
    "rmsprop_momentum": ("mse", "rmsprop", {"lr": 0.01, "momentum": 0.5, "beta2": 0.8}),
    "rmsprop_weight_decay": ("mse", "rmsprop", {"lr": 0.01, "weight_decay": 0.2, "epsilon": 1e-3}),
}
STEPS = 7


def row_of(name, model, feeds, loss, optimizer, options, trained, forward, target, steps=STEPS, **more):
    """A row and what computes what is expected. target None: the prediction is the loss before its mean."""
    given = {**options, "train": trained, **({"target": target} if target else {}), **more}
    row = {"name": name, "model": model, "feeds": feeds, "loss": loss, "optimizer": optimizer, "options": given,
           "steps": steps}
    def measure(y, batch):
        return training.LOSSES[loss](y, batch[target]) if target else y.mean()
    return row, training.train(forward, measure, optimizer, options, trained)


def files():
    every = list(MLP)
    rows = [row_of(name, "mlp", ["x", "numbers"], loss, optimizer, options, every, networks.mlp, "numbers")
            for name, (loss, optimizer, options) in ON_MLP.items()]
    sgd, adam = {"lr": 0.2}, {"lr": 0.03}

    def double(w, batch, on):
        return networks.mlp(w, {"x": batch["xd"]}, on)
    rows += [
        row_of("double_sgd", "double", ["xd", "numbersd"], "mse", "sgd", sgd, every, double, "numbersd"),
        row_of("double_adam", "double", ["xd", "numbersd"], "huber", "adam", adam, every, double, "numbersd"),
        row_of("opset_12", "opset12", ["x", "labels"], "cross-entropy", "adam", adam, every, networks.mlp, "labels"),
        row_of("any_batch", "batches", ["x", "numbers"], "mse", "sgd", sgd, every, networks.mlp, "numbers"),
        row_of("frozen", "mlp", ["x", "numbers"], "mse", "adam", adam, ["w2", "b1"], networks.mlp, "numbers"),
        row_of("frozen_but_one", "mlp", ["x", "labels"], "cross-entropy", "sgd", sgd, ["w1"], networks.mlp, "labels"),
        row_of("ignored_labels", "mlp", ["x", "some"], "cross-entropy", "sgd", sgd, every, networks.mlp, "some",
               steps=3),
        row_of("pixels_cross_entropy", "pixels", ["image", "classes"], "cross-entropy", "momentum", {"lr": 0.2},
               ["w", "b"], pixels, "classes"),
        row_of("second_output", "two", ["x", "pair"], "l1", "adam", adam, ["w1", "b1", "w3"], two_heads, "pair",
               output="z"),
        row_of("tied_weights", "tied", ["x", "numbers"], "mse", "adam", adam, ["w1", "w2"], tied, "numbers"),
        row_of("function_in_network", "function", ["x", "labels"], "cross-entropy", "adam", adam, every, networks.mlp,
               "labels"),
        row_of("scan_in_network", "scan", ["x", "numbers"], "mse", "sgd", sgd, ["w1", "w2", "b2"], scan, "numbers"),
        row_of("if_in_network", "branch", ["x", "numbers"], "mse", "adam", adam, ["w1", "w3", "b2"], branch, "numbers"),
        row_of("loss_of_the_model", "own-loss", ["x", "wanted"], "output:squares", "adam", adam, every, batch_wise,
               None),
    ]
    rows = [({**row, "name": "options_" + row["name"]}, compute) for row, compute in rows]
    yield {"file": "options", "models": MODELS, "inputs": INPUTS}, rows
