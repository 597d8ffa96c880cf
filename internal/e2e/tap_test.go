package e2e

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/eppctl/eppctl/internal/testdata"
)

// What serve received is what the engines sent: tap of the one and of the others
// show the same events, and a recording shows them again.
func TestTap(t *testing.T) {
	s := start(t, setup{})
	file := t.TempDir() + "/a.eptap"
	engines := s.tap("--config", s.Config, "--write", file)
	server := s.tap("--from", "serve", "--addr", s.Listen.Admin)
	for _, p := range []*tapped{engines, server} {
		eventually(t, func() error {
			if n := strings.Count(p.out.String(), `"notice":"up"`); n < len(s.Fleet.Engines) {
				return fmt.Errorf("%d streams are up", n)
			}
			return nil
		})
	}
	shared := prompt(1, 800)
	for i := range 4 {
		s.must(s.call(t.Context(), "POST", "/v1/completions", completion(append(shared[:400:400], prompt(10+i, 400)...), 3)))
	}
	eventually(t, func() error {
		a, b := engines.events(), server.events()
		if len(a) < 4 || !slices.Equal(a, b) {
			return fmt.Errorf("the engines sent\n%s\nserve received\n%s", strings.Join(a, "\n"), strings.Join(b, "\n"))
		}
		return nil
	})
	engines.end()
	server.end()
	all := engines.events()
	if got := s.tapFile(file); !slices.Equal(got, all) {
		t.Errorf("the recording shows\n%s\nit was\n%s", strings.Join(got, "\n"), strings.Join(all, "\n"))
	}
	// One prompt's blocks, by its first ids.
	ids := strings.Trim(string(must(json.Marshal(shared[:5]))), "[]")
	mine, others := s.tapFile(file, "--token-ids", ids), s.tapFile(file, "--not", "--token-ids", ids)
	if len(mine) == 0 || len(mine)+len(others) != len(all) {
		t.Errorf("%d events of the shared prompt, %d others, %d in all", len(mine), len(others), len(all))
	}
}

// tapped is an eppctl tap beside the stack.
type tapped struct {
	t        *testing.T
	cmd      *exec.Cmd
	out, err testdata.Buffer
}

func (s *stack) tap(args ...string) *tapped {
	s.t.Helper()
	p := &tapped{t: s.t, cmd: exec.Command(eppctl, append([]string{"tap", "-o", "jsonl"}, args...)...)}
	p.cmd.Stdout, p.cmd.Stderr = &p.out, &p.err
	if err := p.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = p.cmd.Process.Kill() })
	return p
}

// tapFile is what a recording shows.
func (s *stack) tapFile(file string, args ...string) []string {
	s.t.Helper()
	p := s.tap(append([]string{"--read", file}, args...)...)
	p.wait()
	return p.events()
}

func (p *tapped) end() {
	p.t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		p.t.Fatal(err)
	}
	p.wait()
}

func (p *tapped) wait() {
	p.t.Helper()
	if err := p.cmd.Wait(); err != nil {
		p.t.Fatalf("tap: %v: %s", err, p.err.String())
	}
}

// events are the live ones shown so far, in an order that two looks at the same
// streams share.
func (p *tapped) events() (list []string) {
	p.t.Helper()
	for line := range strings.Lines(p.out.String()) {
		var e struct {
			Kind, Pod, Event, Tier, Parent string
			Replayed                       bool
			Seq                            uint64
			Hashes                         []string
			Tokens                         int
		}
		if !strings.HasSuffix(line, "\n") {
			break // more of it comes
		}
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			p.t.Fatalf("%v: %s", err, line)
		}
		if e.Kind == "Event" && !e.Replayed {
			list = append(list, string(must(json.Marshal(e))))
		}
	}
	slices.Sort(list)
	return list
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
