package view

// OtherModels stands for the models that are not configured.
const OtherModels = "other"

// TokenizerState tells who is asked for the token ids of one model, and how that went.
type TokenizerState struct {
	Model     string          `json:"model"` // OtherModels, or a name
	Providers []ProviderState `json:"providers"`
}

// ProviderStates are the words of ProviderState.State. A native tokenizer is loading,
// ready, refuted or unloadable, a remote one untried, ready or failing by its latest
// prompt.
var ProviderStates = [...]string{"untried", "loading", "ready", "failing", "refuted", "unloadable"}

// ProviderState is one provider, in the order in which they are asked.
type ProviderState struct {
	Name   string            `json:"name"`
	State  string            `json:"state"`            // see ProviderStates
	Why    string            `json:"why,omitempty"`    // reason word of a state that is not ready
	Detail string            `json:"detail,omitempty"` // the same in words
	Told   uint64            `json:"told"`             // prompts whose ids it gave
	Failed map[string]uint64 `json:"failed"`           // prompts it could not tell, by reason
	Parity *Parity           `json:"parity"`           // null = nobody compares it
	Files  *TokenizerFiles   `json:"files,omitempty"`  // of the native one, once loaded
}

// TokenizerFiles is what a native tokenizer was made of.
type TokenizerFiles struct {
	Source     string `json:"source"`
	Commit     string `json:"commit,omitempty"`
	Vocabulary string `json:"vocabulary"`
	SHA256     string `json:"sha256"`
	Digest     string `json:"digest"` // SHA-256 over all files
	Split      string `json:"split"`
	Template   string `json:"template,omitempty"`
	NoChat     string `json:"no_chat,omitempty"` // why chats are not rendered
	Doubt      string `json:"doubt,omitempty"`   // why the ids may not be the engine's
}
