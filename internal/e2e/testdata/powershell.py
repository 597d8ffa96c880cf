# Parses the PowerShell text on stdin and prints what is none, a line each.
import sys

import tree_sitter
import tree_sitter_powershell

text = sys.stdin.buffer.read()
parser = tree_sitter.Parser(tree_sitter.Language(tree_sitter_powershell.language()))


def report(node):
    if node.is_error or node.is_missing:
        at = node.start_point
        print(f"line {at.row + 1}, column {at.column + 1}: {node.type} {text[node.start_byte:node.end_byte][:60]!r}")
        return
    for child in node.children:
        report(child)


report(parser.parse(text).root_node)
