# Training information written by hand.
# SPDX-License-Identifier: Apache-2.0
"""Algorithms with Gradient, the optimizers of ai.onnx.preview.training, control flow, several entries, initialization.

The formulas of the optimizers are those of ONNX's operators, which differ from PyTorch's; gradients are PyTorch's.
"""

import torch

from .networks import real

HEADER = '<ir_version: 8, opset_import: ["" : 17, "ai.onnx.preview.training" : 1]>\n'
GRADIENT = "ai.onnx.preview.training.Gradient"
LINE = f"{HEADER}line (float[4,5] x) => (float[4,3] y) {{\n y = Gemm <transB = 1> (x, w, b)\n}}"
WEIGHTS = {"w": real(3, 5), "b": real(3)}
SQUARES = " d = Sub(y, target)\n q = Mul(d, d)\n loss = ReduceMean <keepdims = 0> (q)\n"
RATE = 0.2
INPUTS = {"x": ["float", [4, 5], -1, 1], "target": ["float", [4, 3], -2, 2], "v": ["float", [3], -1, 1],
          "goal": ["float", [3], -1, 1],
          "sign": ["float", [], [1], [-1], [1], [1], [-1], [1], [-1]]}
STEPS = 6


def scalar(kind, name, value):
    return f"{kind} {name} = {{{value}}}"


def algorithm(nodes, outputs, initializers=(), inputs="float[4,3] target"):
    head = f" <{', '.join(initializers)}>" if initializers else ""
    return f"training ({inputs}) => ({outputs}){head} {{\n{nodes}}}"


def mse(y, target):
    return ((y - target) ** 2).mean()


def predict(w, batch):
    return batch["x"] @ w["w"].T + w["b"]


def measure(w, batch):
    return mse(predict(w, batch), batch["target"])


def gradients(loss, w, names):
    return dict(zip(names, torch.autograd.grad(loss, [w[name] for name in names])))


def trained(names, update, loss=measure, start=None):
    """compute for a training whose update(weights, gradients, state, t, rate factor) changes the weights; start(weights)
    is the initialization."""
    def compute(weights, batches, last, wrong):
        if start:
            start(weights)
        state, losses = {}, []
        for t, batch in enumerate(batches):
            for name in names:
                weights[name] = weights[name].detach().requires_grad_()
            value = loss(weights, batch)
            found = gradients(value, weights, names)
            losses.append(value.item())
            with torch.no_grad():
                update(weights, found, state, t, wrong)
        with torch.no_grad():
            evaluated = loss(weights, last).item()
        return losses, evaluated, {name: value.detach() for name, value in weights.items()}
    return compute


def sgd(w, g, state, t, wrong):
    for name, slope in g.items():
        w[name] = w[name] - RATE * wrong * slope


def decaying(w, g, state, t, wrong):
    for name, slope in g.items():
        w[name] = w[name] - RATE * wrong / (1 + t) * slope


def momentum(alpha, beta, norm, nesterov):
    """ONNX's Momentum. T is the number of updates before."""
    def update(w, g, state, t, wrong):
        for name in g:
            slope = norm * w[name] + g[name]
            v = alpha * state.get(name, torch.zeros_like(slope)) + (beta if t > 0 else 1.0) * slope
            state[name] = v
            w[name] = w[name] - RATE * wrong * (slope + alpha * v if nesterov else v)
    return update


def adagrad(decay, epsilon, norm):
    """ONNX's Adagrad."""
    def update(w, g, state, t, wrong):
        for name in g:
            slope = norm * w[name] + g[name]
            state[name] = state.get(name, torch.zeros_like(slope)) + slope * slope
            w[name] = w[name] - RATE * wrong / (1 + t * decay) * slope / (torch.sqrt(state[name]) + epsilon)
    return update


def adam(alpha, beta, epsilon, norm, norm_post):
    """ONNX's Adam: the rate is corrected for T above 0."""
    def update(w, g, state, t, wrong):
        rate = RATE / 10 * wrong * (((1 - beta**t) ** 0.5) / (1 - alpha**t) if t > 0 else 1)
        for name in g:
            slope = norm * w[name] + g[name]
            v, h = state.get(name, (torch.zeros_like(slope),) * 2)
            v, h = alpha * v + (1 - alpha) * slope, beta * h + (1 - beta) * slope * slope
            state[name] = v, h
            w[name] = (1 - norm_post) * (w[name] - rate * v / (torch.sqrt(h) + epsilon))
    return update


