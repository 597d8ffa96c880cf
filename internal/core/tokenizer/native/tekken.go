package native

import (
	"encoding/base64"
	"errors"
	"fmt"
	"slices"

	"github.com/eppctl/eppctl/internal/core/tokenizer/bpe"
)

// LoadTekken reads Mistral's tekken.json. Special tokens are never matched in text:
// mistral-common puts them in by id.
func LoadTekken(b []byte) (*Tokenizer, error) {
	t, err := loadTekken(b)
	if err != nil {
		return nil, fmt.Errorf("tekken.json: %w", err)
	}
	return t, nil
}

type tekkenConfig struct {
	Pattern            string `json:"pattern"`
	NumVocabTokens     int    `json:"num_vocab_tokens"`
	DefaultVocabSize   int    `json:"default_vocab_size"`
	DefaultNumSpecials int    `json:"default_num_special_tokens"`
	Version            string `json:"version"`
}

// tekkenBOS is the id of <s> in files that do not list their special tokens.
const tekkenBOS = 1

func loadTekken(b []byte) (*Tokenizer, error) {
	if len(b) > MaxFile {
		return nil, fmt.Errorf("%d bytes are more than %d", len(b), MaxFile)
	}
	var c tekkenConfig
	var specials []struct {
		Rank uint32 `json:"rank"`
		Text string `json:"token_str"`
	}
	s := &scanner{b: b}
	vocabAt := -1
	s.members(func(name string) {
		switch name {
		case "config":
			if raw := s.value(); s.err == nil {
				s.err = strict(raw, &c)
			}
		case "special_tokens":
			s.decode(&specials)
		case "vocab":
			s.peek()
			vocabAt = s.i
			s.value()
		case "image", "multimodal", "audio", "version", "type":
			s.value()
		default:
			if s.err == nil {
				s.err = fmt.Errorf("member %q: %w", name, ErrUnsupported)
			}
		}
	})
	s.end()
	if s.err != nil {
		return nil, s.err
	}
	n := c.DefaultVocabSize - c.DefaultNumSpecials
	if vocabAt < 0 || n <= 0 || c.DefaultNumSpecials < 0 || c.DefaultVocabSize > bpe.MaxID {
		return nil, errors.New("no vocabulary, or none with a size")
	}
	s.i = vocabAt
	v, ids := tekkenVocab(s, uint32(n), uint32(c.DefaultNumSpecials))
	if s.err != nil {
		return nil, s.err
	}
	bos, found := uint32(tekkenBOS), specials == nil
	for _, x := range specials {
		if x.Text == "<s>" {
			bos, found = x.Rank, true
		}
	}
	if !found {
		return nil, errors.New("special_tokens without <s>")
	}
	t := &Tokenizer{info: Info{Format: "tekken.json", SHA256: hash(b)}}
	for _, x := range specials {
		t.pieces.add(x.Rank, x.Text)
	}
	return t, t.useRanks(v, ids, RankOptions{Pattern: c.Pattern, Before: []uint32{bos}})
}

// tekkenVocab reads the entries of rank below n. Ids start behind the specials.
func tekkenVocab(s *scanner, n, specials uint32) (*bpe.Vocab, []uint32) {
	v := bpe.NewVocab(int(n + specials))
	var ids []uint32
	var room []byte
	s.elements(func() {
		rank, text := bpe.None, []byte(nil)
		s.members(func(name string) {
			switch name {
			case "rank":
				rank = s.number()
			case "token_bytes":
				text = s.str(1)
			default:
				s.value()
			}
		})
		if s.err != nil || rank >= n && rank != bpe.None {
			return
		}
		var err error
		if room, err = base64.StdEncoding.AppendDecode(room[:0], text); err != nil || len(room) == 0 || rank == bpe.None {
			s.fail("entry without rank or bytes")
			return
		}
		if err := v.Add(rank+specials, room); err != nil {
			s.err = err
			return
		}
		ids = append(ids, rank+specials)
	})
	v.Seal()
	slices.Sort(ids)
	return v, ids
}
