package e2e

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// PowerShell itself cannot be installed where tests run: its script is at least held
// against the language's grammar, which finds what is broken.
func TestPowerShellCompletionParses(t *testing.T) {
	script, err := os.ReadFile("../../completions/eppctl.ps1")
	if err != nil {
		t.Fatal(err)
	}
	grammar, err := exec.Command("../../scripts/powershell-grammar.sh").Output()
	if err != nil {
		t.Fatalf("scripts/powershell-grammar.sh: %v", err)
	}
	faults := func(text string) string {
		cmd := exec.Command("python3", "testdata/powershell.py")
		cmd.Env = append(os.Environ(), "PYTHONPATH="+strings.TrimSpace(string(grammar)))
		cmd.Stdin = strings.NewReader(text)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return string(out)
	}
	text := string(script)
	if !strings.Contains(text, "Register-ArgumentCompleter -CommandName 'eppctl'") {
		t.Error("nothing is registered for eppctl")
	}
	if found := faults(text); found != "" {
		t.Errorf("completions/eppctl.ps1 is no PowerShell:\n%s", found)
	}
	for name, broken := range map[string]string{
		"a brace that is not closed":       cutLast(text, "}"),
		"a parenthesis that is not closed": strings.Replace(text, "param(", "param ", 1),
		"a text that is not closed":        cutLast(text, "'"),
	} {
		if broken == text {
			t.Errorf("%s: the script has none to break", name)
		} else if faults(broken) == "" {
			t.Errorf("%s: nothing is found", name)
		}
	}
}

// cutLast leaves out the last occurrence.
func cutLast(text, what string) string {
	i := strings.LastIndex(text, what)
	if i < 0 {
		return text
	}
	return text[:i] + text[i+len(what):]
}
