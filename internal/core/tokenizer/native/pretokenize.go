package native

import (
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"github.com/eppctl/eppctl/internal/core/tokenizer/split"
	"github.com/eppctl/eppctl/internal/core/tokenizer/unitab"
)

// preTokenizer is what a file's pre-tokenizer says.
type preTokenizer struct {
	steps     []step
	byteLevel bool     // the model takes bytes
	patterns  []string // of the Splits, if there is nothing else before the bytes
	regex     bool     // a pattern goes through the regular expression engine
}

func parsePreTokenizer(raw json.RawMessage) (*preTokenizer, error) {
	p := &preTokenizer{}
	if isNull(raw) {
		return p, nil
	}
	if err := p.add(raw); err != nil {
		return nil, fmt.Errorf("pre-tokenizer %w", err)
	}
	if len(p.patterns) != len(p.steps) {
		p.patterns = nil
	}
	return p, nil
}

func (p *preTokenizer) add(raw json.RawMessage) error {
	kind, err := typeOf(raw)
	if err != nil {
		return err
	}
	if len(p.steps) >= maxComponents {
		return fmt.Errorf("%w: more than %d steps", ErrUnsupported, maxComponents)
	}
	if p.byteLevel {
		return fmt.Errorf("%s behind ByteLevel: %w", kind, ErrUnsupported)
	}
	if err := p.addKind(kind, raw); err != nil {
		return fmt.Errorf("%s: %w", kind, err)
	}
	return nil
}

func (p *preTokenizer) addKind(kind string, raw json.RawMessage) error {
	switch kind {
	case "Sequence":
		var v struct {
			typed
			Pretokenizers []json.RawMessage `json:"pretokenizers"`
		}
		if err := strict(raw, &v); err != nil {
			return err
		}
		for _, x := range v.Pretokenizers {
			if err := p.add(x); err != nil {
				return err
			}
		}
		return nil
	case "ByteLevel":
		v := struct {
			typed
			AddPrefixSpace bool `json:"add_prefix_space"`
			TrimOffsets    bool `json:"trim_offsets"`
			UseRegex       bool `json:"use_regex"`
		}{UseRegex: true}
		if err := strict(raw, &v); err != nil {
			return err
		}
		p.byteLevel = true
		if v.AddPrefixSpace {
			p.steps = append(p.steps, prefixSpace{})
		}
		if v.UseRegex {
			p.steps = append(p.steps, known{split.ForPatterns(split.PatternGPT2)})
			p.patterns = append(p.patterns, split.PatternGPT2)
		}
		return nil
	case "Split":
		return p.addSplit(raw)
	case "Digits":
		var v struct {
			typed
			IndividualDigits bool `json:"individual_digits"`
		}
		err := strict(raw, &v)
		what := contiguous
		if v.IndividualDigits {
			what = isolated
		}
		p.steps = append(p.steps, charStep{unitab.IsNumeric, what})
		return err
	case "Whitespace":
		p.steps = append(p.steps, words{})
		return strict(raw, &typed{})
	case "WhitespaceSplit":
		p.steps = append(p.steps, charStep{isSpace, removed})
		return strict(raw, &typed{})
	case "UnicodeScripts":
		p.steps = append(p.steps, scripts{})
		return strict(raw, &typed{})
	case "BertPreTokenizer":
		p.steps = append(p.steps, charStep{isSpace, removed}, charStep{unitab.IsPunctuation, isolated})
		return strict(raw, &typed{})
	case "Punctuation":
		v := struct {
			typed
			Behavior behaviour `json:"behavior"`
		}{Behavior: isolated}
		if err := strict(raw, &v); err != nil {
			return err
		}
		if !v.Behavior.known() {
			return fmt.Errorf("behavior %q: %w", v.Behavior, ErrUnsupported)
		}
		p.steps = append(p.steps, charStep{unitab.IsPunctuation, v.Behavior})
		return nil
	case "CharDelimiterSplit":
		var v struct {
			typed
			Delimiter string `json:"delimiter"`
		}
		if err := strict(raw, &v); err != nil {
			return err
		}
		if utf8.RuneCountInString(v.Delimiter) != 1 { // as the library has it
			return fmt.Errorf("a delimiter of another length than one character: %w", ErrUnsupported)
		}
		p.steps = append(p.steps, &splitStep{literal: v.Delimiter, what: removed})
		return nil
	case "FixedLength":
		v := struct {
			typed
			Length int `json:"length"`
		}{Length: 5}
		if err := strict(raw, &v); err != nil {
			return err
		}
		if v.Length < 1 {
			return fmt.Errorf("length %d: %w", v.Length, ErrUnsupported)
		}
		p.steps = append(p.steps, fixedLength(v.Length))
		return nil
	case "Metaspace":
		v := struct {
			typed
			Replacement    string `json:"replacement"`
			PrependScheme  string `json:"prepend_scheme"`
			AddPrefixSpace *bool  `json:"add_prefix_space"`
			StrRep         string `json:"str_rep"`
			Split          *bool  `json:"split"`
		}{PrependScheme: "always"}
		if err := strict(raw, &v); err != nil {
			return err
		}
		switch {
		case v.AddPrefixSpace != nil && !*v.AddPrefixSpace:
			v.PrependScheme = "never"
		case v.PrependScheme != "always" && v.PrependScheme != "first" && v.PrependScheme != "never":
			return fmt.Errorf("prepend_scheme %q: %w", v.PrependScheme, ErrUnsupported)
		case utf8.RuneCountInString(v.Replacement) != 1: // as the library has it
			return fmt.Errorf("a replacement of another length than one character: %w", ErrUnsupported)
		}
		p.steps = append(p.steps, metaspace{v.Replacement, v.PrependScheme, v.Split == nil || *v.Split})
		return nil
	}
	return ErrUnsupported
}

func (p *preTokenizer) addSplit(raw json.RawMessage) error {
	var v struct {
		typed
		Pattern  pattern   `json:"pattern"`
		Behavior behaviour `json:"behavior"`
		Invert   bool      `json:"invert"`
	}
	if err := strict(raw, &v); err != nil {
		return err
	}
	if !v.Behavior.known() {
		return fmt.Errorf("behavior %q: %w", v.Behavior, ErrUnsupported)
	}
	s := &splitStep{what: v.Behavior, invert: v.Invert}
	switch {
	case v.Pattern.String != nil && *v.Pattern.String != "":
		s.literal = *v.Pattern.String
	case v.Pattern.Regex != nil:
		k := split.ForPatterns(*v.Pattern.Regex)
		switch {
		case v.Behavior == isolated && !v.Invert, k != nil && v.Behavior == removed && v.Invert:
			// A known pattern of one Split leaves nothing unmatched to be removed.
			p.patterns = append(p.patterns, *v.Pattern.Regex)
			if k != nil {
				p.steps = append(p.steps, known{k})
				return nil
			}
		}
		re, err := split.Compile(*v.Pattern.Regex)
		if err != nil {
			return fmt.Errorf("%w: %w", ErrUnsupported, err)
		}
		s.re = re
		p.regex = true
	default:
		return fmt.Errorf("no pattern: %w", ErrUnsupported)
	}
	p.steps = append(p.steps, s)
	return nil
}
