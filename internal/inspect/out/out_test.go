package out

import (
	"bytes"
	"strings"
	"testing"
)

func env(pairs map[string]string) func(string) string {
	return func(name string) string { return pairs[name] }
}

// TestColor: UX-03, UX-04, UX-05.
func TestColor(t *testing.T) {
	for _, tc := range []struct {
		name string
		mode string
		tty  bool
		env  map[string]string
		want bool
	}{
		{"UX-03 the flag beats NO_COLOR", "always", false, map[string]string{"NO_COLOR": "1"}, true},
		{"UX-04 an empty NO_COLOR says nothing", "auto", true, map[string]string{"NO_COLOR": ""}, true},
		{"NO_COLOR", "auto", true, map[string]string{"NO_COLOR": "1"}, false},
		{"NO_COLOR beats CLICOLOR_FORCE", "auto", true, map[string]string{"NO_COLOR": "1", "CLICOLOR_FORCE": "1"}, false},
		{"UX-05 CLICOLOR_FORCE on a pipe", "auto", false, map[string]string{"CLICOLOR_FORCE": "1"}, true},
		{"UX-05 CLICOLOR_FORCE=0", "auto", false, map[string]string{"CLICOLOR_FORCE": "0"}, false},
		{"CLICOLOR=0", "auto", true, map[string]string{"CLICOLOR": "0"}, false},
		{"dumb terminal", "auto", true, map[string]string{"TERM": "dumb"}, false},
		{"pipe", "auto", false, nil, false},
		{"never", "never", true, map[string]string{"CLICOLOR_FORCE": "1"}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := &Streams{OutTTY: tc.tty, Getenv: env(tc.env)}
			if err := s.SetColor(tc.mode); err != nil || s.Color != tc.want {
				t.Errorf("color = %v, err = %v, want %v", s.Color, err, tc.want)
			}
		})
	}
	if err := (&Streams{}).SetColor("sometimes"); err == nil {
		t.Error("an unknown mode was accepted")
	}
}

// TestClean: UX-08.
func TestClean(t *testing.T) {
	for in, want := range map[string]string{
		"vllm-0":            "vllm-0",
		"a\x1b[2Jb":         `a\x1b[2Jb`,
		"x\r\ny":            `x\x0d\x0ay`,
		"bad\xffbyte":       `bad\xffbyte`,
		"c1\u009b31m":       `c1\u009b31m`,
		"rtl\u202egnp.exe":  `rtl\u202egnp.exe`,
		"zero\u200bwidth":   `zero\u200bwidth`,
		"日本 modèle":         "日本 modèle",
		"del\x7f":           `del\x7f`,
		"replacement\ufffd": `replacement\ufffd`,
	} {
		if got := Clean(in); got != want {
			t.Errorf("Clean(%q) = %q, want %q", in, got, want)
		}
	}
}

func sample() *Table {
	t := &Table{Indent: "  ", Columns: []Column{{Name: "POD", Elastic: true}, {Name: "GPU", Right: true}, {Name: "WHY", Elastic: true}}}
	t.Add("vllm-a-3", "196", "serves a model with a rather long name, which goes on and on")
	t.Add("日本-pod", "7", "")
	t.AddCells(Cell{"x\x1b[2J", Bad}, Cell{"0", Plain}, Cell{"no", Warn})
	return t
}

// TestTablePipe: UX-06: no escape, nothing cut, no blanks at line ends.
func TestTablePipe(t *testing.T) {
	var b bytes.Buffer
	if err := sample().Write(&b, &Streams{Width: 20}); err != nil {
		t.Fatal(err)
	}
	want := `  POD       GPU  WHY
  vllm-a-3  196  serves a model with a rather long name, which goes on and on
  日本-pod    7
  x\x1b[2J    0  no
`
	if b.String() != want {
		t.Errorf("got:\n%swant:\n%s", b.String(), want)
	}
}

// TestTableTTY: UX-07: no line is wider than the terminal, colour not counted.
func TestTableTTY(t *testing.T) {
	for _, width := range []int{10, 24, 40, 60, 100} {
		var b bytes.Buffer
		s := &Streams{OutTTY: true, Width: width, Color: true}
		if err := sample().Write(&b, s); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(b.String()) {
			plain := strings.NewReplacer("\x1b[35m", "", "\x1b[33m", "", "\x1b[2m", "", "\x1b[0m", "", "\n", "").Replace(line)
			if strings.Contains(plain, "\x1b") || Cells(plain) > width {
				t.Errorf("width %d: %d cells in %q", width, Cells(plain), line)
			}
		}
	}
	var b bytes.Buffer
	if err := sample().Write(&b, &Streams{OutTTY: true, Width: 40, Color: true}); err != nil {
		t.Fatal(err)
	}
	if got := b.String(); !strings.Contains(got, "serves a model with a") || !strings.Contains(got, "…") || !strings.Contains(got, "\x1b[35mx\\x1b[2J\x1b[0m") {
		t.Errorf("40 columns:\n%s", got)
	}
}

