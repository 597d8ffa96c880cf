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
	fMMKeys   // TensorRT-LLM
	fMMInfos  // Dynamo
	fFrom     // ATOM
	fTo       // ATOM
	fSession  // known, and of no use to the index
	fMooncake // any of the names that only Mooncake's master writes
	numFields
	fIgnored // names that are known and say nothing the index needs
	noField  // a name nobody has told of
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
	removedSlots     = []field{fHashes, fMedium, fGroup, fSpecKind, fWindow}
	clearedSlots     = []field{fMedium}                     // ROCm ATOM
	transferredSlots = []field{fHashes, fFrom, fTo, fGroup} // ROCm ATOM
)

// slotsOf returns the slots of an array event behind its tag.
func slotsOf(k Kind) []field {
	switch k {
	case Stored:
		return storedSlots
	case Removed:
		return removedSlots
	case Cleared:
		return clearedSlots
	case transferred:
		return transferredSlots
	}
	return nil
}

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
	case "mm_keys": // TensorRT-LLM PR 17023
		return fMMKeys
	case "block_mm_infos": // Dynamo
		return fMMInfos
	case "from_medium":
		return fFrom
	case "to_medium":
		return fTo
	case "session_id": // vLLM, SGLang
		return fSession
	case "object_key", "seq_hashes", "backend_id", "base_block_idx", "tenant_id":
		return fMooncake
	case "event_id", "event_type", "timestamp", "model_name", "additional_salt", "group_id", "dp_rank", "parent_hash", // Mooncake
		"token_offset",                     // ROCm ATOM
		"hash_block_size", "event_version", // seen in forks of vLLM
		"source_kind", "component_types": // Dynamo, SGLang PR 32514
		return fIgnored
	}
	return noField
}

// transferred is ATOM's BlockTransferred, which becomes a store and a removal.
const transferred Kind = 255

// rawEvent is one event taken apart but not yet read: where each field lies in
// the payload. A nil entry is a field the event does not have.
type rawEvent struct {
	kind   Kind
	tag    []byte
	length int // elements of an array event with the tag; 0 for a map
	bin    bool
	fields [numFields][]byte
	// What nobody has told of: keys of a map event, and the first slot of an
	// array event behind those known, 0 = none.
	keys     [maxUnknown][]byte
	unknown  int // of keys
	moreKeys int // that did not fit
	newSlot  int
}

// reset is cheaper than to clear the keys too.
func (r *rawEvent) reset() {
	r.kind, r.tag, r.length, r.bin = 0, nil, 0, false
	r.fields = [numFields][]byte{}
	r.unknown, r.moreKeys, r.newSlot = 0, 0, 0
}

// scan takes the event at the start of b apart and returns what follows it. A
// reason means that the event is none we can read; rest is good all the same.
// An error means that there is no telling where the event ends.
func (r *rawEvent) scan(b []byte, depth int) (rest []byte, reason string, err error) {
	r.reset()
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
	reason = r.setTag(tag)
	slots := slotsOf(r.kind)
	for i := range n - 1 {
		value := rest
		if rest, err = skip(rest, depth+1); err != nil {
			return nil, "", err
		}
		if i < len(slots) {
			r.fields[slots[i]] = value[:len(value)-len(rest)]
		}
	}
	if slots != nil && n-1 > len(slots) {
		r.newSlot = len(slots) + 1
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
			continue
		}
		switch f := fieldOf(name); {
		case f < numFields:
			r.fields[f] = value[:len(value)-len(rest)]
		case f == fIgnored:
		case r.unknown < len(r.keys):
			r.keys[r.unknown] = name
			r.unknown++
		default:
			r.moreKeys++
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
	case "BlockTransferred":
		r.kind = transferred
	default:
		return SkipUnknownTag
	}
	return ""
}
