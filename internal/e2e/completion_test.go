package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/eppctl/eppctl/internal/sim"
	"github.com/eppctl/eppctl/internal/testdata"
)

// readiness is what a shell says when it can be typed to.
const readiness = "ready> "

// shells are those that Debian has: how each is started without anybody's own
// settings, and how a packaged script gets into it.
var shells = map[string]struct {
	needs, pkg string // a program, or a file
	command    string
	starts     string // its first prompt
	load       func(dir string) string
}{
	"bash": {"bash", "bash", "bash --norc --noprofile", `bash-\S+[#$]`, func(dir string) string {
		return "PS1='" + readiness + "'; source " + dir + "/eppctl.bash"
	}},
	"bash-completion": {"/usr/share/bash-completion/bash_completion", "bash-completion", "bash --norc --noprofile", `bash-\S+[#$]`, func(dir string) string {
		return "PS1='" + readiness + "'; source /usr/share/bash-completion/bash_completion; source " + dir + "/eppctl.bash"
	}},
	"zsh": {"zsh", "zsh", "zsh -f", `\S+[#%]`, func(dir string) string {
		return "PS1='" + readiness + "'; fpath=(" + dir + " $fpath); autoload -U compinit; compinit -u -D"
	}},
	"fish": {"fish", "fish", "fish --no-config", `\S+@\S+`, func(dir string) string {
		return "function fish_prompt; echo '" + readiness + "'; end; source " + dir + "/eppctl.fish"
	}},
}

// Each committed script works in its own shell, where a TAB is a TAB: commands,
// flags, values, and names from a file and from a running serve.
func TestCompletionInShells(t *testing.T) {
	dir, err := filepath.Abs("../../completions")
	if err != nil {
		t.Fatal(err)
	}
	live, file := namedServe(t), named(t, "file")
	cases := []struct {
		line  string
		wants []string
	}{
		{"eppctl expl", []string{`eppctl explain`}},
		{"eppctl explain --sub", []string{`eppctl explain --subset`}},
		{"eppctl version -o ", []string{`\bjson\b`, `\byaml\b`}},
		{"eppctl explain --output=ya", []string{`--output=yaml`}},
		{"eppctl check ", []string{`a-file-pod`, `b-file-pod`}},
		{"eppctl explain --model ", []string{`a-file-model`, `b-file-model`}},
		{"eppctl explain --addr " + live + " --model ", []string{`a-live-model`, `b-live-model`}},
		{"eppctl tap --from serve --addr " + live + " --pod ", []string{`a-live-pod`, `b-live-pod`}},
	}
	for name, shell := range shells {
		t.Run(name, func(t *testing.T) {
			install := exec.Command("../../scripts/debian.sh", shell.needs, shell.pkg)
			install.Stderr = os.Stderr
			if err := install.Run(); err != nil {
				t.Fatalf("this test needs %s: %v", shell.needs, err)
			}
			x := openTerminal(t, 160, 24, "EPPCTL_CONFIG="+file, "EPPCTL_ADDR="+testdata.Deaf(t))
			x.shows(`[#$]`)
			// The PATH is set here: a shell may make one of its own when it starts.
			x.enter("PATH=" + filepath.Dir(eppctl) + ":$PATH " + shell.command)
			x.shows(shell.starts)
			x.enter(shell.load(dir))
			x.shows(`(?m)^ready>\s*\z`)
			for _, c := range cases {
				x.completes(c.line, c.wants)
			}
		})
	}
}

// completes types a line and TAB, again and again: on a busy machine serve may
// answer too late for one of them.
func (x *terminal) completes(line string, wants []string) {
	x.t.Helper()
	x.t.Log(line)
	eventually(x.t, func() error {
		// C-c takes what was typed with it, and may take what is typed next: whatever
		// a shell did not get is typed again.
		x.press("C-c")
		if err := x.soon(`(?m)^ready>\s*\z`); err != nil {
			return err
		}
		x.enter("clear")
		if err := x.soon(`\Aready>\s*\z`); err != nil {
			return err
		}
		x.run("send-keys", "-l", line)
		if err := x.soon(regexp.QuoteMeta(strings.TrimSpace(line))); err != nil {
			return err
		}
		var screen string
		for range 3 { // bash: what they begin with, nothing, the list
			x.press("Tab")
			for range 30 {
				time.Sleep(50 * time.Millisecond)
				if screen = x.screen(); all(wants, screen) {
					return nil
				}
			}
		}
		return fmt.Errorf("%q completes to\n%s", line, strings.TrimSpace(screen))
	})
}

// soon waits a little for a pattern, where there is a way on without it.
func (x *terminal) soon(pattern string) error {
	var screen string
	for range 100 {
		if screen = x.screen(); regexp.MustCompile(pattern).MatchString(screen) {
			return nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	return fmt.Errorf("%q is not on the screen:\n%s", pattern, screen)
}

func all(wants []string, screen string) bool {
	for _, w := range wants {
		if !regexp.MustCompile(w).MatchString(screen) {
			return false
		}
	}
	return true
}

// named is a configuration whose names have whose in them.
func named(t *testing.T, whose string) (path string) {
	t.Helper()
	text := fmt.Sprintf(`
pods:
- {name: a-%[1]s-pod, address: '127.0.0.1:1'}
- {name: b-%[1]s-pod, address: '127.0.0.2:1'}
models: [{name: a-%[1]s-model}, {name: b-%[1]s-model}]
`, whose)
	path = filepath.Join(t.TempDir(), whose+".yaml")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// namedServe is the admin address of a serve with such a configuration.
func namedServe(t *testing.T) (addr string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "eppctl-admin-") // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	socket := filepath.Join(dir, "s")
	p, err := sim.StartProcess(filepath.Join(t.TempDir(), "serve.log"), eppctl, "serve", "--config", named(t, "live"), "--admin-addr", "unix:"+socket,
		"--ext-proc-addr", "127.0.0.1:0", "--health-addr", "", "--metrics-addr", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	if err := p.Until(time.Minute, func() error { _, err := os.Stat(socket); return err }); err != nil {
		t.Fatal(err)
	}
	return "unix:" + socket
}
