package serve

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/eppctl/eppctl/internal/core/block"
	"github.com/eppctl/eppctl/internal/core/pick"
	"github.com/eppctl/eppctl/internal/core/pod"
	"github.com/eppctl/eppctl/internal/core/recording"
	"github.com/eppctl/eppctl/internal/testdata"
)

// recorded is what a recording of decisions holds.
type recorded struct {
	fleets    []*recording.Fleet
	decisions []*recording.Decision
	outcomes  map[uint64]*recording.Outcome
	dropped   uint64
	account   decisionsAccount
	whole     bool
}

func readRecorded(t testing.TB, from io.Reader) recorded {
	t.Helper()
	x := recorded{outcomes: map[uint64]*recording.Outcome{}}
	r, err := recording.NewReader(from)
	for err == nil {
		var rec *recording.Record
		if rec, err = r.Next(); err != nil {
			break
		}
		var bad error
		switch rec.Type {
		case recording.TypeFleet:
			var f *recording.Fleet
			f, bad = recording.ParseFleet(rec.Body)
			x.fleets = append(x.fleets, f)
		case recording.TypeDecision:
			var d *recording.Decision
			d, bad = recording.ParseDecision(rec.Body, x.fleets[len(x.fleets)-1])
			x.decisions = append(x.decisions, d)
		case recording.TypeOutcome:
			var o *recording.Outcome
			if o, bad = recording.ParseOutcome(rec.Body); bad == nil {
				x.outcomes[o.N] = o
			}
		case recording.TypeNotice:
			x.dropped += rec.Notice.Count
		case recording.TypeAccount:
			bad = json.Unmarshal(rec.Body, &x.account)
		}
		if bad != nil {
			t.Fatal(bad)
		}
	}
	x.whole = errors.Is(err, io.EOF)
	return x
}

func readRecordedFile(t testing.TB, path string) recorded {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	return readRecorded(t, f)
}

// recording makes the rig's picker record into a file, until the test ends or ends it.
func (r *rig) record(path string, change func(*Config)) (end func()) {
	r.t.Helper()
	c, err := LoadConfig("")
	if err != nil {
		r.t.Fatal(err)
	}
	c.Decisions.File = path
	if change != nil {
		change(c)
	}
	d, err := recordDecisions(c, r.picker, "test")
	if err != nil {
		r.t.Fatal(err)
	}
	r.picker.decisions = d
	ended := false
	end = func() {
		if !ended {
			ended = true
			d.close()
		}
	}
	r.t.Cleanup(end)
	return end
}

// end stops the process and waits for it.
func (p *process) end() {
	p.t.Helper()
	p.stop()
	err := <-p.ended
	if err != nil {
		p.t.Errorf("run: %v", err)
	}
	p.ended <- nil // for close
}

const streamedAnswer = "data: {\"choices\":[]}\n\ndata: {\"usage\":{\"prompt_tokens\":170,\"completion_tokens\":21,\"prompt_tokens_details\":{\"cached_tokens\":16}}}\n\ndata: [DONE]\n\n"

