package arch

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// What a page points at is there, headings included, and each picture is shown.
func TestLinks(t *testing.T) {
	root := filepath.Join("..", "..")
	shown := map[string]bool{}
	n := 0
	for _, from := range pages(t, root) {
		for _, m := range link.FindAllStringSubmatch(prose(t, from), -1) {
			target, anchor, _ := strings.Cut(m[1], "#")
			if strings.Contains(target, "://") {
				continue
			}
			n++
			to := from
			if target != "" {
				to = filepath.Join(filepath.Dir(from), target)
			}
			if _, err := os.Stat(to); err != nil {
				t.Errorf("%s points at %s: %v", from, m[1], err)
				continue
			}
			shown[to] = true
			if anchor != "" && !slices.Contains(headings(t, to), anchor) {
				t.Errorf("%s points at %s, which has no such heading", from, m[1])
			}
		}
	}
	if n < 50 {
		t.Errorf("only %d links found: the search is broken", n)
	}
	images, err := filepath.Glob(filepath.Join(root, "docs", "img", "*"))
	if err != nil || len(images) == 0 {
		t.Fatalf("no pictures: %v", err)
	}
	for _, image := range images {
		if !shown[image] && !strings.HasSuffix(image, ".cast") {
			t.Errorf("no page shows %s", image)
		}
	}
}

var (
	link    = regexp.MustCompile(`\]\(([^) ]+)\)`)
	fenced  = regexp.MustCompile("(?s)```.*?```")
	dropped = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// pages are the Markdown files of the tree; what lies in hidden folders and among
// test data is not ours.
func pages(t *testing.T, root string) (paths []string) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != root && (d.Name()[0] == '.' || d.Name() == "out" || d.Name() == "dist" || d.Name() == "testdata"):
			return filepath.SkipDir
		case strings.HasSuffix(path, ".md"):
			paths = append(paths, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return paths
}

// prose is a page without its blocks of code.
func prose(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return fenced.ReplaceAllString(string(text), "")
}

// headings are a page's anchors as GitHub makes them.
func headings(t *testing.T, path string) (anchors []string) {
	t.Helper()
	for line := range strings.Lines(prose(t, path)) {
		if title, ok := strings.CutPrefix(strings.TrimLeft(line, "#"), " "); ok && line[0] == '#' {
			title = dropped.ReplaceAllString(strings.ToLower(strings.TrimSpace(title)), "")
			anchors = append(anchors, strings.ReplaceAll(title, " ", "-"))
		}
	}
	return anchors
}
