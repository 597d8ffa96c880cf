package inspect

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/eppctl/eppctl/internal/testdata"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func kindOf(t *testing.T, err error) *Error {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) {
		t.Fatalf("error %v is not an *Error", err)
	}
	return e
}

func client(t *testing.T, addr string) *Client {
	t.Helper()
	c, err := NewClient(addr, Timeouts{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestUnreachable: UX-14 and its relatives; each says what, why and how to go on.
func TestUnreachable(t *testing.T) {
	closed := testdata.Deaf(t)
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()

	t.Run("UX-14 nothing listens", func(t *testing.T) {
		_, err := client(t, closed).Recent(t.Context(), "x")
		e := kindOf(t, err)
		if e.Kind != Unreachable || e.What != "cannot reach serve at "+closed+": connection refused" || e.Why == "" || e.Hint == "" {
			t.Errorf("%+v", e)
		}
	})
	t.Run("no such name", func(t *testing.T) {
		_, err := client(t, "serve.invalid:9004").Recent(t.Context(), "x")
		e := kindOf(t, err)
		if e.Kind != Unreachable || e.What != "cannot reach serve at serve.invalid:9004: no such host" || e.Why != "the name serve.invalid has no address here" || e.Hint == "" {
			t.Errorf("%+v", e)
		}
	})
	t.Run("no name server", func(t *testing.T) { // which refuses or hangs as serve may
		for _, cause := range []*net.DNSError{
			{Name: "serve.svc", Server: "10.0.0.1:53", Err: "i/o timeout", IsTimeout: true},
			{Name: "serve.svc", Server: "10.0.0.1:53", Err: "connection refused", UnwrapErr: syscall.ECONNREFUSED},
		} {
			e := kindOf(t, client(t, "serve.svc:9004").unreachable(t.Context(), &net.OpError{Op: "dial", Err: cause}))
			if e.Kind != Unreachable || e.What != "cannot reach serve at serve.svc:9004: its name cannot be looked up" || !strings.HasPrefix(e.Why, "lookup of serve.svc at 10.0.0.1:53: ") {
				t.Errorf("%+v", e)
			}
		}
	})
	t.Run("no socket", func(t *testing.T) {
		_, err := client(t, "unix:"+filepath.Join(t.TempDir(), "none.sock")).Recent(t.Context(), "x")
		if e := kindOf(t, err); e.Kind != Unreachable || !strings.Contains(e.What, "no such socket") {
			t.Errorf("%+v", e)
		}
	})
	t.Run("nothing answers", func(t *testing.T) {
		c, err := NewClient(silent.Addr().String(), Timeouts{Total: 20 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.Recent(t.Context(), "x")
		if e := kindOf(t, err); e.Kind != Unreachable || !strings.Contains(e.What, "no answer in time") {
			t.Errorf("%+v", e)
		}
	})
	t.Run("UX-16 interrupted", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := client(t, silent.Addr().String()).Recent(ctx, "x")
		if e := kindOf(t, err); e.Kind != Interrupted {
			t.Errorf("%+v", e)
		}
	})
	t.Run("no address", func(t *testing.T) {
		for _, addr := range []string{"9004", "localhost:99999", "http://localhost:9004", "localhost:"} {
			_, err := NewClient(addr, Timeouts{})
			if e := kindOf(t, err); e.Kind != Usage {
				t.Errorf("%s: %+v", addr, e)
			}
		}
	})
}

func TestRefusals(t *testing.T) {
	for name, tc := range map[string]struct {
		status int
		body   string
		kind   Kind
		what   string
	}{
		"EX-04 unknown id": {404, `{"kind":"Error","code":"E_UNKNOWN_REQUEST","message":"no such pick","hint":"oldest kept: a"}`, Negative, "no such pick"},
		"busy":             {429, `{"kind":"Error","code":"E_BUSY","message":"8 in flight"}`, Failed, "8 in flight"},
		"serve's refusal":  {400, `{"error":{"message":"the body is not JSON","type":"invalid_request_error","param":null,"code":"invalid_json"}}`, Negative, "serve would refuse this request with 400 invalid_json"},
		"not our API":      {404, `404 page not found`, Unreachable, ""},
		"hostile":          {500, strings.Repeat("[", 1000), Unreachable, ""},
		"no model":         {400, `{"error":{"message":"no model","type":"invalid_request_error","param":"model","code":"missing_model"}}`, Negative, "serve would refuse this request with 400 missing_model"},
	} {
		t.Run(name, func(t *testing.T) {
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(tc.status)
				_, _ = io.WriteString(w, tc.body)
			}))
			defer srv.Close()
			_, err := client(t, srv.Listener.Addr().String()).Recent(t.Context(), "x")
			e := kindOf(t, err)
			if e.Kind != tc.kind || tc.what != "" && e.What != tc.what {
				t.Errorf("%+v", e)
			}
			if strings.Contains(tc.what, " refuse ") && (e.Why == "" || !strings.HasPrefix(e.Hint, "try: --")) {
				t.Errorf("why and what to do are %q and %q", e.Why, e.Hint)
			}
		})
	}
}

// TestOnTheWire: the body goes out verbatim, over TCP and over a unix socket.
func TestOnTheWire(t *testing.T) {
	body := `{"model" : "m", "n": 9007199254740993}`
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		if string(b) != body || r.URL.Query().Get("path") != "/v1/completions" || r.Header.Get("X-Tenant") != "a" ||
			r.Header.Get(subsetHeader) != "10.0.0.1:8000" {
			http.Error(w, "wrong request", http.StatusTeapot)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, "answer")
	})
	ls := map[string]net.Listener{}
	var err error
	if ls["tcp"], err = net.Listen("tcp", "[::1]:0"); err != nil {
		t.Fatal(err)
	}
	sock := filepath.Join(t.TempDir(), "a.sock")
	if ls["unix:"+sock], err = net.Listen("unix", sock); err != nil {
		t.Fatal(err)
	}
	for addr, l := range ls {
		srv := &http.Server{Handler: handler, ReadHeaderTimeout: time.Second}
		go func() { _ = srv.Serve(l) }()
		defer srv.Close()
		if addr == "tcp" {
			addr = l.Addr().String()
		}
		r := Request{Path: "/v1/completions", Body: []byte(body), Header: http.Header{"X-Tenant": {"a"}}}
		r.SetSubset("10.0.0.1:8000")
		got, err := client(t, addr).Explain(t.Context(), r)
		if err != nil || string(got) != "answer" {
			t.Errorf("%s: %q, %v", addr, got, err)
		}
	}
}

