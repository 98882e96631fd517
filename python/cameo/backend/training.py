# The training interface for backends: what each must do.
# SPDX-License-Identifier: Apache-2.0
"""What onnx.backend.base is to inference, for training: base classes that any backend can implement.

A model is trainable in one of two ways: it carries training_info, or the caller names a loss and an optimizer, and the
backend makes the training. docs/backend.md has this as one text with examples; cameo.backend.training_tests tests an
implementation. Nothing in this module depends on the rest of Cameo.
"""

from __future__ import annotations

from typing import Any

import numpy
import onnx

LOSSES = ("cross-entropy", "nll", "mse", "l1", "huber", "bce", "bce-logits")
OPTIMIZERS = ("sgd", "momentum", "nesterov", "adam", "adamw", "adagrad", "rmsprop")
SCHEDULES = ("constant", "step", "cosine", "linear")


class TrainingBackendRep:
    """A model made ready to be trained, with values of its own for everything that training changes."""

    def initialize(self) -> None:
        """Sets everything that training changes back to what the model has, then runs the initialization graph of each
        entry of training info, in order, and assigns its outputs by initialization_binding. It is not run otherwise."""
        raise NotImplementedError

    def step(self, inputs: Any) -> float:
        """One iteration on a batch; returns the loss of the batch as it was before the update.

        inputs is a dict by name, or a list in the order of the inputs of the model's graph without those that have an
        initializer, followed by the inputs of the algorithm graphs in order (a name counts once).

        Each entry of training info is executed in order: its algorithm on the inference graph, which completes it, with
        Dropout and BatchNormalization in training mode where the algorithm has them so. All outputs are computed before
        any is assigned by update_binding; the next entry sees what was assigned. A step that fails changes nothing.

        The loss is the algorithm's output "loss", otherwise its first output that is a real scalar.
        """
        raise NotImplementedError

    def evaluate(self, inputs: Any) -> float:
        """The loss of a batch as things stand, fed like a step. Nothing changes, random generators included. Dropout
        passes its input through and BatchNormalization uses its running statistics."""
        raise NotImplementedError

    def export(self) -> onnx.ModelProto:
        """The model as it is now: values changed, its training info with it. The same training can be gone on with by
        prepare_training(model) without a loss or an optimizer, here or in another backend: optimizer state and counters
        are initializers of the algorithm graphs."""
        raise NotImplementedError

    @property
    def state(self) -> dict[str, numpy.ndarray[Any, Any]]:
        """Everything that training changes, by name: initializers of the graph under their names, then what the
        algorithms keep. The arrays do not change with later steps."""
        raise NotImplementedError

    @property
    def scalars(self) -> dict[str, float]:
        """Scalar outputs of the algorithms in the last step, by name, the loss among them; empty before the first."""
        raise NotImplementedError


class TrainingBackend:
    """Makes models trainable. A class with this method, or a module with a function of this name, is a training
    backend."""

    @classmethod
    def prepare_training(cls, model: onnx.ModelProto, loss: str | None = None, optimizer: str | None = None,
                         device: str = "CPU", **options: Any) -> TrainingBackendRep:
        """Makes a model ready to be trained; the model itself is not changed.

        Without loss and optimizer the model's own training_info is executed. With both, the model must have none, and
        the training is this:

        loss: the mean over all elements, of the prediction (the model's output) and a further input, the target:
            "cross-entropy": scores, class numbers (int64) in the shape of the prediction without axis 1; -100: ignored
            "nll": logarithms of probabilities, the same
            "mse", "l1": squares and absolute values of differences, in the shape of the prediction
            "huber": half the square of a difference up to 1, from there on the absolute value less one half
            "bce": probabilities, numbers from 0 to 1; logarithms are -100 at least
            "bce-logits": scores, the same
            "output:NAME": the mean of a value of the model; no target
        optimizer: with gradient g, weight w and rate r; state begins as zeros, t counts updates from 1; the gradient of
        a weight that a batch does not reach is 0:
            "sgd": w -= r g; "momentum": v = momentum v + g (v = g at first), w -= r v;
            "nesterov": the same v, w -= r (g + momentum v); in all three g has weight_decay w added first
            "adam": g += weight_decay w, m = beta1 m + (1 - beta1) g, v = beta2 v + (1 - beta2) g^2,
                w -= r m / (1 - beta1^t) / (sqrt(v / (1 - beta2^t)) + epsilon)
            "adamw": first w -= r weight_decay w, then as "adam" without weight_decay
            "adagrad": g += weight_decay w, s += g^2, w -= r g / (sqrt(s) + epsilon)
            "rmsprop": g += weight_decay w, s = beta2 s + (1 - beta2) g^2, u = g / (sqrt(s) + epsilon), w -= r u; with a
                momentum: v = momentum v + u, w -= r v

        Options, with the same meaning for every backend:
            lr (1e-3; adagrad and rmsprop 1e-2), momentum (0.9; sgd and rmsprop 0), weight_decay (0; adamw 0.01),
            beta1 (0.9), beta2 (0.999; rmsprop 0.99), epsilon (1e-8; adagrad 1e-10)
            schedule: a factor of the rate after t updates, p = max(0, t - warmup): "constant" 1; "step"
                schedule_factor^floor(p / schedule_steps); with q = min(1, p / (schedule_steps - warmup)) "cosine"
                (1 + cos(pi q)) / 2 and "linear" 1 - q; each times min(1, (t + 1) / warmup) where there is a warmup
            clip_norm: where the norm n of all gradients together is above it, all are multiplied by clip_norm / (n + 1e-6)
            accumulate: an update after so many steps, with the mean of their gradients; other steps change no weight
            train: names of the initializers to train; otherwise those that a user would call weights
            target: the name of the target's input ("target"); output: which output is the prediction
        BatchNormalization is trained with the statistics of the batch and moves its running ones as its definition says
        (the population's variance); Dropout drops. Options that a backend does not know are refused with an exception.
        """
        raise NotImplementedError

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Whether models can be trained on a device."""
        raise NotImplementedError
