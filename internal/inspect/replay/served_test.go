package replay

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	filterv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_proc/v3"
	extproc "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/eppctl/eppctl/internal/core/pick"
	"github.com/eppctl/eppctl/internal/inspect/replay/fleet"
	"github.com/eppctl/eppctl/internal/serve"
	"github.com/eppctl/eppctl/internal/sim"
)

// served is a serve over simulated engines that records, and a proxy's side of its
// ext_proc.
type served struct {
	t      *testing.T
	client extproc.ExternalProcessorClient
	end    func()
}

func serving(t *testing.T, engines int, path string) *served {
	t.Helper()
	f, err := sim.StartFleet(sim.FleetOptions{Engines: engines, Engine: sim.EngineOptions{Speedup: 10}})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "eppctl.yaml")
	const any = "127.0.0.1:0"
	if err := os.WriteFile(file, []byte(f.Config(sim.Listen{ExtProc: any, Health: any, Admin: any, Metrics: any})), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := serve.LoadConfig(file, serve.Override{Key: "decisions.file", Set: func(c *serve.Config) { c.Decisions.File = path }})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ready, ended := make(chan serve.Addresses, 1), make(chan error, 1)
	go func() { ended <- serve.Run(ctx, c, serve.Options{Ready: func(a serve.Addresses) { ready <- a }}) }()
	var at serve.Addresses
	select {
	case at = <-ready:
	case err := <-ended:
		t.Fatal(err)
	}
	conn, err := grpc.NewClient(at.ExtProc, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	return &served{t: t, client: extproc.NewExternalProcessorClient(conn), end: func() {
		conn.Close()
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
		http.DefaultClient.CloseIdleConnections()
	}}
}

// ask brings one completion as a proxy does: to serve, to the engine that it picks,
// and the answer past serve.
func (s *served) ask(id string, prompt []uint32, output int) {
	s.t.Helper()
	st, err := s.client.Process(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	send := func(list ...*extproc.ProcessingRequest) {
		for _, m := range list {
			if err := st.Send(m); err != nil {
				s.t.Fatal(err)
			}
		}
	}
	body, err := json.Marshal(map[string]any{
		"model": "sim", "prompt": prompt, "max_tokens": output, "stream": true, "stream_options": map[string]any{"include_usage": true},
	})
	if err != nil {
		s.t.Fatal(err)
	}
	full := &extproc.ProtocolConfiguration{RequestBodyMode: filterv3.ProcessingMode_FULL_DUPLEX_STREAMED, ResponseBodyMode: filterv3.ProcessingMode_FULL_DUPLEX_STREAMED}
	send(&extproc.ProcessingRequest{
		Request:        &extproc.ProcessingRequest_RequestHeaders{RequestHeaders: headers(":method", "POST", ":path", "/v1/completions", "content-type", "application/json", "x-request-id", id)},
		ProtocolConfig: full,
	}, &extproc.ProcessingRequest{Request: &extproc.ProcessingRequest_RequestBody{RequestBody: &extproc.HttpBody{Body: body, EndOfStream: true}}})
	picked, err := st.Recv()
	if err != nil {
		s.t.Fatal(err)
	}
	var to string
	for _, h := range picked.GetRequestHeaders().GetResponse().GetHeaderMutation().GetSetHeaders() {
		if strings.HasSuffix(h.GetHeader().GetKey(), "destination-endpoint") {
			to = string(h.GetHeader().GetRawValue())
		}
	}
	resp, err := http.Post("http://"+to+"/v1/completions", "application/json", bytes.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	send(&extproc.ProcessingRequest{Request: &extproc.ProcessingRequest_ResponseHeaders{
		ResponseHeaders: headers(":status", strconv.Itoa(resp.StatusCode), "content-type", resp.Header.Get("content-type")),
	}})
	for piece := make([]byte, 4<<10); err == nil; {
		var n int
		n, err = resp.Body.Read(piece)
		send(&extproc.ProcessingRequest{Request: &extproc.ProcessingRequest_ResponseBody{
			ResponseBody: &extproc.HttpBody{Body: bytes.Clone(piece[:n]), EndOfStream: err != nil},
		}})
	}
	if err := st.CloseSend(); err != nil {
		s.t.Fatal(err)
	}
	for {
		if _, err := st.Recv(); err == io.EOF {
			return
		} else if err != nil {
			s.t.Fatal(err)
		}
	}
}

func headers(kv ...string) *extproc.HttpHeaders {
	m := &corev3.HeaderMap{}
	for i := 0; i < len(kv); i += 2 {
		m.Headers = append(m.Headers, &corev3.HeaderValue{Key: kv[i], RawValue: []byte(kv[i+1])})
	}
	return &extproc.HttpHeaders{Headers: m}
}

// What a serve was asked is recorded, and replay tells from the file alone that
// routing without the cache would have been worse.
func TestServedIsReplayed(t *testing.T) {
	const groups, rounds, engines = 12, 12, 4
	path := filepath.Join(t.TempDir(), "decisions.eptap")
	s := serving(t, engines, path)
	for round := range rounds {
		for g := range groups {
			prompt := make([]uint32, 1200)
			for i := range prompt {
				prompt[i] = uint32(1000*g + i)
				if i >= 1120 {
					prompt[i] = uint32(50_000 + 100*(round*groups+g) + i)
				}
			}
			s.ask(fmt.Sprintf("r-%d-%d", round, g), prompt, 10+g)
		}
	}
	s.end()

	worse, err := pick.ParseWeight("kv=0")
	if err != nil {
		t.Fatal(err)
	}
	o := func() *Options {
		return &Options{
			Decisions: []string{path}, Policies: []string{Recorded, WhatIf}, Weights: []pick.Weight{worse},
			Speeds: []float64{1}, Fleet: fleet.Default(), Format: "json", AsRecorded: AsRecorded{Pods: true, Scrape: true, Pace: true},
		}
	}
	// A pod holds the prefixes of its share of the groups, not of all; and requests come
	// two a second, however long this machine took for them.
	scarce := func(speed float64) *Options {
		x := o()
		x.Fleet.Profile.PoolTokens = 10_000
		x.Speeds = []float64{speed}
		return x
	}
	text, _, err := run(scarce(1), "")
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Fleet struct{ Pods int }
		Stats struct {
			Requests int
			Seconds  float64
		}
		Observed struct {
			Requests, Streamed int
			Mean               float64 `json:"ttft_mean_s"`
		}
		Runs []struct {
			Policy  string
			Mean    float64 `json:"ttft_mean_s"`
			Hit     float64
			Changed struct{ Decisions, Of float64 }
		}
	}
	if err := json.Unmarshal([]byte(text), &doc); err != nil {
		t.Fatal(err)
	}
	speed := doc.Stats.Seconds / (groups * rounds / 2)
	if text, _, err = run(scarce(speed), ""); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(text), &doc); err != nil {
		t.Fatal(err)
	}
	was, other := doc.Runs[0], doc.Runs[1]
	const n = groups * rounds
	switch {
	case doc.Fleet.Pods != engines || doc.Stats.Requests != n:
		t.Errorf("%d pods, %d requests", doc.Fleet.Pods, doc.Stats.Requests)
	case doc.Observed.Requests != n-n/10-1 || doc.Observed.Streamed != doc.Observed.Requests || doc.Observed.Mean <= 0:
		t.Errorf("observed %+v", doc.Observed)
	case was.Policy != Recorded || was.Changed.Of != n || was.Changed.Decisions != 0:
		t.Errorf("the recorded weights decide other than they did: %+v", was)
	case other.Policy != WhatIf || other.Changed.Of != n || other.Changed.Decisions < n/10:
		t.Errorf("without the cache %v of %v decisions change", other.Changed.Decisions, other.Changed.Of)
	case other.Hit > 0.8*was.Hit || other.Mean < 1.1*was.Mean:
		t.Errorf("without the cache hit %.3f and mean %.3f s, with it %.3f and %.3f", other.Hit, other.Mean, was.Hit, was.Mean)
	}
	if again, _, err := run(scarce(speed), ""); err != nil || again != text {
		t.Errorf("%v: the same file gives another result\n%s\n%s", err, text, again)
	}

	twice := scarce(speed)
	twice.Decisions = []string{path, filepath.Join(filepath.Dir(path), "*.eptap"), path}
	if again, _, err := run(twice, ""); err != nil || again != text {
		t.Errorf("%v: a file that is named thrice is played so\n%s", err, again)
	}

	table := o()
	table.Format = "table"
	text, about, err := run(table, "")
	if err != nil || !strings.HasPrefix(strings.Split(text, "\n")[1], "(observed) ") || !strings.Contains(text, "CHANGED") || !strings.Contains(about, "note: ") {
		t.Errorf("%v\n%s\n%s", err, about, text)
	}
}
