package view

import "github.com/eppctl/eppctl/internal/core/pod"

// The headers of an event stream leave the engine when it accepts the request,
// long before the first token, and a proxy need not show the body. Nobody
// reports the first byte of such a response: it is estimated. An estimate knows
// nothing of a pod that has become slow, so it counts only once a scrape taken
// after it does not contradict it. Estimates alone overfilled a slow pod (32 of
// 32 queued, 21 of 100 requests refused, real Envoy at 200 requests per second).

// Scrape is what a metrics page says about a pod's queue. The zero Scrape says
// nothing.
type Scrape struct {
	At      int64 // ns, when the page was asked for; 0 = no page counts
	Waiting int   // requests accepted and not executing
	Running int   // requests executing, -1 = not told
}

// Unseen says that nobody will report the request's first byte; due is when it
// is estimated to be out, by the same clock as every now.
func (r *Placement) Unseen(due int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.account.change()
	defer r.account.mu.Unlock()
	r.due = due
}

// Presume takes the requests for answered whose unseen first byte was due at
// scrape s, as far as s allows it: those that s shows waiting are the youngest
// there, and no more have been admitted than s shows running. Without a scrape
// the estimate stands alone. Called after each scrape; a second call with the
// same one does nothing.
func (l *Ledger) Presume(p *pod.Pod, s Scrape, now int64) {
	a := l.rows[p.ID].Load()
	if a == nil || a.epoch != p.Epoch {
		return
	}
	for _, r := range a.presumable(s, now) {
		r.presume(a, s.At != 0, now)
	}
}

// presumable lists what Presume may answer, and moves the finish time behind the
// work that was due and still waits.
func (a *account) presumable(s Scrape, now int64) []*Placement {
	a.change()
	defer a.mu.Unlock()
	if s.At != 0 && s.At <= a.judged {
		return nil
	}
	at, room := now, a.waiting
	if s.At != 0 {
		at, a.judged = s.At, s.At
		if s.Running >= 0 {
			room = max(0, s.Running-(a.inFlight-a.waiting))
		}
	}
	var list []*Placement
	late := make([]int64, len(a.lanes))
	queued := s.Waiting
	for p := a.newest; p != nil; p = p.older {
		due := p.due != 0 && p.due <= at
		switch {
		case p.at > at: // the scrape cannot know it
		case queued > 0:
			if queued--; due {
				late[p.lane] += int64(p.prefill)
			}
		case due:
			list = append(list, p)
		}
	}
	list = list[max(0, len(list)-room):] // the oldest
	for i, t := range late {
		if t > 0 {
			a.lanes[i].finish = max(a.lanes[i].finish, now+t)
		}
	}
	if s.At != 0 {
		a.pace, a.passed = a.passed+len(list), 0
	}
	return list
}

// presume is FirstByte by estimate, while the request is still on account a. Only
// an estimate that a scrape confirms shows that the pod works.
func (r *Placement) presume(a *account, confirmed bool, now int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.answered || r.ended || r.account != a {
		return
	}
	a.change()
	a.stand(r, now)
	if confirmed {
		a.circuit.answer()
	}
	a.mu.Unlock()
	r.answered, r.first = true, r.due
}

// overdue reports that the request's first byte is unseen and was due.
func (r *Placement) overdue(now int64) bool { return r.due != 0 && r.due <= now }

// stand takes out of the waiting ones a request whose estimate stands. It says
// nothing new about the pod's speed: the finish time stays, unless less than it
// is left.
func (a *account) stand(p *Placement, now int64) {
	on := a.unqueue(p, now)
	on.finish = min(on.finish, now+on.work)
}
