package sim

// sequence is one request inside an engine. The scheduler owns it from submit
// on; other goroutines only read out and closed.
type sequence struct {
	ns      namespace
	session string
	tokens  []uint32 // prompt, then what was generated
	prompt  int      // length of the prompt
	limit   int      // tokens to generate
	seed    uint32   // of the generated text

	computed int      // tokens whose KV is in the pool
	chunk    int      // tokens the step under way computes
	blocks   []int32  // held, in order
	hashes   []digest // of the full blocks of tokens
	stored   int      // leading blocks that are findable
	cached   int      // tokens found at the first admission, -1 before
	aborted  bool

	out chan piece // one per generated token; closed at the end
}

// piece is one generated token on its way to the client.
type piece struct {
	text   string
	cached int // tokens of the prompt found in the cache
}

func newSequence(ns namespace, prompt []uint32, limit int) *sequence {
	s := &sequence{ns: ns, tokens: prompt, prompt: len(prompt), limit: limit, cached: -1}
	s.seed = 1
	for _, t := range prompt {
		s.seed = s.seed*16777619 ^ t
	}
	// Room for every token: the scheduler never blocks on a slow client.
	s.out = make(chan piece, limit)
	return s
}

func (s *sequence) generated() int { return len(s.tokens) - s.prompt }

// decoding: everything but the last sampled token has its KV.
func (s *sequence) decoding() bool {
	return s.computed >= s.prompt && s.computed == len(s.tokens)-1 && s.generated() > 0
}

// missing is the number of tokens still to compute before the next sample.
func (s *sequence) missing() int { return len(s.tokens) - s.computed }

// sample appends one generated token and hands it to the client. The text is a
// deterministic walk over words whose encoding is exactly one token each.
func (s *sequence) sample() {
	s.seed = s.seed*1664525 + 1013904223
	text := " " + answerWords[s.seed>>24]
	s.tokens = encode(s.tokens, text)
	s.out <- piece{text: text, cached: s.cached}
}

var answerWords = func() (w [256]string) {
	const on, nu = "bdfgklmnprstvwxz", "aeiou"
	for i := range w {
		w[i] = string([]byte{on[i%16], nu[i/16%5], on[(i/3)%16], nu[(i/7)%5], 'a' + byte(i%26)})
	}
	return w
}()
