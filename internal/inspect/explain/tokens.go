package explain

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/eppctl/eppctl/internal/inspect/out"
)

// maxBlocks is how many blocks TOKENS shows without --all.
const maxBlocks = 32

// idsPerLine is how many ids stand on one line where no block size is known.
const idsPerLine = 16

// tokens lists the prompt's ids, a block per line, below what they were made with.
func (p *page) tokens() {
	x := p.x.Prompt
	if !p.o.Tokens {
		return
	}
	if x == nil {
		p.write("\n")
		p.line("TOKENS", "none: "+deref(p.x.Unmatched))
		return
	}
	size, note := idsPerLine, "no block size is known"
	if x.BlockSize != nil && *x.BlockSize > 0 {
		size = *x.BlockSize
		note = "a block of " + strconv.Itoa(size) + " per line"
	}
	t := &out.Table{Indent: "  ", Columns: []out.Column{{Name: "BLOCK", Right: true}, {Name: "FROM", Right: true}, {Name: "IDS"}}}
	lines := (len(x.IDs) + size - 1) / size
	shown := lines
	if !p.o.All {
		shown = min(lines, maxBlocks)
	}
	for i := range shown {
		ids := x.IDs[i*size : min((i+1)*size, len(x.IDs))]
		name := strconv.Itoa(i)
		if len(ids) < size {
			name = "rest"
		}
		t.Add(name, strconv.Itoa(i*size), idText(ids))
	}
	if lines > shown {
		note += fmt.Sprintf("; %d more (--all lists them)", lines-shown)
	}
	p.block("TOKENS", note, t)
	if x.Cut != nil {
		p.line("", fmt.Sprintf("from id %d on the content is not determined by ids (an image)", *x.Cut))
	}
	if f := x.Files; f != nil {
		p.line("", fmt.Sprintf("%s of %s, sha256 %.12s", f.Vocabulary, f.Source, f.SHA256), "split by "+f.Split, templateText(f.Template, f.NoChat))
	}
}

func templateText(template, none string) string {
	if template == "" {
		return "no template: " + none
	}
	if strings.HasPrefix(template, "encoder ") {
		return "no template: chats by " + template
	}
	return "template of " + template
}

func idText(ids []uint32) string {
	text := make([]string, len(ids))
	for i, id := range ids {
		text[i] = strconv.FormatUint(uint64(id), 10)
	}
	return strings.Join(text, " ")
}

// against says how an engine's ids compare.
func (p *page) against() {
	c := p.o.Against
	if c == nil {
		return
	}
	if c.Equal {
		p.line("ENGINE", fmt.Sprintf("%s makes the same %s by %s", c.Engine, out.Plural(c.Compared, "token id"), c.By))
		return
	}
	d := c.Difference
	p.line("ENGINE", fmt.Sprintf("%s makes %s by %s, other ones %s", c.Engine, out.Plural(c.Tokens, "token id"), c.By, d))
	p.line("", fmt.Sprintf("serve,  from id %d: %s", d.From, idText(d.Ours)), quotedText(d.OursText))
	p.line("", fmt.Sprintf("engine, from id %d: %s", d.From, idText(d.Theirs)), quotedText(d.TheirsText))
}

func quotedText(s *string) string {
	if s == nil {
		return ""
	}
	return strconv.Quote(*s)
}
