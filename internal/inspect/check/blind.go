package check

import (
	"cmp"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/eppctl/eppctl/internal/core/event"
	"github.com/eppctl/eppctl/internal/core/feed"
	"github.com/eppctl/eppctl/internal/core/index"
	"github.com/eppctl/eppctl/internal/core/pod"
	"github.com/eppctl/eppctl/internal/core/reason"
	"github.com/eppctl/eppctl/internal/inspect/out"
)

// Witness is what was seen of a stream's engine beside the stream.
type Witness struct {
	// Computed counts the prompt tokens that the engine looked for in its cache
	// and did not find, meanwhile; -1 = it does not tell, or nobody asked.
	Computed int64
	// Running requests, before or after.
	Running int
	// BlockSize is that of the engine's own metrics page; 0 = not told.
	BlockSize int
	// CacheOff: the engine says that it has no prefix cache.
	CacheOff bool
	// Fleet is all pods of the configuration.
	Fleet []pod.Spec
	// Past: the stream is a recording's.
	Past bool
	// Lasted is how long it was listened to, from From on, in ns.
	Lasted time.Duration
	From   int64
	Before *Before // what serve has had of it; nil = nobody was asked

	portFaulty bool // a probe says why nothing comes
	portWell   bool // a probe has reached it, in the end
}

// Fact says in one line what came. Nothing is neither good nor bad, and what cannot
// be read at all is bad.
func (s *Stream) Fact(w Witness) feed.Fact {
	c := &s.content
	f := feed.Fact{Pod: s.Pod.Name, What: "stream", OK: true}
	switch {
	case s.messages+s.replay.batches == 0:
		f.OK, f.Skipped = false, true
		f.Detail = fmt.Sprintf("rank %d: nothing came in %s%s", s.Rank, seconds(w.Lasted), s.connected(w))
		return f
	case c.batches == c.undecodable && c.batches > 0:
		f.OK, f.Code = false, string(reason.Undecodable)
	case c.batches == 0 && len(s.shapes) > 0:
		f.OK, f.Code = false, string(reason.WrongFraming)
	}
	parts := []string{fmt.Sprintf("rank %d: %s live%s", s.Rank, plural(s.messages, "message"), s.connected(w))}
	if s.replay.batches > 0 {
		parts = append(parts, fmt.Sprintf("%d replayed from number %d", s.replay.batches, s.replay.first))
	}
	if c.events > 0 {
		parts = append(parts, fmt.Sprintf("stored %d, removed %d, cleared %d", c.stored, c.removed, c.cleared))
	}
	if n := c.size(); n > 0 {
		parts = append(parts, fmt.Sprintf("blocks of %d", n))
	}
	if len(c.forms) > 0 {
		parts = append(parts, "hashes as "+words(c.forms))
	}
	if len(c.layouts) > 0 {
		parts = append(parts, words(c.layouts))
	}
	if s.dropped > 0 {
		parts = append(parts, fmt.Sprintf("%d messages missed here", s.dropped))
	}
	f.Detail = strings.Join(parts, ", ")
	return f
}

// soon is within what a connection takes on any network: later ones are told of.
const soon = time.Second

// connected says when a stream was connected, if not at once, and whether it is.
func (s *Stream) connected(w Witness) (text string) {
	if after := time.Duration(s.up - w.From); s.ups > 0 && after > soon {
		text = ", connected after " + seconds(after)
	}
	if s.down != "" {
		text += ", not connected at the end"
	}
	return text
}

// Findings says what in the stream makes the picker blind, or misleads it.
func (s *Stream) Findings(w Witness) []feed.Finding {
	v := &judge{s: s, c: &s.content, w: w}
	v.member, _ = v.c.ix.Member(member)
	v.nothing()
	v.ended()
	v.unreadable()
	v.missing()
	v.blockSize()
	v.hashes()
	v.tokens()
	v.groups()
	v.places()
	v.topic()
	v.rank()
	return v.found
}

// judge collects findings.
type judge struct {
	s      *Stream
	c      *content
	w      Witness
	member index.MemberStats
	found  []feed.Finding
}

