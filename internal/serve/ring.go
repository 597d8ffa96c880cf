package serve

import (
	"sync"
	"time"
	"unsafe"

	"github.com/eppctl/eppctl/internal/core/pick"
	"github.com/eppctl/eppctl/internal/core/view"
)

// ringBytes caps the memory of recent decisions, whatever their number: a row is
// close to 1 kB, so that 64 pods leave room for about a thousand.
const ringBytes = 64 << 20

// decided is one decision with what the card itself does not know.
type decided struct {
	card   pick.Card
	pickID string
	times
	seq uint64
}

// times are how long a request was under way before it had its pod: most of it is not
// the decision.
type times struct {
	read time.Duration // of the body, its token ids, and waiting for a processor
	took time.Duration // deciding
}

func micros(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 }

// ring keeps recent decisions for explain --request-id. It owns them: a pick
// takes one, fills it and puts it in. When the ring is full the oldest is the
// next to be taken, so that a busy picker allocates no cards. Cards hold no
// prompt. Safe for concurrent use.
type ring struct {
	mu     sync.Mutex
	slots  []*decided // circular; the entry of sequence n stands at n mod len
	oldest uint64     // sequences oldest..next-1 are kept
	next   uint64
	bytes  int
	byID   map[string]uint64 // request id -> its latest sequence
	spare  []*decided
}

// spares bounds the decisions kept for reuse beside the ring: as many as can be
// under way at a time without contention worth the name.
const spares = 64

func newRing(max int) *ring { return &ring{slots: make([]*decided, max), byID: map[string]uint64{}} }

// size is the memory of a decision: its rows, and the strings of the client's.
func (d *decided) size() int {
	c := &d.card
	return cap(c.Rows)*int(unsafe.Sizeof(pick.Row{})) + int(unsafe.Sizeof(*d)) + len(c.RequestID) + len(c.Model) + len(c.Adapter) + len(d.pickID)
}

// take hands out a decision to fill. Its holder is its only user until put.
func (r *ring) take() *decided {
	r.mu.Lock()
	defer r.mu.Unlock()
	if n := len(r.spare); n > 0 {
		d := r.spare[n-1]
		r.spare = r.spare[:n-1]
		return d
	}
	if r.next > r.oldest && (r.next-r.oldest == uint64(len(r.slots)) || r.bytes >= ringBytes) {
		return r.pop()
	}
	return &decided{}
}

// put keeps a filled decision.
func (r *ring) put(d *decided) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.slots) == 0 {
		r.discard(d)
		return
	}
	for r.next-r.oldest == uint64(len(r.slots)) || r.next > r.oldest && r.bytes >= ringBytes {
		r.discard(r.pop())
	}
	d.seq = r.next
	r.slots[d.seq%uint64(len(r.slots))] = d
	r.byID[d.card.RequestID] = d.seq
	r.bytes += d.size()
	r.next++
}

// drop gives back a decision that is not to be kept.
func (r *ring) drop(d *decided) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.discard(d)
}

func (r *ring) discard(d *decided) {
	if len(r.spare) < spares {
		r.spare = append(r.spare, d)
	}
}

// pop takes the oldest one out. mu is held and there is one.
func (r *ring) pop() *decided {
	at := r.oldest % uint64(len(r.slots))
	d := r.slots[at]
	r.slots[at] = nil
	r.oldest++
	r.bytes -= d.size()
	if r.byID[d.card.RequestID] == d.seq {
		delete(r.byID, d.card.RequestID)
	}
	return d
}

// find returns a request's latest decision, by request id or pick id, and its
// explanation. When there is none, kept are the request ids of the newest decisions
// and, last, of the oldest one.
func (r *ring) find(id string) (x *pick.Explanation, card *pick.Card, kept []string) {
	card, took, kept := r.clone(id)
	if card == nil {
		return nil, nil, kept
	}
	x = explained(card, took)
	x.Source = "recorded"
	return x, card, nil
}

