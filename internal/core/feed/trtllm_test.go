package feed

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
)

// trtllm behaves as TensorRT-LLM's pull API is described: a cache of blocks that
// ends a chain with a partial one, moves what it evicts to the host, and keeps a
// bounded list of events which whoever asks takes away. None runs here; that a
// real one does the same is what the description says.
type trtllm struct {
	*httptest.Server
	size, gpu, host int // tokens per block; blocks per level
	buffer          int // events kept
	rank            int // attention data-parallel rank, -1 = not said

	mu     sync.Mutex
	nextID uint64
	events []map[string]any
	blocks map[uint64]*trtBlock
	tick   int
	polls  int
	// answer replaces the next answers, one each.
	answer []func(w http.ResponseWriter, page []byte)
}

type trtBlock struct {
	hash, parent uint64
	root         bool
	tokens       []uint32
	level, used  int
}

func newTRTLLM(t *testing.T) *trtllm {
	t.Helper()
	e := &trtllm{size: 4, gpu: 24, host: 8, buffer: 1 << 16, rank: -1}
	e.start()
	e.Server = httptest.NewServer(e)
	t.Cleanup(e.Close)
	return e
}

// start begins a life of the engine.
func (e *trtllm) start() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.nextID, e.events, e.blocks = 0, nil, map[uint64]*trtBlock{}
	e.say("created", map[string]any{"num_blocks_per_cache_level": []int{e.gpu, e.host}})
}

// say appends an event; a full list loses its oldest. e.mu is held.
func (e *trtllm) say(kind string, data map[string]any) {
	data["type"] = kind
	event := map[string]any{"event_id": e.nextID, "data": data, "window_size": 1024}
	if e.rank >= 0 {
		event["attention_dp_rank"] = e.rank
	}
	e.nextID++
	e.events = append(e.events, event)
	if len(e.events) > e.buffer {
		e.events = e.events[len(e.events)-e.buffer:]
	}
}

// serve takes a prompt in and returns how many of its blocks were cached.
func (e *trtllm) serve(tokens []uint32) (cached int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.tick++
	var path []*trtBlock
	for rest := tokens; len(rest) >= e.size; rest = rest[e.size:] {
		b := e.blocks[chain(path, rest[:e.size])]
		if b == nil {
			break
		}
		path = append(path, b)
	}
	cached = len(path)
	for _, b := range path {
		b.used = e.tick
	}
	for _, b := range path {
		if b.level == 1 { // onboarding
			e.room()
			e.move(b, 0)
		}
	}
	var stored []any
	var parent any
	if cached > 0 {
		parent = path[cached-1].hash
	}
	for rest := tokens[cached*e.size:]; len(rest) > 0; {
		part := rest[:min(e.size, len(rest))]
		rest = rest[len(part):]
		b := &trtBlock{hash: chain(path, part), root: len(path) == 0, tokens: part, used: e.tick}
		if len(path) > 0 {
			b.parent = path[len(path)-1].hash
		}
		if e.blocks[b.hash] != nil { // the partial block of before
			break
		}
		e.room()
		e.blocks[b.hash] = b
		path = append(path, b)
		var list []any
		for _, id := range part {
			list = append(list, map[string]any{"type": "unique_token", "token_id": id, "token_extra_id": 0})
		}
		stored = append(stored, map[string]any{"type": "stored_block", "block_hash": b.hash, "tokens": list, "cache_level": 0, "priority": 35})
	}
	if len(stored) > 0 {
		e.say("stored", map[string]any{"parent_hash": parent, "blocks": stored})
	}
	return cached
}

// chain hashes tokens under the last of a path. Half of the values are above
// 2^63, which no float64 holds.
func chain(path []*trtBlock, tokens []uint32) uint64 {
	h := fnv.New64a()
	if len(path) > 0 {
		fmt.Fprint(h, path[len(path)-1].hash, ":")
	}
	fmt.Fprint(h, tokens)
	return h.Sum64()
}

// room frees a block of the GPU: the leaf unused for longest goes to the host, or
// from there. e.mu is held.
func (e *trtllm) room() {
	for e.onLevel(0) >= e.gpu {
		b := e.oldest(0)
		if b == nil {
			return
		}
		if len(b.tokens) == e.size && e.host > 0 {
			if e.onLevel(1) >= e.host {
				old := e.oldest(1)
				if old == nil {
					return
				}
				e.remove(old)
			}
			e.move(b, 1)
			continue
		}
		e.remove(b)
	}
}

func (e *trtllm) onLevel(level int) (n int) {
	for _, b := range e.blocks {
		if b.level == level {
			n++
		}
	}
	return n
}

// oldest is the block of a level that was unused for longest and has none below
// it on the same or a faster level.
func (e *trtllm) oldest(level int) (old *trtBlock) {
	inner := map[uint64]bool{}
	for _, b := range e.blocks {
		if !b.root && b.level <= level {
			inner[b.parent] = true
		}
	}
	for _, b := range e.blocks {
		if b.level == level && b.used < e.tick && !inner[b.hash] && (old == nil || b.used < old.used || b.used == old.used && b.hash < old.hash) {
			old = b
		}
	}
	return old
}

func (e *trtllm) move(b *trtBlock, to int) {
	e.say("updated", map[string]any{
		"block_hash": b.hash, "priority": nil,
		"cache_level": map[string]any{"type": "event_diff", "old_value": b.level, "new_value": to},
	})
	b.level = to
}

// remove takes a block out, and what hangs below it.
func (e *trtllm) remove(b *trtBlock) {
	delete(e.blocks, b.hash)
	e.say("removed", map[string]any{"block_hashes": []uint64{b.hash}})
	for _, kid := range e.blocks {
		if !kid.root && kid.parent == b.hash {
			e.remove(kid)
		}
	}
}

// cached says how many leading blocks of a prompt the engine has.
func (e *trtllm) cached(tokens []uint32) (n int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	var path []*trtBlock
	for rest := tokens; len(rest) >= e.size; rest = rest[e.size:] {
		b := e.blocks[chain(path, rest[:e.size])]
		if b == nil {
			break
		}
		path = append(path, b)
	}
	return len(path)
}

// drain takes the events as a reader does.
func (e *trtllm) drain() []byte {
	e.mu.Lock()
	defer e.mu.Unlock()
	page, err := json.Marshal(e.events)
	if err != nil {
		panic(err)
	}
	if e.events == nil {
		page = []byte("[]")
	}
	e.events = nil
	e.polls++
	return page
}

func (e *trtllm) polled() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.polls
}

func (e *trtllm) hasEvents() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.events) > 0
}

// said is the number of events so far.
func (e *trtllm) said() uint64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.nextID
}

// next makes the coming answers different.
func (e *trtllm) next(answers ...func(w http.ResponseWriter, page []byte)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.answer = append(e.answer, answers...)
}

func (e *trtllm) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.Method + " " + r.URL.Path {
	case "GET /v1/models":
		fmt.Fprint(w, `{"object":"list","data":[{"id":"m","object":"model","owned_by":"tensorrt_llm"}]}`)
	case "POST /kv_cache_events":
		e.mu.Lock()
		var answer func(http.ResponseWriter, []byte)
		if len(e.answer) > 0 {
			answer, e.answer = e.answer[0], e.answer[1:]
		}
		e.mu.Unlock()
		page := e.drain()
		if answer != nil {
			answer(w, page)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(page)
	default:
		http.NotFound(w, r)
	}
}
