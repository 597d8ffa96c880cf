package main

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// What lies between two such lines of docs/eval.md is written by the command that the
// first one names.
const (
	begin = "<!-- %s writes from here -->"
	end   = "<!-- to here -->"
)

// replaceTables puts text between the markers of a command in a document.
func replaceTables(path, command, text string) error {
	begin := fmt.Sprintf(begin, command)
	old, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("tables: %w", err)
	}
	head, rest, ok := strings.Cut(string(old), begin+"\n")
	_, tail, closed := strings.Cut(rest, end+"\n")
	if !ok || !closed {
		return fmt.Errorf("tables: %s lacks the line %q, or %q after it", path, begin, end)
	}
	return os.WriteFile(path, []byte(head+begin+"\n\n"+text+"\n"+end+"\n"+tail), 0o644)
}

// label says which code the tables are of.
func label(seeds int) string {
	commit, err := exec.Command("git", "describe", "--always", "--dirty").Output()
	if err != nil {
		commit = []byte("unknown")
	}
	return fmt.Sprintf("Of commit %s, with the default constants of each preset; mean of %d seeds, which also change generators and the spread of arrivals.\n\n",
		strings.TrimSpace(string(commit)), seeds)
}
