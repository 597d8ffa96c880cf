package parity

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/eppctl/eppctl/internal/core/block"
	"github.com/eppctl/eppctl/internal/core/event"
	"github.com/eppctl/eppctl/internal/core/pod"
)

// Bounds of a Watch. A watched request takes some 21 kB, so that all of them take
// 5.4 MB at most; requests beyond are not watched, which costs nothing but time
// until a difference shows.
const (
	maxTokens  = 4096 // of the new part of a prompt
	maxMember  = 2    // requests watched at a time on one member: about one verdict a second
	maxWatched = 256  // in all
	// minBlock is the smallest block that is watched: a shorter one has too few
	// grams to tell anything by.
	minBlock = 8
)

const (
	// settle is how long after a request's end the engine may take to announce its
	// blocks: vLLM 0.32.0 took 1.05 s at worst on a busy machine.
	settle = 2 * time.Second
	// giveUp ends the watch of a request that does not end.
	giveUp = 10 * time.Minute
)

// Verdict is what the events said about one request.
type Verdict uint8

// The verdicts. The rule: the engine must announce every block of the prompt that it
// did not hold. When all of them were announced, the ids are equal. When some were
// not, although the request was answered and the stream lost nothing, and blocks of
// nearly the same ids were announced instead, the same text was cut into other
// tokens: the ids differ. Missing blocks alone say little (the engine may have held
// them unknown to us, it may have been preempted), so that such a request is Unseen
// when the engine announced blocks of something else, and Unknown when it announced
// none.
const (
	Unknown Verdict = iota
	Equal
	Differs
	Unseen
)

func (v Verdict) String() string { return [...]string{"unknown", "equal", "differs", "unseen"}[v] }

// Routed is a request that was placed on an engine by ids of ours.
type Routed struct {
	Model  string
	Member pod.Member
	Tokens []uint32 // of the prompt, up to what is known; read during Place only
	Size   int      // tokens per block of the member
	Held   int      // leading blocks that the member is known, or expected, to hold
	Known  int      // of these, those that it is known to hold: it has announced them
	Lost   uint64   // event batches lost on the member's stream so far
}

// Judged is a request whose watch has ended.
type Judged struct {
	Model   string
	Member  pod.Member
	Verdict Verdict
	// At is the position, from 0, of the first id of the prompt that is not the engine's,
	// and Block the block of the engine's size that it is in, which may be known alone. Of
	// Unseen it is where the prompt that begins most like it parts. -1 = not known, as of
	// the other verdicts.
	At, Block int
}

// Watch compares requests with what engines announce after they were placed. It keeps
// hashes under a secret of the process and no ids. Every method may be called from
// any goroutine; time is an argument (ns).
type Watch struct {
	hasher *block.Hasher
	all    atomic.Int32
	lanes  [pod.MaxMembers]lane
}

// lane is what is watched of one member. Each has a lock of its own, so that streams
// do not wait for each other.
type lane struct {
	busy atomic.Int32 // requests in list, so that idle streams take no lock

	mu   sync.Mutex
	list []*Watched
	keys []block.Key // of the store under way
}

// NewWatch returns a Watch; seed comes from a source of randomness.
func NewWatch(seed uint64) *Watch {
	return &Watch{hasher: block.NewHasher(seed)}
}

// Watched is one request under watch. A nil one is not watched.
type Watched struct {
	watch *Watch
	lane  *lane
	Judged
	lost uint64

	// Guarded by lane.mu.
	size    int
	keys    []block.Key // that have to be announced, sorted
	seen    []uint64    // bit i: keys[i] was
	unseen  int
	strange bool // a block that is none of keys was announced
	alike   bool // one of nearly the same ids was
	spoiled bool // the stream cannot be trusted, or the request failed
	grams   grams
	began   int64

	// What tells where ids part, guarded too: see follow.
	from    int      // position of the first that is compared
	runs    []uint16 // of each from there on
	chains  chains
	at      int   // where the engine's ids of this prompt part; -1 = not known
	nearest int   // where the prompt that begins most like it does; -1 = not known
	known   int   // Routed.Known
	inHeld  bool  // they part in what the engine held
	due     int64 // verdict; 0 = the request runs
}

