# ONNX networks as estimators of scikit-learn.
# SPDX-License-Identifier: Apache-2.0
"""ONNX networks as estimators of scikit-learn: fit trains them with Cameo.

>>> import numpy
>>> from cameo.sklearn import Classifier
>>> X = numpy.random.default_rng(0).normal(size=(200, 2))
>>> y = numpy.where(X[:, 0] > X[:, 1], "above", "below")
>>> Classifier(epochs=30, random_state=0).fit(X, y).score(X, y) > 0.95
True
"""

from __future__ import annotations

import copy
import math
import numbers
import os
from typing import Any

import numpy
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin  # type: ignore[import-untyped]
from sklearn.utils import check_random_state  # type: ignore[import-untyped]
from sklearn.utils.multiclass import check_classification_targets, unique_labels  # type: ignore[import-untyped]
from sklearn.utils.validation import check_is_fitted, validate_data  # type: ignore[import-untyped]

from . import _cameo
from ._graph import ValueInfo, last_operator
from ._model import Model, load
from ._trainer import Trainer

__all__ = ["Classifier", "Regressor"]

Array = numpy.ndarray[Any, Any]

def _numbers(array: Array) -> str:
    return "{" + ", ".join(map(repr, map(float, array.ravel()))) + "}"


def _perceptron(X: Array, hidden: tuple[int, ...], mean: Array, scale: Array, random: Any) -> str:
    """A network in ONNX's text form, in double precision: inputs brought to mean 0 and deviation 1, layers of Relu,
    results times scale plus mean."""
    deviation = X.std(0)
    constants = {"input_mean": X.mean(0), "input_scale": 1 / numpy.where(deviation > 0, deviation, 1.0),
                 "output_scale": scale, "output_mean": mean}
    nodes = ["centred = Sub (X, input_mean)", "h0 = Mul (centred, input_scale)"]
    sizes = [X.shape[1], *hidden, len(mean)]
    for i, (before, after) in enumerate(zip(sizes, sizes[1:])):
        last = i == len(sizes) - 2
        reach = math.sqrt((3.0 if last else 6.0) / before)
        constants[f"weight{i}"] = random.uniform(-reach, reach, (before, after))
        constants[f"bias{i}"] = numpy.zeros(after)
        nodes.append(f"p{i} = Gemm (h{i}, weight{i}, bias{i})")
        nodes.append(f"scaled = Mul (p{i}, output_scale)" if last else f"h{i + 1} = Relu (p{i})")
    nodes.append("output = Add (scaled, output_mean)")
    texts = ", ".join(f"double[{','.join(map(str, value.shape))}] {name} = {_numbers(value)}"
                      for name, value in constants.items())
    return ('<ir_version: 8, opset_import: ["" : 17]>\n'
            f"perceptron (double[N,{sizes[0]}] X) => (double[N,{len(mean)}] output) <{texts}> {{ {' '.join(nodes)} }}")


