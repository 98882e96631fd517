#!/usr/bin/env python3
# Writes tests/train/rules/*.json: tools/gen_rule_cases.py [NAME..], with an interpreter that has torch, or jax and optax
# SPDX-License-Identifier: Apache-2.0
"""What losses and optimizers of data/training/ must do comes from PyTorch or optax, in double precision; Cameo is not asked.

A row says how `cameo prepare` is called and what the reference is. Rows whose reference is not installed are left as they
are; the first line printed says which.
"""
import json
import pathlib
import sys

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "train"))
import rule_problem as problem  # noqa: E402

try:
    import torch
    import torch.nn.functional as F
except ImportError:
    torch = None
try:
    import jax
    import optax
    jax.config.update("jax_enable_x64", True)
except ImportError:
    optax = None


def focal(x, y):
    entropy = F.cross_entropy(x, y, reduction="none")
    return ((1 - torch.exp(-entropy)) ** 2 * entropy).mean()


def cosine(x, y):
    return F.cosine_embedding_loss(x, y, torch.ones(len(x), dtype=x.dtype))


def hinge(x, y):
    return torch.clamp(1 - x * y, min=0).mean()


def kl_div(x, y):
    return F.kl_div(x, y, reduction="mean")


def ctc(x, y):
    frames = torch.full((len(x),), x.shape[1])
    return F.ctc_loss(x.log_softmax(-1).transpose(0, 1), y.clamp(min=0), frames, (y >= 0).sum(1))


# Losses: target, the operator before the output, reference. They are trained with SGD.
LOSSES = {
    "huber": ("numbers", "Identity", lambda x, y: F.huber_loss(x, y)),
    "focal": ("labels", "Identity", focal),
    "kl-div": ("distributions", "LogSoftmax", kl_div),
    "cosine": ("numbers", "Identity", cosine),
    "ctc": ("sequences", "frames", ctc),
    "hinge": ("sides", "Identity", hinge),
}
# Optimizers: flags, what makes the reference.
TORCH = {
    "adamw": (["--lr", "0.02", "--weight-decay", "0.1"], lambda ps: torch.optim.AdamW(ps, lr=0.02, weight_decay=0.1)),
    "adafactor": (["--lr", "0.05", "--weight-decay", "0.1", "--settings", "epsilon1=1e-7"],
                  lambda ps: torch.optim.Adafactor(ps, lr=0.05, eps=(1e-7, 1e-3), weight_decay=0.1)),
    "adamax": (["--lr", "0.02", "--weight-decay", "0.1"],
               lambda ps: torch.optim.Adamax(ps, lr=0.02, weight_decay=0.1)),
    "nadam": (["--lr", "0.02", "--weight-decay", "0.1"],
              lambda ps: torch.optim.NAdam(ps, lr=0.02, weight_decay=0.1)),
    "radam": (["--lr", "0.02", "--weight-decay", "0.1"],
              lambda ps: torch.optim.RAdam(ps, lr=0.02, weight_decay=0.1)),
    "adadelta": (["--lr", "2", "--weight-decay", "0.1", "--settings", "rho=0.8"],
                 lambda ps: torch.optim.Adadelta(ps, lr=2, rho=0.8, weight_decay=0.1)),
    "asgd": (["--lr", "0.1", "--settings", "lambd=0.1,t0=6"],
             lambda ps: torch.optim.ASGD(ps, lr=0.1, lambd=0.1, t0=6)),
}
OPTAX = {
    "lion": (["--lr", "0.01", "--weight-decay", "0.1"], lambda: optax.lion(0.01, weight_decay=0.1)),
    "lamb": (["--lr", "0.02", "--weight-decay", "0.1"], lambda: optax.lamb(0.02, weight_decay=0.1)),
}


class Scheduled:
    """An optimizer whose rate follows a function of the number of updates so far."""

    def __init__(self, optimizer, rate):
        self.optimizer = optimizer
        self.scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, rate)

    def zero_grad(self):
        self.optimizer.zero_grad()

    def step(self):
        self.optimizer.step()
        self.scheduler.step()


class Plateau:
    """An optimizer whose rates fall when the validation loss does not."""

    def __init__(self, optimizer, **settings):
        self.zero_grad, self.step = optimizer.zero_grad, optimizer.step
        self.scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, **settings)

    def validated(self, loss):
        self.scheduler.step(loss)