// TestTableWrap: a wrapped column keeps every word, under its own name; on a pipe
// it is one line.
func TestTableWrap(t *testing.T) {
	const hint = "start the engine with this endpoint, or correct tcp://a-very-long-name.of-a-host.example.org:5557"
	table := &Table{Columns: []Column{{Name: "POD"}, {Name: "WHAT", Wrap: true}, {Name: "DETAIL", Wrap: true}}}
	table.AddCells(Cell{Text: "a"}, Cell{Text: "engine, model, metrics, events, tokenize", Style: Bad}, Cell{Text: hint})
	table.Add("b", "events", "ok")
	var pipe bytes.Buffer
	if err := table.Write(&pipe, &Streams{Width: 20}); err != nil || !strings.Contains(pipe.String(), "tokenize  "+hint+"\n") {
		t.Errorf("%v\n%s", err, &pipe)
	}
	for _, width := range []int{40, 60, 80, 200} {
		var b bytes.Buffer
		if err := table.Write(&b, &Streams{OutTTY: true, Width: width}); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(b.String()) {
			if line = strings.TrimSuffix(line, "\n"); Cells(line) > width || line != strings.TrimRight(line, " ") {
				t.Errorf("width %d: %q", width, line)
			}
		}
		for _, word := range append(strings.Fields("engine, model, metrics, events, tokenize"), "start", "endpoint,", "correct") {
			if !strings.Contains(b.String(), word) {
				t.Errorf("width %d: %q is missing in\n%s", width, word, &b)
			}
		}
		if strings.Contains(b.String(), "…") {
			t.Errorf("width %d: cut\n%s", width, &b)
		}
	}
}

func TestWrap(t *testing.T) {
	for _, c := range []struct {
		s    string
		n    int
		want string
	}{
		{"", 5, ""}, {"abc", 5, "abc"}, {"abc de", 5, "abc|de"}, {"abc  de f", 5, "abc|de f"}, {"abcdefg h", 3, "abc|def|g h"},
		{"日本語", 4, "日本|語"}, {"日", 1, "日"}, {"ab cd ", 5, "ab cd"}, {" abcdef", 3, " ab|cde|f"},
	} {
		if got := strings.Join(Wrap(c.s, c.n), "|"); got != c.want {
			t.Errorf("Wrap(%q, %d) = %q, want %q", c.s, c.n, got, c.want)
		}
	}
}

func TestForcedTTY(t *testing.T) {
	var b bytes.Buffer
	s := NewStreams(strings.NewReader(""), &b, &b, env(map[string]string{ForceTTYEnv: "60"}))
	if !s.OutTTY || !s.ErrTTY || s.Width != 60 || s.InTTY {
		t.Errorf("streams %+v", s)
	}
	if s = NewStreams(strings.NewReader(""), &b, &b, env(nil)); s.OutTTY || s.Width != 0 {
		t.Errorf("a buffer is a terminal: %+v", s)
	}
}

func FuzzClean(f *testing.F) {
	for _, s := range []string{"vllm-0", "a\x1b[2Jb", "\xff\xfe", "\u202e", "日本"} {
		f.Add(s, 7)
	}
	f.Fuzz(func(t *testing.T, s string, n int) {
		got := Clean(s)
		if strings.ContainsFunc(got, unsafe) {
			t.Errorf("Clean(%q) = %q", s, got)
		}
		if n = n % 80; n > 0 && Cells(Fit(got, n)) > n {
			t.Errorf("Fit(%q, %d) has %d cells", got, n, Cells(Fit(got, n)))
		}
		if n > 1 { // no letter is wider than two columns
			lines := Wrap(got, n)
			for _, line := range lines {
				if Cells(line) > n {
					t.Errorf("Wrap(%q, %d) has %q", got, n, line)
				}
			}
			plain := strings.NewReplacer(" ", "")
			if plain.Replace(strings.Join(lines, "")) != plain.Replace(got) {
				t.Errorf("Wrap(%q, %d) = %q: letters are lost", got, n, lines)
			}
		}
	})
}
