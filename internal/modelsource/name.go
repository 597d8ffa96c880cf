package modelsource

import (
	"fmt"
	"regexp"
	"strings"
)

// The rules of the hub for names of models (huggingface_hub, validate_repo_id), which
// also keep a name from leading out of the cache.
var nameRule = regexp.MustCompile(`^(?:[A-Za-z0-9_](?:[A-Za-z0-9_.-]*[A-Za-z0-9_])?/)?[A-Za-z0-9_](?:[A-Za-z0-9_.-]*[A-Za-z0-9_])?$`)

const maxName = 96

// CheckName refuses what is no name of a model on the hub.
func CheckName(name string) error {
	switch {
	case len(name) > maxName:
		return &Error{Kind: Invalid, What: fmt.Sprintf("model name of %d bytes", len(name)), Why: fmt.Sprintf("names have at most %d", maxName)}
	case !nameRule.MatchString(name), strings.Contains(name, "--"), strings.Contains(name, ".."), strings.HasSuffix(name, ".git"):
		return &Error{
			Kind: Invalid, What: fmt.Sprintf("model name %q", name), Why: "it is neither a folder nor a name of the hub",
			Hint: "names are NAME or ORG/NAME of letters, digits, '-', '_' and '.'",
		}
	}
	return nil
}

// revisionRule is for branches, tags and commits. Git allows more, and nobody uses it.
var revisionRule = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.+/-]*$`)

// CheckRevision refuses what is no branch, tag or commit.
func CheckRevision(revision string) error {
	if len(revision) > 255 || !revisionRule.MatchString(revision) || strings.Contains(revision, "..") ||
		strings.Contains(revision, "//") || strings.Contains(revision, "/.") || strings.HasSuffix(revision, "/") {
		return &Error{Kind: Invalid, What: fmt.Sprintf("revision %q", clip(revision)), Why: "it is no branch, tag or commit"}
	}
	return nil
}

var commitRule = regexp.MustCompile(`^[0-9a-f]{40}$`)

func isCommit(s string) bool { return commitRule.MatchString(s) }

// clip shortens what comes from outside for a message.
func clip(s string) string {
	const most = 200
	if len(s) > most {
		return strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}
