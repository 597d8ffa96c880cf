// Package encode turns the body of a request into the token ids that an engine will
// compute for it, from the model's own files and without asking anybody: a chat is
// rendered by package chat, and text is encoded by package native.
//
//	completions: body ─ prompt ─────────────────> text ─ native ─> ids
//	chat:        body ─ chat.Renderer ─ template ─> text ─ native ─> ids
//
// It opens nothing and reads no clock of its own. Nothing of a request is in an
// error's text.
package encode
