package chat

import "slices"

// Warning is something about a prompt that its reader should know.
type Warning string

// The warnings.
const (
	// DateInPrompt: the prompt changes at the engine's midnight.
	DateInPrompt Warning = "the date is in the prompt"
	// MediaReached: Exact ends before the first image, sound or video.
	MediaReached Warning = "the prompt is known up to its first image, sound or video"
	// Unverified: the engine's preparation of such a request is not known.
	Unverified Warning = "how the engine prepares such a request is not verified"
	// ArgumentsReplaced: arguments of a tool call were no JSON object.
	ArgumentsReplaced Warning = "arguments of a tool call became an empty object"
	// RolesMerged: developer messages became system messages.
	RolesMerged Warning = "developer messages became one system message"
	// BillingHeaderRemoved: Claude Code's first line was taken out.
	BillingHeaderRemoved Warning = "a billing header was removed from the system text"
	// ReasoningLeftOut: the template printed not all reasoning of the request,
	// so the prompt differs from what was generated before.
	ReasoningLeftOut Warning = "the template left reasoning out"
)

// warn adds a warning once.
func warn(list *[]Warning, w Warning) {
	if !slices.Contains(*list, w) {
		*list = append(*list, w)
	}
}
