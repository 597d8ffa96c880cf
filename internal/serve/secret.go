package serve

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	digest "hash"

	"github.com/eppctl/eppctl/internal/core/block"
	"github.com/eppctl/eppctl/internal/core/recording"
)

// secret hashes what a recording must be able to compare and nobody to guess: with a
// plain hash whoever has a likely prompt, or a dictionary of them, finds it in the
// file. The key is made at random, stands nowhere and ends with the process. Not for
// concurrent use.
type secret struct {
	mac   digest.Hash // HMAC-SHA-256
	state [sha256.Size]byte
	text  []byte
}

// hashedTokens is how many tokens lie between two hashes of a prompt: vLLM's block.
// Engines with larger ones, which are multiples of it, take every so many.
const hashedTokens = 16

// What is hashed, so that no text of one kind passes for another.
const (
	ofSpace byte = iota + 1
	ofBlock
	ofRequest
)

func newSecret() *secret {
	key := make([]byte, sha256.Size)
	_, _ = rand.Read(key) // never fails
	return &secret{mac: hmac.New(sha256.New, key)}
}

// sum hashes text into state.
func (s *secret) sum() {
	s.mac.Reset()
	s.mac.Write(s.text)
	s.mac.Sum(s.state[:0])
}

// chain hashes the full blocks of a prompt, each with all that is before it, so that
// equal hashes mean equal beginnings. What follows content without ids is left out.
func (s *secret) chain(p *block.Prompt) recording.Hashes {
	n := min(len(p.Known())/hashedTokens, recording.MaxBlocks)
	if n == 0 {
		return nil
	}
	s.text = append(s.text[:0], ofSpace)
	for _, name := range []string{p.Model, p.LoRA, p.Salt} {
		s.text = binary.BigEndian.AppendUint32(s.text, uint32(len(name)))
		s.text = append(s.text, name...)
	}
	s.sum()
	out := make(recording.Hashes, n)
	for i := range out {
		s.text = append(append(s.text[:0], ofBlock), s.state[:]...)
		for _, t := range p.Tokens[i*hashedTokens : (i+1)*hashedTokens] {
			s.text = binary.LittleEndian.AppendUint32(s.text, t)
		}
		if x := p.Extra(i*hashedTokens, hashedTokens); x != 0 {
			s.text = binary.LittleEndian.AppendUint64(s.text, uint64(x))
		}
		s.sum()
		out[i] = binary.BigEndian.Uint64(s.state[:])
	}
	return out
}

// request hashes a request id: clients choose it, and put names and sessions in.
func (s *secret) request(id string) string {
	s.text = append(append(s.text[:0], ofRequest), id...)
	s.sum()
	return hex.EncodeToString(s.state[:8])
}
