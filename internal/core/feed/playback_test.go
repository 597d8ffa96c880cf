package feed

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/eppctl/eppctl/internal/core/block"
	"github.com/eppctl/eppctl/internal/core/index"
	"github.com/eppctl/eppctl/internal/core/pod"
	"github.com/eppctl/eppctl/internal/core/reason"
	"github.com/eppctl/eppctl/internal/core/recording"
	"github.com/eppctl/eppctl/internal/core/telemetry"
	"github.com/eppctl/eppctl/internal/core/view"
	"github.com/eppctl/eppctl/internal/sim/zmtp"
	"github.com/eppctl/eppctl/internal/testdata"
)

func emptyFleet() *view.Fleet {
	return &view.Fleet{
		Pods: pod.NewTable(), Index: index.New(index.Options{TTL: -1}), Telemetry: &telemetry.Board{}, Sync: &view.SyncBoard{}, Load: view.NewLedger(),
	}
}

// A feed that joins late, loses messages, gets them replayed, and meets a restart
// is recorded; played back, the recording makes the index that the feed has.
func TestPlayback(t *testing.T) {
	var c *testdata.Capture
	for _, x := range testdata.Captures(t) {
		if x.Name == "vllm-0.32.0/llama" {
			c = x
		}
	}
	hub := recording.NewHub()
	f, fleet := startFeed(t, Options{Hub: hub})
	l := look(t, hub)
	p := publisher(t, "127.0.0.1:0", zmtp.Options{})
	rep := replayServer(t, zmtp.ReplayOptions{})
	record := func(i int) { rep.Record(c.Messages[i].Seq, "", c.Messages[i].Payload) }
	for i := range 20 {
		record(i)
	}
	spec := pod.Spec{Name: "p", Address: "127.0.0.1:1", Model: "tiny", Engine: pod.EngineVLLM, Events: []string{"tcp://" + p.Addr()}, Replay: []string{"tcp://" + rep.Addr()}}
	f.Apply([]pod.Spec{spec})
	m := fleet.Pods.Snapshot().ByName("p").Members[0]
	eventually(t, "subscribed", func() bool { return p.Subscribers() == 1 }, nil)
	half := len(c.Messages) / 2
	compare := func(last uint64) {
		t.Helper()
		waitApplied(t, f, fleet, m, last)
		eventually(t, "told", func() bool {
			l.all = append(l.all, l.q.Take()...)
			frames := l.frames()
			n := len(frames)
			return n > 0 && frames[n-1].Parts[1][7] == byte(last)
		}, l.String)
		played := playBack(t, l.all)
		pm := played.Pods.Snapshot().ByName("p").Members[0]
		if a, b := fleet.Index.Stats().Blocks, played.Index.Stats().Blocks; a != b || a == 0 {
			t.Errorf("the feed's index has %d blocks, the playback's %d", a, b)
		}
		some := 0
		for i := range c.Requests {
			r := &c.Requests[i]
			q := &block.Prompt{Model: "tiny", Salt: r.Body.Salt, Tokens: r.Tokens, Cut: -1}
			a, b := held(fleet, m, q), held(played, pm, q)
			if a != b {
				t.Errorf("request %s: the feed's index holds %d tokens, the playback's %d", r.ID, a, b)
			}
			some += min(a, 1)
		}
		if some == 0 {
			t.Error("nothing is held at all")
		}
		if s := played.Sync.Get(pm); s.LastSeq != last || s.State != fleet.Sync.Get(m).State {
			t.Errorf("%+v, the feed has %+v", s, fleet.Sync.Get(m))
		}
	}
	for i := 20; i < half; i++ {
		record(i)
		if i%7 != 3 { // the others get lost on the way
			p.Send("", c.Messages[i].Seq, c.Messages[i].Payload)
		}
	}
	p.Send("", c.Messages[half].Seq, c.Messages[half].Payload)
	p.Send("", c.Messages[half].Seq, c.Messages[half].Payload) // twice
	compare(c.Messages[half].Seq)
	// Another engine: numbers begin anew.
	rep.Reset()
	for i := half; i < len(c.Messages); i++ {
		p.Send("", uint64(i-half), c.Messages[i].Payload)
	}
	compare(uint64(len(c.Messages) - 1 - half))
}