class _Estimator(BaseEstimator):  # type: ignore[misc]
    """What classifiers and regressors share."""

    def __init__(self, model: Any = None, *, loss: str = "mse", optimizer: str = "adam", lr: float = 1e-3,
                 epochs: int = 10, batch_size: int = 32, hidden: tuple[int, ...] = (100,), output: str | None = None,
                 trainable: str | None = None, weight_decay: float | None = None, shuffle: bool = True,
                 warm_start: bool = False, threads: int = 0, verbose: bool = False, random_state: Any = None) -> None:
        self.model = model
        self.loss = loss
        self.optimizer = optimizer
        self.lr = lr
        self.epochs = epochs
        self.batch_size = batch_size
        self.hidden = hidden
        self.output = output
        self.trainable = trainable
        self.weight_decay = weight_decay
        self.shuffle = shuffle
        self.warm_start = warm_start
        self.threads = threads
        self.verbose = verbose
        self.random_state = random_state

    # ---- data ----

    def _samples(self, X: Any, y: Any = None, *, reset: bool) -> Any:
        """X as the network takes it, and y on the way to fit: scikit-learn's checks, with its messages."""
        options: dict[str, Any] = {"dtype": numpy.float64, "allow_nd": self.model is not None}
        if self.model is not None:
            options["dtype"] = self._input_of(load(self.model) if reset else self.network_).dtype
        if y is None and not reset:
            return validate_data(self, X, reset=False, **options)
        regression = isinstance(self, Regressor)
        return validate_data(self, X, y, reset=reset, multi_output=regression, y_numeric=regression, **options)

    @staticmethod
    def _input_of(model: Model) -> ValueInfo:
        inputs = [info for info in model.inputs if not info.has_default]
        if len(inputs) != 1:
            raise _cameo.UnsupportedError(f"the model has {len(inputs)} inputs, an estimator feeds one")
        return inputs[0]

    def _output_of(self, model: Model) -> ValueInfo:
        outputs = {info.name: info for info in model.outputs}
        if self.output is None and len(outputs) == 1:
            return next(iter(outputs.values()))
        if self.output not in outputs:
            raise _cameo.ArgumentError(f"output is {self.output!r}, the model has {', '.join(outputs)}")
        return outputs[self.output]

    def _shaped(self, X: Array) -> Array:
        """Rows of features as the input of the network has them: images, sequences."""
        info = self._input_of(self.network_)
        if info.shape is None or len(info.shape) == X.ndim:
            return X
        sizes = [size for size in info.shape[1:] if isinstance(size, int)]
        if len(sizes) + 1 < len(info.shape) or math.prod(sizes) != math.prod(X.shape[1:]):
            raise _cameo.ArgumentError(f"a sample of X has shape {X.shape[1:]}, which input '{info.name}' of type "
                                       f"{info.type} cannot be made of")
        return X.reshape(len(X), *sizes)

    # ---- training ----

    def _begin(self, X: Array, mean: Array, scale: Array) -> None:
        """The network as it is before the first step."""
        random = check_random_state(self.random_state)
        train = self.trainable
        if self.model is None:
            hidden = (self.hidden,) if isinstance(self.hidden, numbers.Integral) else self.hidden
            if not isinstance(hidden, (tuple, list)) or not all(isinstance(size, numbers.Integral) and size > 0
                                                                for size in hidden):
                raise _cameo.ArgumentError(f"hidden is {self.hidden!r}, expected a tuple of sizes of at least 1")
            network = load(_perceptron(X, tuple(hidden), mean, scale, random))
            train = train or "^(weight|bias)[0-9]"
        else:
            network = copy.copy(load(self.model))
        if not network.training:
            network.prepare(self.loss, self.optimizer, lr=self.lr, weight_decay=self.weight_decay,
                            output=self._output_of(network).name, train=train)
        self._seed = int(random.randint(2**31 - 1))
        self._trainer: Trainer | None = None
        self.network_ = network
        self.n_iter_ = 0
        self.loss_curve_: list[float] = []

    def _train(self, X: Array, target: Array, epochs: int) -> None:
        trainer = getattr(self, "_trainer", None) or Trainer(self.network_, threads=self.threads, seed=self._seed)
        history = trainer.fit((self._shaped(X), target), epochs=epochs, batch_size=self.batch_size,
                              shuffle=self.shuffle, seed=self._seed, progress=bool(self.verbose))
        self._trainer = trainer
        self.network_ = trainer.to_model()
        self.loss_curve_ = [*self.loss_curve_, *history.get("loss", [])]
        self.n_iter_ += epochs

    def _goes_on(self) -> bool:
        return bool(self.warm_start) and hasattr(self, "network_")

    def _results(self, X: Any) -> Array:
        check_is_fitted(self)
        X = self._samples(X, reset=False)
        name = self._output_of(self.network_).name
        found = self.network_.run([name], {self._input_of(self.network_).name: self._shaped(X)})
        return numpy.asarray(found[name])

    def export(self, path: str | os.PathLike[str], **options: Any) -> None:
        """Writes the trained network as an ONNX file, without its training; options of Model.save."""
        check_is_fitted(self)
        copy.copy(self.network_).strip().save(path, **options)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "network_")

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        state.pop("_trainer", None)  # the network carries what the optimizer knows
        return state


