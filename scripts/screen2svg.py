"""Turns the output of `tmux capture-pane -e -p` into an SVG on stdout, with rich.
The argument is the title."""

import io
import re
import sys

from rich.console import Console
from rich.text import Text

text = Text.from_ansi(sys.stdin.read().rstrip())
console = Console(record=True, file=io.StringIO(), width=max(map(len, text.plain.split("\n"))))
console.print(text, no_wrap=True, crop=False)
svg = console.export_svg(title=sys.argv[1], unique_id="screen")
# Pages show it as an image, which may load nothing: the reader's own font does.
svg = re.sub(r"\s*@font-face \{.*?\}", "", svg, flags=re.S)
print(svg.replace("<svg ", "<svg xml:space=\"preserve\" ", 1))  # librsvg cuts blanks off at the ends
