package event

import "github.com/tinylib/msgp/msgp"

// field is one field of an event, whatever the layout that carries it.
type field uint8

const (
	fHashes field = iota
	fParent
	fTokens
	fBlockSize
	fLoRAID
	fMedium
	fLoRAName // SGLang's metadata map in an array of 8
	fExtraKeys
	fGroup
	fSpecKind
	fWindow
	fLocality
	fOwnership
	fCacheSalt
	numFields
	noField = numFields
)

// The slots of array events behind the tag. Engines only ever appended, so the
// length of the array tells the version; shorter ones end early, longer ones go
// on with slots nobody knows yet.
var (
	storedSlots = []field{
		fHashes, fParent, fTokens, fBlockSize, fLoRAID, // 6: vLLM PR 16750
		fMedium,            // 7: vLLM PR 19737, SGLang PR 18205
		fLoRAName,          // 8: vLLM PR 27577, SGLang PR 30827
		fExtraKeys,         // 9: vLLM PR 33304
		fGroup,             // 10: vLLM PR 37688
		fSpecKind, fWindow, // 12: vLLM PR 40984
	}
	removedSlots = []field{fHashes, fMedium, fGroup, fSpecKind, fWindow}
	clearedSlots = []field{fMedium} // ROCm ATOM
)

// fieldOf maps the keys of map events (vLLM PR 42892, SGLang PR 37482).
func fieldOf(key []byte) field {
	switch string(key) {
	case "block_hashes":
		return fHashes
	case "parent_block_hash":
		return fParent
	case "token_ids":
		return fTokens
	case "block_size":
		return fBlockSize
	case "lora_id":
		return fLoRAID
	case "medium":
		return fMedium
	case "lora_name":
		return fLoRAName
	case "extra_keys":
		return fExtraKeys
	case "group_idx":
		return fGroup
	case "kv_cache_spec_kind":
		return fSpecKind
	case "kv_cache_spec_sliding_window":
		return fWindow
	case "locality":
		return fLocality
	case "ownership":
		return fOwnership
	case "cache_salt":
		return fCacheSalt
	}
	return noField
}

// rawEvent is one event taken apart but not yet read: where each field lies in
// the payload. A nil entry is a field the event does not have.
type rawEvent struct {
	kind   Kind
	tag    []byte
	length int // elements of an array event with the tag; 0 for a map
	bin    bool
	fields [numFields][]byte
}

// scan takes the event at the start of b apart and returns what follows it. A
// reason means that the event is none we can read; rest is good all the same.
// An error means that there is no telling where the event ends.
func (r *rawEvent) scan(b []byte, depth int) (rest []byte, reason string, err error) {
	*r = rawEvent{}
	if msgp.NextType(b) != msgp.BinType {
		return r.scanBare(b, depth)
	}
	// The llm-d file system connector packs each event by itself.
	inner, rest, err := msgp.ReadBytesZC(b)
	if err != nil {
		return nil, "", errShort
	}
	tail, reason, err := r.scanBare(inner, depth)
	if err != nil || len(tail) != 0 {
		reason = SkipMalformed
	}
	r.bin = true
	return rest, reason, nil
}

func (r *rawEvent) scanBare(b []byte, depth int) (rest []byte, reason string, err error) {
	switch msgp.NextType(b) {
	case msgp.ArrayType:
		return r.scanArray(b, depth)
	case msgp.MapType:
		return r.scanMap(b, depth)
	}
	rest, err = skip(b, depth)
	return rest, SkipNotAnEvent, err
}

func (r *rawEvent) scanArray(b []byte, depth int) (rest []byte, reason string, err error) {
	n, rest, err := readHeader(b, msgp.ArrayType)
	if err != nil {
		return nil, "", err
	}
	r.length = n
	if n == 0 {
		return rest, SkipNoTag, nil
	}
	tag := rest
	if rest, err = skip(rest, depth+1); err != nil {
		return nil, "", err
	}
	var slots []field
	switch reason = r.setTag(tag); r.kind {
	case Stored:
		slots = storedSlots
	case Removed:
		slots = removedSlots
	case Cleared:
		slots = clearedSlots
	}
	for i := range n - 1 {
		value := rest
		if rest, err = skip(rest, depth+1); err != nil {
			return nil, "", err
		}
		if i < len(slots) {
			r.fields[slots[i]] = value[:len(value)-len(rest)]
		}
	}
	return rest, reason, nil
}

func (r *rawEvent) scanMap(b []byte, depth int) (rest []byte, reason string, err error) {
	n, rest, err := readHeader(b, msgp.MapType)
	if err != nil {
		return nil, "", err
	}
	reason = SkipNoTag
	for range n / 2 {
		key := rest
		value, err := skip(key, depth+1)
		if err != nil {
			return nil, "", err
		}
		if rest, err = skip(value, depth+1); err != nil {
			return nil, "", err
		}
		name, ok := readText(key)
		if !ok {
			continue
		}
		if string(name) == "type" { // anywhere in the map: order is not promised
			reason = r.setTag(value)
		} else if f := fieldOf(name); f != noField {
			r.fields[f] = value[:len(value)-len(rest)]
		}
	}
	return rest, reason, nil
}

func (r *rawEvent) setTag(b []byte) (reason string) {
	tag, ok := readText(b)
	if !ok {
		return SkipTagType
	}
	r.tag = tag
	switch string(tag) {
	case "BlockStored":
		r.kind = Stored
	case "BlockRemoved":
		r.kind = Removed
	case "AllBlocksCleared":
		r.kind = Cleared
	default:
		return SkipUnknownTag
	}
	return ""
}

var arrayLayouts = [...]string{
	"array0", "array1", "array2", "array3", "array4", "array5", "array6", "array7",
	"array8", "array9", "array10", "array11", "array12",
}

var vllmLayouts = [...]string{8: "vllm/array8", 9: "vllm/array9", 10: "vllm/array10", 11: "vllm/array11", 12: "vllm/array12"}

// layout names what the bytes looked like, with the engine where only one
// writes that form.
func (r *rawEvent) layout() string {
	switch {
	case r.bin:
		return "bin"
	case r.length == 0 && (r.fields[fSpecKind] != nil || r.fields[fExtraKeys] != nil):
		return "vllm/map"
	case r.length == 0 && r.fields[fCacheSalt] != nil:
		return "sglang/map"
	case r.length == 0:
		return "map"
	case r.length == 8 && msgp.NextType(r.fields[fLoRAName]) == msgp.MapType:
		return "sglang/array8"
	case r.length >= len(arrayLayouts):
		return "array13+"
	case r.kind == Stored && r.length >= 8:
		return vllmLayouts[r.length]
	}
	return arrayLayouts[r.length]
}