def operator_case(name, operator, attributes, slots, update, rate=RATE):
    """w and b, moved by one node of an operator that counts its own updates in t."""
    state = [f"{weight}_{slot}" for slot in slots for weight in ("w", "b")]
    node = (f" w_new, b_new, {', '.join(one + '_new' for one in state)} = ai.onnx.preview.training.{operator} "
            f"<{attributes}> (rate, t, w, b, gw, gb, {', '.join(state)})\n")
    nodes = SQUARES + (f' gw, gb = {GRADIENT} <xs = ["w", "b"], y = "loss"> (w, b)\n' + node + " t_new = Add(t, one)\n")
    outputs = ["float loss", "float[3,5] w_new", "float[3] b_new", "int64 t_new"]
    initializers = [scalar("float", "rate", rate), scalar("int64", "t", 0), scalar("int64", "one", 1)]
    for one in state:
        shape, zeros = ("[3,5]", 15) if one[0] == "w" else ("[3]", 3)
        outputs.append(f"float{shape} {one}_new")
        initializers.append(f"float{shape} {one} = {{{', '.join(['0'] * zeros)}}}")
    bound = {one: one + "_new" for one in ["w", "b", "t", *state]}
    entry = {"algorithm": algorithm(nodes, ", ".join(outputs), initializers), "update_binding": bound}
    return case(name, [entry], trained(("w", "b"), update))


MODELS = {}


def case(name, entries, compute, text=LINE, weights=None, feeds=("x", "target"), **more):
    MODELS[name] = {"text": text, "weights": weights or WEIGHTS, "training": entries}
    return {"name": name, "model": name, "feeds": list(feeds), "steps": STEPS, **more}, compute


STEP = (f' gw, gb = {GRADIENT} <xs = ["w", "b"], y = "loss"> (w, b)\n'
        " mw = Mul(rate, gw)\n mb = Mul(rate, gb)\n w_new = Sub(w, mw)\n b_new = Sub(b, mb)\n")
MOVED = "float loss, float[3,5] w_new, float[3] b_new"
BOUND = {"w": "w_new", "b": "b_new"}
RATES = [scalar("float", "rate", RATE)]


def plain():
    return case("gradient_sgd", [{"algorithm": algorithm(SQUARES + STEP, MOVED, RATES), "update_binding": BOUND}],
                trained(("w", "b"), sgd))


def counter():
    nodes = SQUARES + STEP.replace("rate", "now") + " t_new = Add(t, one)\n"
    nodes = " now = Div(rate, t)\n" + nodes
    initializers = [*RATES, scalar("float", "t", 1), scalar("float", "one", 1)]
    text = algorithm(nodes, MOVED + ", float t_new", initializers)
    return case("rate_of_a_counter", [{"algorithm": text, "update_binding": {**BOUND, "t": "t_new"}}],
                trained(("w", "b"), decaying))


def if_in_loss():
    """The sign of an input decides between two losses."""
    nodes = (" zero = Constant <value = float {0}> ()\n up = Greater(sign, zero)\n d = Sub(y, target)\n"
             " loss = If (up) <then_branch = squares () => (float p) {\n  q = Mul(d, d)\n"
             "  p = ReduceMean <keepdims = 0> (q)\n }, else_branch = sizes () => (float r) {\n  a = Abs(d)\n"
             "  r = ReduceMean <keepdims = 0> (a)\n }>\n")
    text = algorithm(nodes + STEP, MOVED, RATES, "float[4,3] target, float sign")

    def loss(w, batch):
        d = predict(w, batch) - batch["target"]
        return (d * d if batch["sign"] > 0 else d.abs()).mean()
    return case("if_in_loss", [{"algorithm": text, "update_binding": BOUND}], trained(("w", "b"), sgd, loss),
                feeds=("x", "target", "sign"))


RECURRENT = f"{HEADER}point (float[3] v) => (float[3] y) {{\n y = MatMul(w, v)\n}}"
POINT = {"w": real(3, 3, scale=1), "b": real(3)}


