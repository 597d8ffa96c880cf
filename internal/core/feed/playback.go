package feed

import (
	"bytes"
	"fmt"
	"net/http"
	"net/netip"

	"github.com/eppctl/eppctl/internal/core/event"
	"github.com/eppctl/eppctl/internal/core/index"
	"github.com/eppctl/eppctl/internal/core/pod"
	"github.com/eppctl/eppctl/internal/core/reason"
	"github.com/eppctl/eppctl/internal/core/recording"
	"github.com/eppctl/eppctl/internal/core/telemetry"
	"github.com/eppctl/eppctl/internal/core/view"
)

// Playback applies a recording to a fleet, record by record, as the feed that was
// recorded applied the same to its own: afterwards index, telemetry and states of
// streams are that feed's. All times are the recording's. What a recording does
// not hold stays unknown: the metrics of one without pages, and what engines had
// cached before it began. One goroutine uses it at a time.
type Playback struct {
	fleet   *view.Fleet
	pods    map[string]*playedPod
	streams map[streamID]*played
	devices *devices
	nodes   map[string]int // of a device exporter, its page in devices

	from, to int64 // times of the records applied; 0 = none
	swept    int64
}

type streamID struct {
	pod  string
	rank int
}

// playedPod is one pod of a recording.
type playedPod struct {
	pod   *pod.Pod
	spec  pod.Spec
	owner index.Owner
	prev  *telemetry.Sample
}

// played is one stream of a recording.
type played struct {
	*playedPod
	member  pod.Member
	decoder decoder
	batch   event.Batch
	applied cursor
	past    cursor // what was applied before a restart that is not certain
	pastAt  int64
	holed   bool  // the purge of an unreadable batch is done, its notice is to come
	told    bool  // its state has come
	midway  int64 // events had been applied before the recording began, which was then; 0 = none
	sync    view.Sync
}

// NewPlayback returns a playback into a fleet that has no pods of its own.
func NewPlayback(f *view.Fleet) *Playback {
	return &Playback{
		fleet: f, pods: map[string]*playedPod{}, streams: map[streamID]*played{},
		devices: newDevices(nil, nil, nil), nodes: map[string]int{},
	}
}

// Span is the time of the earliest and of the latest record applied, in ns; zeros
// before the first.
func (p *Playback) Span() (from, to int64) { return p.from, p.to }

// Midway names the pods of which the recording does not have everything, because
// it began when they had already told something.
func (p *Playback) Midway() (names []string) {
	for _, x := range p.fleet.Pods.Snapshot().Pods {
		for rank := range x.Members {
			if s := p.streams[streamID{x.Spec.Name, rank}]; s != nil && s.midway != 0 {
				names = append(names, x.Spec.Name)
				break
			}
		}
	}
	return names
}

// Apply takes the next record. An error means that the fleet has no room for
// another pod, or that the record makes no sense; records of others may follow.
func (p *Playback) Apply(r *recording.Record) error {
	if r.Pod == nil {
		return nil
	}
	p.advance(r.At)
	switch {
	case r.Pod.Direction == recording.Exporter:
		return p.node(r)
	case r.Type == recording.TypeSpec:
		return p.spec(r)
	case r.Type == recording.TypePage:
		return p.page(r)
	}
	s, err := p.stream(r.Pod)
	if err != nil {
		return err
	}
	switch r.Type {
	case recording.TypeFrame:
		if topic, seq, payload, err := event.ParseFrames(r.Parts); err == nil {
			p.renumbered(s, seq)
			p.message(s, topic, seq, payload, r.At, r.At)
		}
	case recording.TypeReplay:
		if _, seq, payload, err := event.ParseReply(r.Parts); err == nil && seq != event.ReplayEnd {
			p.message(s, "", seq, payload, r.At, 0)
		}
	case recording.TypeNotice:
		p.notice(s, &r.Notice, r.At)
	case recording.TypeState:
		return p.state(s, r)
	}
	return nil
}

// advance moves the time, and lets the index age as the feed does.
func (p *Playback) advance(at int64) {
	if at <= 0 {
		return // pod records of a file have no time
	}
	if p.from == 0 || at < p.from {
		p.from = at
	}
	p.to = max(p.to, at)
	if p.to-p.swept >= int64(sweepEvery) {
		p.swept = p.to
		p.fleet.Index.Sweep(p.to)
	}
}