class Classifier(ClassifierMixin, _Estimator):  # type: ignore[misc]
    """An ONNX network that tells classes apart. model is a path, a Model, or None for a perceptron with layers of the
    sizes `hidden`, made for the data. fit begins with the weights of the model and trains for so many epochs;
    partial_fit, and fit with warm_start, go on from where the estimator is.

    The network has a column for each class, or one for two classes with loss "bce" or "bce-logits".
    """

    def __init__(self, model: Any = None, *, loss: str = "cross-entropy", optimizer: str = "adam", lr: float = 1e-3,
                 epochs: int = 10, batch_size: int = 32, hidden: tuple[int, ...] = (100,), output: str | None = None,
                 trainable: str | None = None, weight_decay: float | None = None, shuffle: bool = True,
                 warm_start: bool = False, threads: int = 0, verbose: bool = False, random_state: Any = None) -> None:
        super().__init__(model, loss=loss, optimizer=optimizer, lr=lr, epochs=epochs, batch_size=batch_size,
                         hidden=hidden, output=output, trainable=trainable, weight_decay=weight_decay, shuffle=shuffle,
                         warm_start=warm_start, threads=threads, verbose=verbose, random_state=random_state)

    def _columns(self) -> int | None:
        """How many columns the network of the caller has; None: it does not say, or there is none."""
        if self.model is None:
            return None
        shape = self._output_of(load(self.model)).shape
        if shape is not None and len(shape) == 1:
            return 1
        return shape[1] if shape is not None and isinstance(shape[1], int) else None

    def _classes(self, y: Array) -> Array:
        """The classes by column: numbers of columns where labels can be these, otherwise the labels in their order."""
        found, columns = unique_labels(y), self._columns()
        if columns == 1 and self.loss in ("bce", "bce-logits"):
            columns = 2
        if columns is None or columns == len(found):
            return numpy.asarray(found)
        if found.dtype.kind in "iu" and 0 <= found[0] and found[-1] < columns:
            return numpy.arange(columns, dtype=found.dtype)
        raise _cameo.ArgumentError(f"y has {len(found)} classes, output '{self._output_of(load(self.model)).name}' of "
                                   f"the model has {columns} columns")

    def _target(self, y: Array) -> Array:
        unknown = numpy.setdiff1d(y, self.classes_)
        if len(unknown):
            raise _cameo.ArgumentError(f"y has the label '{unknown[0]}', which is not in classes_")
        columns = numpy.searchsorted(self.classes_, y)
        if self.loss in ("bce", "bce-logits"):
            info = self._output_of(self.network_)
            return columns.astype(info.dtype).reshape(len(y), *[1] * (len(info.shape or (0, 0)) - 1))
        return columns.astype(numpy.int64)

    def _begin_classes(self, X: Array, classes: Array) -> None:
        self.classes_ = classes
        columns = 1 if self.loss in ("bce", "bce-logits") else len(classes)
        self._begin(X, numpy.zeros(columns), numpy.ones(columns))

    def fit(self, X: Any, y: Any) -> Classifier:
        """Trains the network on samples X and labels y of any kind."""
        going_on = self._goes_on()
        X, y = self._samples(X, y, reset=not going_on)
        check_classification_targets(y)
        if not going_on:
            self._begin_classes(X, self._classes(y))
        self._train(X, self._target(y), self.epochs)
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> Classifier:
        """One more epoch, on these samples. The first call needs all classes, unless labels are numbers of columns."""
        begun = hasattr(self, "network_")
        X, y = self._samples(X, y, reset=not begun)
        check_classification_targets(y)
        if not begun:
            if classes is None and self._columns() is None:
                raise ValueError("classes must be passed on the first call to partial_fit.")
            self._begin_classes(X, self._classes(y) if classes is None else unique_labels(classes))
        self._train(X, self._target(y), 1)
        return self

    def predict_proba(self, X: Any) -> Array:
        """The probability of each class, a column each, in the order of classes_."""
        found = self._results(X)
        found = found.reshape(len(found), -1).astype(numpy.float64)
        last = last_operator(self.network_.nodes, self._output_of(self.network_).name)
        if last == "LogSoftmax" or (last not in ("Softmax", "Sigmoid") and self.loss == "nll"):
            found = numpy.exp(found)
        elif last not in ("Softmax", "Sigmoid") and self.loss == "bce-logits":
            found = 0.5 * (1 + numpy.tanh(0.5 * found))
        elif last not in ("Softmax", "Sigmoid") and self.loss != "bce":
            found = numpy.exp(found - found.max(1, keepdims=True))
        if found.shape[1] == 1 and len(self.classes_) == 2:
            return numpy.hstack([1 - found, found])
        return numpy.asarray(found / found.sum(1, keepdims=True))

    def predict(self, X: Any) -> Array:
        """The class of each sample."""
        best = self.predict_proba(X).argmax(1)
        return numpy.asarray(self.classes_[best])


class Regressor(RegressorMixin, _Estimator):  # type: ignore[misc]
    """An ONNX network that predicts numbers, one or several for a sample. Parameters are those of Classifier; losses
    are "mse", "l1" and "huber"."""

    def _target(self, y: Array) -> Array:
        info = self._output_of(self.network_)
        y = y.astype(info.dtype)
        return y.reshape(-1) if info.shape is not None and len(info.shape) == 1 else y.reshape(len(y), -1)

    def fit(self, X: Any, y: Any) -> Regressor:
        """Trains the network on samples X and numbers y."""
        return self._fit(X, y, not self._goes_on(), self.epochs)

    def partial_fit(self, X: Any, y: Any) -> Regressor:
        """One more epoch, on these samples."""
        return self._fit(X, y, not hasattr(self, "network_"), 1)

    def _fit(self, X: Any, y: Any, begin: bool, epochs: int) -> Regressor:
        X, y = self._samples(X, y, reset=begin)
        if begin:
            columns = y.reshape(len(y), -1)
            deviation = columns.std(0)
            self._begin(X, columns.mean(0), numpy.where(deviation > 0, deviation, 1.0))
            self._flat = y.ndim == 1
        self._train(X, self._target(y), epochs)
        return self

    def predict(self, X: Any) -> Array:
        """The numbers for each sample."""
        found = self._results(X)
        return found.reshape(-1) if self._flat and found.size == len(found) else found

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags
