package feed

import (
	"context"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/eppctl/eppctl/internal/core/pod"
)

// complete completes spec by what the pod's engine tells of itself. What the
// configuration states is never changed; where the engine says otherwise there is
// a Finding.
func complete(spec pod.Spec, t told) (pod.Spec, []Finding) {
	m := merge{pod: spec, told: t}
	m.pod.Release = t.version
	m.host, _, _ = net.SplitHostPort(spec.Address)
	m.unanswered()
	m.engine()
	m.model()
	m.ranks()
	m.events()
	m.replay()
	if m.pod.Metrics == "" {
		m.pod.Metrics = metricsURL(m.pod.Engine, m.pod.Address, m.host)
	}
	return m.pod, m.findings
}

// metricsURL is where an engine has its metrics page by default.
func metricsURL(e pod.Engine, address, host string) string {
	switch e {
	case pod.EngineTRTLLM: // /metrics is JSON there
		return "http://" + address + "/prometheus/metrics"
	case pod.EngineTriton:
		return "http://" + net.JoinHostPort(host, "8002") + "/metrics"
	}
	return "http://" + address + "/metrics"
}

// merge is one pod's completion in progress.
type merge struct {
	pod      pod.Spec
	told     told
	host     string // of the pod's address
	findings []Finding
}

// mostHint is how much of a hint is told, in characters: it may quote what the engine
// says of itself.
const mostHint = 400

func (m *merge) report(s Severity, code, field, value, expected, hint string) {
	m.findings = append(m.findings, Finding{s, code, m.pod.Name, field, value, printable(expected, mostSaid), printable(hint, mostHint)})
}

// unanswered reports the questions that failed.
func (m *merge) unanswered() {
	for _, q := range []struct {
		question
		field string
	}{{m.told.aboutModels, "model"}, {m.told.aboutEvents, "events"}} {
		if q.outcome == failed {
			m.report(SeverityWarning, "no-answer", q.field, "", "", printable(said(q.err), 200)+"; asked again until it answers")
		}
	}
}

func (m *merge) engine() {
	switch has, is := m.pod.Engine, m.told.engine; {
	case has == pod.EngineUnknown:
		m.pod.Engine = is
		if is == pod.EngineUnknown && m.told.aboutModels.outcome != failed && m.told.aboutEvents.outcome != failed {
			m.report(SeverityWarning, "engine-unknown", "engine", "", "", "the engine does not say what it is: set engine")
		}
	case is != pod.EngineUnknown && is != has:
		m.report(SeverityError, "engine-differs", "engine", has.String(), is.String(), "")
	}
}

func (m *merge) model() {
	bases, adapters, longest := m.told.names()
	if len(bases) == 0 {
		return
	}
	switch has := m.pod.Model; {
	case has == "":
		m.pod.Model = bases[0]
		if len(bases) > 1 {
			m.report(SeverityInfo, "more-names", "model", "", strings.Join(bases, ", "),
				"the first is taken; list the others as aliases of the model")
		}
	case !slices.Contains(bases, has):
		m.report(SeverityError, "model-not-served", "model", has, strings.Join(bases, ", "), "requests for it will get 404 from this pod")
	}
	m.adapters(adapters)
	switch has := m.pod.MaxContext; {
	case has == 0:
		m.pod.MaxContext = longest
	case longest > 0 && has > longest:
		m.report(SeverityWarning, "max-context", "max_context", strconv.Itoa(has), strconv.Itoa(longest),
			"longer prompts will be refused by the engine")
	}
}

// adapters takes the engine's list of LoRA adapters. Releases of SGLang leave
// them out of the model list, so there an empty list says nothing.
func (m *merge) adapters(listed []string) {
	if m.pod.Adapters == nil {
		if len(listed) > 0 || m.pod.Engine == pod.EngineVLLM {
			m.pod.Adapters = append([]string{}, listed...)
		}
		return
	}
	if len(listed) == 0 && m.pod.Engine != pod.EngineVLLM {
		return
	}
	for _, a := range m.pod.Adapters {
		if !slices.Contains(listed, a) {
			m.report(SeverityWarning, "adapter-not-loaded", "adapters", a, strings.Join(listed, ", "), "")
		}
	}
}

// maxToldRanks is the number of data-parallel ranks that one engine is believed
// to have; the members of a fleet are limited, and all pods share them. SGLang's
// decode instances for DeepSeek run 72 ranks behind one address (9 nodes of 8,
// sglang issue 6017).
const maxToldRanks = 128

// ranks takes the number of data-parallel ranks. One rank without an endpoint
// is what a configuration that says nothing looks like.
func (m *merge) ranks() {
	n := len(m.told.events)
	if n == 0 {
		return
	}
	stated := m.pod.Ranks > 1 || len(m.pod.Events) > 0 || len(m.pod.Replay) > 0
	switch {
	case !stated && n > maxToldRanks:
		m.told.events = nil
		m.report(SeverityWarning, "too-many-ranks", "ranks", strconv.Itoa(max(m.pod.Ranks, 1)), strconv.Itoa(n),
			"more than "+strconv.Itoa(maxToldRanks)+" are not taken on an engine's word: routed to by load alone; set ranks if they are right")
	case !stated:
		m.pod.Ranks = n
	case max(m.pod.Ranks, 1) != n:
		m.report(SeverityWarning, "ranks-differ", "ranks", strconv.Itoa(m.pod.Ranks), strconv.Itoa(n),
			"each rank has its own cache and its own event port")
	}
}

