package serve

import (
	"cmp"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/eppctl/eppctl/internal/core/pick"
	"github.com/eppctl/eppctl/internal/core/reason"
	"github.com/eppctl/eppctl/internal/core/view"
)

// otherModel is the label of every model that is not configured: clients choose
// model names, and each label value is a time series for ever.
const otherModel = view.OtherModels

// metrics are the picker's own numbers. Per-pod numbers and those other parts
// count themselves are read when the page is (collector.go), so that the series
// of a pod leave with it. Safe for concurrent use.
type metrics struct {
	registry *prometheus.Registry

	requests    *prometheus.CounterVec // code, reason, model
	pickSeconds prometheus.Histogram
	decide      prometheus.Histogram
	firstByte   prometheus.Histogram
	bodyBytes   prometheus.Histogram
	tokens      *prometheus.CounterVec // model
	providers   *prometheus.CounterVec // provider
	untokenized *prometheus.CounterVec // model, provider, reason
	announced   *prometheus.CounterVec // model, verdict
	unmatched   *prometheus.CounterVec // reason
	relaxed     *prometheus.CounterVec // reason
	engine      *prometheus.CounterVec // pod, class
	proxied     *prometheus.CounterVec // class
	engineToks  *prometheus.CounterVec // pod, what
	rewrites    *prometheus.CounterVec // result
	reloads     *prometheus.CounterVec // result
	streams     *prometheus.CounterVec // code

	// Also shown by /v1/state.
	routed, refused, ties, elsewhere atomic.Uint64

	crowded                     atomic.Uint64 // decisions that got no slot in time
	queried, best, selected     atomic.Uint64 // prompt tokens
	engineQueried, engineCached atomic.Uint64 // the same, as the engines report

	recorded, unrecorded atomic.Uint64 // decisions and outcomes

	configBad atomic.Bool // what stands in the file was rejected
}

// pickBuckets span 50 µs, a pick by load, to the pick deadline and beyond;
// firstBuckets a prefix that is all cached to a queue in which nobody waits any more.
var (
	pickBuckets   = []float64{.00005, .0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5}
	firstBuckets  = []float64{.01, .025, .05, .1, .25, .5, 1, 2, 5, 10, 30, 60}
	decideBuckets = []float64{1e-6, 2.5e-6, 5e-6, 1e-5, 2.5e-5, 5e-5, 1e-4, 2.5e-4, 5e-4, 1e-3, 1e-2}
)

func newMetrics() *metrics {
	m := &metrics{registry: prometheus.NewRegistry()}
	count := func(name, help string, labels ...string) *prometheus.CounterVec {
		v := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "eppctl_" + name, Help: help}, labels)
		m.registry.MustRegister(v)
		return v
	}
	m.requests = count("requests_total", "Requests by HTTP status of the picker's answer (200 = routed), reason and model.", "code", "reason", "model")
	m.tokens = count("prompt_tokens_total", "Prompt tokens of decided requests; estimated where they could not be tokenized.", "model")
	m.providers = count("tokenized_total", "Prompts whose token ids were found, by who gave them; bytes = by nobody, and their bytes were compared.", "provider")
	m.untokenized = count("tokenize_failures_total", "Prompts a provider could not tokenize; the next was asked.", "model", "provider", "reason")
	m.announced = count("parity_requests_total", "Routed requests by what their engine's events say of our token ids: equal, differs, unseen = blocks of something else were announced, unknown.", "model", "verdict")
	m.unmatched = count("unmatched_total", "Requests decided by load only, by reason.", "reason")
	m.relaxed = count("relaxed_total", "Picks among pods that a filter would leave out, by reason.", "reason")
	m.engine = count("engine_responses_total", "Engine responses by pod and status class.", "pod", "class")
	m.proxied = count("proxy_responses_total", "Responses that the proxy made up itself, by status class.", "class")
	m.engineToks = count("engine_tokens_total", "Tokens as the engines report them, where the response is shown: prompt, output, and of the prompts with a report of hits queried and cached.", "pod", "what")
	m.rewrites = count("model_rewrites_total", "Requests that name another model than the pods serve: done = the body was changed, impossible = it cannot be.", "result")
	m.reloads = count("config_reloads_total", "Config edits applied and rejected.", "result")
	m.streams = count("ext_proc_streams_total", "ext_proc streams ended, by gRPC code.", "code")

	histogram := func(name, help string, buckets []float64) prometheus.Histogram {
		h := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "eppctl_" + name, Help: help, Buckets: buckets})
		m.registry.MustRegister(h)
		return h
	}
	m.pickSeconds = histogram("pick_duration_seconds", "From the whole body to the answer, tokenization included.", pickBuckets)
	m.decide = histogram("decide_duration_seconds", "Match, filter, score and select.", decideBuckets)
	m.firstByte = histogram("first_byte_seconds", "From the decision to the first byte of a streamed answer, where the proxy shows response bodies.", firstBuckets)
	m.bodyBytes = histogram("request_bytes", "Request bodies the picker saw.", prometheus.ExponentialBuckets(256, 4, 10))

	total := func(name, help string, labels prometheus.Labels, n *atomic.Uint64) {
		m.registry.MustRegister(prometheus.NewCounterFunc(
			prometheus.CounterOpts{Name: "eppctl_" + name, Help: help, ConstLabels: labels},
			func() float64 { return float64(n.Load()) },
		))
	}
	total("ties_total", "Picks settled by rendezvous hashing.", nil, &m.ties)
	total("picks_without_slot_total", "Decisions that did not wait any longer for a processor: others tokenized on all of them until the pick deadline.", nil, &m.crowded)
	total("served_elsewhere_total", "Requests the proxy sent to another endpoint than the pick.", nil, &m.elsewhere)
	total("decision_records_total", "Decisions and outcomes recorded.", nil, &m.recorded)
	total("decision_records_dropped_total", "Decisions and outcomes that the recording did not keep up with, or that could not be written.", nil, &m.unrecorded)
	const prefix, help = "prefix_tokens_total", "Tokens of tokenized prompts: all, cached on the best eligible pod, cached on the selected one."
	total(prefix, help, prometheus.Labels{"what": "queried"}, &m.queried)
	total(prefix, help, prometheus.Labels{"what": "best"}, &m.best)
	total(prefix, help, prometheus.Labels{"what": "selected"}, &m.selected)
	m.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// count records a request. Without a query there was no decision.
