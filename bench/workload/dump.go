package workload

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
)

// A dump is a workload with its draws and truths for a program in any language:
// little-endian words, lists with their length (uint32) in front.
//
//	"eppbench" ranks:u32
//	conversations: n × { tokens:[u32] aliases:[u64] holders: n × {rank gpu host:u32} }
//	order, short, long: [u32]
//	refresh, evict, decode, steps: n × {conversation holder:u32}
//	one tier, two tiers: n × {gpu depth:u32}, see Truths
const magic = "eppbench"

// Dump is what a dump file holds.
type Dump struct {
	*Workload
	*Draws
	OneTier, TwoTiers []Truth
}

// NewDump draws all of it.
func NewDump(ranks int) *Dump {
	w := New(ranks)
	return &Dump{Workload: w, Draws: w.Draw(), OneTier: w.Truths(false), TwoTiers: w.Truths(true)}
}

// Write writes the dump to a file.
func (d *Dump) Write(path string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	b := bufio.NewWriterSize(f, 1<<20)
	c := coder{w: b}
	c.dump(d)
	return errors.Join(c.err, b.Flush(), f.Close())
}

// Read reads a dump back.
func Read(path string) (*Dump, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	c := coder{r: bufio.NewReaderSize(f, 1<<20)}
	d := &Dump{Workload: &Workload{}, Draws: &Draws{}}
	c.dump(d)
	if c.err != nil {
		return nil, fmt.Errorf("workload %s: %w", path, c.err)
	}
	return d, nil
}

// coder goes through a dump in order. With w it writes, with r it reads: one
// description serves both ways.
type coder struct {
	w   io.Writer
	r   io.Reader
	err error
}

func (c *coder) dump(d *Dump) {
	head := [len(magic)]byte([]byte(magic))
	c.value(&head)
	if string(head[:]) != magic {
		c.err = errors.Join(c.err, errors.New("not a dump"))
	}
	c.number(&d.Ranks)
	list(c, &d.Conversations, func(v *Conversation) {
		numbers(c, &v.Tokens)
		numbers(c, &v.Aliases)
		list(c, &v.Holders, func(h *Holder) {
			c.number(&h.Rank)
			c.number(&h.GPU)
			c.number(&h.Host)
		})
	})
	for _, l := range []*[]int{&d.Order, &d.Short, &d.Long} {
		list(c, l, c.number)
	}
	for _, l := range []*[]Pick{&d.Refresh, &d.Evict, &d.Decode, &d.Steps} {
		list(c, l, func(p *Pick) {
			c.number(&p.Conversation)
			c.number(&p.Holder)
		})
	}
	for _, l := range []*[]Truth{&d.OneTier, &d.TwoTiers} {
		list(c, l, func(t *Truth) {
			c.number(&t.GPU)
			c.number(&t.Depth)
		})
	}
}

func (c *coder) value(v any) {
	switch {
	case c.err != nil:
	case c.w != nil:
		c.err = binary.Write(c.w, binary.LittleEndian, v)
	default:
		c.err = binary.Read(c.r, binary.LittleEndian, v)
	}
}

func (c *coder) number(v *int) {
	n := uint32(*v)
	c.value(&n)
	*v = int(n)
}

// length codes the length of a list and, when reading, makes it.
func length[T any](c *coder, v *[]T) {
	n := len(*v)
	c.number(&n)
	if c.err == nil && c.r != nil {
		*v = make([]T, n)
	}
}

func list[T any](c *coder, v *[]T, each func(*T)) {
	length(c, v)
	for i := range *v {
		if c.err != nil {
			return
		}
		each(&(*v)[i])
	}
}

func numbers[T uint32 | uint64](c *coder, v *[]T) {
	length(c, v)
	c.value(*v)
}
