// Package parity tells whether the token ids that are computed here are those that an
// engine computes. Two ways, which do not know of each other:
//
//	Probes    texts and chats of our own, tokenized here and by an engine; Compare
//	          says where the two part.
//	Watch     requests of clients, as they go by: what the engine announces in its KV
//	          events after a request was routed holds the ids the engine used.
//
// Both are pure: who asks engines and reads events is the caller.
package parity
