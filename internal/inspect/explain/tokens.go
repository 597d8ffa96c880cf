package explain

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/eppctl/eppctl/internal/core/pick"
	"github.com/eppctl/eppctl/internal/inspect/out"
)

// maxBlocks is how many blocks TOKENS shows without --all.
const maxBlocks = 32

// idsPerLine is how many ids stand on one line where no block size is known.
const idsPerLine = 16

// tokens lists the ids of each prompt, a block per line, below what they were made with.
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
	if n := 1 + len(x.Further); n > 1 {
		p.idTable(x.IDs, size, fmt.Sprintf("prompt 1 of %d, %s", n, note))
		for i, ids := range x.Further {
			p.idTable(ids, size, fmt.Sprintf("prompt %d of %d, %s", i+2, n, note))
		}
	} else {
		p.idTable(x.IDs, size, note)
	}
	if len(x.Media) > 0 {
		p.line("", mediaText(x.Media))
	}
	if x.Cut != nil {
		p.line("", fmt.Sprintf("matched up to id %d, before an image, a sound or a video that no renderer told the name of", *x.Cut))
	}
	if f := x.Files; f != nil {
		p.line("", fmt.Sprintf("%s of %s, sha256 %.12s", f.Vocabulary, f.Source, f.SHA256), "split by "+f.Split, templateText(f.Template, f.NoChat))
	}
}

// idTable lists the ids of one prompt.
func (p *page) idTable(ids []uint32, size int, note string) {
	t := &out.Table{Indent: "  ", Columns: []out.Column{{Name: "BLOCK", Right: true}, {Name: "FROM", Right: true}, {Name: "IDS"}}}
	lines := (len(ids) + size - 1) / size
	shown := lines
	if !p.o.All {
		shown = min(lines, maxBlocks)
	}
	for i := range shown {
		block := ids[i*size : min((i+1)*size, len(ids))]
		name := strconv.Itoa(i)
		if len(block) < size {
			name = "rest"
		}
		t.Add(name, strconv.Itoa(i*size), idText(block))
	}
	if lines > shown {
		note += fmt.Sprintf("; %d more (--all lists them)", lines-shown)
	}
	p.block("TOKENS", note, t)
}

// maxMedia is how many items a line tells of.
const maxMedia = 8

// mediaText says where images and the like stand.
func mediaText(list []pick.ExplainedItem) string {
	places := make([]string, 0, maxMedia)
	for _, it := range list[:min(len(list), maxMedia)] {
		places = append(places, fmt.Sprintf("%d to %d", it.Offset, it.Offset+it.Length-1))
	}
	if len(list) > maxMedia {
		places = append(places, "…")
	}
	return out.Plural(len(list), "media item") + ", told apart by the engine's names: ids " + strings.Join(places, ", ")
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
		same := fmt.Sprintf("%s makes the same %s by %s", c.Engine, out.Plural(c.Compared, "token id"), c.By)
		if p.x.Tokenizer.Cut {
			same += ", before the image, sound or video"
		}
		p.line("ENGINE", same)
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
