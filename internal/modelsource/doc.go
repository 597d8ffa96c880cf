// Package modelsource finds the files that a model's prompts are tokenized with, and
// makes an encoder of them.
//
//	folder, or name and revision ─ Find ─> Place ─ Load ─> Model ─ Watch ─> the current Model
//	                                │                        │
//	          the hub's cache, shared with every other        identity: files, hashes, splitter
//	          tool, and the hub itself
//
// Only files that bear on token ids are looked at and fetched, never weights. What is
// fetched goes into the cache in the layout of huggingface_hub, so that an engine or
// a script on the same machine finds it there, and the other way round.
package modelsource
