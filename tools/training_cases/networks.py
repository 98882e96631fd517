# Every optimizer with every loss on every network.
# SPDX-License-Identifier: Apache-2.0
"""Small networks of three outputs, as ONNX text and with PyTorch's functions."""

import torch
import torch.nn.functional as F

from . import training

HEADER = '<ir_version: 8, opset_import: ["" : 17]>\n'
STEPS = 5
# Rates that move the weights far enough for a wrong one to show.
OPTIMIZERS = {"sgd": {"lr": 0.2}, "momentum": {"lr": 0.1, "momentum": 0.8}, "nesterov": {"lr": 0.1},
              "adam": {"lr": 0.02}, "adamw": {"lr": 0.02, "weight_decay": 0.1}, "adagrad": {"lr": 0.05},
              "rmsprop": {"lr": 0.01, "beta2": 0.9}}
# What follows the scores, and the input that is the target.
HEADS = {"cross-entropy": ("scores", "labels"), "nll": ("logs", "labels"), "bce": ("chances", "shares"),
         "bce-logits": ("scores", "shares"), "mse": ("scores", "numbers"), "l1": ("scores", "numbers"),
         "huber": ("scores", "numbers")}
END = {"scores": "y = Identity(s)", "logs": "y = LogSoftmax <axis = 1> (s)", "chances": "y = Sigmoid(s)"}
APPLY = {"scores": lambda s: s, "logs": lambda s: F.log_softmax(s, 1), "chances": torch.sigmoid}
TARGETS = {"labels": ["int64", [4], 0, 3], "shares": ["float", [4, 3], 0, 1], "numbers": ["float", [4, 3], -2, 2]}
RUNNING = ("mean", "variance")  # what BatchNormalization changes, no optimizer


def linear(w, batch, training):
    return F.linear(batch["x"], w["w"], w["b"])


def mlp(w, batch, training):
    return F.linear(torch.tanh(F.linear(batch["x"], w["w1"], w["b1"])), w["w2"], w["b2"])


def dropout(w, batch, training):
    hidden = F.layer_norm(F.linear(batch["x"], w["w1"], w["b1"]), (6,), w["scale"], w["shift"], 1e-5)
    return F.linear(F.dropout(F.relu(hidden), 0.0, training), w["w2"], w["b2"])


def conv(w, batch, training):
    """The running variance is that of the population, as ONNX has it; PyTorch's layer keeps the sample's."""
    x = F.conv2d(batch["x"], w["w1"], padding=1)
    if training:
        with torch.no_grad():
            for name, now in (("mean", x.mean((0, 2, 3))), ("variance", x.var((0, 2, 3), correction=0))):
                w[name].mul_(0.9).add_(now, alpha=1 - 0.9)
        x = F.batch_norm(x, None, None, w["scale"], w["shift"], True, eps=1e-5)
    else:
        x = F.batch_norm(x, w["mean"], w["variance"], w["scale"], w["shift"], False, eps=1e-5)
    return F.linear(F.max_pool2d(F.relu(x), 2).mean((2, 3)), w["w2"], w["b2"])


def lstm(w, batch, training):
    """Gates in ONNX's order: input, output, forget, cell."""
    h = c = torch.zeros(4, 3, dtype=w["w2"].dtype)
    bias = w["bias"][0, :12] + w["bias"][0, 12:]
    for x in batch["x"]:
        i, o, f, g = (x @ w["w1"][0].T + h @ w["r1"][0].T + bias).chunk(4, 1)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        h = torch.sigmoid(o) * torch.tanh(c)
    return F.linear(h, w["w2"], w["b2"])


def gru(w, batch, training):
    """Gates in ONNX's order: update, reset, hidden; linear_before_reset."""
    h = torch.zeros(4, 3, dtype=w["w2"].dtype)
    for x in batch["x"]:
        a = x @ w["w1"][0].T + w["bias"][0, :9]
        b = h @ w["r1"][0].T + w["bias"][0, 9:]
        z, r = torch.sigmoid(a + b)[:, :6].chunk(2, 1)
        h = (1 - z) * torch.tanh(a[:, 6:] + r * b[:, 6:]) + z * h
    return F.linear(h, w["w2"], w["b2"])


def attention(w, batch, training):
    e = F.embedding(batch["x"], w["table"])
    scores = torch.softmax((e @ w["wq"]) @ (e @ w["wk"]).transpose(1, 2) * 0.5, 2)
    return F.linear((scores @ (e @ w["wv"])).mean(1), w["w2"], w["b2"])


def real(*shape, scale=0.5):
    return ["float", list(shape), -scale, scale]


X = ("float[4,5] x", ["float", [4, 5], -1, 1])
SERIES = ("float[3,4,2] x", ["float", [3, 4, 2], -1, 1])
OUT = {"w2": real(3, 3), "b2": real(3)}
GEMM = "s = Gemm <transB = 1> ({}, w2, b2)"

