package serve

import (
	"strconv"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	extproc "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/eppctl/eppctl/internal/core/pick"
)

// Keys eppctl adds under envoy.lb, for the access log: which pick it was, and
// why no prefix was matched.
const (
	pickIDKey = "x-eppctl-pick-id"
	reasonKey = "x-eppctl-reason"
)

// answer is what a pick makes of a request's headers and metadata.
type answer struct {
	Destination string // "ip:port", or a comma list when fallbacks are on
	PickID      string
	Reason      string
	NewID       string // request id to add, "" = the client sent one
	Rank        string // data-parallel rank to ask for, "" = leave it to the engine
	Scores      map[string]float64
	Strip       []string
	Rewrite     *rewrite // of the model in the body, nil = it stays as it is
	Length      string   // content-length of the rewritten body, "" = leave it alone
}

// mutation holds only what changes: everything else, duplicates included,
// reaches the engine as the client sent it.
func (a *answer) mutation() *extproc.HeaderMutation {
	m := &extproc.HeaderMutation{
		SetHeaders:    []*corev3.HeaderValueOption{setHeader(destinationKey, a.Destination)},
		RemoveHeaders: a.Strip,
	}
	if a.NewID != "" {
		m.SetHeaders = append(m.SetHeaders, setHeader(requestIDHeader, a.NewID))
	}
	if a.Rank != "" {
		m.SetHeaders = append(m.SetHeaders, setHeader(rankHeader, a.Rank))
	}
	if a.Length != "" {
		m.SetHeaders = append(m.SetHeaders, setHeader(lengthHeader, a.Length))
	}
	return m
}

// body is what the engine gets of a body, or of its first part.
func (a *answer) body(came []byte) []byte {
	if a.Rewrite == nil {
		return came
	}
	return a.Rewrite.apply(came)
}

// metadata is the dynamic metadata: the outer key is the namespace.
func (a *answer) metadata() *structpb.Struct {
	lb := map[string]*structpb.Value{
		destinationKey: structpb.NewStringValue(a.Destination),
		pickIDKey:      structpb.NewStringValue(a.PickID),
	}
	if a.Reason != "" {
		lb[reasonKey] = structpb.NewStringValue(a.Reason)
	}
	if a.Scores != nil {
		scores := make(map[string]*structpb.Value, len(a.Scores))
		for k, v := range a.Scores {
			scores[k] = structpb.NewNumberValue(v)
		}
		lb[scoresKey] = structpb.NewStructValue(&structpb.Struct{Fields: scores})
	}
	return &structpb.Struct{Fields: map[string]*structpb.Value{
		lbNamespace: structpb.NewStructValue(&structpb.Struct{Fields: lb}),
	}}
}

// setHeader overwrites or adds. Only raw_value is set: Envoy rejects a header
// with both, and reads an unset append action differently from other proxies.
func setHeader(key, value string) *corev3.HeaderValueOption {
	return &corev3.HeaderValueOption{
		Header:       &corev3.HeaderValue{Key: key, RawValue: []byte(value)},
		AppendAction: corev3.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD,
	}
}

func (p *Picker) answerOf(d *decided, a *ask) answer {
	c := &d.card
	w := c.WinnerRow()
	d.pickID = p.run + "-" + strconv.FormatUint(p.serial.Add(1), 36)
	out := answer{Destination: w.Pod.Target, PickID: d.pickID, Reason: string(c.Unmatched), Strip: a.strip()}
	switch {
	case a.Rewrite != nil:
		out.Rewrite, out.Length = a.Rewrite, a.Rewrite.length(a.Head.Length)
		p.met.rewrites.WithLabelValues("done").Inc()
	case a.Misnamed:
		p.met.rewrites.WithLabelValues("impossible").Inc()
	}
	if out.Reason == "" {
		out.Reason = string(w.Reason)
	}
	if a.NewID {
		out.NewID = a.Head.RequestID
	}
	if len(w.Pod.Members) > 1 && w.Rank >= 0 {
		out.Rank = strconv.Itoa(w.Rank)
	}
	if p.fallbacks > 0 {
		out.Destination = targets(c, p.fallbacks+1)
	}
	if p.scores {
		out.Scores = map[string]float64{}
		for i := range c.Rows {
			if c.Rows[i].Candidate {
				out.Scores[c.Rows[i].Pod.Target] = c.Rows[i].Total
			}
		}
	}
	return out
}

// targets lists the best n endpoints; a proxy with override_host walks the list
// on retries.
func targets(c *pick.Card, n int) string {
	list := make([]string, 0, n)
	for _, i := range c.Best(n, make([]int, 0, n)) {
		list = append(list, c.Rows[i].Pod.Target)
	}
	return strings.Join(list, ",")
}