// pod returns a pod of the recording, which it may have to add with what its
// publisher is known by.
func (p *Playback) pod(of *recording.Pod) (*playedPod, error) {
	if x := p.pods[of.Name]; x != nil {
		return x, nil
	}
	engine, _ := pod.ParseEngine(of.Engine) // a name it does not know is unknown
	addr, _ := netip.ParseAddrPort(of.Addr) // a name has no address here
	return p.add(pod.Spec{Name: of.Name, Address: of.Addr, Engine: engine, Model: of.Model, Ranks: max(of.Ranks, 1)}, addr)
}

func (p *Playback) add(s pod.Spec, addr netip.AddrPort) (*playedPod, error) {
	at, err := p.fleet.Pods.Add(s, addr)
	if err != nil {
		return nil, fmt.Errorf("playback: %w", err)
	}
	x := &playedPod{pod: at, spec: s}
	p.pods[s.Name] = x
	x.enlist(p.fleet, index.Owner{Model: s.Model, Engine: s.Engine, BlockSize: s.BlockSize})
	return x, nil
}

// enlist tells the index what is known of the pod's members, if that is news.
func (x *playedPod) enlist(f *view.Fleet, o index.Owner) {
	if o == x.owner && o != (index.Owner{}) {
		return
	}
	x.owner = o
	for _, m := range x.pod.Members {
		f.Index.Register(m, o)
	}
}

// remove takes a pod out, as the keeper does.
func (p *Playback) remove(name string) {
	x := p.pods[name]
	if x == nil {
		return
	}
	delete(p.pods, name)
	p.fleet.Pods.Remove(x.pod.ID)
	for rank, m := range x.pod.Members {
		delete(p.streams, streamID{name, rank})
		p.fleet.Index.Purge(m)
		p.fleet.Sync.Drop(m)
	}
	p.fleet.Telemetry.Drop(x.pod.ID)
	p.fleet.Pods.Free(x.pod)
}

// spec takes what is known of a pod from now on.
func (p *Playback) spec(r *recording.Record) error {
	if bytes.Equal(bytes.TrimSpace(r.Body), []byte("null")) {
		p.remove(r.Pod.Name)
		return nil
	}
	s, addr, err := decodeSpec(r.Pod.Name, r.Body)
	if err != nil {
		return fmt.Errorf("playback: %w", err)
	}
	x := p.pods[s.Name]
	if x != nil && len(x.pod.Members) != s.Ranks {
		p.remove(s.Name)
		x = nil
	}
	if x == nil {
		_, err := p.add(s, addr)
		return err
	}
	if s.Engine != x.spec.Engine || s.Model != x.spec.Model || s.Metrics != x.spec.Metrics {
		x.prev = nil // another scraper begins
	}
	x.spec = s
	p.fleet.Pods.Update(x.pod.ID, func(at *pod.Pod) { at.Spec, at.Addr = s, addr })
	o := x.owner
	o.Model, o.Engine = s.Model, s.Engine
	if o.BlockSize == 0 {
		o.BlockSize = s.BlockSize
	}
	x.enlist(p.fleet, o)
	return nil
}

// page takes what a scrape brought.
func (p *Playback) page(r *recording.Record) error {
	x, err := p.pod(r.Pod)
	if err != nil {
		return err
	}
	board := p.fleet.Telemetry
	switch r.Status {
	case http.StatusOK:
	case recording.PageMute:
		board.FailMute(x.pod.ID, printable(string(r.Body), pageWhy), r.At)
		return nil
	default:
		board.Fail(x.pod.ID, printable(string(r.Body), pageWhy), r.At)
		return nil
	}
	if len(r.Body) > DefaultScrapeBytes {
		board.Fail(x.pod.ID, fmt.Sprintf("page larger than %d bytes", DefaultScrapeBytes), r.At)
		return nil
	}
	next, err := telemetry.Parse(r.Body, telemetry.ParseOptions{Engine: x.spec.Engine, Model: x.spec.Model, Prev: x.prev, At: r.At})
	if err != nil { // as it failed then
		board.Fail(x.pod.ID, err.Error(), r.At)
		return nil
	}
	follow(next, x.prev, DefaultCarry)
	next.Device = p.devices.Of(x.spec.Device)
	x.prev = next
	board.Put(x.pod.ID, next)
	x.enlist(p.fleet, sized(x.owner, next))
	return nil
}

// pageWhy bounds what a recording may say of a scrape that failed, in letters.
const pageWhy = 200

