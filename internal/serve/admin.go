package serve

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/eppctl/eppctl/internal/core/pick"
	"github.com/eppctl/eppctl/internal/core/recording"
	"github.com/eppctl/eppctl/internal/core/view"
)

// Bounds of the admin API: it must never cost the picks anything.
const (
	adminInFlight   = 8
	explainDeadline = time.Second
	stateRows       = 256 // default and greatest page of /v1/state
	pickRows        = 256
)

// APIVersion stands in every object of the admin API. It is additive: consumers
// ignore fields they do not know.
const APIVersion = "eppctl/v1"

// admin is the HTTP API behind explain and top. It only reads: no counter, no
// breaker and no speculative entry moves because somebody looks.
//
//	GET  /v1/version
//	POST /v1/explain?path=/v1/chat/completions
//	         The request itself, as a client would send it: the body verbatim,
//	         its headers as headers, the gateway's subset as header
//	         x-gateway-destination-endpoint-subset. Answers an Explanation, or
//	         the refusal that serve would send, with its status. With tokens=1 it
//	         has the token ids of this very request, which are the asker's own.
//	         set=, weight= and without= suppose something: see suppose.go.
//	GET  /v1/explain/{request-id or pick-id}?set=&weight=&without=
//	GET  /v1/picks?pod=&limit=&after=
//	GET  /v1/state?sort=&limit=&filter=&picks=&detail=
//	         A Snapshot: one frame of top. docs/admin-api.md has its fields.
//	GET  /v1/names?kind=pod|model
//	GET  /v1/frames?pod=PATTERN
//	         What engines send, as an endless recording: see frames.go.
//
// No other answer but that of frames holds token ids; none holds prompt text, and
// nothing of a prompt is kept.
type admin struct {
	picker  *Picker
	version Version
	config  string // whole path of the configuration, "" = none
	slots   chan struct{}
	reserve chan struct{} // for GETs alone: an operator sees why nothing else goes
	frames  chan struct{} // for /v1/frames alone: its answers do not end
	hub     *recording.Hub
	bodies  budget
	log     *slog.Logger
	begun   time.Time
}

func newAdmin(p *Picker, v Version, log *slog.Logger) *admin {
	return &admin{
		picker: p, version: v, log: log, begun: time.Now(),
		slots: make(chan struct{}, adminInFlight), reserve: make(chan struct{}, 1), frames: make(chan struct{}, frameClients),
		hub: recording.NewHub(),
	}
}

// handler is the API behind its guards.
func (a *admin) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/version", a.getVersion)
	mux.HandleFunc("POST /v1/explain", a.postExplain)
	mux.HandleFunc("GET /v1/explain/{id...}", a.getExplain)
	mux.HandleFunc("GET /v1/picks", a.getPicks)
	mux.HandleFunc("GET /v1/state", a.getState)
	mux.HandleFunc("GET /v1/names", a.getNames)
	mux.HandleFunc("GET "+framesPath, a.getFrames)
	return a.guard(mux)
}

func (a *admin) getVersion(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Version
		UptimeMs int64  `json:"uptime_ms"`
		Config   string `json:"config"`
	}{APIVersion, "Version", a.version, time.Since(a.begun).Milliseconds(), a.config})
}

func (a *admin) postExplain(w http.ResponseWriter, r *http.Request) {
	limit := a.picker.requestLimit()
	from := a.bodies.reader(http.MaxBytesReader(w, r.Body, int64(limit)), 2*int64(limit))
	defer from.release()
	body, err := io.ReadAll(from)
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		writeRefusal(w, tooLarge(limit))
		return
	case errors.Is(err, errBudget):
		busy(w, adminInFlight)
		return
	case err != nil:
		return // the client is gone
	}
	done := a.enter(a.slots)
	if done == nil {
		busy(w, adminInFlight)
		return
	}
	defer done()
	ctx, cancel := context.WithTimeout(r.Context(), min(explainDeadline, a.picker.deadline()))
	defer cancel()
	question := askOf(r, body)
	question.ShowIDs = r.URL.Query().Get("tokens") == "1"
	x, card, no := a.picker.Explain(ctx, question)
	if no != nil {
		writeRefusal(w, no)
		return
	}
	a.writeExplained(w, r, x, card)
}

// writeExplained answers with an explanation, what would change it, and what the
// question supposes.
func (a *admin) writeExplained(w http.ResponseWriter, r *http.Request, x *pick.Explanation, c *pick.Card) {
	what, err := suppositions(r.URL.Query())
	if err == nil {
		err = a.picker.reason(r.Context(), x, c, what)
	}
	if err != nil {
		writeError(w, http.StatusBadRequest, "E_USAGE", err.Error(), "")
		return
	}
	writeJSON(w, http.StatusOK, x)
}

// askOf reads an HTTP request as the ext_proc stream would have read it.
func askOf(r *http.Request, body []byte) *ask {
	path := r.URL.Query().Get("path")
	a := &ask{Head: headOf(r.Header, http.MethodPost, path), Body: body}
	if hint, ok := r.Header[http.CanonicalHeaderKey(subsetKey)]; ok {
		a.Subset = &pick.Subset{}
		for _, h := range hint {
			addEntries(a.Subset, h)
		}
	}
	return a
}

