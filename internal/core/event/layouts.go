package event

import "slices"

// layouts are the forms of events that have a name of their own: README.md says
// who writes each. Any other number of elements is read by the slots it has.
var layouts = []string{
	"array6 (W1/S1)", "array2 (W1/S1)", "array6 (W2/S2)", "array2 (W2/S2)", "array7 (W3/S3)", "array3 (W3/S3)",
	"vllm/array8 (W4)", "vllm/array9 (W5)", "vllm/array10 (W6)", "vllm/array4 (W6)", "vllm/array12 (W7)", "vllm/array6 (W7)",
	"vllm/map (W8)", "vllm/map (W8x)", "vllm/map (W9)", "sglang/array8 (S4)", "sglang/map (S5)", "sglang/map (S6)",
	"map (W8/S5)", "map (W8/S6)", "map", "trtllm/map", LayoutPull, "dynamo/map", "mooncake", "llmd-fs/bin",
	"atom/array4", "atom/array5", "atom/map", "atom/array2",
}

// Layouts lists the named wire layouts that this build reads.
func Layouts() []string { return slices.Clone(layouts) }