func (v *judge) add(sev feed.Severity, code reason.Code, format string, a ...any) *feed.Finding {
	hint := fmt.Sprintf(format, a...)
	if v.s.Rank > 0 || v.s.Pod.Ranks > 1 {
		hint = fmt.Sprintf("rank %d: %s", v.s.Rank, hint)
	}
	v.found = append(v.found, feed.Finding{Severity: sev, Code: string(code), Pod: v.s.Pod.Name, Hint: hint})
	return &v.found[len(v.found)-1]
}

func (v *judge) warn(code reason.Code, format string, a ...any) {
	v.add(feed.SeverityWarning, code, format, a...)
}

func (v *judge) info(code reason.Code, format string, a ...any) {
	v.add(feed.SeverityInfo, code, format, a...)
}

// nothing: no event came.
func (v *judge) nothing() {
	switch {
	case v.s.messages > 0 || v.c.events > 0 || v.w.portFaulty:
		return
	case v.w.CacheOff:
		v.warn(reason.CacheOff, "the engine runs without a prefix cache, so that it has nothing to tell: --enable-prefix-caching")
	case v.s.down != "" && v.w.portWell:
		v.info(reason.Disconnected, "the port answers now, and did not while it was listened to: run this again")
	case v.s.down != "" && v.s.ups == 0:
		v.warn(reason.Disconnected, "no connection: %s", v.s.down)
	case v.s.down != "":
		return // see ended
	case v.w.Computed > 0:
		v.warn(reason.Silent, "requests ran (%d prompt tokens were computed, by the engine's own count) and no event came: "+
			"it publishes elsewhere, its publisher died, or every prompt is shorter than a block; see --kv-events-config and the engine's log", v.w.Computed)
	case v.w.Computed < 0 && v.w.Running > 0:
		v.warn(reason.Silent, "%s and no event came: it publishes elsewhere, or its publisher died; see its log", plural(v.w.Running, "request")+" running")
	case v.c.batches == 0:
		v.info(reason.NoEventsEver, "%s", v.w.idle())
	}
}

// idle says what no event means, where nothing is known of requests.
func (w *Witness) idle() string {
	lasted := seconds(w.Lasted)
	switch b := w.Before; {
	case w.Past:
		return "no event of it is in the recording"
	case b == nil:
		return fmt.Sprintf("no event came in %s, and no request is known to have run: send one", lasted)
	case !b.Any:
		return fmt.Sprintf("no event came in %s, and serve has had none before (%s): send a request", lasted, b.words())
	default:
		return fmt.Sprintf("none came in %s; serve has batches up to number %d, the last %s ago (%s): it is idle, or send a request", lasted, b.Last, seconds(b.Age), b.words())
	}
}

// words is the state of the stream as serve has it.
func (b *Before) words() string {
	if b.Why == "" {
		return out.Clean(b.State)
	}
	return out.Clean(b.State + ", " + b.Why)
}

// ended: it was connected, and is not any more.
func (v *judge) ended() {
	if v.s.down != "" && v.s.ups > 0 && !v.w.portFaulty && !v.w.portWell {
		v.warn(reason.Disconnected, "the connection has ended and was not made again: %s", v.s.down)
	}
}

// unreadable: what came cannot be understood.
func (v *judge) unreadable() {
	if n := sum(v.s.shapes); n > 0 {
		v.warn(reason.WrongFraming, "%d of %s had %s; expected topic, sequence of 8 bytes, payload",
			n, plural(v.s.messages, "message"), words(v.s.shapes))
	}
	if v.c.undecodable > 0 {
		v.warn(reason.Undecodable, "%d of %d; %s", v.c.undecodable, v.c.batches, v.c.firstBad)
	}
	odd, other := map[string]int{}, map[string]int{}
	for why, n := range v.c.skipped {
		switch why {
		case event.SkipHashType, event.SkipStringTokens: // told apart
		case event.SkipUnknownTag:
			other[why] = n
		default:
			odd[why] = n
		}
	}
	if len(odd) > 0 {
		v.warn(reason.EventsSkipped, "%d of %s: %s", sum(odd), plural(v.c.events+sum(odd), "event"), words(odd))
	}
	if len(other) > 0 {
		v.info(reason.EventsSkipped, "%s of kinds that eppctl does not know and passes over: %s", plural(sum(other), "event"), words(v.c.tags))
	}
}

