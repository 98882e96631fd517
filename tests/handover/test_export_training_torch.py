# cameo.torch.export_training against PyTorch itself.
# SPDX-License-Identifier: Apache-2.0
"""A network is trained by PyTorch for some steps and exported. The next 8 losses of the file are those of PyTorch."""

import copy
import functools
import os
import tempfile
import unittest
import warnings

import numpy
import torch
from torch import nn
from torch.nn import functional as F
from torch.optim import lr_scheduler

import cameo
import cameo.torch

warnings.filterwarnings("ignore")
torch.set_num_threads(1)
BATCH, CLASSES, BEFORE, STEPS, TOLERANCE = 8, 5, 5, 8, 1e-5


# ---- networks ----


class Mlp(nn.Module):
    def __init__(self, outputs=CLASSES):
        super().__init__()
        self.fc1 = nn.Linear(12, 16)
        self.norm = nn.LayerNorm(16)
        self.fc2 = nn.Linear(16, outputs)

    def forward(self, x):
        return self.fc2(torch.tanh(self.norm(self.fc1(x))))


class Cnn(nn.Module):
    """Convolutions with BatchNorm and Dropout."""

    def __init__(self, dropout=0.0):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 6, 3, padding=1)
        self.bn1 = nn.BatchNorm2d(6)
        self.conv2 = nn.Conv2d(6, 8, 3, stride=2, bias=False)
        self.bn2 = nn.BatchNorm2d(8)
        self.drop = nn.Dropout(dropout)
        self.fc = nn.Linear(8, CLASSES)

    def forward(self, x):
        x = F.relu(self.bn1(self.conv1(x)))
        x = F.relu(self.bn2(self.conv2(x)))
        return self.fc(self.drop(x.mean((2, 3))))


class Tied(nn.Module):
    """A language model whose output layer is the table of its embedding."""

    def __init__(self, words=30, dropout=0.0):
        super().__init__()
        self.embed = nn.Embedding(words, 16)
        self.place = nn.Parameter(torch.randn(10, 16) * 0.1)
        layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=dropout, batch_first=True, activation="gelu")
        self.body = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(16, words, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, tokens):
        hidden = self.body(self.embed(tokens) + self.place[:tokens.shape[1]])
        return self.head(hidden).transpose(1, 2)


class Padded(nn.Module):
    """An average of words; word 0 is padding."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(12, 6, padding_idx=0)
        self.fc = nn.Linear(6, CLASSES)

    def forward(self, tokens):
        return self.fc(self.embed(tokens).mean(1))


class Lstm(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(20, 6)
        self.lstm = nn.LSTM(6, 7, num_layers=2, batch_first=True, bidirectional=True)
        self.fc = nn.Linear(14, CLASSES)

    def forward(self, tokens):
        found, _ = self.lstm(self.embed(tokens))
        return self.fc(found[:, -1])


def floats(*shape):
    return lambda: torch.randn(BATCH, *shape)


def integers(below, *shape):
    return lambda: torch.randint(0, below, (BATCH, *shape))


def decays(net, decay=0.1):
    """No decay for norms and biases."""
    return [{"params": [p for p in net.parameters() if p.dim() > 1], "weight_decay": decay},
            {"params": [p for p in net.parameters() if p.dim() < 2], "weight_decay": 0.0, "lr": 2e-3}]


# ---- comparing ----


class Case:
    """A training: network, what a batch is, loss, optimizer, schedule; more are options of export_training."""

    def __init__(self, make, draw, labels, loss, optimizer, scheduler=None, *, before=BEFORE, clip=None, accumulate=1,
                 prepare=None, tolerance=TOLERANCE, **more):
        self.make, self.draw, self.labels, self.loss, self.optimizer = make, draw, labels, loss, optimizer
        self.scheduler, self.before, self.clip, self.accumulate = scheduler, before, clip, accumulate
        self.prepare, self.tolerance, self.more = prepare, tolerance, more

    def train(self, net, optimizer, scheduler, batches):
        losses = []
        for number, (x, y) in enumerate(batches, 1):
            loss = self.loss(net(x), y)
            losses.append(loss.item())
            (loss / self.accumulate).backward()
            if number % self.accumulate:
                continue
            if self.clip:
                nn.utils.clip_grad_norm_(net.parameters(), self.clip)
            optimizer.step()
            optimizer.zero_grad()
            if scheduler:
                scheduler.step()
        return losses

    def run(self, path=None):
        """The model, the losses of Cameo and of PyTorch."""
        torch.manual_seed(3)
        net = self.make().train()
        if self.prepare:
            self.prepare(net)
        batches = [(self.draw(), self.labels()) for _ in range(self.before + STEPS)]
        optimizer = self.optimizer(net)
        scheduler = self.scheduler(optimizer) if self.scheduler else None
        self.train(net, optimizer, scheduler, batches[:self.before])
        model = cameo.torch.export_training(net, self.draw(), self.loss, optimizer, scheduler, path, clip_norm=self.clip,
                                            accumulate=self.accumulate, **self.more)
        self.left = left = batches[self.before:]
        own = self.train(net, optimizer, scheduler, left)
        trainer = cameo.Trainer(copy.copy(model), threads=1)
        got = [trainer.step({model.inputs[0].name: x.numpy(), "target": y.numpy()}) for x, y in left]
        return model, got, own


CLASS = integers(CLASSES)
CE = nn.CrossEntropyLoss()


def adam(net):
    return torch.optim.Adam(net.parameters(), lr=3e-3)


def mlp(loss=CE, optimizer=adam, scheduler=None, labels=CLASS, make=Mlp, **more):
    return Case(make, floats(12), labels, loss, optimizer, scheduler, **more)


def optimizer(name, **settings):
    return lambda net: getattr(torch.optim, name)(net.parameters(), **settings)


def one_output():
    return Mlp(1)


def probabilities():
    return nn.Sequential(Mlp(3), nn.Sigmoid())


def logarithms():
    return nn.Sequential(Mlp(), nn.LogSoftmax(-1))


def ends_with_softmax():
    return nn.Sequential(Mlp(), nn.Softmax(-1))


def freeze_first(net):
    net.fc1.requires_grad_(False)


def freeze_norm(net):
    net.bn1.eval()


def some_ignored(without=-100):
    def draw():
        y = torch.randint(0, CLASSES, (BATCH,))
        y[::3] = without
        return y
    return draw


def weighted(x, y):
    """A loss of one's own."""
    return ((x - y) ** 2 * torch.exp(-y.abs())).sum(1).mean()