def loop_in_loss():
    """Three turns of h = tanh(w h + b), then the distance from a goal."""
    nodes = (" turns = Constant <value = int64 {3}> ()\n go = Constant <value = bool {1}> ()\n"
             " h = Loop (turns, go, v) <body = turn (int64 i, bool on, float[3] a) => (bool more, float[3] n) {\n"
             "  more = Identity(on)\n  p = MatMul(w, a)\n  s = Add(p, b)\n  n = Tanh(s)\n }>\n"
             " d = Sub(h, goal)\n q = Mul(d, d)\n loss = ReduceMean <keepdims = 0> (q)\n")
    text = algorithm(nodes + STEP, "float loss, float[3,3] w_new, float[3] b_new", RATES, "float[3] goal")

    def loss(w, batch):
        h = batch["v"]
        for _ in range(3):
            h = torch.tanh(w["w"] @ h + w["b"])
        return mse(h, batch["goal"])
    return case("loop_in_loss", [{"algorithm": text, "update_binding": BOUND}], trained(("w", "b"), sgd, loss),
                RECURRENT, POINT, ("v", "goal"))


def scan_in_loss():
    """The squares of running sums of the rows of the error."""
    nodes = (" d = Sub(y, target)\n zeros = Constant <value = float[3] {0, 0, 0}> ()\n"
             " last, all = Scan <num_scan_inputs = 1, body = add (float[3] s, float[3] e) => (float[3] t, float[3] u) {\n"
             "  t = Add(s, e)\n  u = Mul(t, t)\n }> (zeros, d)\n loss = ReduceMean <keepdims = 0> (all)\n")
    text = algorithm(nodes + STEP.replace("rate", "tenth"), MOVED, [scalar("float", "tenth", RATE / 10)])

    def loss(w, batch):
        return ((predict(w, batch) - batch["target"]).cumsum(0) ** 2).mean()

    def slow(w, g, state, t, wrong):
        sgd(w, g, state, t, wrong / 10)
    return case("scan_in_loss", [{"algorithm": text, "update_binding": BOUND}], trained(("w", "b"), slow, loss))


def two_entries():
    """The second entry sees the w that the first one wrote."""
    first = algorithm(SQUARES + f' gw = {GRADIENT} <xs = ["w"], y = "loss"> (w)\n mw = Mul(rate, gw)\n'
                      " w_new = Sub(w, mw)\n", "float loss, float[3,5] w_new", RATES)
    second = algorithm(f' d2 = Sub(y, target)\n q2 = Mul(d2, d2)\n later = ReduceMean <keepdims = 0> (q2)\n'
                       f' gb = {GRADIENT} <xs = ["b"], y = "later"> (b)\n mb = Mul(rate2, gb)\n b_new = Sub(b, mb)\n',
                       "float later, float[3] b_new", [scalar("float", "rate2", RATE * 2)])

    def compute(weights, batches, last, wrong):
        losses = []
        for batch in batches:
            for number, (name, rate) in enumerate((("w", RATE), ("b", RATE * 2))):
                weights[name] = weights[name].detach().requires_grad_()
                value = measure(weights, batch)
                slope, = torch.autograd.grad(value, [weights[name]])
                if number == 0:
                    losses.append(value.item())
                weights[name] = (weights[name] - rate * wrong * slope).detach()
        return losses, measure(weights, last).item(), weights
    return case("two_entries", [{"algorithm": first, "update_binding": {"w": "w_new"}},
                                {"algorithm": second, "update_binding": {"b": "b_new"}}], compute)


def initialization():
    """The stored weights are replaced before the first step."""
    numbers = ", ".join(str((i % 4 - 1) / 4) for i in range(15))
    text = ("first () => (float[3,5] w_first, float[3] b_first) {\n"
            f" w_first = Constant <value = float[3,5] {{{numbers}}}> ()\n"
            " shape = Constant <value = int64[1] {3}> ()\n"
            " b_first = ConstantOfShape <value = float[1] {0.5}> (shape)\n}")

    def start(weights):
        weights["w"] = torch.tensor([(i % 4 - 1) / 4 for i in range(15)], dtype=weights["w"].dtype).reshape(3, 5)
        weights["b"] = torch.full((3,), 0.5, dtype=weights["b"].dtype)
    return case("initialization", [{"initialization": text, "algorithm": algorithm(SQUARES + STEP, MOVED, RATES),
                                    "initialization_binding": {"w": "w_first", "b": "b_first"},
                                    "update_binding": BOUND}], trained(("w", "b"), sgd, start=start), initialize=True)


def stored_first():
    """The same without initialize(): the stored weights count."""
    row, _ = initialization()
    MODELS["initialization_left_out"] = MODELS["initialization"]
    return ({**row, "name": "initialization_left_out", "model": "initialization_left_out", "initialize": False},
            trained(("w", "b"), sgd))


