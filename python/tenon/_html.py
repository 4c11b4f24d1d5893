"""What Jupyter shows."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence


def table(heading: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    def line(cells: Sequence[object], tag: str) -> str:
        return "<tr>" + "".join(f"<{tag}>{html.escape(str(cell))}</{tag}>" for cell in cells) + "</tr>"

    body = "".join(line(row, "td") for row in rows)
    return f"<table>{line(heading, 'th')}{body}</table>"
