# SPDX-License-Identifier: Apache-2.0
"""What a user writes, for a type checker: test_typing.py has mypy look at it, and runs it."""

import numpy

import cameo

TEXT = """<ir_version: 8, opset_import: ["" : 17]>
line (float[N] x) => (float[N] y) <float[1] w = {2}> { y = Mul(x, w) }"""


def double(model: cameo.Model, x: "numpy.ndarray[tuple[int], numpy.dtype[numpy.float32]]") -> list[float]:
    results = model.run(x=x)
    values: list[float] = results["y"].tolist()
    return values


def describe(model: cameo.Model) -> str:
    return ", ".join(f"{info.name}: {info.type}" for info in [*model.inputs, *model.outputs])


def refuse() -> str:
    try:
        cameo.load(b"nothing")
    except cameo.ModelError as error:
        return str(error)
    return ""


def main() -> None:
    model = cameo.load(TEXT)
    assert double(model, numpy.array([1, 2], numpy.float32)) == [2, 4]
    assert describe(model).startswith("x: ")
    assert refuse()
    session = cameo.Session(model, threads=1)
    (y,) = session.run(["y"], {"x": numpy.ones(3, numpy.float32)})
    assert y.shape == (3,)
    gradient: cameo.Model = model.grad("y", ["x"])
    assert not gradient.check()
    model.prepare(loss="mse", optimizer="sgd", lr=0.1)
    for row in cameo.libraries():
        assert row["name"]


if __name__ == "__main__":
    main()