// node takes a page of a device exporter.
func (p *Playback) node(r *recording.Record) error {
	if r.Type != recording.TypePage || r.Status != http.StatusOK || len(r.Body) > DefaultScrapeBytes {
		return nil // what was known of its devices ages
	}
	i, ok := p.nodes[r.Pod.Name]
	if !ok {
		if len(p.nodes) == pod.MaxMembers {
			return fmt.Errorf("playback: more than %d device exporters", pod.MaxMembers)
		}
		i = p.devices.grow()
		p.nodes[r.Pod.Name] = i
	}
	_ = p.devices.read(i, r.Body, r.At) // one that could not be read then changed nothing either
	return nil
}

// stream returns the stream of a publisher, whose pod it may have to add.
func (p *Playback) stream(of *recording.Pod) (*played, error) {
	id := streamID{of.Name, of.Rank}
	if s := p.streams[id]; s != nil {
		return s, nil
	}
	x, err := p.pod(of)
	if err != nil {
		return nil, err
	}
	if of.Rank < 0 || of.Rank >= len(x.pod.Members) {
		return nil, fmt.Errorf("playback: pod %q has %d ranks, a record is of rank %d", of.Name, len(x.pod.Members), of.Rank)
	}
	s := &played{playedPod: x, member: x.pod.Members[of.Rank]}
	p.streams[id] = s
	return s, nil
}

// message applies a batch once: records come in the order in which they were
// applied, so that one not above the last is a duplicate, or an overlap with a
// replay. It came live at a time, or by a replay, 0.
func (p *Playback) message(s *played, topic string, seq uint64, payload []byte, at, came int64) {
	if s.applied.ok && seq <= s.applied.seq {
		return
	}
	s.applied = cursor{seq, true}
	if s.decoder == nil {
		s.decoder = &event.Decoder{}
		if topic == event.LayoutPull {
			s.decoder = &event.PullDecoder{}
		}
	}
	err := s.decoder.Decode(payload, &s.batch)
	if err != nil {
		s.batch.Events = s.batch.Events[:0]
	}
	if n := s.batch.Blocks[event.TierGPU]; n > 0 && topic == event.LayoutPull {
		o := s.owner
		o.Blocks = n
		s.enlist(p.fleet, o)
	}
	behind, why, _ := holeIn(&s.batch, err)
	if s.holed = why != reason.None; s.holed {
		p.purge(s, p.fleet.Index.Purge)
	}
	events := s.batch.Events[behind:]
	p.fleet.Index.ApplyBatch(s.member, events, at)
	if clears(events) {
		p.fleet.Index.Emptied(s.member, came)
	}
	s.sync.LastEvent, s.sync.LastSeq = at, seq
	p.show(s)
}

func (p *Playback) purge(s *played, drop func(pod.Member)) {
	s.midway = 0
	drop(s.member)
	if d, ok := s.decoder.(*event.PullDecoder); ok {
		d.Forget()
	}
}

// renumbered is the machine's of that name: see sequence.
func (p *Playback) renumbered(s *played, seq uint64) {
	if s.past.ok && seq <= s.past.seq {
		p.fleet.Index.Emptied(s.member, s.pastAt)
	}
	s.past = cursor{}
}

// notice forgets what the feed forgot.
func (p *Playback) notice(s *played, n *recording.Notice, at int64) {
	switch {
	case !n.Purged || s.holed:
	case n.Kind == recording.Restart:
		p.purge(s, p.fleet.Index.Restart)
		if n.Emptied {
			p.fleet.Index.Emptied(s.member, at)
		}
		s.past, s.pastAt, s.applied = s.applied, at, cursor{}
	default:
		p.purge(s, p.fleet.Index.Purge)
		s.applied = cursor{}
	}
	if n.Purged {
		s.holed = false
	}
}

// state takes the state that the feed put on its board.
func (p *Playback) state(s *played, r *recording.Record) error {
	next, err := decodeState(r.Body)
	if err != nil {
		return fmt.Errorf("playback: pod %q: %w", r.Pod.Name, err)
	}
	if !s.told && !s.applied.ok && next.LastEvent != 0 {
		s.midway = r.At
	}
	s.told = true
	if s.sync.LastEvent > next.LastEvent { // it is said again, at the head of another file
		next.LastEvent, next.LastSeq = s.sync.LastEvent, s.sync.LastSeq
	}
	s.sync = next
	p.show(s)
	return nil
}

// show puts a stream's state on the board. One that was live is not so here as
// long as a part of its history is missing.
func (p *Playback) show(s *played) {
	x := s.sync
	if s.midway != 0 && x.State == view.Live {
		x.Since = max(x.Since, s.midway)
		x.State, x.Why, x.Detail = view.Partial, reason.HistoryLost, "what it held before the recording began is not known"
	}
	p.fleet.Sync.Put(s.member, x)
}