// missing: batches did not come, or come from elsewhere.
func (v *judge) missing() {
	if q := &v.s.seq; q.gaps > 0 {
		v.warn(reason.EventsLost, "%s missing in %s on one connection: a full queue in the engine (hwm), or the network",
			plural(int(q.lost), "batch"), plural(q.gaps, "gap"))
	}
	if d := v.s.delay; d.max-d.min > late {
		v.warn(reason.EventsLate, "some came %.1f s later than others", d.max-d.min)
	}
	switch r := &v.s.replay; {
	case r.differ > 0:
		v.add(feed.SeverityError, reason.ReplayMismatch, "%s differ from those of the event port under the same number: "+
			"it is another engine's or rank's port", plural(r.differ, "replayed batch")).Field = "replay"
	case r.failed != "" && r.batches > 0:
		v.warn(reason.ReplayMismatch, "the replay port has batches %d to %d and not those before the live ones: %s", r.first, r.last, r.failed)
	case r.failed != "":
		v.warn(reason.ReplayDead, "%s", r.failed)
	}
	if n := v.member.OrphansNow + int(v.member.OrphansLost); n > 0 && v.s.whole() {
		v.warn(reason.OrphanParent, "%s of blocks whose parent was never stored, in a stream seen from its begin", plural(n, "store"))
	}
}

// late is feed's bound (in seconds) for a batch that is behind the others.
const late = 5

// blockSize: events have another than they should.
func (v *judge) blockSize() {
	size := v.c.size()
	if size == 0 {
		return
	}
	differs := func(value int, field, says string) {
		f := v.add(feed.SeverityWarning, reason.BlockSizeDiffer, "%s", says)
		f.Field, f.Value, f.Expected = field, strconv.Itoa(value), strconv.Itoa(size)
	}
	if has := v.s.Pod.BlockSize; has > 0 && has != size {
		differs(has, "block_size", "its events have the size that counts: correct the configuration, or it is another engine's port")
	}
	// The sizes of a hybrid model's groups have nothing to do with the setting.
	if has := v.w.BlockSize; has > 0 && has != size && len(v.member.Others) == 0 {
		differs(has, "the engine's setting", "the events are another engine's, or of a cache layer in front of it")
	}
	if n := v.member.Verdicts[index.OtherSize]; n > 0 {
		v.warn(reason.BlockSizeDiffer, "%s of sizes that do not go together: %s", plural(int(n), "store"), sizes(v.c.sizes))
	}
}

// hashes: blocks that cannot be found again.
func (v *judge) hashes() {
	if n := v.c.skipped[event.SkipHashType]; n > 0 {
		v.warn(reason.HashForm, "%s with hashes that are neither numbers nor byte strings", plural(n, "event"))
	}
	if len(v.c.forms) > 1 {
		v.warn(reason.HashForm, "in two forms: %s: two programs write here, or the engine was restarted with another "+
			"VLLM_KV_EVENTS_USE_INT_BLOCK_HASHES", words(v.c.forms))
	}
}

// tokens: blocks whose content is not told.
func (v *judge) tokens() {
	if n := v.c.bare; n > 0 && v.c.tokens == 0 {
		v.warn(reason.NoTokenIDs, "%s of hashes alone, none with token ids: nothing can be matched. "+
			"It is a connector's or a pool's stream; take the engine's own", plural(n, "store"))
	}
	if n := v.c.skipped[event.SkipStringTokens]; n > 0 {
		v.warn(reason.NoTokenIDs, "%s with tokens as text (TensorRT-LLM with images)", plural(n, "store"))
	}
	if n := v.member.Verdicts[index.Sparse]; n > 0 {
		v.warn(reason.Misaligned, "%s passed over%s: another publisher's form, or a newer release; report it with a recording (tap --write)",
			plural(int(n), "store"), v.c.odd)
	}
	if v.c.numbered > 0 {
		v.warn(reason.AdapterUnnamed, "%s of adapters that have a number and no name: their requests match nothing", plural(v.c.numbered, "store"))
	}
	if n := v.member.Verdicts[index.OtherSpace]; n > 0 {
		v.warn(reason.Namespace, "%s of another adapter or salt than the block they hang on", plural(int(n), "store"))
	}
}

