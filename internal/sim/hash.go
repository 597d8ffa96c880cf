package sim

import (
	"crypto/sha256"
	"encoding/binary"
)

// digest names a block by its content and everything before it.
type digest [sha256.Size]byte

// namespace is what separates equal prompts in an engine's cache.
type namespace struct {
	adapter string
	salt    string
}

// root is what the first block is chained to. The zero namespace has no root:
// SGLang 0.5.23 hashes its first page without one, and a salted prompt's first
// page on the salt's digest.
func (n namespace) root() []byte {
	if n == (namespace{}) {
		return nil
	}
	h := sha256.New()
	h.Write([]byte("sglang-cache-salt-v1\x00" + n.salt))
	if n.adapter != "" {
		h.Write([]byte("\x00adapter\x00" + n.adapter))
	}
	return h.Sum(nil)
}

// chain returns the digest of a block behind prior (nil: the first block). This
// is SGLang's page hash. vLLM's differs from process to process and is an
// opaque alias to everyone else, so the simulator uses the same one for it.
func chain(prior []byte, tokens []uint32) digest {
	h := sha256.New()
	h.Write(prior)
	var b [4]byte
	for _, t := range tokens {
		binary.LittleEndian.PutUint32(b[:], t)
		h.Write(b[:])
	}
	return digest(h.Sum(nil))
}

// chainAll extends have to the digests of every full block of tokens.
func chainAll(have []digest, ns namespace, tokens []uint32, size int) []digest {
	for (len(have)+1)*size <= len(tokens) {
		prior := ns.root()
		if n := len(have); n > 0 {
			prior = have[n-1][:]
		}
		at := len(have) * size
		have = append(have, chain(prior, tokens[at:at+size]))
	}
	return have
}

// short is the hash as it stands in an event: the first 8 bytes.
func (d digest) short() uint64 { return binary.BigEndian.Uint64(d[:8]) }