SGD = optimizer("SGD", lr=0.05)
CASES = {
    # networks
    "mlp_adam": mlp(),
    "cnn_sgd_nesterov": Case(Cnn, floats(3, 9, 9), CLASS, CE, optimizer("SGD", lr=0.02, momentum=0.9, nesterov=True)),
    "tied_transformer_adamw": Case(Tied, integers(30, 6), integers(30, 6), CE, lambda net: torch.optim.AdamW(decays(net), lr=2e-3),
                                   lambda o: lr_scheduler.CosineAnnealingLR(o, 30, 1e-5), clip=0.5),
    "lstm_adam": Case(Lstm, integers(20, 7), CLASS, CE, adam, clip=1.0),
    "padding": Case(Padded, integers(3, 4), CLASS, CE, optimizer("SGD", lr=0.5)),
    # optimizers
    "sgd": mlp(optimizer=SGD),
    "sgd_momentum": mlp(optimizer=optimizer("SGD", lr=0.02, momentum=0.9, weight_decay=0.01)),
    "sgd_dampening": mlp(optimizer=optimizer("SGD", lr=0.02, momentum=0.9, dampening=0.3)),
    "adam_amsgrad": mlp(optimizer=optimizer("Adam", lr=3e-3, amsgrad=True, weight_decay=0.02)),
    "adamw_amsgrad": mlp(optimizer=optimizer("AdamW", lr=3e-3, amsgrad=True, betas=(0.8, 0.95))),
    "adam_maximize": mlp(optimizer=optimizer("Adam", lr=1e-4, maximize=True)),
    "groups": mlp(optimizer=lambda net: torch.optim.AdamW(decays(net), lr=3e-3)),
    "adagrad": mlp(optimizer=optimizer("Adagrad", lr=0.02)),
    "rmsprop": mlp(optimizer=optimizer("RMSprop", lr=1e-3, momentum=0.5)),
    "adamax": mlp(optimizer=optimizer("Adamax", lr=3e-3)),
    "nadam": mlp(optimizer=optimizer("NAdam", lr=3e-3)),
    "radam": mlp(optimizer=optimizer("RAdam", lr=3e-3)),
    "adadelta": mlp(optimizer=optimizer("Adadelta", lr=1.0)),
    "adafactor": mlp(optimizer=optimizer("Adafactor", lr=0.02)),
    "asgd": mlp(optimizer=optimizer("ASGD", lr=0.05)),
    "named_parameters": mlp(optimizer=lambda net: torch.optim.AdamW(net.named_parameters(), lr=3e-3)),
    "fresh": mlp(before=0),
    "fresh_momentum": mlp(before=0, optimizer=optimizer("SGD", lr=0.02, momentum=0.9)),
    "frozen": mlp(prepare=freeze_first),
    "not_in_the_optimizer": mlp(optimizer=lambda net: torch.optim.Adam(net.fc2.parameters(), lr=3e-3)),
    "frozen_norm": Case(Cnn, floats(3, 9, 9), CLASS, CE, SGD, prepare=freeze_norm),
    "accumulated": mlp(accumulate=2, before=6, clip=0.3),
    # schedules
    "step": mlp(scheduler=lambda o: lr_scheduler.StepLR(o, 3, 0.5)),
    "multi_step": mlp(scheduler=lambda o: lr_scheduler.MultiStepLR(o, [2, 7, 9], 0.3)),
    "exponential": mlp(scheduler=lambda o: lr_scheduler.ExponentialLR(o, 0.9)),
    "linear": mlp(scheduler=lambda o: lr_scheduler.LinearLR(o, 0.1, 1.0, 9)),
    "restarts": mlp(scheduler=lambda o: lr_scheduler.CosineAnnealingWarmRestarts(o, 4, 2)),
    "one_cycle": mlp(scheduler=lambda o: lr_scheduler.OneCycleLR(o, 0.01, total_steps=20, cycle_momentum=False)),
    "warmup_cosine": mlp(optimizer=lambda net: torch.optim.AdamW(decays(net), lr=3e-3), clip=0.2, scheduler=lambda o:
                         lr_scheduler.SequentialLR(o, [lr_scheduler.LinearLR(o, 0.1, 1.0, 7),
                                                       lr_scheduler.CosineAnnealingLR(o, 20)], [7])),
    "chained": mlp(scheduler=lambda o: lr_scheduler.ChainedScheduler([lr_scheduler.ConstantLR(o, 0.1, 7),
                                                                      lr_scheduler.ExponentialLR(o, 0.9)])),
    "lambda": mlp(scheduler=lambda o: lr_scheduler.LambdaLR(o, lambda t: 1 / (1 + t) ** 0.5), updates=10),
    "lambda_groups": mlp(optimizer=lambda net: torch.optim.AdamW(decays(net), lr=3e-3), updates=STEPS,
                         scheduler=lambda o: lr_scheduler.LambdaLR(o, [lambda t: 1 / (1 + t), lambda t: 0.9 ** t])),
    "cyclic": mlp(scheduler=lambda o: lr_scheduler.CyclicLR(o, 1e-4, 1e-2, 3, cycle_momentum=False), updates=STEPS),
    "fresh_schedule": mlp(before=0, scheduler=lambda o: lr_scheduler.LinearLR(o, 0.1, 1.0, 6)),
    # losses
    "label_smoothing": mlp(nn.CrossEntropyLoss(label_smoothing=0.1)),
    "class_weights": mlp(nn.CrossEntropyLoss(torch.tensor([0.5, 1, 2, 1, 3]))),
    "weights_and_smoothing": mlp(nn.CrossEntropyLoss(torch.tensor([0.5, 1, 2, 1, 3]), label_smoothing=0.2)),
    "ignored": mlp(CE, labels=some_ignored()),
    "ignore_index": mlp(nn.CrossEntropyLoss(ignore_index=2)),
    "sum": mlp(nn.CrossEntropyLoss(reduction="sum"), optimizer("SGD", lr=1e-3)),
    "function": mlp(F.cross_entropy),
    "partial": mlp(functools.partial(F.cross_entropy, label_smoothing=0.1)),
    "soft_labels": mlp(CE, labels=lambda: torch.softmax(torch.randn(BATCH, CLASSES), 1), example_target=torch.rand(BATCH, CLASSES)),
    "twice_softmax": mlp(CE, make=ends_with_softmax),
    "nll": mlp(nn.NLLLoss(), make=logarithms),
    "nll_weights": mlp(nn.NLLLoss(torch.tensor([0.5, 1, 2, 1, 3])), make=logarithms),
    "mse": mlp(nn.MSELoss(), labels=floats(CLASSES)),
    "l1": mlp(nn.L1Loss(), labels=floats(CLASSES)),
    "huber": mlp(nn.HuberLoss(), labels=floats(CLASSES)),
    "huber_delta": mlp(nn.HuberLoss(delta=0.3), labels=floats(CLASSES)),
    "smooth_l1": mlp(nn.SmoothL1Loss(), labels=floats(CLASSES)),
    "smooth_l1_beta": mlp(nn.SmoothL1Loss(beta=0.4), labels=floats(CLASSES)),
    "bce": mlp(nn.BCELoss(), make=probabilities, labels=lambda: torch.randint(0, 2, (BATCH, 3)).float()),
    "bce_logits": mlp(nn.BCEWithLogitsLoss(), make=one_output, labels=lambda: torch.randint(0, 2, (BATCH, 1)).float()),
    "pos_weight": mlp(nn.BCEWithLogitsLoss(pos_weight=torch.tensor([1.0, 2, 3, 0.5, 1])), labels=lambda: torch.rand(BATCH, CLASSES)),
    "kl_div": mlp(nn.KLDivLoss(), make=logarithms, labels=lambda: torch.softmax(torch.randn(BATCH, CLASSES), 1)),
    "kl_div_batchmean": mlp(nn.KLDivLoss(reduction="batchmean"), make=logarithms,
                            labels=lambda: torch.softmax(torch.randn(BATCH, CLASSES), 1)),
    "poisson": mlp(nn.PoissonNLLLoss(), labels=lambda: torch.rand(BATCH, CLASSES) * 3, example_target=torch.rand(BATCH, CLASSES)),
    "own": mlp(weighted, labels=floats(CLASSES), example_target=torch.rand(BATCH, CLASSES)),
}


