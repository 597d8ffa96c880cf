// Package chat turns the body of a chat request into the text an engine
// tokenizes for it.
//
//	body ─ read ─> request ─ prepare (what the engine does to a chat) ─> variables
//	                                                                        │
//	model files ─ ReadFiles ─> templates ─ New ─> Renderer ── jinja2 ───────┴──> Prompt
//
// It opens no file and reads no clock: files are bytes, the engine's time is an
// argument. Nothing of a request is in an error's text.
package chat