def groups(ps, settings):
    """A group for each weight: w1, b1, w2, b2."""
    return [{"params": [p], **extra} for p, extra in zip(ps, settings, strict=True)]


def smoothed(x, y):
    return F.cross_entropy(x, y, label_smoothing=0.2)


CLASSES, COLUMNS = (0.5, 2, 1.25), (3, 0.5, 1)


def weighted(x, y, smoothing=0.0):
    return F.cross_entropy(x, y, weight=torch.tensor(CLASSES, dtype=x.dtype), label_smoothing=smoothing)


def weighted_nll(x, y):
    return F.nll_loss(x, y, weight=torch.tensor(CLASSES, dtype=x.dtype))


def weighted_bce(x, y):
    return F.binary_cross_entropy_with_logits(x, y, pos_weight=torch.tensor(COLUMNS, dtype=x.dtype))


def weights_row(loss, weights, target, last, reference, *more):
    return (["--loss", loss, "--optimizer", "sgd", "--lr", "0.5", "--class-weights", ",".join(map(str, weights)), *more],
            target, last, reference, lambda ps: torch.optim.SGD(ps, lr=0.5))


def no_decay(ps):
    none = {"weight_decay": 0}
    return torch.optim.AdamW(groups(ps, [{}, none, none, none]), lr=0.02, weight_decay=0.5)


def lr_for(ps):
    return torch.optim.AdamW(groups(ps, [{"lr": 0.1}, {}, {"lr": 0.1}, {"lr": 0.001, "weight_decay": 0}]), lr=0.02,
                             weight_decay=0.5)


