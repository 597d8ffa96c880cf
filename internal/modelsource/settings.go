package modelsource

import (
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Settings say where models are looked for. They are not changed by their methods,
// which may be called from any goroutine.
type Settings struct {
	Cache    string // the hub's cache folder; "" = there is none, and folders alone can be had
	Endpoint string // the hub, "https://huggingface.co"
	Token    string // for gated and private models, never told to another host
	Offline  bool   // the hub is not asked

	HTTP *http.Client // nil = one of our own; redirects are followed here
	// Stall is how long a transfer may bring nothing before it is given up; 0 = 30 s.
	Stall time.Duration
	// Patience is how long the hub may leave a question without an answer, retries
	// included: looking up its name alone takes some resolvers 10 s a try. 0 = as long as
	// they take.
	Patience time.Duration
	// Retries are made of what may pass: no connection, 5xx, 429, a stall, a cut
	// body. What was answered for good is not: no such host, a wrong certificate. The waits between them double from Wait; 0 = 3 retries from 500 ms,
	// negative = none.
	Retries int
	Wait    time.Duration
	// Progress, if set, is told how far a file has come, from the goroutine that
	// called Find.
	Progress func(Progress)
	// Asking, if set, is told before the hub is asked which files a model has.
	Asking func(hub string)
}

// Progress is how far a file has come.
type Progress struct {
	File string
	Done int64
	Size int64 // 0 = not announced
}

// PersonsPatience is for who waits before a screen.
const PersonsPatience = 10 * time.Second

const defaultEndpoint = "https://huggingface.co"

// FromEnv reads the settings that huggingface_hub reads, from the same variables:
// HF_HUB_CACHE, HF_HOME, XDG_CACHE_HOME, HF_ENDPOINT, HF_TOKEN, HF_TOKEN_PATH,
// HF_HUB_DISABLE_IMPLICIT_TOKEN, HF_HUB_OFFLINE, TRANSFORMERS_OFFLINE.
func FromEnv(getenv func(string) string) (*Settings, error) {
	env := func(names ...string) string {
		for _, n := range names {
			if v := getenv(n); v != "" {
				return v
			}
		}
		return ""
	}
	user := getenv("HOME")
	folder := func(v string, fallback ...string) string {
		if v == "" && fallback[0] == "" { // a relative one would be wherever the process was started
			return ""
		}
		if v == "" {
			return filepath.Join(fallback...)
		}
		if rest, ok := strings.CutPrefix(v, "~"); ok && (rest == "" || rest[0] == '/') {
			v = user + rest
		}
		return filepath.Clean(os.Expand(v, getenv))
	}
	s := &Settings{Endpoint: strings.TrimRight(env("HF_ENDPOINT"), "/")}
	home := folder(env("HF_HOME"), folder(env("XDG_CACHE_HOME"), user, ".cache"), "huggingface")
	s.Cache = folder(env("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"), home, "hub")
	s.Offline = isTrue(env("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"))
	if s.Endpoint == "" {
		s.Endpoint = defaultEndpoint
	}
	u, err := url.Parse(s.Endpoint)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil || u.RawQuery != "" {
		return nil, &Error{Kind: Invalid, What: "HF_ENDPOINT", Why: "it is not the address of a hub", Hint: "try: HF_ENDPOINT=" + defaultEndpoint}
	}
	s.Token = clean(env("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"))
	if s.Token == "" && !isTrue(env("HF_HUB_DISABLE_IMPLICIT_TOKEN")) {
		if b, err := readCapped(folder(env("HF_TOKEN_PATH"), home, "token"), 64<<10); err == nil {
			s.Token = clean(string(b)) // without one, models that need none can be had
		}
	}
	return s, nil
}

// clean is a token without what would break a header.
func clean(token string) string {
	token = strings.TrimSpace(token)
	if strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return ""
	}
	return token
}

func isTrue(v string) bool {
	switch strings.ToUpper(v) {
	case "1", "ON", "YES", "TRUE":
		return true
	}
	return false
}