// Whatever else listens at the address is told as that, the same in each call: a
// page of metrics, a picker's gRPC port.
func TestStrangers(t *testing.T) {
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		_, _ = io.WriteString(w, "# HELP a b\n")
	}))
	defer page.Close()
	binary, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer binary.Close()
	go func() {
		for {
			c, err := binary.Accept()
			if err != nil {
				return
			}
			_, _ = c.Write([]byte("\x00\x00\x06\x04\x00\x00\x00\x00\x00\x00\x05\x00\x00\x40\x00\r\n\r\n")) // HTTP/2 settings
			go func() {
				_, _ = io.Copy(io.Discard, c) // until the client has had enough: a reset would take the bytes away
				_ = c.Close()
			}()
		}
	}()
	for _, addr := range []string{page.Listener.Addr().String(), binary.Addr().String()} {
		_, framesErr := client(t, addr).Frames(t.Context(), nil)
		_, explainErr := client(t, addr).Recent(t.Context(), "x")
		for _, err := range []error{framesErr, explainErr} {
			if e := kindOf(t, err); e.Kind != Unreachable || !strings.Contains(e.Why, "not the admin API") || strings.ContainsRune(e.What, 0) {
				t.Errorf("%s: %+v", addr, e)
			}
		}
	}
}

// What redirects is no admin API, and no flag is advised that a command does not have.
func TestAdvice(t *testing.T) {
	asked := httptest.NewServer(http.RedirectHandler("/elsewhere", http.StatusTemporaryRedirect))
	defer asked.Close()
	_, err := client(t, asked.Listener.Addr().String()).Explain(t.Context(), Request{Body: []byte(`{}`)})
	if e := kindOf(t, err); e.Kind != Unreachable || !strings.Contains(e.What, "a redirect") {
		t.Error(err)
	}
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	for flag, want := range map[string]string{"": "", "--timeout": "try: --timeout 30s"} {
		c, err := NewClient(silent.Addr().String(), Timeouts{Total: 20 * time.Millisecond, Flag: flag})
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.Recent(t.Context(), "x")
		if e := kindOf(t, err); e.Hint != want {
			t.Errorf("flag %q: hint %q, want %q", flag, e.Hint, want)
		}
	}
}
