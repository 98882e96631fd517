"""PyTorch: exports a network by both exporters, checks it, trains it beside PyTorch's own loop."""
# SPDX-License-Identifier: Apache-2.0
import copy
import inspect
import os
import warnings

import torch

import common

warnings.filterwarnings("ignore")
torch.set_num_threads(1)
EXPORTERS = {"torch-dynamo": True, "torch-script": False}
OPTIMIZERS = {
    "sgd": ({"lr": 0.05}, lambda p: torch.optim.SGD(p, lr=0.05)),
    "sgd_slow": ({"lr": 0.001}, lambda p: torch.optim.SGD(p, lr=0.001)),  # for networks that others make diverge
    "momentum": ({"lr": 0.02, "momentum": 0.9}, lambda p: torch.optim.SGD(p, lr=0.02, momentum=0.9)),
    "nesterov": ({"lr": 0.02, "momentum": 0.9}, lambda p: torch.optim.SGD(p, lr=0.02, momentum=0.9, nesterov=True)),
    "adam": ({"lr": 0.003}, lambda p: torch.optim.Adam(p, lr=0.003)),
    "adamw": ({"lr": 0.003, "weight_decay": 0.05}, lambda p: torch.optim.AdamW(p, lr=0.003, weight_decay=0.05)),
    "rmsprop": ({"lr": 0.002}, lambda p: torch.optim.RMSprop(p, lr=0.002)),
    "adagrad": ({"lr": 0.01}, lambda p: torch.optim.Adagrad(p, lr=0.01)),
}
LOSSES = {"mse": torch.nn.functional.mse_loss, "cross-entropy": torch.nn.functional.cross_entropy,
          "l1": torch.nn.functional.l1_loss, "huber": torch.nn.functional.huber_loss,
          "bce-logits": torch.nn.functional.binary_cross_entropy_with_logits}


class Network:
    """A row of the table. build() and draw() use torch's generator, which is seeded; draw() gives one batch of inputs.

    loss, optimizer: None where the model is not a network that is trained. train_mode: it has layers that behave
    differently in training. optimize: False where the newer exporter's optimizer would fold parameters or untie them
    (it would fold batch normalization, too). dynamic: {input index: {axis: name}}; by: exporters,
    both if not said; opset: asked for.
    """

    def __init__(self, name, build, draw, loss=None, optimizer="adam", *, train_mode=False, dynamic=None, opset=None,
                 tolerance=1.0, train_tolerance=1.0, by=tuple(EXPORTERS), script=False, optimize=True):
        self.name, self.build, self.draw, self.loss, self.optimizer = name, build, draw, loss, optimizer
        self.train_mode, self.dynamic, self.opset, self.by, self.script = train_mode, dynamic, opset, by, script
        self.tolerance, self.train_tolerance, self.optimize = tolerance, train_tolerance, optimize and not train_mode

    def rows(self):
        return [common.Row(converter, self.name, lambda folder,
                           c=converter: self.run(c, folder)) for converter in self.by]

    def make(self):
        torch.manual_seed(0)
        model = self.build()
        # Exporters merge or leave out what is equal: biases of zeros, scales of ones, layers copied from one another. No
        # parameter stays as it was made.
        with torch.no_grad():
            for parameter in model.parameters():
                if parameter.is_floating_point():
                    parameter.add_(0.05 * torch.randn(parameter.shape))
        return model

    def export(self, model, arguments, path, dynamo, for_training):
        names = [f"x{i}" for i in range(len(arguments))]
        options = {"input_names": names, "dynamo": dynamo}
        if self.opset:
            options["opset_version"] = self.opset
        if self.dynamic and not for_training:
            axes = [self.dynamic.get(i) for i in range(len(arguments))]
            if dynamo:
                shapes = tuple({axis: torch.export.Dim(name) for axis, name in (a or {}).items()} for a in axes)
                many = any(p.kind == p.VAR_POSITIONAL for p in inspect.signature(model.forward).parameters.values())
                options["dynamic_shapes"] = (shapes,) if many else shapes
            else:
                options["dynamic_axes"] = {name: a for name, a in zip(names, axes) if a}
        if dynamo:
            options["verbose"] = False
            if for_training:
                options["optimize"] = self.optimize
        elif for_training:
            options.update(training=torch.onnx.TrainingMode.TRAINING if self.train_mode else
                           torch.onnx.TrainingMode.PRESERVE, do_constant_folding=False)
        subject = torch.jit.script(model) if self.script and not dynamo else model
        common.convert(torch.onnx.export, subject, arguments, path, **options)

    def run(self, converter, folder):
        dynamo = EXPORTERS[converter]
        model = self.make().eval()
        torch.manual_seed(1)
        arguments = self.draw()
        path = os.path.join(folder, "model.onnx")
        self.export(copy.deepcopy(model), arguments, path, dynamo, False)
        if self.dynamic:  # another size than the one it was exported with
            torch.manual_seed(2)
            arguments = self.draw(more=1)
        with torch.no_grad():
            own = model(*arguments)
        own = common.flat(own)
        arrays = [a.numpy() for a in arguments]
        result = common.check(path, common.feeds_for(path, arrays), own, self.tolerance)
        if self.loss:
            result.update(self.train(model, dynamo, folder))
        return result

    def batches(self, model):
        torch.manual_seed(3)
        for _ in range(common.STEPS):
            arguments = self.draw()
            with torch.no_grad():
                out = copy.deepcopy(model)(*arguments)
            out = out[0] if isinstance(out, (tuple, list)) else out
            if self.loss == "cross-entropy":
                target = torch.randint(0, out.shape[1], (out.shape[0], *out.shape[2:]))
            elif self.loss.startswith("bce"):
                target = torch.randint(0, 2, out.shape).float()
            else:
                target = torch.randn(out.shape)
            yield arguments, target

    def train(self, model, dynamo, folder):
        batches = list(self.batches(model))
        path = os.path.join(folder, "model.onnx")
        model.train(self.train_mode)
        if not dynamo or not self.optimize:  # folding is left out; otherwise the file as it is can be trained
            path = os.path.join(folder, "training.onnx")
            self.export(copy.deepcopy(model).train(self.train_mode and not dynamo), batches[0][0], path, dynamo, True)
        own = copy.deepcopy(model)
        options, make = OPTIMIZERS[self.optimizer]

        def framework():
            before = {name: p.detach().numpy().copy() for name, p in own.named_parameters() if p.requires_grad}
            optimizer, losses = make([p for p in own.parameters() if p.requires_grad]), []
            for arguments, target in batches:
                out = own(*arguments)
                loss = LOSSES[self.loss](out[0] if isinstance(out, (tuple, list)) else out, target)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                losses.append(loss.item())
            return losses, before, {name: p.detach().numpy() for name, p in own.named_parameters()}

        losses = framework()
        evaluate = None
        if not self.train_mode:  # running statistics are told apart by their own rows
            with torch.no_grad():
                out = own(*batches[0][0])
            evaluate = [a.numpy() for a in batches[0][0]], (out[0] if isinstance(out, (tuple, list)) else out).numpy()
        return common.train(path, [([a.numpy() for a in arguments], target.numpy()) for arguments, target in batches],
                            lambda: losses, loss=self.loss, optimizer=self.optimizer.split("_")[0],
                            options=options, folder=folder, tolerance=self.train_tolerance, evaluate=evaluate)


def versions():
    import onnxscript
    return {"torch": torch.__version__.split("+")[0], "onnxscript": onnxscript.__version__}


def integers(low, high, *shape):
    return torch.randint(low, high, shape)


def floats(*shape):
    return torch.randn(shape)