// groups: hybrid models.
func (v *judge) groups() {
	var kinds []string
	for _, k := range v.member.Others {
		text := fmt.Sprintf("group %d %s", k.Group, cmp.Or(k.Kind, "of no kind"))
		if k.Window > 0 {
			text += fmt.Sprintf(" of %d", k.Window)
		}
		if !k.Exact {
			text += " (not followed)"
		}
		kinds = append(kinds, out.Clean(text))
	}
	list := strings.Join(kinds, ", ")
	switch {
	case len(kinds) == 0:
	case v.c.full == 0:
		v.warn(reason.HybridGroups, "no group holds whole prompts, so that nothing can be matched: %s", list)
	case v.member.Approximate:
		v.warn(reason.HybridGroups, "matches can be longer than what the engine reuses: %s", list)
	default:
		v.info(reason.HybridGroups, "followed exactly: %s", list)
	}
}

// places: media that nobody has heard of.
func (v *judge) places() {
	if len(v.c.media) > 0 {
		v.info(reason.MediumUnknown, "taken for the slowest tier: %s", words(v.c.media))
	}
}

// topic: it names another pod of the fleet. An id that nobody has is no finding:
// orchestrators put names of their own there. Nor is it one that an endpoint is a
// pod's, when it was recorded as an endpoint.
func (v *judge) topic() {
	if !slices.ContainsFunc(v.w.Fleet, func(p pod.Spec) bool { return p.Name == v.s.Pod.Name }) {
		return
	}
	for _, topic := range slices.Sorted(maps.Keys(v.s.topics)) {
		id := podOf(topic)
		if id == "" || names(v.s.Pod, id) {
			continue
		}
		for _, other := range v.w.Fleet {
			if other.Name != v.s.Pod.Name && names(other, id) {
				f := v.add(feed.SeverityError, reason.TopicDiffers, "the topic %q is that of pod %s: the event ports are mixed up", topic, other.Name)
				f.Field, f.Value = "events", v.s.endpoint()
				return
			}
		}
	}
}

// endpoint is where the stream comes from, as configured or told.
func (s *Stream) endpoint() string {
	if s.Rank < len(s.Pod.Events) {
		return s.Pod.Events[s.Rank]
	}
	return s.Pod.Bind
}

// podOf is the pod's id in a topic of the form kv@ID@MODEL; "" = it has none.
func podOf(topic string) string {
	parts := strings.SplitN(topic, "@", 3)
	if len(parts) < 3 {
		return ""
	}
	return parts[1]
}

// names reports whether a topic's id may mean this pod: by its name, its address
// or the host alone.
func names(s pod.Spec, id string) bool {
	host, _, err := net.SplitHostPort(s.Address)
	return id == s.Name || id == s.Address || err == nil && id == host
}

// rank: the batches say that they are another's.
func (v *judge) rank() {
	if v.s.Pod.Ranks == 0 {
		return // nobody says which it should be
	}
	var others []string
	for _, r := range slices.Sorted(maps.Keys(v.c.ranks)) {
		if r != v.s.Rank {
			others = append(others, strconv.Itoa(r))
		}
	}
	if len(others) > 0 {
		v.warn(reason.RankDiffers, "batches say rank %s, the port is that of rank %d of %d", strings.Join(others, ", "), v.s.Rank, max(v.s.Pod.Ranks, 1))
	}
}

// size is the block size of most stores on the GPU, 0 without any. A prompt's last
// page may be shorter in SGLang.
func (c *content) size() int {
	best := 0
	for size, n := range c.sizes {
		if n > c.sizes[best] || n == c.sizes[best] && size > best {
			best = size
		}
	}
	return best
}

func sum[K comparable](m map[K]int) (n int) {
	for _, v := range m {
		n += v
	}
	return n
}

// words lists a tally: "2 frames: 3, 4 frames: 1"; the counts only when there are
// several. What came from outside is cleaned.
func words(m map[string]int) string {
	var list []string
	for _, k := range slices.Sorted(maps.Keys(m)) {
		text := out.Clean(k)
		if len(m) > 1 {
			text += ": " + strconv.Itoa(m[k])
		}
		list = append(list, text)
	}
	return strings.Join(list, ", ")
}

func sizes(m map[int]int) string {
	text := map[string]int{}
	for size, n := range m {
		text[strconv.Itoa(size)] = n
	}
	return words(text)
}

func plural(n int, what string) string { return out.Plural(n, what) }