# Settings that all rules have: flags, target, the operator before the output, loss, optimizer.
SETTINGS = {
    "label-smoothing": (["--loss", "cross-entropy", "--optimizer", "sgd", "--lr", "0.5", "--settings", "smoothing=0.2"],
                        "labels", "Identity", smoothed, lambda ps: torch.optim.SGD(ps, lr=0.5)),
    "class-weights": weights_row("cross-entropy", CLASSES, "labels", "Identity", weighted),
    "class-weights-smoothing": weights_row("cross-entropy", CLASSES, "labels_or_none", "Identity",
                                           lambda x, y: weighted(x, y, 0.2), "--settings", "smoothing=0.2"),
    "class-weights-nll": weights_row("nll", CLASSES, "labels_or_none", "LogSoftmax", weighted_nll),
    "class-weights-bce": weights_row("bce-logits", COLUMNS, "distributions", "Identity", weighted_bce),
    "no-decay": (["--loss", "mse", "--optimizer", "adamw", "--lr", "0.02", "--weight-decay", "0.5", "--no-decay", "^w2$",
                  "--no-decay-vectors"], "numbers", "Identity", lambda x, y: F.mse_loss(x, y), no_decay),
    "lr-for": (["--loss", "mse", "--optimizer", "adamw", "--lr", "0.02", "--weight-decay", "0.5", "--no-decay", "^b2$",
                "--lr-for", "^w=0.1;2$=0.001"], "numbers", "Identity", lambda x, y: F.mse_loss(x, y), lr_for),
    "plateau": (["--loss", "mse", "--optimizer", "sgd", "--lr", "1.5", "--lr-for", "^b1$=0.3", "--schedule", "plateau",
                 "--schedule-factor", "0.4", "--schedule-patience", "1", "--schedule-threshold", "0.01",
                 "--schedule-cooldown", "1", "--schedule-min-lr", "0.2"], "numbers", "Identity", lambda x, y: F.mse_loss(x, y),
                lambda ps: Plateau(torch.optim.SGD(groups(ps, [{}, {"lr": 0.3}, {}, {}]), lr=1.5), factor=0.4, patience=1,
                                   threshold=0.01, cooldown=1, min_lr=0.2)),
    "plateau-adam": (["--loss", "mse", "--optimizer", "adam", "--lr", "0.06", "--schedule", "plateau", "--schedule-patience",
                      "1", "--schedule-factor", "0.3"], "numbers", "Identity", lambda x, y: F.mse_loss(x, y),
                     lambda ps: Plateau(torch.optim.Adam(ps, lr=0.06), factor=0.3, patience=1)),
    "epochs": (["--loss", "mse", "--optimizer", "sgd", "--lr", "0.3", "--schedule", "step", "--schedule-epochs", "2",
                "--warmup-epochs", "2", "--updates-per-epoch", "3"], "numbers", "Identity", lambda x, y: F.mse_loss(x, y),
               lambda ps: Scheduled(torch.optim.SGD(ps, lr=0.3),
                                    lambda t: min(1, (t + 1) / 6) * 0.1 ** (max(0, t - 6) // 6))),
    "warmup-from": (["--loss", "mse", "--optimizer", "sgd", "--lr", "0.3", "--warmup", "10", "--warmup-from", "0"],
                    "numbers", "Identity", lambda x, y: F.mse_loss(x, y),
                    lambda ps: Scheduled(torch.optim.SGD(ps, lr=0.3), lambda t: min(1, t / 10))),
}


def with_torch(target, last, loss, make):
    values = {name: torch.tensor(value, dtype=torch.float64, requires_grad=True)
              for name, value in problem.weights().items()}
    optimizer = make(list(values.values()))
    inputs, targets = problem.data(target)
    losses = []
    for step in range(problem.STEPS):
        x = torch.tensor(problem.batch(inputs, step), dtype=torch.float64)
        y = torch.tensor(problem.batch(targets, step))
        s = torch.tanh(x @ values["w1"] + values["b1"]) @ values["w2"] + values["b2"]
        if last == "LogSoftmax":
            s = F.log_softmax(s, dim=-1)
        value = loss(s, y.double() if y.is_floating_point() else y)
        optimizer.zero_grad()
        value.backward()
        optimizer.step()
        losses.append(value.item())
        if hasattr(optimizer, "validated") and (step + 1) * problem.BATCH % problem.ROWS == 0:
            x, y = (torch.tensor(array, dtype=torch.float64) for array in problem.validation())
            s = torch.tanh(x @ values["w1"] + values["b1"]) @ values["w2"] + values["b2"]
            optimizer.validated(loss(s, y).item())
    return losses, {name: value.detach().numpy() for name, value in values.items()}


def with_optax(make):
    values = {name: jax.numpy.asarray(value, "float64") for name, value in problem.weights().items()}
    optimizer = make()
    state = optimizer.init(values)
    inputs, targets = problem.data("numbers")
    losses = []

    def loss(w, x, y):
        s = jax.numpy.tanh(x @ w["w1"] + w["b1"]) @ w["w2"] + w["b2"]
        return ((s - y) ** 2).mean()

    for step in range(problem.STEPS):
        x, y = (np.float64(problem.batch(array, step)) for array in (inputs, targets))
        value, gradients = jax.value_and_grad(loss)(values, x, y)
        updates, state = optimizer.update(gradients, state, values)
        values = optax.apply_updates(values, updates)
        losses.append(float(value))
    return losses, {name: np.asarray(value) for name, value in values.items()}


def write(name, row, results):
    losses, values = results
    path = ROOT / "tests" / "train" / "rules" / f"{name}.json"
    row = {**row, "losses": [float(f"{x:.9g}") for x in losses],
           "weights": {k: [float(f"{x:.9g}") for x in np.ravel(v)] for k, v in values.items()}}
    path.write_text(json.dumps(row, indent=1) + "\n", encoding="utf-8")
    print(path.name)


def main():
    chosen = sys.argv[1:]
    print(f"torch: {'there' if torch else 'missing'}, optax: {'there' if optax else 'missing'}")
    for name, (target, last, loss) in LOSSES.items():
        if torch and (not chosen or name in chosen):
            row = {"target": target, "last": last, "flags": ["--loss", name, "--optimizer", "sgd", "--lr", "0.5"]}
            write(name, row, with_torch(target, last, loss, lambda ps: torch.optim.SGD(ps, lr=0.5)))
    for name, (flags, target, last, loss, make) in SETTINGS.items():
        if torch and (not chosen or name in chosen):
            write(name, {"target": target, "last": last, "flags": flags}, with_torch(target, last, loss, make))
    for table, there in ((TORCH, torch), (OPTAX, optax)):
        for name, (flags, make) in table.items():
            if not there or (chosen and name not in chosen):
                continue
            row = {"target": "numbers", "last": "Identity", "flags": ["--loss", "mse", "--optimizer", name, *flags]}
            write(name, row, with_torch("numbers", "Identity", F.mse_loss, make) if table is TORCH else with_optax(make))


if __name__ == "__main__":
    main()