class Losses(unittest.TestCase):
    """The next losses, one test for each case."""


def add_case(name, case):
    def test(self):
        _, got, own = case.run()
        worst = max(abs(a - b) / max(abs(b), 1e-3) for a, b in zip(got, own))
        self.assertLessEqual(worst, case.tolerance, f"{got} instead of {own}")
    setattr(Losses, f"test_{name}", test)


for name_, case_ in CASES.items():
    add_case(name_, case_)


# ---- more than losses ----


class Counted(nn.Module):
    """Several inputs and outputs, one of each that the loss has nothing to do with."""

    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(6, 8)
        self.fc2 = nn.Linear(8, CLASSES)

    def forward(self, x, mask, scale=None):
        hidden = torch.relu(self.fc1(x)) * mask
        return {"hidden": hidden, "scores": self.fc2(hidden)}


def simple(loss=CE, scheduler=None, make=Mlp, optimizer=adam, **more):
    """Exports a training of a small network."""
    torch.manual_seed(1)
    net = make()
    made = optimizer(net)
    return cameo.torch.export_training(net, torch.randn(4, 12), loss, made, scheduler(made) if scheduler else None, **more)


class Files(unittest.TestCase):
    def test_a_file_is_trained_and_its_step_runs_elsewhere(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "net.onnx")
            _, got, own = mlp(optimizer=optimizer("AdamW", lr=3e-3)).run(path)
            numpy.testing.assert_allclose(got, own, TOLERANCE)
            model = cameo.load(path)
            self.assertEqual(len(model.training), 1)
            self.assertEqual(model.check(), [])
            self.assertEqual(os.listdir(folder), ["net.onnx"])

    def test_the_portable_step_is_run_by_the_reference_of_onnx(self):
        import onnx.reference
        case = Case(Cnn, floats(3, 9, 9), CLASS, CE, optimizer("SGD", lr=0.02, momentum=0.9))
        model, _, own = case.run()
        step = model.step(portable=True)
        run = onnx.reference.ReferenceEvaluator(step.to_onnx())
        outputs = [info.name for info in step.outputs]
        state = dict(cameo.Trainer(model).variables)
        losses = []
        for x, y in case.left:
            made = dict(zip(outputs, run.run(None, {**state, "x": x.numpy(), "target": y.numpy()})))
            losses.append(float(made["loss"]))
            state.update({name[:-5]: value for name, value in made.items() if name.endswith(".next")})
        numpy.testing.assert_allclose(losses, own, TOLERANCE)

    def test_the_model_needs_no_file_that_is_gone(self):
        model = simple()
        again = cameo.load(model.to_bytes())
        self.assertEqual(len(again.training), 1)
        self.assertGreater(len(model.report.tensors), 0)
        self.assertIn("fc1.weight", model.report.preparation.trained)

    def test_the_batch_is_open(self):
        model = simple()
        self.assertEqual(model.run(None, {"x": numpy.zeros((9, 12), numpy.float32)})[model.outputs[0].name].shape, (9, CLASSES))
        one = cameo.torch.export_training(net := Mlp(), torch.randn(1, 12), CE, adam(net))
        self.assertEqual(one.run(None, {"x": numpy.zeros((3, 12), numpy.float32)})[one.outputs[0].name].shape, (3, CLASSES))