func (r *ring) clone(id string) (card *pick.Card, took times, kept []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	seq, ok := r.byID[id]
	if !ok {
		seq, ok = r.byPickID(id)
	}
	if ok {
		d := r.slots[seq%uint64(len(r.slots))]
		return d.card.Clone(), d.times, nil
	}
	return nil, times{}, r.some()
}

// byPickID looks through all decisions: explain is rare, and a second map would
// cost every pick. mu is held.
func (r *ring) byPickID(id string) (seq uint64, ok bool) {
	for seq := r.next; seq > r.oldest; seq-- {
		if r.slots[(seq-1)%uint64(len(r.slots))].pickID == id && id != "" {
			return seq - 1, true
		}
	}
	return 0, false
}

// some names decisions that are kept: the three newest and the oldest. mu is held.
func (r *ring) some() []string {
	var ids []string
	for seq := r.next; seq > r.oldest && len(ids) < 3; seq-- {
		ids = append(ids, r.slots[(seq-1)%uint64(len(r.slots))].card.RequestID)
	}
	if r.next-r.oldest > 3 {
		ids = append(ids, r.slots[r.oldest%uint64(len(r.slots))].card.RequestID)
	}
	return ids
}

// recentBytes bounds the list of recent decisions, about as it is written.
const recentBytes = 1 << 20

// recent lists decisions, newest first, of one pod or (pod "") of all.
func (r *ring) recent(pod string, limit int) (list []view.RecentPick, total int) {
	list = []view.RecentPick{}
	bytes := 0
	r.mu.Lock()
	defer r.mu.Unlock()
	if pod == "" {
		total = int(r.next - r.oldest)
	}
	for seq := r.next; seq > r.oldest && (pod != "" || len(list) < limit && bytes < recentBytes); seq-- {
		d := r.slots[(seq-1)%uint64(len(r.slots))]
		w := d.card.WinnerRow()
		if pod != "" && (w == nil || w.Pod.Spec.Name != pod) {
			continue
		}
		if pod != "" {
			total++
		}
		if len(list) < limit && bytes < recentBytes {
			list = append(list, d.short(w))
			bytes += d.size() - cap(d.card.Rows)*int(unsafe.Sizeof(pick.Row{}))
		}
	}
	return list, total
}

// after lists the decisions behind the one numbered seq, oldest first, of one pod or
// (pod "") of all. last is the number up to which that tells, newest that of the latest
// decision, missed how many between are not kept any more.
func (r *ring) after(seq uint64, pod string, limit int) (list []view.RecentPick, last, newest uint64, missed int) {
	list = []view.RecentPick{}
	r.mu.Lock()
	defer r.mu.Unlock()
	at := min(max(seq, r.oldest), r.next) // numbers are places plus one
	missed = int(at - min(seq, at))
	for bytes := 0; at < r.next && len(list) < limit && bytes < recentBytes; at++ {
		d := r.slots[at%uint64(len(r.slots))]
		w := d.card.WinnerRow()
		if pod != "" && (w == nil || w.Pod.Spec.Name != pod) {
			continue
		}
		list = append(list, d.short(w))
		bytes += d.size() - cap(d.card.Rows)*int(unsafe.Sizeof(pick.Row{}))
	}
	return list, at, r.next, missed
}

func (d *decided) short(w *pick.Row) view.RecentPick {
	c := &d.card
	s := view.RecentPick{
		Seq: d.seq + 1, RequestID: c.RequestID, PickID: d.pickID, Model: c.Model, Outcome: c.Outcome.String(),
		At:     wall(c.Now).Format(time.RFC3339Nano),
		Tokens: c.Tokens, ReadUs: micros(d.read), TookUs: micros(d.took),
	}
	if why := string(c.Unmatched); why != "" {
		s.Reason = &why
	}
	if w != nil {
		name, addr, score := w.Pod.Spec.Name, w.Pod.Target, w.Total
		s.Pod, s.Addr, s.Cached, s.Score, s.Tie = &name, &addr, w.Cached, &score, c.Tie.Used
		if c.RunnerUp >= 0 {
			second, margin := c.Rows[c.RunnerUp].Pod.Spec.Name, c.Margin
			s.RunnerUp, s.Margin = &second, &margin
		}
	}
	return s
}
