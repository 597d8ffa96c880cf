// Package syntax reads Jinja2 templates as Python's Jinja2 3.1 does under the
// options transformers sets (trim_blocks, lstrip_blocks, loop controls, the
// generation block): source text to a tree of nodes.
//
// It exists beside the template library because three things need the tree
// itself: what an engine decides from it (content format, variables), the
// bounds that untrusted templates are held to, and the rewriting that makes the
// library answer as Python does.
package syntax