class Networks(unittest.TestCase):
    def test_the_network_stays_as_it_is(self):
        net = Cnn(0.3)
        net.bn2.eval()
        before = {name: value.clone() for name, value in net.state_dict().items()}
        modes = [part.training for part in net.modules()]
        cameo.torch.export_training(net, torch.randn(4, 3, 9, 9), CE, adam(net))
        self.assertEqual([part.training for part in net.modules()], modes)
        self.assertNotIn("forward", vars(net.bn2))
        for name, value in net.state_dict().items():
            self.assertTrue(torch.equal(value, before[name]), name)

    def test_several_inputs_and_outputs(self):
        torch.manual_seed(0)
        net = Counted()
        made = adam(net)
        batches = [(torch.randn(BATCH, 6), torch.rand(BATCH, 8), CLASS()) for _ in range(4)]
        model = cameo.torch.export_training(net, {"mask": batches[0][1], "x": batches[0][0]}, F.cross_entropy, made,
                                            output_names=["hidden", "scores"], output="scores", target="labels")
        trainer = cameo.Trainer(model, threads=1)
        for x, mask, y in batches:
            made.zero_grad()
            loss = CE(net(x, mask)["scores"], y)
            loss.backward()
            made.step()
            self.assertAlmostEqual(trainer.step(x=x.numpy(), mask=mask.numpy(), labels=y.numpy()), loss.item(), 5)

    def test_a_network_that_computes_its_loss(self):
        class Own(Mlp):
            def forward(self, x, labels):
                scores = super().forward(x)
                return {"loss": F.cross_entropy(scores, labels), "scores": scores}

        torch.manual_seed(0)
        net = Own()
        made = adam(net)
        batches = [(torch.randn(BATCH, 12), CLASS()) for _ in range(4)]
        model = cameo.torch.export_training(net, batches[0], "output:loss", made, output_names=["loss", "scores"])
        trainer = cameo.Trainer(model, threads=1)
        for x, y in batches:
            made.zero_grad()
            loss = net(x, y)["loss"]
            loss.backward()
            made.step()
            self.assertAlmostEqual(trainer.step(x=x.numpy(), labels=y.numpy()), loss.item(), 5)

    def test_dropout_trains_otherwise(self):
        def losses(dropout, seed=0):
            case = Case(functools.partial(Cnn, dropout), floats(3, 9, 9), CLASS, CE, SGD)
            torch.manual_seed(5)
            net = Cnn(dropout).train()
            model = cameo.torch.export_training(net, case.draw(), CE, SGD(net))
            self.assertEqual(model.operators.get("Dropout", 0) > 0, dropout > 0)
            trainer = cameo.Trainer(model, threads=1, seed=seed)
            torch.manual_seed(6)
            x, y = case.draw().numpy(), case.labels().numpy()
            return [trainer.step(x=x, target=y) for _ in range(4)], model.run(None, {"x": x})[model.outputs[0].name]

        plain, results = losses(0.0)
        some, others = losses(0.5)
        self.assertNotAlmostEqual(plain[0], some[0], 4)
        self.assertNotEqual(some, losses(0.5, seed=1)[0])
        self.assertEqual(some, losses(0.5)[0])
        numpy.testing.assert_allclose(results, others, 1e-5)  # in evaluation there is none

    def test_every_dropout_is_there(self):
        class Encoder(nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.25, batch_first=True)
                self.lstm = nn.LSTM(8, 5, num_layers=2, dropout=0.5, batch_first=True)
                self.fc = nn.Linear(5, CLASSES)

            def forward(self, x):
                return self.fc(F.dropout(self.lstm(self.layer(x))[0][:, -1], 0.125, self.training))

        net = Encoder()
        model = cameo.torch.export_training(net, torch.randn(4, 6, 8), CE, adam(net))
        # Of attention, in the feed-forward part, after each of the two; between the layers of the LSTM; the last.
        self.assertEqual(sum(node.op_type == "Dropout" for node in model.nodes), 6)

    def test_tied_weights_are_one(self):
        net = Tied()
        model = cameo.torch.export_training(net, torch.randint(0, 30, (4, 6)), CE, adam(net))
        trained = model.report.preparation.trained
        self.assertEqual(len({"embed.weight", "head.weight"} & set(trained)), 1)
        self.assertEqual(len(trained), len(list(net.parameters())))

    def test_frozen_parameters_do_not_move(self):
        net = Mlp()
        net.fc1.requires_grad_(False)
        made = adam(net)
        model = cameo.torch.export_training(net, torch.randn(4, 12), CE, made)
        self.assertEqual(set(model.report.preparation.trained), {"norm.weight", "norm.bias", "fc2.weight", "fc2.bias"})

    def test_compiled_and_distributed_wrappers(self):
        net = Mlp()
        made = adam(net)
        model = cameo.torch.export_training(torch.compile(net), torch.randn(4, 12), CE, made)
        self.assertIn("fc1.weight", model.report.preparation.trained)