// Place begins to watch a request that is about to be sent to its member; nil = there
// is nothing to watch, or there are enough.
func (w *Watch) Place(r *Routed, now int64) *Watched {
	if r.Size < minBlock || int(r.Member) >= len(w.lanes) || w.lanes[r.Member].busy.Load() >= maxMember {
		return nil
	}
	last := min(len(r.Tokens)/r.Size, r.Held+maxTokens/r.Size)
	if last <= r.Held || r.Held < 0 {
		return nil
	}
	l := &w.lanes[r.Member]
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.list) >= maxMember {
		return nil
	}
	if w.all.Add(1) > maxWatched {
		w.all.Add(-1)
		return nil
	}
	fresh := r.Tokens[r.Held*r.Size : last*r.Size]
	x := &Watched{
		watch: w, lane: l, Judged: Judged{Model: r.Model, Member: r.Member}, size: r.Size, lost: r.Lost, began: now,
		keys: w.hasher.Keys(nil, fresh, r.Size),
		from: r.Held * r.Size, runs: runsOf(w.hasher, fresh, r.Size), at: -1, nearest: -1, known: r.Known,
	}
	slices.Sort(x.keys)
	x.keys = slices.Compact(x.keys)
	x.unseen, x.seen = len(x.keys), make([]uint64, (len(x.keys)+63)/64)
	x.grams.add(w.hasher, fresh)
	l.list = append(l.list, x)
	l.busy.Add(1)
	return x
}

// End reports the end of the request. ok means that the engine it was placed on
// answered it: else it need not have computed the prompt. Only the first call counts.
func (x *Watched) End(ok bool, now int64) {
	if x == nil {
		return
	}
	x.lane.mu.Lock()
	defer x.lane.mu.Unlock()
	if x.due == 0 {
		x.due = now + int64(settle)
		x.spoiled = x.spoiled || !ok
	}
}

// Store takes in events of a member, in their order.
func (w *Watch) Store(m pod.Member, events []event.Event) {
	l := &w.lanes[m]
	if l.busy.Load() == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range events {
		if e := &events[i]; e.Kind == event.Stored && e.Dense() {
			l.store(w.hasher, e)
		}
	}
}

// store looks at one event. The cache group and the namespace do not matter: all that
// counts is which ids the engine has made of a prompt. mu is held.
func (l *lane) store(h *block.Hasher, e *event.Event) {
	l.keys = h.Keys(l.keys[:0], e.Tokens, e.BlockSize)
	for _, x := range l.list {
		if e.BlockSize != x.size { // slower tiers have chunks of their own
			x.spoiled = x.spoiled || e.Tier == event.TierGPU
			continue
		}
		for i, k := range l.keys {
			x.announced(k, e.Tokens[i*x.size:(i+1)*x.size])
		}
		if x.unseen > 0 {
			x.follow(h, e)
		}
	}
}

func (x *Watched) announced(k block.Key, ids []uint32) {
	if x.unseen == 0 {
		return
	}
	at, expected := slices.BinarySearch(x.keys, k)
	if !expected {
		x.strange = true
		x.alike = x.alike || x.grams.near(x.watch.hasher, ids)
		return
	}
	if bit := uint64(1) << (at % 64); x.seen[at/64]&bit == 0 {
		x.seen[at/64] |= bit
		x.unseen--
	}
}

// Spoil ends what can be said of the requests under way on a member: its blocks were
// dropped, or its stream began anew.
func (w *Watch) Spoil(m pod.Member) {
	l := &w.lanes[m]
	if l.busy.Load() == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, x := range l.list {
		x.spoiled = true
	}
}

// Sweep ends the watches whose time has come and returns what they found. whole
// reports whether a member's stream is live and has lost no batch beyond lost. Called
// a few times a second.
func (w *Watch) Sweep(now int64, whole func(m pod.Member, lost uint64) bool) (found []Judged) {
	for m := range w.lanes {
		if l := &w.lanes[m]; l.busy.Load() > 0 {
			found = l.sweep(found, now, whole)
		}
	}
	return found
}

func (l *lane) sweep(found []Judged, now int64, whole func(m pod.Member, lost uint64) bool) []Judged {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = slices.DeleteFunc(l.list, func(x *Watched) bool {
		if x.due == 0 && now-x.began < int64(giveUp) || x.due > now {
			return false
		}
		x.judge(x.due != 0 && whole(x.Member, x.lost))
		found = append(found, x.Judged)
		l.busy.Add(-1)
		x.watch.all.Add(-1)
		return true
	})
	return found
}

func (x *Watched) verdict(whole bool) Verdict {
	switch {
	case x.unseen == 0:
		return Equal
	case x.spoiled || !whole:
		return Unknown
	case x.alike:
		return Differs
	case x.strange:
		return Unseen
	}
	return Unknown
}

// judge ends the watch.
func (x *Watched) judge(whole bool) {
	x.Verdict, x.At, x.Block = x.verdict(whole), -1, -1
	switch x.Verdict {
	case Differs:
		x.At = x.at
	case Unseen:
		x.At = x.nearest
	}
	switch {
	case x.At >= 0:
		x.Block = x.At / x.size
	case x.Verdict == Differs && x.inHeld:
		x.Block = x.known
	}
}
