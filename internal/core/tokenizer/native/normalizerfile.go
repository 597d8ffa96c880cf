package native

import (
	"encoding/json"
	"fmt"

	"github.com/eppctl/eppctl/internal/core/tokenizer/split"
	"github.com/eppctl/eppctl/internal/core/tokenizer/unitab"
)

// pattern is a literal or a regular expression of a file.
type pattern struct {
	String *string
	Regex  *string
}

// parseNormalizer reads a normalizer as a flat list.
func parseNormalizer(raw json.RawMessage) (normalizers, error) {
	if isNull(raw) {
		return nil, nil
	}
	kind, err := typeOf(raw)
	if err != nil {
		return nil, fmt.Errorf("normalizer: %w", err)
	}
	out, err := normalizerOf(kind, raw)
	if err != nil {
		return nil, fmt.Errorf("normalizer %s: %w", kind, err)
	}
	return out, nil
}

func normalizerOf(kind string, raw json.RawMessage) (normalizers, error) {
	switch kind {
	case "Sequence":
		var v struct {
			typed
			Normalizers []json.RawMessage `json:"normalizers"`
		}
		if err := strict(raw, &v); err != nil {
			return nil, err
		}
		var out normalizers
		for _, x := range v.Normalizers {
			n, err := parseNormalizer(x)
			if err != nil {
				return nil, err
			}
			out = append(out, n...)
			if len(out) > maxComponents {
				return nil, fmt.Errorf("%w: more than %d normalizers", ErrUnsupported, maxComponents)
			}
		}
		return out, nil
	case "Lowercase":
		return normalizers{lowercase{}}, strict(raw, &typed{})
	case "StripAccents":
		return normalizers{stripAccents{}}, strict(raw, &typed{})
	case "Nmt":
		return normalizers{nmt{}}, strict(raw, &typed{})
	case "ByteLevel":
		return normalizers{byteAlphabet{}}, strict(raw, &typed{})
	case "BertNormalizer":
		return parseBert(raw)
	case "Precompiled":
		var v struct {
			typed
			Map []byte `json:"precompiled_charsmap"` // in base64
		}
		if err := strict(raw, &v); err != nil {
			return nil, err
		}
		m, err := readCharsMap(v.Map)
		return normalizers{precompiled{m}}, err
	case "NFC", "NFD", "NFKC", "NFKD":
		forms := map[string]unitab.Form{"NFC": unitab.NFC, "NFD": unitab.NFD, "NFKC": unitab.NFKC, "NFKD": unitab.NFKD}
		return normalizers{form(forms[kind])}, strict(raw, &typed{})
	case "Strip":
		var v struct {
			typed
			strip
		}
		err := strict(raw, &v)
		return normalizers{v.strip}, err
	case "Prepend":
		var v struct {
			typed
			Prepend string `json:"prepend"`
		}
		if err := strict(raw, &v); err != nil {
			return nil, err
		}
		if v.Prepend == "" { // the library loses count of the characters then
			return nil, fmt.Errorf("%w: nothing to prepend", ErrUnsupported)
		}
		return normalizers{prepend(v.Prepend)}, nil
	case "Replace":
		var v struct {
			typed
			Pattern pattern `json:"pattern"`
			Content string  `json:"content"`
		}
		if err := strict(raw, &v); err != nil {
			return nil, err
		}
		switch {
		case v.Pattern.String != nil && *v.Pattern.String != "":
			return normalizers{replace{*v.Pattern.String, v.Content}}, nil
		case v.Pattern.Regex != nil:
			if len(v.Content) > maxGrowth {
				return nil, fmt.Errorf("%w: a match becomes %d bytes", ErrUnsupported, len(v.Content))
			}
			re, err := split.Compile(*v.Pattern.Regex)
			return normalizers{replaceRegex{re, v.Content}}, err
		}
		return nil, fmt.Errorf("%w: no pattern", ErrUnsupported)
	}
	return nil, ErrUnsupported
}

func parseBert(raw json.RawMessage) (normalizers, error) {
	var v struct {
		typed
		CleanText          *bool `json:"clean_text"`
		HandleChineseChars *bool `json:"handle_chinese_chars"`
		StripAccents       *bool `json:"strip_accents"` // as lowercase, if not there
		Lowercase          *bool `json:"lowercase"`
	}
	if err := strict(raw, &v); err != nil {
		return nil, err
	}
	if v.CleanText == nil || v.HandleChineseChars == nil || v.Lowercase == nil {
		return nil, fmt.Errorf("%w without all of clean_text, handle_chinese_chars, lowercase", ErrUnsupported)
	}
	if v.StripAccents == nil {
		v.StripAccents = v.Lowercase
	}
	return normalizers{bert{*v.CleanText, *v.HandleChineseChars, *v.StripAccents, *v.Lowercase}}, nil
}