// A running serve records each request that a proxy brings, with what became of it,
// and nothing of which a prompt or an id could be read or guessed.
func TestRecordsDecisions(t *testing.T) {
	path := filepath.Join(t.TempDir(), "decisions.eptap")
	p := startProcess(t, 3, func(s string) string { return s + fmt.Sprintf("\ndecisions: {file: %q}\n", path) })
	const n = 12
	both := protocol(modeFullDuplex, modeFullDuplex)
	var prompts [][]uint32
	for i := range n {
		prompt := append(ids(900, 64), ids(1000+i, 106)...) // four blocks are everybody's
		prompts = append(prompts, prompt)
		c := p.talk()
		c.send(reqHeaders(both, false, completionsPath, requestIDHeader, fmt.Sprintf("alice-session-%d", i)), reqBody(completion("sim", prompt), true))
		c.recv()
		switch i % 3 {
		case 0: // a stream
			c.send(respHeaders(false, ":status", "200", "content-type", "text/event-stream"), respBody([]byte(streamedAnswer), true))
		case 1: // one piece
			c.send(respHeaders(false, ":status", "200", "content-type", "application/json"), respBody([]byte(`{"choices":[]}`), true))
		}
		c.rest()
	}
	const secretText = "my-mother-in-law-has-a-secret-recipe"
	c := p.talk()
	c.send(reqHeaders(both, false, completionsPath, requestIDHeader, "bob-1"),
		reqBody([]byte(fmt.Sprintf(`{"model":"nobodys-business","prompt":%q,"cache_salt":"salt-of-bob"}`, strings.Repeat(secretText, 40))), true))
	c.rest()
	p.end()

	x := readRecordedFile(t, path)
	if !x.whole || len(x.decisions) != n+1 || len(x.outcomes) != n+1 || x.account.Decisions != n+1 || x.account.Dropped != 0 {
		t.Fatalf("%d decisions, %d outcomes, account %+v, whole %v", len(x.decisions), len(x.outcomes), x.account, x.whole)
	}
	f := x.fleets[0]
	if len(f.Pods) != 3 || !slices.Equal(f.Terms, pick.TermNames()) || f.Weights["alpha"] != 1 || f.ScrapeMs == 0 {
		t.Errorf("fleet %+v", f)
	}
	for i, d := range x.decisions[:n] {
		o := x.outcomes[d.N]
		switch {
		case d.Model != "sim" || d.Tokens != 170 || !d.Exact || len(d.Blocks) != 10 || d.Picked < 0 || len(d.Scores) != 3*len(f.Terms):
			t.Errorf("decision %d: %+v", i, d)
		case !slices.Equal(d.Blocks[:4], x.decisions[0].Blocks[:4]):
			t.Errorf("decision %d begins as all do, its hashes do not: %x and %x", i, d.Blocks, x.decisions[0].Blocks)
		case i > 0 && d.Blocks[4] == x.decisions[0].Blocks[4]:
			t.Errorf("decision %d: a block of its own has another's hash", i)
		case o == nil:
			t.Errorf("decision %d has no outcome", i)
		case i%3 == 0 && (o.FirstMs == nil || *o.FirstMs > o.TookMs || o.Output == nil || *o.Output != 21 || *o.Cached != 16 || o.Status != 200):
			t.Errorf("outcome %d: %+v", i, o)
		case i%3 != 0 && o.FirstMs != nil:
			t.Errorf("outcome %d: a first byte at %v, of an answer in one piece or none", i, *o.FirstMs)
		}
	}
	if d := x.decisions[n]; d.Model != "" {
		t.Errorf("a model that nobody serves: %+v", d)
	}

	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for what, b := range secrets(prompts) {
		if bytes.Contains(raw, b) {
			t.Errorf("the recording holds %s", what)
		}
	}
	// Long enough that no hash written in base64 has one of them by chance, as it had "bob".
	for _, text := range []string{"alice", "bob-1", secretText, "nobodys", "salt-of-bob", "mother"} {
		for _, form := range []string{text, base64.StdEncoding.EncodeToString([]byte(text))} {
			if bytes.Contains(raw, []byte(form)) {
				t.Errorf("the recording holds %q", form)
			}
		}
	}
}

// secrets are token ids in the forms they might be written in, and hashes of them
// that need no key.
func secrets(prompts [][]uint32) map[string][]byte {
	list := map[string][]byte{}
	for i, ids := range prompts {
		for _, at := range []int{0, 64, 100} {
			run := ids[at : at+4]
			text := strings.Trim(strings.Join(strings.Fields(fmt.Sprint(run)), ","), "[]")
			list[fmt.Sprintf("ids %d at %d as text", i, at)] = []byte(text)
			var le, be []byte
			for _, id := range run {
				le, be = binary.LittleEndian.AppendUint32(le, id), binary.BigEndian.AppendUint32(be, id)
			}
			list[fmt.Sprintf("ids %d at %d, little-endian", i, at)] = le
			list[fmt.Sprintf("ids %d at %d, big-endian", i, at)] = be
			list[fmt.Sprintf("ids %d at %d in base64", i, at)] = []byte(base64.StdEncoding.EncodeToString(append(le, be...))[:20])
		}
		for _, sum := range plainHashes(ids) {
			list[fmt.Sprintf("a hash of %d without a key", i)] = []byte(base64.StdEncoding.EncodeToString(sum))[:10]
		}
	}
	return list
}

// plainHashes are what a dictionary would be made of.
func plainHashes(ids []uint32) (list [][]byte) {
	var le, be []byte
	for _, id := range ids[:hashedTokens] {
		le, be = binary.LittleEndian.AppendUint32(le, id), binary.BigEndian.AppendUint32(be, id)
	}
	for _, b := range [][]byte{le, be} {
		a, c := sha256.Sum256(b), fnv.New64a()
		c.Write(b)
		list = append(list, a[:], c.Sum(nil))
	}
	return list
}

