package main

import (
	"runtime/debug"
	"testing"

	"github.com/eppctl/eppctl/internal/serve"
)

// TestIdentity: the linker's word counts; what it leaves out is what Go recorded.
func TestIdentity(t *testing.T) {
	info := &debug.BuildInfo{Main: debug.Module{Version: "v0.0.0-2026"}, Settings: []debug.BuildSetting{
		{Key: "vcs.revision", Value: "abc"}, {Key: "vcs.time", Value: "2026-11-29T00:00:00Z"}, {Key: "vcs.modified", Value: "true"},
	}}
	if v := identified(serve.Version{}, info); v.Version.Version != "v0.0.0-2026" || v.Commit != "abc" || v.Date != "2026-11-29T00:00:00Z" || !v.Modified {
		t.Errorf("from Go alone: %+v", v)
	}
	if v := identified(serve.Version{Version: "v1", Commit: "def", Date: "then"}, info); v.Version.Version != "v1" || v.Commit != "def" || v.Date != "then" {
		t.Errorf("over the linker: %+v", v)
	}
	if v := identified(serve.Version{}, nil); v.Version.Version != "(devel)" || v.Go == "" {
		t.Errorf("from nothing: %+v", v)
	}
}
