package event

import "github.com/tinylib/msgp/msgp"

// Layouts of array events by their number of elements. README.md has the table.
var (
	otherArrays = [...]string{
		"array0", "array1", "array2", "array3", "array4", "array5", "array6", "array7",
		"array8", "array9", "array10", "array11", "array12",
	}
	storedArrays = [len(otherArrays)]string{
		6: "array6 (W2/S2)", 7: "array7 (W3/S3)", 8: "vllm/array8 (W4)", 9: "vllm/array9 (W5)",
		10: "vllm/array10 (W6)", 12: "vllm/array12 (W7)",
	}
	removedArrays = [len(otherArrays)]string{
		2: "array2 (W2/S2)", 3: "array3 (W3/S3)", 4: "vllm/array4 (W6)", 6: "vllm/array6 (W7)",
	}
	clearedArrays     = [len(otherArrays)]string{2: "atom/array2"}
	transferredArrays = [len(otherArrays)]string{4: "atom/array4", 5: "atom/array5"}
)

// layout names the family that writes an event so; see README.md. slots is the
// length of the batch, 0 for a map.
func (r *rawEvent) layout(slots int) string {
	switch {
	case r.bin:
		return "llmd-fs/bin"
	case r.length == 0:
		return r.mapLayout(slots)
	case r.length >= len(otherArrays):
		return "array13+"
	}
	known := ""
	switch r.kind {
	case Stored:
		known = storedArrays[r.length]
		switch {
		case r.length == 6 && slots == 2:
			known = "array6 (W1/S1)"
		case r.length == 8 && msgp.NextType(r.fields[fLoRAName]) == msgp.MapType:
			known = "sglang/array8 (S4)"
		}
	case Removed:
		known = removedArrays[r.length]
		if r.length == 2 && slots == 2 {
			known = "array2 (W1/S1)"
		}
	case Cleared:
		known = clearedArrays[r.length]
	case transferred:
		known = transferredArrays[r.length]
	}
	if known == "" {
		return otherArrays[r.length]
	}
	return known
}

// mapLayout tells map events by the keys only some write.
func (r *rawEvent) mapLayout(slots int) string {
	has := func(f field) bool { return r.fields[f] != nil }
	switch {
	case has(fMooncake):
		return "mooncake"
	case r.kind == transferred:
		return "atom/map"
	case has(fMMKeys):
		return "trtllm/map"
	case has(fMMInfos):
		return "dynamo/map"
	case slots == 0:
		return "vllm/map (W8x)"
	case has(fCacheSalt) && has(fLoRAName):
		return "sglang/map (S6)"
	case has(fCacheSalt):
		return "sglang/map (S5)"
	case has(fLocality), has(fOwnership), has(fSession) && has(fGroup):
		return "vllm/map (W9)"
	case has(fGroup), has(fExtraKeys), has(fSpecKind):
		return "vllm/map (W8)"
	case r.kind == Cleared:
		return "map"
	case r.kind == Stored && has(fLoRAName):
		return "map (W8/S6)"
	case !has(fMedium):
		return "dynamo/map"
	case r.kind == Stored:
		return "sglang/map (S5)"
	}
	return "map (W8/S5)"
}