// Hashes are equal where prompts are, up to there; two secrets have nothing in
// common; what keeps prompts apart in an engine's cache keeps their hashes apart.
func TestSecretChain(t *testing.T) {
	s := newSecret()
	prompt := func(change func(*block.Prompt)) *block.Prompt {
		p := &block.Prompt{Model: "m", Tokens: ids(1, 100), Cut: -1}
		if change != nil {
			change(p)
		}
		return p
	}
	base := s.chain(prompt(nil))
	if len(base) != 6 || !slices.Equal(base, s.chain(prompt(nil))) {
		t.Fatalf("%x", base)
	}
	for what, change := range map[string]func(*block.Prompt){
		"model":       func(p *block.Prompt) { p.Model = "n" },
		"adapter":     func(p *block.Prompt) { p.LoRA = "x" },
		"salt":        func(p *block.Prompt) { p.Salt = "x" },
		"first token": func(p *block.Prompt) { p.Tokens[0]++ },
		"moved name":  func(p *block.Prompt) { p.Model, p.LoRA = "", "m" },
	} {
		for _, h := range s.chain(prompt(change)) {
			if slices.Contains(base, h) {
				t.Errorf("another %s, and an equal hash", what)
			}
		}
	}
	later := s.chain(prompt(func(p *block.Prompt) { p.Tokens[50]++ }))
	if !slices.Equal(later[:3], base[:3]) || later[3] == base[3] || later[4] == base[4] {
		t.Errorf("a change in block 3: %x and %x", later, base)
	}
	if cut := s.chain(prompt(func(p *block.Prompt) { p.Cut = 40 })); !slices.Equal(cut, base[:2]) {
		t.Errorf("an image at token 40: %x", cut)
	}
	if got := s.chain(&block.Prompt{Tokens: ids(1, 15), Cut: -1}); got != nil {
		t.Errorf("less than a block: %x", got)
	}
	if other := newSecret(); slices.Equal(other.chain(prompt(nil)), base) || other.request("id") == s.request("id") {
		t.Error("two secrets, one hash")
	}
	if id := s.request("id"); id != s.request("id") || id == s.request("ie") || len(id) != 16 {
		t.Error("request ids")
	}
}

// Nobody waits for a disk that does not take the records: what is too much is
// dropped, and counted in the metric and in the file.
func TestRecordingNeverBlocks(t *testing.T) {
	r := newRig(t, rigOptions{})
	path := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	stalled, err := os.OpenFile(path, os.O_RDWR, 0) // it reads later
	if err != nil {
		t.Fatal(err)
	}
	defer stalled.Close()
	end := r.record(path, nil)
	body := completion("m", ids(1, 64))
	r.route(body, requestIDHeader, "through the wire")
	d := r.picker.decisions
	card := &decided{}
	a := &ask{Head: head{Path: completionsPath, ContentType: "application/json", RequestID: "x"}, Body: body}
	q, no := r.picker.decide(t.Context(), a, card)
	if no != nil {
		t.Fatal(no)
	}
	const many = maxJotted + 2000
	for range many {
		d.decided(card, q, nil).end("", card.card.Now)
	}
	if n := r.picker.met.unrecorded.Load(); n == 0 {
		t.Fatal("nothing was dropped")
	}
	r.route(body, requestIDHeader, "while the disk stands still")

	got := make(chan recorded)
	go func() { got <- readRecorded(t, stalled) }()
	waitFor(t, "the queue", func() bool { return len(d.queue) == 0 })
	r.route(body, requestIDHeader, "afterwards")
	end()
	x := <-got
	if !x.whole || x.dropped == 0 || x.dropped != r.picker.met.unrecorded.Load() || x.dropped != x.account.Dropped {
		t.Errorf("whole %v, dropped %d, counted %d, account %+v", x.whole, x.dropped, r.picker.met.unrecorded.Load(), x.account)
	}
	if n := uint64(len(x.decisions) + len(x.outcomes)); n+x.dropped != 2*(many+3) || n != r.picker.met.recorded.Load() {
		t.Errorf("%d records and %d dropped of %d", n, x.dropped, 2*(many+3))
	}
	if d.waiting.Load() != 0 {
		t.Errorf("%d bytes still wait", d.waiting.Load())
	}
}

// Prompts that wait have a limit of their own.
func TestRecordingBoundsPrompts(t *testing.T) {
	d := &decisions{queue: make(chan jotted, 100), met: newMetrics()}
	long := &noted{prompt: block.Prompt{Tokens: make([]uint32, maxJottedBytes/4/3)}}
	for range 5 {
		d.put(jotted{decided: long})
	}
	if len(d.queue) != 3 || d.dropped.Load() != 2 || d.waiting.Load() != 3*(&jotted{decided: long}).bytes() {
		t.Errorf("%d wait, %d dropped, %d bytes", len(d.queue), d.dropped.Load(), d.waiting.Load())
	}
}

