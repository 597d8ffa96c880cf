package tokenizer

import (
	"cmp"
	"encoding/json"
	"encoding/json/jsontext"
	"slices"
	"strconv"
)

// maxFeatures bounds what is read of names and places, in bytes: those of 6,000 images. A
// reply has room for millions, which take 50 times their length in memory and seconds,
// whatever the request's deadline.
const maxFeatures = 1 << 20

// features is what a renderer tells of the parts of a prompt that are no text, by
// modality: MultiModalFeatures of vLLM's scale-out protocol (0.32.0).
type features struct {
	names  map[string][]string
	places map[string][]place
	// named and placed: there are names and offsets, if only in a form not known here.
	// first is the lowest offset.
	named, placed bool
	first         int
	read          int // bytes
}

type place struct{ Offset, Length int } // tokens

func (f *features) member(d *jsontext.Decoder, name string) error {
	if name != "mm_hashes" && name != "mm_placeholders" {
		return d.SkipValue() // tensors, too
	}
	raw, err := d.ReadValue()
	if err != nil {
		return err
	}
	if f.read += len(raw); f.read > maxFeatures {
		return ErrManyItems
	}
	// Of another form nothing is understood, and then only the first offset counts.
	if name == "mm_hashes" {
		f.names = nil
		if json.Unmarshal(raw, &f.names) != nil {
			f.names = nil
		}
	} else {
		f.places = nil
		if json.Unmarshal(raw, &f.places) != nil {
			f.places = nil
		}
	}
	return f.walk(NewDecoder(raw), name == "mm_placeholders")
}

// walk looks through lists and objects: offsets anywhere among placeholders, texts
// anywhere among hashes.
func (f *features) walk(d *jsontext.Decoder, places bool) error {
	switch d.PeekKind() {
	case '{':
		return Members(d, func(name []byte) error {
			if !places || string(name) != "offset" {
				return f.walk(d, places)
			}
			raw, err := d.ReadValue()
			if err != nil {
				return err
			}
			if n, err := strconv.Atoi(string(raw)); err == nil && n >= 0 && (!f.placed || n < f.first) {
				f.placed, f.first = true, n
			}
			return nil
		})
	case '[':
		if _, err := d.ReadToken(); err != nil {
			return err
		}
		for k := d.PeekKind(); k != ']' && k != 0; k = d.PeekKind() {
			if err := f.walk(d, places); err != nil {
				return err
			}
		}
		_, err := d.ReadToken()
		return err
	case '"':
		f.named = true
	}
	return d.SkipValue()
}

// items are what the prompt of so many ids holds besides text, in its order, and cut
// is the first position whose content is not known in spite of them; negative = none.
func (f *features) items(ids int) (items []Item, cut int, err error) {
	cut = -1
	unknown := func(at int) {
		if at = max(at, 0); cut < 0 || at < cut {
			cut = at
		}
	}
	switch {
	case f.named && !f.placed:
		return nil, 0, ErrNoPlaces
	case f.placed && len(f.places) == 0:
		unknown(f.first)
	}
	for modality, names := range f.names {
		if len(f.places) > 0 && len(f.places[modality]) != len(names) {
			return nil, 0, ErrNoPlaces
		}
	}
	for modality, places := range f.places {
		for i, p := range places {
			names := f.names[modality]
			if names == nil || names[i] == "" || p.Offset < 0 || p.Length <= 0 || p.Length > ids-p.Offset {
				unknown(p.Offset)
				continue
			}
			items = append(items, Item{Name: names[i], Offset: p.Offset, Length: p.Length})
		}
	}
	slices.SortFunc(items, func(a, b Item) int { return cmp.Compare(a.Offset, b.Offset) })
	for i := 1; i < len(items); i++ {
		if items[i].Offset < items[i-1].End() { // no engine says so; what it means nobody knows
			unknown(items[i].Offset)
			break
		}
	}
	if cut >= 0 {
		cut = min(cut, ids)
		items = slices.DeleteFunc(items, func(it Item) bool { return it.Offset >= cut })
	}
	return items, cut, nil
}
