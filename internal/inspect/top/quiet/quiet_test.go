package quiet

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// A child says what its TERM is as it begins, and after Restore.
func TestRestore(t *testing.T) {
	if os.Getenv("QUIET_CHILD") != "" {
		before, was := os.LookupEnv(name)
		Restore()
		after, is := os.LookupEnv(name)
		t.Logf("before %q %v, after %q %v.", before, was, after, is)
		return
	}
	for _, tc := range []struct {
		env  []string
		want string
	}{
		{[]string{"TERM=tmux-256color"}, `before "" false, after "tmux-256color" true.`},
		{[]string{"TERM="}, `before "" false, after "" true.`},
		{nil, `before "" false, after "" false.`},
	} {
		c := exec.Command(os.Args[0], "-test.run=^TestRestore$", "-test.v")
		c.Env = append(tc.env, "QUIET_CHILD=yes")
		got, err := c.CombinedOutput()
		if err != nil || !strings.Contains(string(got), tc.want) {
			t.Errorf("%v: want %s: %v\n%s", tc.env, tc.want, err, got)
		}
	}
}
