package modelsource

import (
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/eppctl/eppctl/internal/testdata"
)

// The clock of regexp2 ends by itself, some time after the last match.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/dlclark/regexp2/v2.runClock"))
}

// hub answers as huggingface.co does: a description of a revision, small files by
// themselves with git's hash as their ETag, large ones by a redirect to another host.
type hub struct {
	*httptest.Server
	cdn *httptest.Server

	mu       sync.Mutex
	commits  map[string]string            // revision -> commit
	files    map[string]map[string][]byte // commit -> name -> content
	token    string                       // wanted, if not ""
	gated    bool
	seen     []string                                                               // paths asked for
	cdnToken bool                                                                   // the token came to the other host
	fault    func(path string, try int, w http.ResponseWriter, content []byte) bool // true = answered
	tries    map[string]int
	gone     chan struct{} // closed when the test has ended: who stalls waits for it
}

const modelName = "acme/tiny"

func newHub(t *testing.T, files map[string][]byte) *hub {
	h := &hub{commits: map[string]string{}, files: map[string]map[string][]byte{}, tries: map[string]int{}, gone: make(chan struct{})}
	h.cdn = httptest.NewServer(http.HandlerFunc(h.serveCDN))
	h.Server = httptest.NewServer(http.HandlerFunc(h.serve))
	t.Cleanup(func() {
		close(h.gone)
		h.Close()
		h.cdn.Close()
	})
	h.push("main", files)
	return h
}

// push makes a new commit the head of a branch.
func (h *hub) push(branch string, files map[string][]byte) (commit string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	sum := sha1.Sum(fmt.Append(nil, len(h.files), branch))
	commit = hex.EncodeToString(sum[:])
	h.commits[branch], h.commits[commit], h.files[commit] = commit, commit, files
	return commit
}

// large tells files that the hub keeps apart.
func large(name string) bool { return name == "tokenizer.json" || strings.HasSuffix(name, ".model") }

func etagFor(name string, b []byte) string {
	if large(name) {
		sum := sha256.Sum256(b)
		return hex.EncodeToString(sum[:])
	}
	sum := sha1.Sum(append(fmt.Appendf(nil, "blob %d\x00", len(b)), b...))
	return hex.EncodeToString(sum[:])
}

func (h *hub) serve(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.seen = append(h.seen, r.Method+" "+r.URL.Path)
	h.tries[r.URL.Path]++
	if h.fault != nil && h.fault(r.URL.Path, h.tries[r.URL.Path], w, nil) {
		return
	}
	fail := func(status int, code, message string) {
		w.Header().Set("X-Error-Code", code)
		w.Header().Set("X-Error-Message", message)
		w.WriteHeader(status)
	}
	if sent := r.Header.Get("Authorization"); h.token != "" && sent != "Bearer "+h.token {
		switch {
		case h.gated && sent == "":
			fail(401, "GatedRepo", "Access to model acme/tiny is restricted. You must have access to it and be authenticated to access it. Please log in.")
		case h.gated:
			fail(403, "GatedRepo", "Access to model acme/tiny is restricted and you are not in the authorized list.")
		default:
			fail(401, "RepoNotFound", "Repository not found")
		}
		return
	}
	path, ok := strings.CutPrefix(r.URL.EscapedPath(), "/api/models/"+modelName+"/revision/")
	if ok {
		revision, _ := url.PathUnescape(path)
		commit := h.commits[revision]
		if commit == "" {
			fail(404, "RevisionNotFound", "Invalid rev id: "+revision)
			return
		}
		type sibling struct {
			Name string `json:"rfilename"`
		}
		list := []sibling{{"model.safetensors"}, {"README.md"}, {"../../etc/passwd"}, {"sub/tokenizer.json"}}
		for name := range h.files[commit] {
			list = append(list, sibling{name})
		}
		json.NewEncoder(w).Encode(map[string]any{"id": modelName, "sha": commit, "siblings": list})
		return
	}
	path, ok = strings.CutPrefix(r.URL.EscapedPath(), "/"+modelName+"/resolve/")
	revision, name, _ := strings.Cut(path, "/")
	revision, _ = url.PathUnescape(revision)
	commit := h.commits[revision]
	content, have := h.files[commit][name]
	switch {
	case !ok:
		fail(401, "RepoNotFound", "Repository not found")
	case commit == "":
		fail(404, "RevisionNotFound", "Invalid rev id")
	case !have:
		w.Header().Set("X-Repo-Commit", commit)
		fail(404, "EntryNotFound", "Entry not found")
	default:
		w.Header().Set("X-Repo-Commit", commit)
		if large(name) {
			w.Header().Set("X-Linked-Etag", `"`+etagFor(name, content)+`"`)
			w.Header().Set("X-Linked-Size", strconv.Itoa(len(content)))
			http.Redirect(w, r, h.cdn.URL+"/"+etagFor(name, content)+"?signature=secret", http.StatusFound)
			return
		}
		w.Header().Set("Etag", `W/"`+etagFor(name, content)+`"`)
		h.send(w, r, content)
	}
}

func (h *hub) serveCDN(w http.ResponseWriter, r *http.Request) {
	content, try := h.cdnFile(r)
	if content == nil {
		w.WriteHeader(403)
		return
	}
	w.Header().Set("Etag", `"another"`)
	if h.fault == nil || !h.fault("cdn", try, w, content) { // outside of the lock: who stalls holds up no other request
		h.send(w, r, content)
	}
}

// cdnFile is the file that a URL is of, nil = none.
func (h *hub) cdnFile(r *http.Request) (content []byte, try int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.tries["cdn"]++
	h.cdnToken = h.cdnToken || r.Header.Get("Authorization") != ""
	for _, files := range h.files {
		for name, content := range files {
			if r.URL.Path == "/"+etagFor(name, content) {
				return content, h.tries["cdn"]
			}
		}
	}
	return nil, 0
}

func (h *hub) send(w http.ResponseWriter, r *http.Request, content []byte) {
	w.Header().Set("Content-Length", strconv.Itoa(len(content)))
	if r.Method != http.MethodHead {
		w.Write(content)
	}
}

// settings are for a cache of its own.
func (h *hub) settings(t *testing.T) *Settings {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	return &Settings{Cache: t.TempDir(), Endpoint: h.URL, HTTP: client, Wait: time.Microsecond, Stall: time.Minute}
}

// tinyFiles are those of the model of the captures, and some more.
func tinyFiles(t *testing.T) map[string][]byte {
	t.Helper()
	dir := filepath.Join(testdata.Dirs(t, "engines")[0], "models", "tiny-llama")
	files := map[string][]byte{"additional_chat_templates/tool_use.jinja": []byte("{{ messages }}")}
	for _, name := range []string{"tokenizer.json", "tokenizer_config.json", "config.json", "generation_config.json"} {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		files[name] = b
	}
	return files
}