# name: forward, input, weights, nodes up to the scores s
NETWORKS = {
    "linear": (linear, X, {"w": real(3, 5), "b": real(3)}, "s = Gemm <transB = 1> (x, w, b)"),
    "mlp": (mlp, X, {"w1": real(6, 5), "b1": real(6), "w2": real(3, 6), "b2": real(3)},
            f"a = Gemm <transB = 1> (x, w1, b1)\n h = Tanh(a)\n {GEMM.format('h')}"),
    "dropout": (dropout, X, {"w1": real(6, 5), "b1": real(6), "scale": ["float", [6], 0.5, 1.5], "shift": real(6),
                             "w2": real(3, 6), "b2": real(3)},
                "a = Gemm <transB = 1> (x, w1, b1)\n n = LayerNormalization <epsilon = 1e-5> (a, scale, shift)\n"
                " h = Relu(n)\n zero = Constant <value = float {0}> ()\n d = Dropout(h, zero)\n " + GEMM.format("d")),
    "conv": (conv, ("float[4,1,6,6] x", ["float", [4, 1, 6, 6], -1, 1]),
             {"w1": real(2, 1, 3, 3), "scale": ["float", [2], 0.5, 1.5], "shift": real(2),
              "mean": ["float", [2], -0.1, 0.1], "variance": ["float", [2], 0.5, 1.5], "w2": real(3, 2, scale=1),
              "b2": real(3)},
             "c = Conv <kernel_shape = [3, 3], pads = [1, 1, 1, 1]> (x, w1)\n"
             " n = BatchNormalization <epsilon = 1e-5, momentum = 0.9> (c, scale, shift, mean, variance)\n"
             " r = Relu(n)\n p = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (r)\n"
             " g = GlobalAveragePool(p)\n h = Flatten(g)\n " + GEMM.format("h")),
    "lstm": (lstm, SERIES, {"w1": real(1, 12, 2), "r1": real(1, 12, 3), "bias": real(1, 24), **OUT},
             "all, last = LSTM <hidden_size = 3> (x, w1, r1, bias)\n axes = Constant <value = int64[1] {0}> ()\n"
             " h = Squeeze(last, axes)\n " + GEMM.format("h")),
    "gru": (gru, SERIES, {"w1": real(1, 9, 2), "r1": real(1, 9, 3), "bias": real(1, 18), **OUT},
            "all, last = GRU <hidden_size = 3, linear_before_reset = 1> (x, w1, r1, bias)\n"
            " axes = Constant <value = int64[1] {0}> ()\n h = Squeeze(last, axes)\n " + GEMM.format("h")),
    "attention": (attention, ("int64[4,3] x", ["int64", [4, 3], 0, 7]),
                  {"table": real(7, 4, scale=1), "wq": real(4, 4), "wk": real(4, 4), "wv": real(4, 4),
                   "w2": real(3, 4), "b2": real(3)},
                  "e = Gather(table, x)\n q = MatMul(e, wq)\n k = MatMul(e, wk)\n v = MatMul(e, wv)\n"
                  " t = Transpose <perm = [0, 2, 1]> (k)\n p = MatMul(q, t)\n half = Constant <value = float {0.5}> ()\n"
                  " m = Mul(p, half)\n a = Softmax <axis = 2> (m)\n o = MatMul(a, v)\n"
                  " g = ReduceMean <axes = [1], keepdims = 0> (o)\n " + GEMM.format("g")),
}


def model_text(name, given, nodes, head):
    return f"{HEADER}{name} ({given}) => (float[4,3] y) {{\n {nodes}\n {END[head]}\n}}"


def case(name, head, target, forward, trained, loss, optimizer, options):
    """A row of a file, and what computes what is expected."""
    row = {"name": name, "model": head, "feeds": ["x", target], "loss": loss, "optimizer": optimizer,
           "options": {**options, "target": target, "train": trained}, "steps": STEPS}
    compute = training.train(lambda w, batch, on: APPLY[head](forward(w, batch, on)),
                             lambda y, batch: training.LOSSES[loss](y, batch[target]), optimizer, options, trained)
    return row, compute


def files():
    for name, (forward, (given, spec), weights, nodes) in NETWORKS.items():
        trained = [weight for weight in weights if weight not in RUNNING]
        models = {head: {"text": model_text(name, given, nodes, head), "weights": weights} for head in END}
        file = {"file": name, "models": models, "inputs": {"x": spec, **TARGETS}}
        yield file, [case(f"{name}_{loss.replace('-', '_')}_{optimizer}", head, target, forward, trained, loss,
                          optimizer, options)
                     for loss, (head, target) in HEADS.items() for optimizer, options in OPTIMIZERS.items()]
