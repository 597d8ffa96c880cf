package native

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/eppctl/eppctl/internal/core/tokenizer/bpe"
	"github.com/eppctl/eppctl/internal/core/tokenizer/split"
	"github.com/eppctl/eppctl/internal/core/tokenizer/unitab"
)

// RankOptions is what a tiktoken rank file does not say and the code that comes with
// it does.
type RankOptions struct {
	// Pattern is the split pattern, or the name of a family: cl100k, o200k, llama3,
	// qwen2, qwen3.5, kimi, gpt2.
	Pattern string
	Added   []Added
	Before  []uint32 // ids put before a text with specials
	NFC     bool     // texts are normalised, as Qwen's code does
}

// LoadTiktoken reads a file of lines "base64 rank"; an entry's id is its rank.
func LoadTiktoken(b []byte, o RankOptions) (*Tokenizer, error) {
	v, ranked, err := readRanks(b)
	if err != nil {
		return nil, fmt.Errorf("tiktoken: %w", err)
	}
	t := &Tokenizer{info: Info{Format: "tiktoken", SHA256: hash(b)}}
	if err := t.useRanks(v, ranked, o); err != nil {
		return nil, fmt.Errorf("tiktoken: %w", err)
	}
	return t, nil
}

func readRanks(b []byte) (*bpe.Vocab, []uint32, error) {
	if len(b) > MaxFile {
		return nil, nil, fmt.Errorf("%d bytes are more than %d", len(b), MaxFile)
	}
	v := bpe.NewVocab(bytes.Count(b, []byte{'\n'}) + 1)
	var ids []uint32
	var room []byte
	for n := 1; len(b) > 0; n++ {
		var line []byte
		line, b, _ = bytes.Cut(b, []byte{'\n'})
		line = bytes.TrimRight(line, "\r ")
		if len(line) == 0 {
			continue
		}
		text, rank, ok := bytes.Cut(line, []byte{' '})
		id, err := strconv.ParseUint(string(rank), 10, 32)
		if !ok || err != nil {
			return nil, nil, fmt.Errorf("line %d is not an entry and its rank", n)
		}
		if room, err = base64.StdEncoding.AppendDecode(room[:0], text); err != nil || len(room) == 0 {
			return nil, nil, fmt.Errorf("line %d: entry is not base64", n)
		}
		if err := v.Add(uint32(id), room); err != nil {
			return nil, nil, fmt.Errorf("line %d: %w", n, err)
		}
		ids = append(ids, uint32(id))
	}
	if len(ids) == 0 {
		return nil, nil, errors.New("no entries")
	}
	v.Seal()
	slices.Sort(ids)
	return v, ids, nil
}

// useRanks makes t encode bytes by ranks. A piece that is an entry is that entry, as
// in tiktoken.
func (t *Tokenizer) useRanks(v *bpe.Vocab, ranked []uint32, o RankOptions) error {
	sp, steps, err := rankSplit(o.Pattern)
	if err != nil {
		return err
	}
	spec := &bpe.Spec{Vocab: v, Ranked: ranked, IgnoreMerges: true, Unknown: bpe.None}
	for b := range spec.Bytes {
		id, ok := v.Find([]byte{byte(b)})
		if !ok {
			return fmt.Errorf("byte %#02x has no entry", b)
		}
		spec.Bytes[b] = id
	}
	t.info.Model, t.info.Tokens = "BPE", v.Count()
	t.pieces.of = v.Bytes
	t.surround.before = o.Before
	if o.NFC {
		t.norm = normalizers{form(unitab.NFC)}
	}
	if err := t.setAdded(o.Added); err != nil {
		return err
	}
	model, err := bpe.New(spec)
	if err != nil {
		return err
	}
	t.info.Tables = true
	if sp != nil {
		t.info.Split = sp.Name
		t.encoder = &tables{model, sp}
		t.scratches = newPool(model)
	} else {
		t.info.Split = "regex"
		t.useGeneral(steps, spec, model)
	}
	t.setCuts()
	return nil
}

func rankSplit(pattern string) (*split.Splitter, []step, error) {
	if sp := split.ForFamily(pattern); sp != nil {
		return sp, nil, nil
	}
	if sp := split.ForRanked(pattern); sp != nil {
		return sp, nil, nil
	}
	if pattern == "" {
		return nil, nil, fmt.Errorf("no split pattern: %w", ErrUnsupported)
	}
	re, err := split.CompileRanked(pattern)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrUnsupported, err)
	}
	return nil, []step{&splitStep{re: re, what: removed, invert: true}}, nil
}
