package main

import (
	"cmp"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// showTokens is the switch of explain and tap that prints token ids. --tokens is
// another name of it: who has seen no help looks for that.
const showTokens = "show-tokens"

// alsoCalled lets flags be given by other names.
func alsoCalled(f *pflag.FlagSet, names map[string]string) {
	f.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		return pflag.NormalizedName(cmp.Or(names[name], name))
	})
}

// noIDs refuses token ids behind --tokens, which took them before --token-ids did: the
// parser leaves them over as an argument.
func noIDs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 || !given(cmd, showTokens) || args[0] == "" || args[0][0] != '[' && (args[0][0] < '0' || args[0][0] > '9') {
		return nil
	}
	return misuse(cmd, fmt.Errorf("found %q behind --tokens, which prints token ids as --%s does; expected --token-ids %s", args[0], showTokens, args[0]))
}
