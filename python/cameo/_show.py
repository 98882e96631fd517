# Models in notebooks.
# SPDX-License-Identifier: Apache-2.0
"""What Model._repr_html_ gives: a table, and the graph."""

from __future__ import annotations

import base64
from html import escape
from typing import TYPE_CHECKING

from . import _cameo

if TYPE_CHECKING:
    from ._graph import ValueInfo
    from ._model import Model

_BOXES = 250  # that a picture between cells may have
_ROWS = 20  # of values, before the rest is counted


def size_text(size: float) -> str:
    """Bytes as people read them: "1.5 MB"."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if size < 1000 or unit == "GB":
            break
        size /= 1000
    return f"{size:.0f} {unit}" if unit == "bytes" or size >= 100 else f"{size:.1f} {unit}"


def _values(what: str, infos: list[ValueInfo]) -> str:
    rows = "".join(f"<tr><td>{escape(what if i == 0 else '')}</td><td>{escape(info.name)}</td>"
                   f"<td>{escape(info.type)}</td></tr>" for i, info in enumerate(infos[:_ROWS]))
    more = len(infos) - _ROWS
    return rows + (f"<tr><td></td><td colspan=2>and {more} more</td></tr>" if more > 0 else "")


def _facts(model: Model) -> list[tuple[str, str]]:
    summary = model.summary
    operators = list(model.operators.items())
    counts = ", ".join(f"{name} {count}" for name, count in operators[:8]) + (", .." if len(operators) > 8 else "")
    opsets = ", ".join(f"{domain or 'ai.onnx'} {version}" for domain, version in model.opsets.items())
    nested = summary.nested_nodes + summary.function_nodes
    rows = [("nodes", f"{summary.nodes:,}" + (f", and {nested:,} in bodies and functions" if nested else "")),
            ("operators", counts),
            ("parameters", f"{summary.parameters:,} ({size_text(summary.parameter_bytes)})"),
            ("opsets", opsets)]
    if summary.training_count:
        rows.append(("training", f"{summary.training_nodes:,} nodes, {sum(len(t.states) for t in model.training)} "
                                 "states"))
    if summary.producer_name:
        rows.append(("producer", f"{summary.producer_name} {summary.producer_version}"))
    return rows


def picture(model: Model) -> str:
    """The graph as an image, which can neither run scripts nor change the page's style; or why there is none."""
    if not model.summary.nodes:
        return ""
    svg, boxes = _cameo.draw(model._inside, ["auto"])
    if boxes > _BOXES:
        return (f"<p>The graph has {boxes:,} boxes even where nodes whose names begin alike are one, too many to be "
                "read here: <code>model.extract(..)</code> gives a part, <code>model.graph.svg()</code> the whole.</p>")
    data = base64.b64encode(svg.encode()).decode()
    return (f'<div style="overflow:auto;max-height:600px"><img style="max-width:none" alt="graph of {boxes} boxes" '
            f'src="data:image/svg+xml;base64,{data}"></div>')


def html(model: Model) -> str:
    """Everything that comes from the file is escaped: names may hold anything."""
    facts = "".join(f"<tr><td>{name}</td><td colspan=2>{escape(text)}</td></tr>" for name, text in _facts(model))
    title = escape(model.summary.graph or "model")
    return (f"<div><b>{title}</b><table>{_values('inputs', model.inputs)}{_values('outputs', model.outputs)}{facts}"
            f"</table>{picture(model)}</div>")
