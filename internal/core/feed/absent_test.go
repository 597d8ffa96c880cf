package feed

import (
	"testing"

	"github.com/eppctl/eppctl/internal/core/index"
	"github.com/eppctl/eppctl/internal/core/pod"
	"github.com/eppctl/eppctl/internal/core/recording"
	"github.com/eppctl/eppctl/internal/core/telemetry"
	"github.com/eppctl/eppctl/internal/core/view"
	"github.com/eppctl/eppctl/internal/sim/zmtp"
)

// Who looks on follows a configured event port though the engine's API is down,
// and hears why there is no stream where none is configured.
func TestUnansweredPods(t *testing.T) {
	p, err := zmtp.Listen("127.0.0.1:0", zmtp.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	hub := recording.NewHub()
	q := hub.Subscribe(recording.Limits{}, nil)
	defer q.Close()
	fleet := &view.Fleet{
		Pods: pod.NewTable(), Index: index.New(index.Options{}), Telemetry: &telemetry.Board{}, Sync: &view.SyncBoard{}, Load: view.NewLedger(),
	}
	f := New(fleet, Options{Hub: hub, Discard: true, NoReplay: true})
	defer f.Close()
	f.Apply([]pod.Spec{
		{Name: "half", Address: "127.0.0.1:1", Engine: pod.EngineVLLM, Events: []string{"tcp://" + p.Addr()}},
		{Name: "dead", Address: "127.0.0.1:2"},
	})
	want := map[string]string{"half up": "", "dead down": "not followed: connection refused"}
	for len(want) > 0 {
		<-q.Ready()
		for _, r := range q.Take() {
			if r.Type != recording.TypeNotice {
				continue
			}
			key := r.Pod.Name + " " + r.Notice.Kind
			why, expected := want[key]
			if !expected || why != "" && r.Notice.Why != why {
				t.Fatalf("%s: %s", key, r.Notice.Why)
			}
			delete(want, key)
		}
	}
}
