//go:build packages

package release

import (
	"archive/tar"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// These tests look into what `make release-check` built, as root: they install
// packages, into roots of their own.

// dist is the folder that goreleaser wrote.
var dist = filepath.Join(repository, "dist")

// built is the one file of a name.
func built(t *testing.T, pattern string) string {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(dist, pattern))
	if err != nil || len(list) != 1 {
		t.Fatalf("%s: found %q, %v; expected one (run: make release-check)", pattern, list, err)
	}
	file, err := filepath.Abs(list[0])
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// output runs a program that must succeed.
func output(t *testing.T, env []string, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %q: %v\n%s", name, args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// newRoot is a system of nothing but a shell, which scripts of packages need.
func newRoot(t *testing.T) (root string) {
	t.Helper()
	root = t.TempDir()
	shell := program(t, "dash")
	copyTo(t, shell, filepath.Join(root, "bin/sh"))
	for _, word := range strings.Fields(output(t, nil, "ldd", shell)) {
		if strings.HasPrefix(word, "/") {
			copyTo(t, word, filepath.Join(root, word))
		}
	}
	return root
}

func copyTo(t *testing.T, from, to string) {
	t.Helper()
	b, err := os.ReadFile(from)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(to), 0o755)
	}
	if err == nil {
		err = os.WriteFile(to, b, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// installed is what both packages hold, beside completions for zsh.
var installed = []string{
	"usr/bin/eppctl", "usr/share/bash-completion/completions/eppctl", "usr/share/fish/vendor_completions.d/eppctl.fish",
	"usr/share/man/man1/eppctl.1.gz", "usr/share/man/man1/eppctl-explain.1.gz", "usr/lib/systemd/system/eppctl.service",
	"usr/lib/sysusers.d/eppctl.conf", "usr/share/doc/eppctl/copyright",
}

func present(t *testing.T, root string, files ...string) {
	t.Helper()
	for _, f := range files {
		if _, err := os.Stat(filepath.Join(root, f)); err != nil {
			t.Error(err)
		}
	}
}

// runs starts the installed program in its root, and returns the version it says.
func runs(t *testing.T, root string) (version string) {
	t.Helper()
	var v struct {
		Version, Commit string
		Date            time.Time
	}
	if err := json.Unmarshal([]byte(output(t, nil, "chroot", root, "/usr/bin/eppctl", "version", "-o", "json")), &v); err != nil {
		t.Fatal(err)
	}
	head := strings.Fields(output(t, nil, "git", "-C", repository, "show", "--no-patch", "--format=%H %cI", "HEAD"))
	if when, err := time.Parse(time.RFC3339, head[1]); err != nil || v.Commit != head[0] || !v.Date.Equal(when) {
		t.Errorf("version %+v, built from %q", v, head)
	}
	if !strings.Contains(v.Version, "-SNAPSHOT-"+v.Commit[:7]) {
		t.Errorf("version %s of commit %s", v.Version, v.Commit)
	}
	return v.Version
}

func TestDeb(t *testing.T) {
	deb := built(t, "*_linux_"+runtime.GOARCH+".deb")
	root := newRoot(t)
	for _, dir := range []string{"var/lib/dpkg/info", "var/lib/dpkg/updates"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(root, "var/lib/dpkg/status"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	output(t, nil, "dpkg", "--root="+root, "-i", deb)
	if depends := output(t, nil, "dpkg-deb", "-f", deb, "Depends"); depends != "" {
		t.Errorf("it depends on %s", depends)
	}
	present(t, root, append(installed, "usr/share/zsh/vendor-completions/_eppctl")...)
	version := runs(t, root)
	// dpkg sorts 0.1.0~x before 0.1.0.
	if of := output(t, nil, "dpkg-deb", "-f", deb, "Version"); strings.TrimPrefix(version, "v") != strings.ReplaceAll(of, "~", "-") {
		t.Errorf("version %s in package %s", version, of)
	}
	found(t, root)
	output(t, nil, "dpkg", "--root="+root, "-r", "eppctl")
	if _, err := os.Stat(filepath.Join(root, "usr/bin/eppctl")); err == nil {
		t.Error("it is there after its removal")
	}
}

// found: shells and man find what was installed where they look for it.
func found(t *testing.T, root string) {
	t.Helper()
	share := filepath.Join(root, "usr/share")
	env := []string{"XDG_DATA_DIRS=" + share, "PATH=" + filepath.Join(root, "usr/bin") + ":" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "MANPATH="}
	output(t, nil, filepath.Join(repository, "scripts/debian.sh"), "/usr/share/bash-completion/bash_completion", "bash-completion")
	if s := output(t, env, "bash", "--norc", "-c", "source /usr/share/bash-completion/bash_completion; _completion_loader eppctl; complete -p eppctl"); !strings.Contains(s, "__start_eppctl") {
		t.Errorf("bash completes eppctl by %q", s)
	}
	zsh := program(t, "zsh")
	if dirs := strings.Fields(output(t, nil, zsh, "-f", "-c", "print -l $fpath")); !slices.Contains(dirs, "/usr/share/zsh/vendor-completions") {
		t.Errorf("zsh looks into %q", dirs)
	}
	if s := output(t, env, zsh, "-f", "-c", "fpath=("+share+"/zsh/vendor-completions $fpath); autoload -U compinit; compinit -u -D; print $_comps[eppctl]"); s != "_eppctl" {
		t.Errorf("zsh completes eppctl by %q", s)
	}
	if s := output(t, env, program(t, "fish"), "-c", `complete -C "eppctl expl"`); !strings.HasPrefix(s, "explain\t") {
		t.Errorf("fish completes to %q", s)
	}
	output(t, nil, filepath.Join(repository, "scripts/debian.sh"), "man", "man-db")
	if s := output(t, []string{"MANWIDTH=80"}, "man", "-M", filepath.Join(share, "man"), "-P", "cat", "eppctl-explain"); !strings.Contains(s, "Show why a request goes where it goes") {
		t.Errorf("man shows\n%s", s)
	}
}

func TestRPM(t *testing.T) {
	file, root := built(t, "*_linux_"+runtime.GOARCH+".rpm"), newRoot(t)
	rpm := program(t, "rpm")
	// The root has no package that provides its shell.
	output(t, nil, rpm, "--root", root, "--dbpath", "/var/lib/rpm", "--install", "--nodeps", file)
	present(t, root, append(installed, "usr/share/zsh/site-functions/_eppctl")...)
	runs(t, root)
	output(t, nil, rpm, "--root", root, "--dbpath", "/var/lib/rpm", "--erase", "eppctl")
	if _, err := os.Stat(filepath.Join(root, "usr/bin/eppctl")); err == nil {
		t.Error("it is there after its removal")
	}
}

func TestArchives(t *testing.T) {
	for _, platform := range []string{"linux_amd64", "linux_arm64", "darwin_amd64", "darwin_arm64"} {
		names := entries(t, built(t, "*_"+platform+".tar.gz"))
		for _, want := range []string{"eppctl", "LICENSE", "README.md", "completions/eppctl.bash", "completions/_eppctl", "completions/eppctl.fish", "completions/eppctl.ps1", "man/eppctl.1", "man/eppctl-top.1"} {
			if !slices.Contains(names, want) {
				t.Errorf("%s: no %s in %q", platform, want, names)
			}
		}
		var bom struct {
			Components []struct{ Name string }
		}
		text, err := os.ReadFile(built(t, "*_"+platform+".cdx.json"))
		if err == nil {
			err = json.Unmarshal(text, &bom)
		}
		if err != nil || !slices.Contains(bom.Components, struct{ Name string }{"google.golang.org/grpc"}) {
			t.Errorf("%s: bill of %d components, %v", platform, len(bom.Components), err)
		}
	}
	sums := exec.Command("sha256sum", "--check", "--strict", path.Base(built(t, "checksums.txt")))
	sums.Dir = dist
	if out, err := sums.CombinedOutput(); err != nil || strings.Count(string(out), ": OK") < 12 {
		t.Errorf("checksums: %v\n%s", err, out)
	}
}

func entries(t *testing.T, archive string) (names []string) {
	t.Helper()
	f, err := os.Open(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return names
		}
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, h.Name)
	}
}