class Warmups(unittest.TestCase):
    """Schedules of transformers."""

    def check(self, name, **more):
        import transformers
        try:
            case = mlp(scheduler=lambda o: transformers.get_scheduler(name, o, num_warmup_steps=7, num_training_steps=20, **more))
        except ImportError:
            self.skipTest("transformers is not installed")
        _, got, own = case.run()
        numpy.testing.assert_allclose(got, own, TOLERANCE)

    def test_linear(self):
        self.check("linear")

    def test_cosine(self):
        self.check("cosine")

    def test_cosine_with_restarts(self):
        self.check("cosine_with_restarts", scheduler_specific_kwargs={"num_cycles": 3})

    def test_polynomial(self):
        self.check("polynomial", scheduler_specific_kwargs={"power": 2.0})

    def test_inverse_sqrt(self):
        self.check("inverse_sqrt")

    def test_constant_with_warmup(self):
        self.check("constant_with_warmup")


class Refusals(unittest.TestCase):
    def refused(self, sentence, **more):
        with self.assertRaisesRegex(cameo.Error, sentence):
            simple(**more)

    def test_all_reasons_at_once(self):
        class Mine(torch.optim.Adam):
            pass

        class Net(Mlp):
            def __init__(self):
                super().__init__()
                self.bn = nn.BatchNorm1d(3, momentum=None)

        stranger = nn.Linear(2, 3)
        self.refused(r"for 4 reasons:\n.*Mine.*is not one of torch.optim(.|\n)*momentum=None(.|\n)*LambdaLR(.|\n)*updates="
                     r"(.|\n)*2 parameters that the network has not", make=Net,
                     optimizer=lambda net: Mine([*net.parameters(), *stranger.parameters()]),
                     scheduler=lambda o: lr_scheduler.LambdaLR(o, lambda t: 0.5))

    def test_schedules_that_follow_a_value(self):
        self.refused("ReduceLROnPlateau follows a measured value", scheduler=lr_scheduler.ReduceLROnPlateau)

    def test_momentum_that_moves(self):
        self.refused("cycle_momentum", scheduler=lambda o: lr_scheduler.OneCycleLR(o, 0.1, total_steps=10))

    def test_optimizers_that_the_library_has_not(self):
        self.refused("Rprop", optimizer=optimizer("Rprop"))

    def test_losses_that_nobody_knows_need_an_example(self):
        self.refused("example_target", loss=weighted)
        self.refused("loss is a int", loss=3)
        self.refused("no loss 'mean'|'mean'", loss="mean")

    def test_a_loss_that_the_exporter_writes_wrong(self):
        def each(x, y):
            return F.nll_loss(torch.log_softmax(x, 1), y, reduction="none").sum() / 4

        self.refused("a loss each that computes something else", loss=each, example_target=torch.zeros(4, dtype=torch.int64))

    def test_what_the_exporter_does_not_take(self):
        class Net(Mlp):
            def forward(self, x):
                return super().forward(x) if x.sum() > 0 else x[:, :5]

        self.refused("PyTorch's exporter does not take the network Net", make=Net)

    def test_parameters_that_the_network_does_not_use(self):
        class Net(Mlp):
            def __init__(self):
                super().__init__()
                self.other = nn.Linear(3, 4)

        self.refused("other", make=Net)
        self.assertEqual(len(simple(make=Net, partial=True).training), 1)

    def test_arguments(self):
        net = Mlp()
        with self.assertRaisesRegex(cameo.ArgumentError, "module is a int"):
            cameo.torch.export_training(3, torch.randn(4, 12), CE, adam(net))
        with self.assertRaisesRegex(cameo.ArgumentError, "optimizer is a str"):
            cameo.torch.export_training(net, torch.randn(4, 12), CE, "adam")


if __name__ == "__main__":
    unittest.main()