const hintEventsOn = `start the engine with --kv-events-config '{"enable_kv_cache_events":true,"publisher":"zmq","endpoint":"tcp://*:5557","replay_endpoint":"tcp://*:5657"}'`

// events takes the endpoints at which the publishers listen, per rank.
func (m *merge) events() {
	configured := m.pod.HasEvents()
	on := slices.ContainsFunc(m.told.events, func(s eventSource) bool { return s.on })
	switch {
	case m.told.aboutEvents.outcome != given:
		if !configured && m.told.aboutEvents.outcome != failed {
			m.report(SeverityWarning, "no-event-source", "events", "", "",
				m.hintEvents())
		}
		return
	case len(m.told.events) == 0: // a render server has no cache
		return
	case !on:
		m.report(SeverityWarning, "events-off", "", "", "", hintEventsOn)
		return
	}
	dial := make([]string, 0, len(m.told.events))
	for _, s := range m.told.events {
		if !publisherBinds(s.endpoint, m.pod.Engine) {
			m.dialsIn(s.endpoint)
			return
		}
		to, err := dialTo(s.endpoint, m.host)
		if err != nil {
			m.report(SeverityWarning, "events-unreachable", "events", strings.Join(m.pod.Events, ", "), s.endpoint, err.Error())
			return
		}
		dial = append(dial, to)
	}
	if m.pod.Bind != "" {
		m.report(SeverityError, "publisher-listens", "events_bind", m.pod.Bind, strings.Join(dial, ", "),
			"the engine never dials: use events instead")
		return
	}
	m.pod.Events = m.fill("events", "events-differ", m.pod.Events, dial)
}

// hintEvents says what makes an engine's events known that tells nothing of them.
func (m *merge) hintEvents() string {
	if m.pod.Engine == pod.EngineTRTLLM {
		return "this engine does not tell where its events are: set events, or events_pull for releases without a publisher, or it is routed to by load alone"
	}
	return "this engine does not tell its event ports: set events, or it is routed to by load alone"
}

// dialsIn reports a publisher that connects to the subscriber.
func (m *merge) dialsIn(endpoint string) {
	switch {
	case m.pod.Bind != "":
	case len(m.pod.Events) > 0:
		m.report(SeverityError, "publisher-dials", "events", strings.Join(m.pod.Events, ", "), endpoint,
			"the engine connects instead of listening: use events_bind, or an endpoint with * in the engine")
	default:
		m.report(SeverityWarning, "publisher-dials", "events_bind", "", endpoint,
			"the engine connects to this address instead of listening: set events_bind to where it arrives, or an endpoint with * in the engine")
	}
}

// replay takes the endpoints of the history; they always listen.
func (m *merge) replay() {
	dial := make([]string, 0, len(m.told.events))
	for _, s := range m.told.events {
		if !s.on {
			return
		}
		if s.replay == "" {
			m.report(SeverityInfo, "no-replay", "replay", strings.Join(m.pod.Replay, ", "), "",
				"without replay_endpoint in the engine, what happened before eppctl started stays unknown")
			return
		}
		to, err := dialTo(s.replay, m.host)
		if err != nil {
			m.report(SeverityWarning, "replay-unreachable", "replay", strings.Join(m.pod.Replay, ", "), s.replay, err.Error())
			return
		}
		dial = append(dial, to)
	}
	if len(dial) > 0 {
		m.pod.Replay = m.fill("replay", "replay-differ", m.pod.Replay, dial)
	}
}

// fill returns the configured endpoints, or the told ones if there are none; code
// is that of a difference.
func (m *merge) fill(field, code string, configured, dial []string) []string {
	if len(configured) == 0 {
		if len(dial) != max(m.pod.Ranks, 1) {
			return nil // ranks-differ is reported; which rank is which is not known
		}
		return dial
	}
	for i := range min(len(configured), len(dial)) {
		if !samePort(configured[i], dial[i]) {
			m.report(SeverityWarning, code, field, configured[i], dial[i], "rank "+strconv.Itoa(i))
		}
	}
	return configured
}

// discover asks the engine until it has told everything, and again after a
// restart. An engine that tells only a part, or not what it is, is asked for ever
// but less and less often: what is loading now may answer, what is broken may be
// mended.
func (k *keeper) discover(ctx context.Context, address string, engine pod.Engine, heard chan<- told, silent chan<- error, again <-chan struct{}) {
	var wait backoff
	for {
		began := time.Now()
		try, cancel := context.WithTimeout(ctx, discoverTimeout)
		t, err := askEngine(try, k.feed.opts.HTTP, "http://"+address, engine)
		cancel()
		wait.max = 0
		if err != nil {
			k.log.Debug("engine does not answer yet", "err", err)
			select {
			case silent <- err:
			case <-ctx.Done():
				return
			}
		} else {
			select {
			case heard <- t:
			case <-ctx.Done():
				return
			}
			wait.max = discoverSlow
		}
		var later <-chan time.Time // never: all is told
		if err == nil && t.final(engine) {
			wait.reset()
		} else {
			later = time.After(wait.next())
		}
		select {
		case <-later:
		case <-again:
			wait.reset()
			if sleep(ctx, discoverPause-time.Since(began)) != nil {
				return
			}
		case <-ctx.Done():
			return
		}
	}
}