// A recording that cannot go on ends, and picking does not; one that cannot begin
// keeps serve from starting, with the file's name and a way out.
func TestRecordingFails(t *testing.T) {
	log := &testdata.Buffer{}
	r := newRig(t, rigOptions{options: Options{Log: slog.New(slog.NewTextHandler(log, nil))}})
	path := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	reader, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	end := r.record(path, nil)
	reader.Close()
	body := completion("m", ids(1, 64))
	r.route(body)
	waitFor(t, "the failure", func() bool { return strings.Contains(log.String(), "the recording cannot be written") })
	r.route(body)
	end()
	if n := strings.Count(log.String(), "the recording cannot be written"); n != 1 || r.picker.met.unrecorded.Load() == 0 {
		t.Errorf("told %d times, %d counted\n%s", n, r.picker.met.unrecorded.Load(), log)
	}

	c, _ := LoadConfig("")
	c.Listen = Listen{ExtProc: "127.0.0.1:0"}
	c.Decisions.File = filepath.Join(t.TempDir(), "absent", "a.eptap")
	var bad *recordError
	if err := Run(t.Context(), c, Options{}); !errors.As(err, &bad) || !errors.Is(err, os.ErrNotExist) || strings.Count(err.Error(), "absent") != 1 || !strings.Contains(err.Error(), "create its folder") {
		t.Errorf("%v", err)
	}
}

// Each file of a rotation can be read alone, and no more are kept than asked for.
func TestRecordingRotates(t *testing.T) {
	r := newRig(t, rigOptions{})
	dir := t.TempDir()
	end := r.record(filepath.Join(dir, "a.eptap"), func(c *Config) { c.Decisions.RotateSize, c.Decisions.Keep = 4<<10, 3 })
	for i := range 40 {
		r.route(completion("m", ids(i, 64)))
	}
	end()
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(files) != 3 {
		t.Fatalf("%v %v", files, err)
	}
	for _, name := range files {
		st, err := os.Stat(name)
		if x := readRecordedFile(t, name); err != nil || !x.whole || len(x.fleets) != 1 || st.Mode().Perm() != 0o600 || st.Size() > 12<<10 {
			t.Errorf("%s: whole %v, %d fleets, %d decisions, %v", name, x.whole, len(x.fleets), len(x.decisions), st)
		}
	}
}

// A refusal is recorded as one, and a change of the fleet or its weights begins a new
// table of pods.
func TestRecordsFleets(t *testing.T) {
	r := newRig(t, rigOptions{})
	path := filepath.Join(t.TempDir(), "a.eptap")
	end := r.record(path, nil)
	body := completion("m", ids(1, 64))
	r.route(body)
	r.route(body)
	r.add(pod.Spec{Name: "d", Address: "10.0.0.4:8000", Model: "m", Engine: pod.EngineVLLM})
	r.route(body)
	rules := *r.picker.rules.Load()
	rules.policy, _ = rules.policy.With(pick.Weight{Key: "alpha", Value: 3})
	r.picker.rules.Store(&rules)
	r.route(body)
	refused := r.ask(withSubset(reqHeaders(fullDuplex, false, completionsPath), "10.9.9.9:1"), reqBody(body, true))
	wantKinds(t, refused, "immediate 503")
	end()
	x := readRecordedFile(t, path)
	if len(x.fleets) != 3 || len(x.fleets[0].Pods) != 3 || len(x.fleets[1].Pods) != 4 || x.fleets[1].Weights["alpha"] != 1 || x.fleets[2].Weights["alpha"] != 3 {
		t.Errorf("%d fleets: %+v", len(x.fleets), x.fleets)
	}
	if d := x.decisions[len(x.decisions)-1]; d.Picked != -1 || d.Status != 503 || x.outcomes[d.N] != nil {
		t.Errorf("the refusal: %+v", d)
	}
}

// BenchmarkRecording is what a pick pays for being recorded: the hand-over, with 64
// pods on the card.
func BenchmarkRecording(b *testing.B) {
	var specs []pod.Spec
	for i := range 64 {
		specs = append(specs, pod.Spec{Name: fmt.Sprint(i), Address: fmt.Sprintf("10.0.0.%d:8000", i+1), Model: "m", Engine: pod.EngineVLLM})
	}
	r := newRig(b, rigOptions{pods: specs})
	r.record(filepath.Join(b.TempDir(), "a.eptap"), nil)
	card := &decided{}
	a := &ask{Head: head{Path: completionsPath, ContentType: "application/json", RequestID: "x"}, Body: completion("m", ids(1, 4096))}
	q, no := r.picker.decide(b.Context(), a, card)
	if no != nil {
		b.Fatal(no)
	}
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		r.picker.decisions.decided(card, q, nil)
	}
	b.ReportMetric(float64(r.picker.met.unrecorded.Load())/float64(b.N), "dropped/op")
}

// BenchmarkSecretChain is what the recording's own goroutine pays per prompt.
func BenchmarkSecretChain(b *testing.B) {
	s, p := newSecret(), &block.Prompt{Model: "m", Tokens: ids(1, 4096), Cut: -1}
	began := time.Now()
	for range b.N {
		s.chain(p)
	}
	b.ReportMetric(float64(time.Since(began).Nanoseconds())/float64(b.N)/256, "ns/block")
}
