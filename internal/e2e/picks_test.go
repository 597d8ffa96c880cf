package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/eppctl/eppctl/internal/core/view"
)

// picks -f shows each request that goes through Envoy, once and in order, with the pod
// that served it; and ends well at Ctrl-C.
func TestPicksFollow(t *testing.T) {
	s := start(t, setup{})
	cmd := exec.Command(eppctl, "picks", "-f", "--addr", s.Listen.Admin, "--last", "0", "-o", "jsonl")
	var errs bytes.Buffer
	cmd.Stderr = &errs
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	lines := bufio.NewScanner(pipe)
	const secret = "prompt-that-nobody-may-read"
	ask := func(id string) answer {
		return s.must(s.call(t.Context(), "POST", "/v1/completions", []byte(`{"model":"sim","prompt":"`+strings.Repeat(secret+" ", 40)+`","max_tokens":1}`), "x-request-id", id))
	}
	// What was decided before it began to follow is not shown: it has begun once one is.
	seen := make(chan view.RecentPick)
	go func() {
		defer close(seen)
		for lines.Scan() {
			var p view.RecentPick
			if json.Unmarshal(lines.Bytes(), &p) != nil || strings.Contains(lines.Text(), secret) {
				p.RequestID = lines.Text()
			}
			seen <- p
		}
	}()
	began := false
	for n := 0; !began; n++ {
		ask("before")
		select {
		case p := <-seen:
			began = p.RequestID == "before"
			if !began {
				t.Fatalf("first line %s", p.RequestID)
			}
		default:
		}
	}
	for _, id := range []string{"first", "second"} {
		served := ask(id)
		p := <-seen
		for p.RequestID == "before" {
			p = <-seen
		}
		if p.RequestID != id || p.Pod == nil || *p.Pod != served.pod() {
			t.Errorf("%s was served by %s, the line says %+v", id, served.pod(), p)
		}
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	for range seen { // nothing is left
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("picks ended with %v: %s", err, &errs)
	}
	if !strings.HasPrefix(errs.String(), "picks: ") || !strings.HasSuffix(errs.String(), ", 0 missed\n") {
		t.Errorf("account %q", &errs)
	}
}
