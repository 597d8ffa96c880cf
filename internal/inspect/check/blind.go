package check

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/eppctl/eppctl/internal/core/event"
	"github.com/eppctl/eppctl/internal/core/feed"
	"github.com/eppctl/eppctl/internal/core/index"
	"github.com/eppctl/eppctl/internal/core/reason"
	"github.com/eppctl/eppctl/internal/inspect/out"
)

// Findings says what in the stream makes the picker blind, or misleads it.
func (s *stream) Findings(w witness) []feed.Finding {
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
	s      *stream
	c      *content
	w      witness
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
		v.warn(reason.Silent, "%s and no event came: it publishes elsewhere, or its publisher died; see its log", out.Plural(v.w.Running, "request")+" running")
	case v.c.batches == 0:
		v.info(reason.NoEventsEver, "%s", v.w.idle())
	}
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
			n, out.Plural(v.s.messages, "message"), words(v.s.shapes))
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
		v.warn(reason.EventsSkipped, "%d of %s: %s", sum(odd), out.Plural(v.c.events+sum(odd), "event"), words(odd))
	}
	if len(other) > 0 {
		v.info(reason.EventsSkipped, "%s of kinds that eppctl does not know and passes over: %s", out.Plural(sum(other), "event"), words(v.c.tags))
	}
}

// missing: batches did not come, or come from elsewhere.
func (v *judge) missing() {
	if q := &v.s.seq; q.gaps > 0 {
		v.warn(reason.EventsLost, "%s missing in %s on one connection: a full queue in the engine (hwm), or the network",
			out.Plural(int(q.lost), "batch"), out.Plural(q.gaps, "gap"))
	}
	if d := v.s.delay; d.max-d.min > late {
		v.warn(reason.EventsLate, "some came %.1f s later than others", d.max-d.min)
	}
	switch r := &v.s.replay; {
	case r.differ > 0:
		v.add(feed.SeverityError, reason.ReplayMismatch, "%s differ from those of the event port under the same number: "+
			"it is another engine's or rank's port", out.Plural(r.differ, "replayed batch")).Field = "replay"
	case r.failed != "" && r.batches > 0:
		v.warn(reason.ReplayMismatch, "the replay port has batches %d to %d and not those before the live ones: %s", r.first, r.last, r.failed)
	case r.failed != "":
		v.warn(reason.ReplayDead, "%s", r.failed)
	}
	if n := v.member.OrphansNow + int(v.member.OrphansLost); n > 0 && v.s.whole() {
		v.warn(reason.OrphanParent, "%s of blocks whose parent was never stored, in a stream seen from its begin", out.Plural(n, "store"))
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
		v.warn(reason.BlockSizeDiffer, "%s of sizes that do not go together: %s", out.Plural(int(n), "store"), sizes(v.c.sizes))
	}
}

// hashes: blocks that cannot be found again.
func (v *judge) hashes() {
	if n := v.c.skipped[event.SkipHashType]; n > 0 {
		v.warn(reason.HashForm, "%s with hashes that are neither numbers nor byte strings", out.Plural(n, "event"))
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
			"It is a connector's or a pool's stream; take the engine's own", out.Plural(n, "store"))
	}
	if n := v.c.skipped[event.SkipStringTokens]; n > 0 {
		v.warn(reason.NoTokenIDs, "%s with tokens as text (TensorRT-LLM with images)", out.Plural(n, "store"))
	}
	if n := v.member.Verdicts[index.Sparse]; n > 0 {
		v.warn(reason.Misaligned, "%s passed over%s: another publisher's form, or a newer release; report it with a recording (tap --write)",
			out.Plural(int(n), "store"), v.c.odd)
	}
	if v.c.numbered > 0 {
		v.warn(reason.AdapterUnnamed, "%s of adapters that have a number and no name: their requests match nothing", out.Plural(v.c.numbered, "store"))
	}
	if n := v.member.Verdicts[index.OtherSpace]; n > 0 {
		v.warn(reason.Namespace, "%s of another adapter or salt than the block they hang on", out.Plural(int(n), "store"))
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

// endpoint is where the stream comes from, as configured or told.
func (s *stream) endpoint() string {
	if s.Rank < len(s.Pod.Events) {
		return s.Pod.Events[s.Rank]
	}
	return s.Pod.Bind
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
