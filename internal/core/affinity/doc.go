// Package affinity remembers where prompts were sent whose token ids nobody
// could tell. It knows bytes and pods: the bytes of a prompt are cut into chunks,
// each chunk has a key that covers all that stands before it, and a table keeps
// for each key the pods it was placed on last. What it answers is a guess from
// our own routing history: no engine announced it, and no key of it is one of the
// index's.
package affinity
