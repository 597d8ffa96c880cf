// Package core documents the one core that serve and explain share, and every
// later command that looks at a fleet will. It holds no code; each stage is a
// package of its own:
//
//	event bytes  -> event.Decoder -> []event.Event -> index.ApplyBatch -.
//	metrics page -> telemetry.Parse -> Sample -> telemetry.Board -------+-> view.View
//	config       -> pod.Table ------------------------------------------'      |
//	request body -> prompt.Request -> tokenizer -> block.Prompt ---------------+-> pick.Decide(view, query, *Card)
//	                                                                           |     match -> filter -> score -> pick
//	   serve:   Card -> ext_proc answer (and the ring of recent cards) <-------'
//	   explain: the same Card, all rows -> table or JSON
//
// Imports point one way; a package may use only what stands left of it:
//
//	reason, spelling, pod, block, pyjson < event, telemetry, tokenizer, recording, chat < prompt, encode, index, affinity, parity < view < pick < feed < modelsource, recorder < serve, inspect < cmd
//
// feed is the only package under core with sockets, files, clocks and
// goroutines; everywhere else time is a value and a call returns with nothing
// left running. internal/arch holds the test of both rules. Flow control will
// stand between pick and feed as a pure package.
package core
