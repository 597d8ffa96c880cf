package unigram

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
)

// trie finds the entries that a text starts with. Its nodes are numbered level by
// level, so that the children of one follow each other: edge k leads to node k+1.
type trie struct {
	labels []byte   // by edge
	edges  []uint32 // by node: the first one of its edges, up to that of the next node
	ids    []uint32 // by node: entry + 1
}

// entry is a text and what it stands for.
type entry struct {
	text string
	id   uint32
}

// maxNodes caps a trie at 150 MB. The 250,000 entries of the large multilingual
// vocabularies, some ten bytes long, have a seventh of it at most; a file of 256 MB
// may ask for 5 GB.
const maxNodes = 1 << 24

// newTrie sorts the entries, of which no two have the same text.
func newTrie(list []entry) (trie, error) {
	slices.SortFunc(list, func(a, b entry) int { return cmp.Compare(a.text, b.text) })
	type node struct{ from, to, depth int } // the entries that begin as it does
	t := trie{edges: []uint32{0}}
	nodes := []node{{0, len(list), 0}}
	for len(nodes) > 0 {
		n := nodes[0]
		nodes = nodes[1:]
		id := uint32(0)
		if n.from < n.to && len(list[n.from].text) == n.depth {
			id = list[n.from].id + 1
			n.from++
		}
		if len(t.ids) == maxNodes {
			return trie{}, fmt.Errorf("entries of more than %d different beginnings", maxNodes)
		}
		t.ids = append(t.ids, id)
		for n.from < n.to {
			label := list[n.from].text[n.depth]
			end := n.from + 1
			for end < n.to && list[end].text[n.depth] == label {
				end++
			}
			t.labels = append(t.labels, label)
			nodes = append(nodes, node{n.from, end, n.depth + 1})
			n.from = end
		}
		t.edges = append(t.edges, uint32(len(t.labels)))
	}
	return t, nil
}

// child follows the edge of a byte.
func (t *trie) child(node uint32, label byte) (child uint32, ok bool) {
	first := t.edges[node]
	k := bytes.IndexByte(t.labels[first:t.edges[node+1]], label)
	return first + uint32(k) + 1, k >= 0
}

// entry is the one that ends at a node.
func (t *trie) entry(node uint32) (id uint32, ok bool) {
	id = t.ids[node]
	return id - 1, id != 0
}
