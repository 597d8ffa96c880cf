package main

import (
	"debug/buildinfo"
	"debug/elf"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"testing"
)

// What `make build` makes runs on any machine of its kind: it needs no loader
// and no library, and is laid out by the profile.
func TestBuildIsStatic(t *testing.T) {
	bin := filepath.Join(t.TempDir(), "eppctl")
	// MAKEFLAGS of a make above would hand over its job server.
	if out, err := exec.Command("make", "-C", "../..", "build", "BIN="+bin, "MAKEFLAGS=").CombinedOutput(); err != nil {
		t.Fatalf("make build: %v\n%s", err, out)
	}
	info, err := buildinfo.ReadFile(bin)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(info.Settings, debug.BuildSetting{Key: "CGO_ENABLED", Value: "0"}) {
		t.Errorf("built with cgo: %v", info.Settings)
	}
	if !slices.ContainsFunc(info.Settings, func(s debug.BuildSetting) bool {
		return s.Key == "-pgo" && filepath.Base(s.Value) == "default.pgo"
	}) {
		t.Errorf("built without the profile: %v", info.Settings)
	}
	if runtime.GOOS != "linux" {
		return // other systems have no static programs, or another format
	}
	f, err := elf.Open(bin)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			t.Error("the binary asks for a dynamic loader")
		}
	}
	if libs, err := f.ImportedLibraries(); err != nil || len(libs) > 0 {
		t.Errorf("needs %v, %v", libs, err)
	}
}