func (m *metrics) count(c *pick.Card, q *pick.Query, no *refusal, a *ask, model string) {
	m.bodyBytes.Observe(float64(len(a.Body)))
	status, why := http.StatusOK, reason.None
	if no != nil {
		status, why = no.Status, reason.Code(no.Code)
		m.refused.Add(1)
	} else {
		m.routed.Add(1)
	}
	if q == nil {
		m.requests.WithLabelValues(strconv.Itoa(status), string(why), model).Inc()
		return
	}
	m.requests.WithLabelValues(strconv.Itoa(status), string(cmp.Or(why, c.Why, c.Unmatched)), model).Inc()
	m.tokens.WithLabelValues(model).Add(float64(c.Tokens))
	if a.Tokenizer != "" {
		m.providers.WithLabelValues(a.Tokenizer).Inc()
	}
	if c.Unmatched != reason.None {
		m.unmatched.WithLabelValues(string(c.Unmatched)).Inc()
	}
	if no == nil && c.Why != reason.None {
		m.relaxed.WithLabelValues(string(c.Why)).Inc()
	}
	if c.Tie.Used {
		m.ties.Add(1)
	}
	m.countHits(c)
}

func (m *metrics) countHits(c *pick.Card) {
	if !c.Exact {
		return
	}
	best := 0
	for i := range c.Rows {
		if c.Rows[i].Candidate {
			best = max(best, c.Rows[i].Cached)
		}
	}
	m.queried.Add(uint64(c.Tokens))
	m.best.Add(uint64(best))
	if w := c.WinnerRow(); w != nil {
		m.selected.Add(uint64(w.Cached))
	}
}

// forget drops the series of a pod that left the fleet.
func (m *metrics) forget(pod string) {
	m.engine.DeletePartialMatch(prometheus.Labels{"pod": pod})
	m.engineToks.DeletePartialMatch(prometheus.Labels{"pod": pod})
}

// spent records what an engine reports about a request of its own.
func (m *metrics) spent(pod string, u usage) {
	add := func(what string, n int) { m.engineToks.WithLabelValues(pod, what).Add(float64(n)) }
	add("prompt", u.Prompt)
	add("output", u.Output)
	if u.Cached >= 0 {
		add("queried", u.Prompt)
		add("cached", u.Cached)
		m.engineQueried.Add(uint64(u.Prompt))
		m.engineCached.Add(uint64(u.Cached))
	}
}

// observe records a duration with the request id as exemplar, which leads from a
// slow bucket to the explain record.
func observe(h prometheus.Histogram, d time.Duration, requestID string) {
	if len(requestID)+len("request_id") <= prometheus.ExemplarMaxRunes {
		h.(prometheus.ExemplarObserver).ObserveWithExemplar(d.Seconds(), prometheus.Labels{"request_id": requestID})
		return
	}
	h.Observe(d.Seconds())
}

// handler serves the page; OpenMetrics on request carries the exemplars.
func (m *metrics) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{EnableOpenMetrics: true, Registry: m.registry})
}