// playBack writes records to a file, reads it, and applies what it reads.
func playBack(t *testing.T, records []*recording.Record) *view.Fleet {
	t.Helper()
	var b bytes.Buffer
	w, err := recording.NewWriter(&b, recording.Header{})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range records {
		if err := w.Write(r); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close([]byte("{}")); err != nil {
		t.Fatal(err)
	}
	r, err := recording.NewReader(&b)
	if err != nil {
		t.Fatal(err)
	}
	fleet := emptyFleet()
	p := NewPlayback(fleet)
	for {
		rec, err := r.Next()
		if errors.Is(err, io.EOF) {
			return fleet
		}
		if err == nil {
			err = p.Apply(rec)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// Recordings may be anybody's.
func TestPlaybackOfNonsense(t *testing.T) {
	p := NewPlayback(emptyFleet())
	a := &recording.Pod{Name: "a"}
	for _, r := range []*recording.Record{
		{Type: recording.TypeCard}, {Type: recording.TypeFrame, Pod: a}, {Type: recording.TypeFrame, Pod: a, Parts: [][]byte{{}, {1}, {}}},
		{Type: recording.TypeReplay, Pod: a}, {Type: recording.TypeReplay, Pod: a, Parts: [][]byte{endMarker, nil}},
		{Type: recording.TypeReplay, Pod: a, Parts: [][]byte{make([]byte, 8), []byte("x")}}, {Type: recording.TypeNotice, Pod: a, Notice: recording.Notice{Purged: true}},
	} {
		if err := p.Apply(r); err != nil {
			t.Errorf("%+v: %v", r, err)
		}
	}
	for _, rank := range []int{-1, 1} {
		if err := p.Apply(&recording.Record{Type: recording.TypeFrame, Pod: &recording.Pod{Name: "a", Rank: rank}}); err == nil {
			t.Errorf("rank %d of one", rank)
		}
	}
	full := false
	for i := range pod.MaxMembers + 1 {
		full = full || p.Apply(&recording.Record{Type: recording.TypePod, Pod: &recording.Pod{Name: fmt.Sprint(i)}}) != nil
	}
	if !full {
		t.Error("more pods than a fleet holds")
	}
}

func specRecord(t testing.TB, at int64, s pod.Spec, addr string) *recording.Record {
	t.Helper()
	body, err := encodeSpec(&s, netip.MustParseAddrPort(addr))
	if err != nil {
		t.Fatal(err)
	}
	return &recording.Record{Type: recording.TypeSpec, At: at, Pod: &recording.Pod{Name: s.Name}, Body: body}
}

func pageRecord(at int64, name string, status int32, body string) *recording.Record {
	return &recording.Record{Type: recording.TypePage, At: at, Pod: &recording.Pod{Name: name}, Status: status, Body: []byte(body)}
}

const (
	playedPage = "vllm:num_requests_waiting{model_name=\"m\"} 3\nvllm:num_requests_running{model_name=\"m\"} 2\n"
	playedGPU  = `DCGM_FI_DEV_XID_ERRORS{gpu="0",UUID="GPU-1",modelName="H100"} 79` + "\n"
)

// Specs, metrics pages and device pages make the pod and its telemetry, with the
// times that they were recorded with.
func TestPlaybackOfPods(t *testing.T) {
	fleet := emptyFleet()
	p := NewPlayback(fleet)
	apply := func(list ...*recording.Record) {
		t.Helper()
		for _, r := range list {
			if err := p.Apply(r); err != nil {
				t.Fatal(err)
			}
		}
	}
	spec := pod.Spec{
		Name: "a", Address: "a.svc:8000", Engine: pod.EngineVLLM, Role: pod.RoleDecode, Model: "m", Adapters: []string{"x"}, Ranks: 2,
		Events: []string{"tcp://10.0.0.1:5557"}, Pull: 200 * time.Millisecond, Metrics: "http://me:secret@10.0.0.1:8000/metrics", Device: "GPU-1",
		MaxContext: 4096, BlockSize: 16, PrefillRate: 1e4, Bind: "tcp://*:1",
	}
	first := specRecord(t, 1e9, spec, "10.0.0.1:8000")
	if bytes.Contains(first.Body, []byte("secret")) {
		t.Errorf("a password is recorded: %s", first.Body)
	}
	apply(first, pageRecord(2e9, "a", 200, playedPage))
	at := fleet.Pods.Snapshot().ByName("a")
	want := spec
	want.Metrics = "http://xxxxx@10.0.0.1:8000/metrics"
	if !reflect.DeepEqual(at.Spec, want) || at.Target != "10.0.0.1:8000" || len(at.Members) != 2 {
		t.Errorf("%+v, want %+v; %s", at.Spec, want, at.Target)
	}
	e := fleet.Telemetry.Get(at.ID)
	if e.Sample == nil || e.Sample.Waiting.V != 3 || e.Sample.At != 2e9 || e.Sample.Device.Known {
		t.Fatalf("%+v", e.Sample)
	}
	// What a page lacks is carried over; the accelerator's health comes with the next.
	exporter := &recording.Pod{Name: "n:9400", Direction: recording.Exporter}
	apply(&recording.Record{Type: recording.TypePage, At: 3e9, Pod: exporter, Status: 200, Body: []byte(playedGPU)},
		pageRecord(4e9, "a", 200, "vllm:num_requests_running 7\n"))
	if e = fleet.Telemetry.Get(at.ID); e.Sample.Waiting.V != 3 || e.Sample.Running.V != 7 || !e.Sample.Device.Fatal {
		t.Errorf("%+v", e.Sample)
	}
	for _, c := range []struct {
		r    *recording.Record
		mute bool
		why  string
	}{
		{pageRecord(5e9, "a", recording.PageMute, "refused"), true, "refused"},
		{pageRecord(6e9, "a", recording.PageFailed, "JSON"), false, "JSON"},
		{pageRecord(7e9, "a", 401, "HTTP 401"), false, "HTTP 401"},
		{pageRecord(8e9, "a", 200, "nothing of ours 1\n"), false, telemetry.ErrNoMetrics.Error()},
		{pageRecord(9e9, "a", 200, strings.Repeat("x", DefaultScrapeBytes+1)), false, "page larger than 4194304 bytes"},
	} {
		apply(c.r)
		if e = fleet.Telemetry.Get(at.ID); e.Mute != c.mute || e.Err != c.why || e.ErrAt != c.r.At || e.Sample.At != 4e9 {
			t.Errorf("%+v", e)
		}
	}
	if len(fleet.Pods.Snapshot().Pods) != 1 {
		t.Error("a device exporter is a pod")
	}
	if from, to := p.Span(); from != 1e9 || to != 9e9 {
		t.Errorf("from %d to %d", from, to)
	}
	// Another pod under the old name, then none.
	spec.Ranks, spec.Model = 1, "n"
	apply(specRecord(t, 10e9, spec, "10.0.0.2:8000"))
	if at = fleet.Pods.Snapshot().ByName("a"); len(at.Members) != 1 || at.Target != "10.0.0.2:8000" || fleet.Telemetry.Get(at.ID).Sample != nil {
		t.Errorf("%+v", at)
	}
	apply(&recording.Record{Type: recording.TypeSpec, At: 11e9, Pod: &recording.Pod{Name: "a"}, Body: []byte("null")})
	if n := len(fleet.Pods.Snapshot().Pods); n != 0 {
		t.Errorf("%d pods are left", n)
	}
}

// A stream that had told something before the recording began is not live here
// until it starts over.
func TestPlaybackMidway(t *testing.T) {
	fleet := emptyFleet()
	p := NewPlayback(fleet)
	a := &recording.Pod{Name: "a", Direction: recording.Dial}
	state := func(s view.Sync) {
		t.Helper()
		body, err := encodeState(s)
		if err == nil {
			err = p.Apply(&recording.Record{Type: recording.TypeState, At: 5e9, Pod: a, Body: body})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	was := view.Sync{State: view.Live, Since: 1e9, LastEvent: 4e9, LastSeq: 9, Lost: 3, Connected: true}
	state(was)
	m := fleet.Pods.Snapshot().ByName("a").Members[0]
	if got := fleet.Sync.Get(m); got.State != view.Partial || got.Why != reason.HistoryLost || got.Since != 5e9 || !got.Connected || got.LastEvent != 4e9 {
		t.Errorf("%+v", got)
	}
	if got := p.Midway(); !slices.Equal(got, []string{"a"}) {
		t.Error(got)
	}
	if err := p.Apply(&recording.Record{Type: recording.TypeNotice, At: 6e9, Pod: a, Notice: recording.Notice{Kind: recording.Restart, Purged: true}}); err != nil {
		t.Fatal(err)
	}
	state(was)
	if got := fleet.Sync.Get(m); got != was || p.Midway() != nil {
		t.Errorf("%+v, %v", got, p.Midway())
	}
	gap := view.Sync{State: view.Gap, Why: reason.Missing, Detail: "x", Missing: 4, Since: 7e9, LastEvent: 4e9, Connected: true}
	state(gap)
	if got := fleet.Sync.Get(m); got != gap {
		t.Errorf("%+v", got)
	}
	for _, body := range []string{"", "{}", `{"state":"fine"}`} {
		if err := p.Apply(&recording.Record{Type: recording.TypeState, At: 8e9, Pod: a, Body: []byte(body)}); err == nil {
			t.Errorf("%q is a state", body)
		}
	}
}

// FuzzPlayback plays any bytes: it must end, and hold no more than it was given.
func FuzzPlayback(f *testing.F) {
	c := testdata.Captures(f)[0]
	a := &recording.Pod{Name: "a", Ranks: 1, Direction: recording.Dial}
	list := []*recording.Record{
		specRecord(f, 1, pod.Spec{Name: "a", Address: "h:1", Engine: pod.EngineVLLM, Model: "m", Device: "GPU-1"}, "10.0.0.1:1"),
		{Type: recording.TypePage, At: 2, Pod: &recording.Pod{Name: "n", Direction: recording.Exporter}, Status: 200, Body: []byte(playedGPU)},
		pageRecord(3, "a", 200, playedPage), pageRecord(4, "a", 0, "refused"),
		{Type: recording.TypeState, At: 5, Pod: a, Body: []byte(`{"state":"live","connected":true,"last_event":1}`)},
		{Type: recording.TypeNotice, At: 6, Pod: a, Notice: recording.Notice{Kind: recording.Partial, Purged: true}},
	}
	for i := range c.Messages[:min(len(c.Messages), 3)] {
		seq := binary.BigEndian.AppendUint64(nil, c.Messages[i].Seq)
		list = append(list, &recording.Record{Type: recording.TypeFrame, At: 7, Pod: a, Parts: [][]byte{{}, seq, c.Messages[i].Payload}},
			&recording.Record{Type: recording.TypeReplay, At: 7, Pod: a, Parts: [][]byte{{}, seq, c.Messages[i].Payload}})
	}
	var all bytes.Buffer
	w, err := recording.NewWriter(&all, recording.Header{})
	for _, r := range list {
		err = errors.Join(err, w.Write(r))
	}
	if err = errors.Join(err, w.Close([]byte("{}"))); err != nil {
		f.Fatal(err)
	}
	f.Add(all.Bytes())
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := recording.NewReader(bytes.NewReader(text))
		if err != nil {
			return
		}
		fleet := emptyFleet()
		p := NewPlayback(fleet)
		for {
			rec, err := r.Next()
			if err != nil {
				break
			}
			_ = p.Apply(rec) // whatever comes of it
		}
		if n := len(fleet.Pods.Snapshot().Pods); n > len(text) || n > pod.MaxMembers {
			t.Errorf("%d pods of %d bytes", n, len(text))
		}
	})
}
