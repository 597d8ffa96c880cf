package serve

import (
	"net"
	"net/http"
	"net/netip"
	"runtime/debug"
	"strconv"
)

// guard bounds the requests in flight and turns away web pages that reached a
// loopback port by a name of their own (DNS rebinding). A request with a body
// takes its slot when that is read: bodies that do not end hold none.
func (a *admin) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !namesUs(r.Host) {
			writeError(w, http.StatusForbidden, "E_HOST", "the Host header names neither an address nor localhost", "")
			return
		}
		places, most := []chan struct{}{a.slots, a.reserve}, adminInFlight
		if r.URL.Path == framesPath {
			places, most = []chan struct{}{a.frames}, frameClients
		}
		if r.Method != http.MethodPost {
			done := a.enter(places...)
			if done == nil {
				busy(w, most)
				return
			}
			defer done()
		}
		defer func() {
			if p := recover(); p != nil {
				a.log.Error("admin: panic", "path", r.URL.Path, "panic", p, "stack", string(debug.Stack()))
				writeError(w, http.StatusInternalServerError, "E_INTERNAL", "the admin API failed", "")
			}
		}()
		next.ServeHTTP(w, r)
	})
}

// enter takes a place in the first of several that has one; nil = none has.
func (a *admin) enter(places ...chan struct{}) (leave func()) {
	for _, p := range places {
		select {
		case p <- struct{}{}:
			return func() { <-p }
		default:
		}
	}
	return nil
}

func busy(w http.ResponseWriter, most int) {
	w.Header().Set("Retry-After", "1")
	writeError(w, http.StatusTooManyRequests, "E_BUSY", strconv.Itoa(most)+" admin requests of this kind are in flight", "try again")
}

func namesUs(host string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	_, err := netip.ParseAddr(trimBrackets(host))
	return err == nil || host == "localhost" || host == "" || host == unixHost
}

// unixHost is the Host that clients of a unix socket send.
const unixHost = "eppctl"

func trimBrackets(s string) string {
	if len(s) > 1 && s[0] == '[' && s[len(s)-1] == ']' {
		return s[1 : len(s)-1]
	}
	return s
}
