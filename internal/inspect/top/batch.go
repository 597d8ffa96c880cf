package top

import (
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/colorprofile"
	"github.com/charmbracelet/x/ansi"

	"github.com/eppctl/eppctl/internal/inspect"
	"github.com/eppctl/eppctl/internal/inspect/out"
)

// batch prints frames, for logs and scripts. The first two are read an interval
// apart and printed as one: rates take two. JSON is the server's, and has no
// rates.
func (c *Command) batch(ctx context.Context, server Server, s *out.Streams) error {
	m := c.model(server, s)
	most := c.Count
	if c.Once {
		most = 1
	}
	for n := 0; most == 0 || n < most; {
		f := m.poll()().(frameMsg)
		m.take(f)
		switch {
		case m.failure != nil && m.sheet == nil:
			return m.failure
		case m.failure != nil:
			fmt.Fprintf(s.Err, "warn: %s\n", out.Clean(m.lost()))
		case c.Format == "json" || c.Format == "jsonl":
			if _, err := s.Out.Write(out.JSON(f.raw)); err != nil {
				return err
			}
			n++
		case len(m.history.frames) > 1:
			if err := m.print(s, n > 0); err != nil {
				return err
			}
			n++
		}
		if most > 0 && n >= most {
			return nil
		}
		if err := wait(ctx, c.Interval); err != nil {
			if c.Once {
				return &inspect.Error{Kind: inspect.Interrupted, Code: "E_INTERRUPTED", What: "interrupted", Err: err}
			}
			return nil // a stream that is stopped has done what it should
		}
	}
	return nil
}

func wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// print writes the frame that is shown as lines and a table, parted from the one before.
func (m *model) print(s *out.Streams, parted bool) error {
	m.width = math.MaxInt16
	if s.OutTTY {
		m.width = s.Width
	}
	d := m.drawing()
	d.later = 0
	var b strings.Builder
	if parted {
		b.WriteString("\n")
	}
	lines := []string{m.headline(s.OutTTY), m.traffic(d), m.hits(), m.index()}
	if m.glyphs == &asciiGlyphs {
		for i := range lines {
			lines[i] = asciiOnly(lines[i])
		}
	}
	for _, l := range append(lines, m.table(d, s.OutTTY)...) {
		b.WriteString(strings.TrimRight(l, " ") + "\n")
	}
	colours := colorprofile.NoTTY
	if s.Color {
		colours = profile(s)
	}
	_, err := io.WriteString(&colorprofile.Writer{Forward: s.Out, Profile: colours}, b.String())
	return err
}

// headline is the time of the frame and the states of the pods.
func (m *model) headline(tty bool) string {
	at := m.sheet.At
	if tty {
		at = clock(at, m.zone)
	}
	return line(m.width, plain(at), plain(m.addr), m.counts())
}

// table is the pods, without bars, each column as wide as what stands in it: as many
// columns as a terminal has room for; on a pipe all of them, and nothing cut.
func (m *model) table(d *drawing, tty bool) []string {
	columns := slices.DeleteFunc(slices.Clone(podColumns), func(c column[*podRow]) bool { return c.bar })
	list, widths := chosen(columns, 0, m.width)
	gap := lipgloss.NewStyle().PaddingRight(2)
	if tty {
		gap = gap.PaddingRight(1) // as chosen reckons
	}
	var blocks []string
	for k, i := range list {
		cells := []string{string(text(dim, columns[i].name))}
		for _, r := range m.visiblePods() {
			s := string(columns[i].cell(d, r))
			if i == 0 {
				s = string(plain(r.Name)) // and nothing but it, for scripts
			}
			if tty {
				s = ansi.Truncate(s, widths[k], "…")
			}
			cells = append(cells, s)
		}
		blocks = append(blocks, gap.Render(lipgloss.JoinVertical(columns[i].at, cells...)))
	}
	return strings.Split(lipgloss.JoinHorizontal(lipgloss.Top, blocks...), "\n")
}
