# SPDX-License-Identifier: Apache-2.0
"""Bars for ratios, as SVG: one a row, from 1 to the right where we are faster, to the left where we are not."""

import math
from xml.sax.saxutils import escape

NAMES = {"ort": "ONNX Runtime", "torch": "PyTorch", "compiled": "torch.compile"}
ROW, LEFT, WIDTH, TOP = 18, 300, 420, 46
MOST = 8.0  # the axis ends there, in both directions


def place(value):
    """Where a ratio is, on a logarithmic axis with 1 in the middle."""
    bounded = min(max(value, 1 / MOST), MOST)
    return LEFT + WIDTH / 2 * (1 + math.log(bounded) / math.log(MOST))


def draw(bars):
    """bars: (name, threads, peer, ratio); a ratio of 0 is a failure."""
    height = TOP + ROW * len(bars) + 16
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{LEFT + WIDTH + 70}" height="{height}" '
             f'font-family="sans-serif" font-size="11">',
             '<rect width="100%" height="100%" fill="#fff"/>',
             f'<text x="{LEFT}" y="16" font-size="13">the peer\'s time over ours: right of the line we are faster</text>']
    for tick in (1 / 8, 1 / 4, 1 / 2, 1, 2, 4, 8):
        x = place(tick)
        parts.append(f'<line x1="{x:.1f}" y1="{TOP - 6}" x2="{x:.1f}" y2="{height - 12}" '
                     f'stroke="{"#222" if tick == 1 else "#ddd"}"/>'
                     f'<text x="{x:.1f}" y="{TOP - 12}" text-anchor="middle" fill="#555">{tick:g}</text>')
    for number, (name, threads, peer, ratio) in enumerate(bars):
        y = TOP + ROW * number
        label = f"{name}, {threads}T, {NAMES[peer]}"
        parts.append(f'<text x="{LEFT - 8}" y="{y + 12}" text-anchor="end">{escape(label)}</text>')
        if ratio <= 0:
            parts.append(f'<text x="{place(1) + 6:.1f}" y="{y + 12}" fill="#b00">failed</text>')
            continue
        x, middle = place(ratio), place(1)
        colour = "#2a7" if ratio >= 1 else "#d95"
        parts.append(f'<rect x="{min(x, middle):.1f}" y="{y + 2}" width="{abs(x - middle):.1f}" height="{ROW - 6}" '
                     f'fill="{colour}"/><text x="{max(x, middle) + 5:.1f}" y="{y + 12}">{ratio:.2f}</text>')
    return "\n".join(parts + ["</svg>", ""])
