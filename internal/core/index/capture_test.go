package index_test

import (
	"bufio"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/eppctl/eppctl/internal/core/block"
	"github.com/eppctl/eppctl/internal/core/event"
	"github.com/eppctl/eppctl/internal/core/index"
	"github.com/eppctl/eppctl/internal/core/pod"
	"github.com/eppctl/eppctl/internal/testdata"
)

// TestCaptures holds the index against real engines: the events they published
// go in, and for every request that events can predict, the cached tokens the
// engine reported must come out.
func TestCaptures(t *testing.T) {
	for i, root := range testdata.Dirs(t, "engines") {
		found := 0
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.Name() != "frames.jsonl" {
				return err
			}
			dir := filepath.Dir(path)
			if _, err := os.Stat(filepath.Join(dir, "requests.jsonl")); err != nil {
				return nil
			}
			found++
			name, _ := filepath.Rel(root, dir)
			t.Run(filepath.ToSlash(name), func(t *testing.T) {
				c := loadCapture(t, dir)
				c.own = i == 0
				c.expect(t, c.check(t))
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if found == 0 {
			t.Errorf("no capture under %s", root)
		}
	}
}

type frame struct {
	Seq     uint64 `json:"seq"`
	Payload string `json:"payload_hex"`
	Rank    int    `json:"rank_socket"`
}

type request struct {
	ID      json.RawMessage   `json:"id"`
	Headers map[string]string `json:"headers"`
	Body    struct {
		Model    string          `json:"model"`
		Salt     string          `json:"cache_salt"`
		ExtraKey json.RawMessage `json:"extra_key"`
	} `json:"body"`
	Status  int             `json:"status"`
	Tokens  []uint32        `json:"-"`
	IDs     json.RawMessage `json:"token_ids"` // a list of lists for several prompts
	Cached  int             `json:"cached_tokens"`
	Batches int             `json:"batches_before"`
	Group   json.RawMessage `json:"group"`
	Note    json.RawMessage `json:"note"`
}

type capture struct {
	dir      string
	frames   []frame
	requests []request
	adapters map[string]bool
	engine   pod.Engine
	ranks    int
	own      bool // the project's
}

// base is the model of every capture's blocks; what the engine calls it does
// not matter.
const base = "base"

func loadCapture(t *testing.T, dir string) *capture {
	c := &capture{dir: dir, adapters: map[string]bool{}, ranks: 1, engine: pod.EngineVLLM}
	readLines(t, filepath.Join(dir, "frames.jsonl"), func(line []byte) {
		var f frame
		mustDecode(t, line, &f)
		c.frames = append(c.frames, f)
		c.ranks = max(c.ranks, f.Rank+1)
	})
	readLines(t, filepath.Join(dir, "requests.jsonl"), func(line []byte) {
		var r request
		mustDecode(t, line, &r)
		if r.comparable() {
			mustDecode(t, r.IDs, &r.Tokens)
		}
		c.requests = append(c.requests, r)
	})
	about, err := os.ReadFile(filepath.Join(dir, "engine.json"))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(about), "/server_info") {
		c.engine = pod.EngineSGLang
	}
	// Adapters are what the events name; a request for one that never stored
	// anything is as cold for the base model as for itself.
	var d event.Decoder
	var b event.Batch
	for i, f := range c.frames {
		c.decode(t, &d, &b, i, f)
		for _, e := range b.Events {
			if e.LoRA != "" {
				c.adapters[e.LoRA] = true
			}
		}
	}
	return c
}

func (c *capture) decode(t *testing.T, d *event.Decoder, b *event.Batch, i int, f frame) {
	payload, err := hex.DecodeString(f.Payload)
	if err == nil {
		err = d.Decode(payload, b)
	}
	if err != nil || len(b.Skipped) > 0 {
		t.Fatalf("%s: message %d: %v, skipped %+v", c.dir, i, err, b.Skipped)
	}
}

func (r *request) comparable() bool {
	return r.Status == 200 && len(r.IDs) > 1 && r.IDs[1] != '[' && // one prompt
		string(r.IDs) != "null" && len(r.Note) == 0 && len(r.Group) == 0
}

// adapter is the LoRA the request asked for.
func (c *capture) adapter(r *request) string {
	if c.adapters[r.Body.Model] {
		return r.Body.Model
	}
	return ""
}

// tally is how many requests were compared and how often the index promised
// more than the engine had; expect.json beside a capture states both.
type tally struct {
	Comparable    int `json:"comparable"`
	OverPredicted int `json:"over_predicted"`
}

// expect keeps a change of the rules above from comparing less and still
// passing. A capture from elsewhere need not state its counts.
func (c *capture) expect(t *testing.T, got tally) {
	stated, err := os.ReadFile(filepath.Join(c.dir, "expect.json"))
	if errors.Is(err, fs.ErrNotExist) && !c.own {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	var want tally
	mustDecode(t, stated, &want)
	if got != want {
		t.Errorf("%+v, stated %+v", got, want)
	}
}

func (c *capture) check(t *testing.T) (got tally) {
	ix := index.New(index.Options{Seed: 1, TTL: -1})
	for m := range c.ranks {
		ix.Register(pod.Member(m), index.Owner{Model: base, Engine: c.engine})
	}
	var d event.Decoder
	var b event.Batch
	var out index.Result
	seq := make([]int64, c.ranks)
	for i := range seq {
		seq[i] = -1
	}
	applied, under := 0, 0
	verdicts := map[index.Verdict]int{}
	var wrong []string
	for i := range c.requests {
		r := &c.requests[i]
		for ; applied < min(r.Batches, len(c.frames)); applied++ {
			f := c.frames[applied]
			m := pod.Member(f.Rank)
			if int64(f.Seq) <= seq[f.Rank] {
				ix.Purge(m) // a new life of the engine
			}
			seq[f.Rank] = int64(f.Seq)
			c.decode(t, &d, &b, applied, f)
			if b.Rank >= 0 && b.Rank != f.Rank {
				t.Fatalf("message %d: rank %d from the socket of rank %d", applied, b.Rank, f.Rank)
			}
			for j := range b.Events {
				verdicts[ix.Apply(m, &b.Events[j], int64(applied)).Verdict]++
			}
		}
		if !r.comparable() {
			continue
		}
		m, ok := c.member(r)
		if !ok {
			continue // the engine chose the rank
		}
		got.Comparable++
		tokens := c.predict(ix, m, r, &out)
		switch {
		case tokens > r.Cached:
			got.OverPredicted++
		case tokens < r.Cached:
			under++
		default:
			continue
		}
		wrong = append(wrong, fmt.Sprintf("request %s: predicted %d of %d tokens, the engine had %d", r.ID, tokens, len(r.Tokens), r.Cached))
	}
	if got.Comparable == 0 {
		t.Fatal("no comparable request")
	}
	t.Logf("%d messages: %v", applied, verdicts)
	if c.own && verdicts[index.Parked]+verdicts[index.OrphanLost] > 0 {
		t.Errorf("orphans, though every message from the engine's start is there")
	}
	hybrid := false
	for m := range c.ranks {
		s, _ := ix.Member(pod.Member(m))
		hybrid = hybrid || len(s.Others) > 0
	}
	if hybrid && under == 0 {
		// A block of the full-attention group counts although a sliding window
		// has lost its neighbours: too much may be promised, never too little.
		t.Logf("hybrid cache groups: %d of %d requests are promised too much", got.OverPredicted, got.Comparable)
		return got
	}
	for _, w := range wrong {
		t.Error(w)
	}
	t.Logf("%d of %d requests predicted exactly", got.Comparable-len(wrong), got.Comparable)
	return got
}

// member is the rank that served the request, if the request named it or there
// is just one.
func (c *capture) member(r *request) (pod.Member, bool) {
	if c.ranks == 1 {
		return 0, true
	}
	for k, v := range r.Headers {
		if strings.EqualFold(k, "X-data-parallel-rank") {
			n, err := strconv.Atoi(v)
			return pod.Member(n), err == nil
		}
	}
	return 0, false
}

// predict is what the engine would find cached: whole blocks, and never the
// last token, which it always computes.
func (c *capture) predict(ix *index.Index, m pod.Member, r *request, out *index.Result) int {
	if len(r.Body.ExtraKey) > 0 {
		return 0 // keeps apart what SGLang's events do not
	}
	ix.Lookup(&block.Prompt{Model: base, LoRA: c.adapter(r), Salt: r.Body.Salt, Tokens: r.Tokens, Cut: -1}, out)
	for _, x := range out.Matches {
		if x.Member == m {
			return min(x.Depth, (len(r.Tokens)-1)/x.Size) * x.Size
		}
	}
	return 0
}

func readLines(t *testing.T, path string, each func([]byte)) {
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s := bufio.NewScanner(f)
	s.Buffer(nil, 64<<20)
	for s.Scan() {
		if len(s.Bytes()) > 0 {
			each(s.Bytes())
		}
	}
	if err := s.Err(); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

func mustDecode(t *testing.T, line []byte, v any) {
	if err := json.Unmarshal(line, v); err != nil {
		t.Fatalf("%v in %.80s", err, line)
	}
}
