package sim

import "github.com/tinylib/msgp/msgp"

type eventKind uint8

const (
	storedEvent eventKind = iota
	removedEvent
	clearedEvent
)

// kvEvent is one change of an engine's cache, before it takes a wire form.
type kvEvent struct {
	kind    eventKind
	hashes  []digest
	parent  digest
	first   bool // there is no parent
	tokens  []uint32
	ns      namespace
	session string
}

func removed(hashes []digest) kvEvent { return kvEvent{kind: removedEvent, hashes: hashes} }

// encodeBatch writes the batch of one step: [time, [events], rank]. unix is in
// seconds. The forms are those of vLLM 0.32.0 and SGLang 0.5.23: maps, in the
// engines' own order of keys.
func encodeBatch(b []byte, unix float64, events []kvEvent, size int, sglang bool) []byte {
	b = msgp.AppendArrayHeader(b, 3)
	b = msgp.AppendFloat64(b, unix)
	wire := vllmEvents(events)
	if sglang {
		wire = events
	}
	b = msgp.AppendArrayHeader(b, uint32(len(wire)))
	for _, e := range wire {
		if sglang {
			b = appendSGLang(b, e, size)
		} else {
			b = appendVLLM(b, e, size)
		}
	}
	return msgp.AppendInt(b, 0) // data-parallel rank
}

// vllmEvents splits removals: vLLM sends one event per hash.
func vllmEvents(events []kvEvent) []kvEvent {
	out := make([]kvEvent, 0, len(events))
	for _, e := range events {
		if e.kind != removedEvent {
			out = append(out, e)
			continue
		}
		for i := range e.hashes {
			out = append(out, removed(e.hashes[i:i+1]))
		}
	}
	return out
}

func appendVLLM(b []byte, e kvEvent, size int) []byte {
	switch e.kind {
	case clearedEvent:
		return appendType(b, 1, "AllBlocksCleared")
	case removedEvent:
		b = appendType(b, 4, "BlockRemoved")
		b = appendHashes(b, e.hashes, false)
		b = appendMedium(b)
		return msgp.AppendInt(msgp.AppendString(b, "group_idx"), 0)
	}
	keys := uint32(11)
	if e.session != "" {
		keys++
	}
	b = appendType(b, keys, "BlockStored")
	b = appendStored(b, e, size, false)
	b = msgp.AppendString(b, "lora_id")
	if e.ns.adapter == "" {
		b = msgp.AppendNil(b)
	} else {
		b = msgp.AppendInt(b, 1)
	}
	b = appendMedium(b)
	b = appendStringOrNil(msgp.AppendString(b, "lora_name"), e.ns.adapter)
	b = appendExtraKeys(msgp.AppendString(b, "extra_keys"), e)
	b = msgp.AppendInt(msgp.AppendString(b, "group_idx"), 0)
	b = msgp.AppendString(msgp.AppendString(b, "kv_cache_spec_kind"), "full_attention")
	if e.session != "" {
		b = msgp.AppendString(msgp.AppendString(b, "session_id"), e.session)
	}
	return b
}

// appendExtraKeys writes what vLLM mixes into each block beside its tokens: the
// adapter into every block, the salt into the first of the prompt.
func appendExtraKeys(b []byte, e kvEvent) []byte {
	b = msgp.AppendArrayHeader(b, uint32(len(e.hashes)))
	for i := range e.hashes {
		var keys []string
		if e.ns.adapter != "" {
			keys = append(keys, e.ns.adapter)
		}
		if e.ns.salt != "" && e.first && i == 0 {
			keys = append(keys, e.ns.salt)
		}
		if len(keys) == 0 {
			b = msgp.AppendNil(b)
			continue
		}
		b = msgp.AppendArrayHeader(b, uint32(len(keys)))
		for _, k := range keys {
			b = msgp.AppendString(b, k)
		}
	}
	return b
}

func appendSGLang(b []byte, e kvEvent, size int) []byte {
	switch e.kind {
	case clearedEvent:
		return appendType(b, 1, "AllBlocksCleared")
	case removedEvent:
		b = appendType(b, 3, "BlockRemoved")
		return appendMedium(appendHashes(b, e.hashes, true))
	}
	keys := uint32(7)
	if e.ns.salt != "" {
		keys++
	}
	b = appendType(b, keys, "BlockStored")
	b = appendStored(b, e, size, true)
	b = msgp.AppendNil(msgp.AppendString(b, "lora_id"))
	b = appendMedium(b)
	if e.ns.salt != "" {
		b = msgp.AppendString(msgp.AppendString(b, "cache_salt"), e.ns.salt)
	}
	return b
}

func appendType(b []byte, keys uint32, name string) []byte {
	b = msgp.AppendMapHeader(b, keys)
	return msgp.AppendString(msgp.AppendString(b, "type"), name)
}

// appendStored writes the keys both engines share, in their common order.
func appendStored(b []byte, e kvEvent, size int, signed bool) []byte {
	b = appendHashes(b, e.hashes, signed)
	b = msgp.AppendString(b, "parent_block_hash")
	if e.first {
		b = msgp.AppendNil(b)
	} else {
		b = appendHash(b, e.parent, signed)
	}
	b = msgp.AppendString(b, "token_ids")
	b = msgp.AppendArrayHeader(b, uint32(len(e.tokens)))
	for _, t := range e.tokens {
		b = msgp.AppendUint32(b, t)
	}
	return msgp.AppendInt(msgp.AppendString(b, "block_size"), size)
}

func appendHashes(b []byte, hashes []digest, signed bool) []byte {
	b = msgp.AppendString(b, "block_hashes")
	b = msgp.AppendArrayHeader(b, uint32(len(hashes)))
	for _, h := range hashes {
		b = appendHash(b, h, signed)
	}
	return b
}

// appendHash: SGLang's hashes are signed, a negative one goes out as int64 and
// a positive one as uint64, both in one array.
func appendHash(b []byte, h digest, signed bool) []byte {
	if v := int64(h.short()); signed && v < 0 {
		return msgp.AppendInt64(b, v)
	}
	return msgp.AppendUint64(b, h.short())
}

func appendMedium(b []byte) []byte {
	return msgp.AppendString(msgp.AppendString(b, "medium"), "GPU")
}

func appendStringOrNil(b []byte, s string) []byte {
	if s == "" {
		return msgp.AppendNil(b)
	}
	return msgp.AppendString(b, s)
}
