// Package sim simulates a fleet of inference engines on loopback. Each engine
// speaks the interfaces of a real one: the OpenAI API, /tokenize, the metrics
// page and KV events over ZeroMQ with replay. Behind them stand a block-exact
// prefix cache, a continuous-batching scheduler and a time model, so that what
// a request costs depends on what the engine has cached and on its load.
//
//	request -> tokenizer -> scheduler (queue, budget, pool) -> step time -> tokens out
//	                             '-> pool: stores and evictions -> KV events
//
// The demo, the end-to-end tests and `eppctl sim` use it. The product does not:
// only cmd/eppctl's sim command and tests import it.
package sim