def penalty():
    """A gradient whose loss has the weight in it twice, and a clip by norm as nodes."""
    nodes = (SQUARES.replace("loss", "error") + " s = ReduceSumSquare <keepdims = 0> (w)\n p = Mul(s, tenth)\n"
             f' loss = Add(error, p)\n gw, gb = {GRADIENT} <xs = ["w", "b"], y = "loss"> (w, b)\n'
             " n = ReduceL2 <keepdims = 0> (gw)\n m = Max(n, one)\n c = Div(gw, m)\n mw = Mul(rate, c)\n"
             " mb = Mul(rate, gb)\n w_new = Sub(w, mw)\n b_new = Sub(b, mb)\n")
    initializers = [*RATES, scalar("float", "tenth", 0.1), scalar("float", "one", 1)]

    def loss(w, batch):
        return measure(w, batch) + 0.1 * (w["w"] ** 2).sum()

    def clipped(w, g, state, t, wrong):
        sgd(w, {"w": g["w"] / max(1.0, g["w"].norm()), "b": g["b"]}, state, t, wrong)
    return case("penalty_and_clip", [{"algorithm": algorithm(nodes, MOVED, initializers), "update_binding": BOUND}],
                trained(("w", "b"), clipped, loss))


def second_derivative():
    """A Gradient of a Gradient: the slope by the input, squared, is part of the loss."""
    nodes = (f' s = Tanh(y)\n t = ReduceSum <keepdims = 0> (s)\n gv = {GRADIENT} <xs = ["v"], y = "t"> (v)\n'
             " g2 = Mul(gv, gv)\n slope = ReduceMean <keepdims = 0> (g2)\n d = Sub(s, goal)\n q = Mul(d, d)\n"
             " error = ReduceMean <keepdims = 0> (q)\n loss = Add(error, slope)\n"
             f' gw = {GRADIENT} <xs = ["w"], y = "loss"> (w)\n mw = Mul(rate, gw)\n w_new = Sub(w, mw)\n')

    def loss(w, batch):
        with torch.enable_grad():
            v = batch["v"].detach().requires_grad_()
            weight = w["w"] if w["w"].requires_grad else w["w"].detach().requires_grad_()
            s = torch.tanh(weight @ v)
            slope, = torch.autograd.grad(s.sum(), [v], create_graph=True)
            return mse(s, batch["goal"]) + (slope * slope).mean()
    text = algorithm(nodes, "float loss, float[3,3] w_new", RATES, "float[3] goal")
    return case("gradient_of_gradient", [{"algorithm": text, "update_binding": {"w": "w_new"}}],
                trained(("w",), sgd, loss), RECURRENT, {"w": POINT["w"]}, ("v", "goal"))


def files():
    MODELS.clear()
    rows = [
        plain(), counter(),
        operator_case("momentum_standard", "Momentum", 'alpha = 0.8, beta = 0.7, norm_coefficient = 0.05, mode = "standard"',
                      ["v"], momentum(0.8, 0.7, 0.05, False)),
        operator_case("momentum_nesterov", "Momentum", 'alpha = 0.9, beta = 1.0, norm_coefficient = 0.0, mode = "nesterov"',
                      ["v"], momentum(0.9, 1.0, 0.0, True)),
        operator_case("adagrad_decay", "Adagrad", "decay_factor = 0.1, epsilon = 1e-5, norm_coefficient = 0.01",
                      ["h"], adagrad(0.1, 1e-5, 0.01)),
        operator_case("adagrad_plain", "Adagrad", "epsilon = 1e-4", ["h"], adagrad(0.0, 1e-4, 0.0)),
        operator_case("adam_corrected", "Adam", "alpha = 0.8, beta = 0.95, epsilon = 1e-4, norm_coefficient = 0.01",
                      ["v", "h"], adam(0.8, 0.95, 1e-4, 0.01, 0.0), RATE / 10),
        operator_case("adam_decoupled", "Adam", "alpha = 0.9, beta = 0.9, epsilon = 1e-3, norm_coefficient_post = 0.01",
                      ["v", "h"], adam(0.9, 0.9, 1e-3, 0.0, 0.01), RATE / 10),
        if_in_loss(), loop_in_loss(), scan_in_loss(), two_entries(), initialization(), stored_first(), penalty(),
        second_derivative(),
    ]
    rows = [({**row, "name": "information_" + row["name"]}, compute) for row, compute in rows]
    yield {"file": "information", "models": dict(MODELS), "inputs": INPUTS}, rows
