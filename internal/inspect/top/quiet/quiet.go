// Package quiet keeps libraries from asking the terminal anything when the program
// is loaded. lipgloss looks, in the initialiser of a variable, for what colours
// stdout has: on a terminal it reads the terminfo database and, inside of tmux, runs
// `tmux info` and waits for its end without a limit. That would be the price of
// every command, `version` included. The variable serves lipgloss.Print and its
// like, which are not used here. Where TERM is not set, lipgloss does not look.
//
// So TERM is not set while packages are initialised. That this package comes first
// is no luck but the language: of the packages whose imports are initialised, the
// one with the least import path is next (the Go specification, "Program
// initialization"). This one imports os alone, and its path sorts before os/exec,
// which imports os as well. Hence it is initialised before os/exec, and that before
// whatever imports it to run a program. A fork whose module path sorts behind
// "os/exec" loses this; internal/arch holds the imports and the path, and a test
// with a fake tmux in cmd/eppctl what they are for.
package quiet

import "os"

const name = "TERM"

var term, found = os.LookupEnv(name)

func init() { _ = os.Unsetenv(name) } // fails only for a name that is none

// Restore sets TERM to what it was. The importer of lipgloss calls it in its own
// init, which the language puts after those of its imports.
func Restore() {
	if found {
		_ = os.Setenv(name, term)
	}
}