func (a *admin) getExplain(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	x, card, kept := a.picker.ring.find(id)
	if x == nil {
		writeError(w, http.StatusNotFound, "E_UNKNOWN_REQUEST", "no recent pick has this request id or pick id", keptHint(kept))
		return
	}
	a.writeExplained(w, r, x, card)
}

// keptHint names ids that would have been found: the newest, and how far back the
// ring goes.
func keptHint(ids []string) string {
	if len(ids) == 0 {
		return "no pick is kept yet (limits.recent_cards says how many are)"
	}
	hint := "recent picks: " + strings.Join(ids[:min(len(ids), 3)], ", ")
	if len(ids) > 3 {
		hint += "; the oldest kept: " + ids[3]
	}
	return hint + "; more: eppctl picks -n 100, or GET /v1/picks"
}

func (a *admin) getPicks(w http.ResponseWriter, r *http.Request) {
	limit := rows(r, pickRows)
	if r.URL.Query().Has("after") {
		a.getPicksAfter(w, r, limit)
		return
	}
	picks, total := a.picker.ring.recent(r.URL.Query().Get("pod"), limit)
	writeJSON(w, http.StatusOK, struct {
		APIVersion string            `json:"apiVersion"`
		Kind       string            `json:"kind"`
		Picks      []view.RecentPick `json:"picks"`
		Total      int               `json:"total"`
		Truncated  bool              `json:"truncated"`
	}{APIVersion, "Picks", picks, total, len(picks) < total})
}

// getPicksAfter is getPicks for who follows: on from the number that the last answer
// ended with.
func (a *admin) getPicksAfter(w http.ResponseWriter, r *http.Request, limit int) {
	seq, err := strconv.ParseUint(r.URL.Query().Get("after"), 10, 64)
	if err != nil {
		writeError(w, http.StatusBadRequest, "E_USAGE", "after must be a number of a pick", "")
		return
	}
	picks, last, newest, missed := a.picker.ring.after(seq, r.URL.Query().Get("pod"), limit)
	writeJSON(w, http.StatusOK, struct {
		APIVersion string            `json:"apiVersion"`
		Kind       string            `json:"kind"`
		Run        string            `json:"run"`
		Picks      []view.RecentPick `json:"picks"`
		Last       uint64            `json:"last"`
		Newest     uint64            `json:"newest"`
		Missed     int               `json:"missed"`
	}{APIVersion, "PicksAfter", a.picker.run, picks, last, newest, missed})
}

func (a *admin) getState(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	x := stateQuery{sort: q.Get("sort"), filter: q.Get("filter"), limit: rows(r, stateRows)}
	if n, err := strconv.Atoi(q.Get("picks")); err == nil {
		x.picks = min(n, pickRows)
	}
	if q.Has("detail") {
		name := q.Get("detail")
		x.detail = &name
	}
	now := time.Now()
	if a.picker.past {
		now = a.picker.clock()
	}
	writeJSON(w, http.StatusOK, a.picker.snapshot(x, now))
}

func (a *admin) getNames(w http.ResponseWriter, r *http.Request) {
	type name struct {
		Name  string `json:"name"`
		State string `json:"state,omitempty"`
	}
	list := []name{}
	v := a.picker.fleet.View()
	switch r.URL.Query().Get("kind") {
	case "pod":
		for _, p := range v.Pods.Pods {
			list = append(list, name{p.Spec.Name, a.picker.stateWord(&v, p, a.picker.now())})
		}
	case "model":
		for _, m := range a.picker.modelNames(v.Pods) {
			list = append(list, name{Name: m})
		}
	default:
		writeError(w, http.StatusBadRequest, "E_USAGE", "kind must be pod or model", "")
		return
	}
	writeJSON(w, http.StatusOK, struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Names      []name `json:"names"`
	}{APIVersion, "Names", list})
}

// rows reads ?limit=; anything else than 1..most means most.
func rows(r *http.Request, most int) int {
	if n, err := strconv.Atoi(r.URL.Query().Get("limit")); err == nil && n > 0 && n < most {
		return n
	}
	return most
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		writeError(w, http.StatusInternalServerError, "E_INTERNAL", "cannot write the answer: "+err.Error(), "")
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(b, '\n')) // the reader's loss
}

// writeRefusal answers explain as serve would have answered the client.
func writeRefusal(w http.ResponseWriter, no *refusal) {
	w.Header().Set("Content-Type", "application/json")
	if no.Drop != "" {
		w.Header().Set(dropReason, no.Drop)
	}
	w.WriteHeader(no.Status)
	_, _ = w.Write(append(no.body(), '\n'))
}

func writeError(w http.ResponseWriter, status int, code, message, hint string) {
	writeJSON(w, status, struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Code       string `json:"code"`
		Message    string `json:"message"`
		Hint       string `json:"hint,omitempty"`
	}{APIVersion, "Error", code, message, hint})
}
