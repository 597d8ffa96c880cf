package main

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"strconv"

	"github.com/eppctl/eppctl/bench/phase"
	"github.com/eppctl/eppctl/bench/product"
	"github.com/eppctl/eppctl/bench/workload"
)

// own measures eppctl's index: one (GPU only), sized (and every rank said how
// many blocks it has) or tiers (host blocks too).
func own(args []string) error {
	if len(args) != 3 {
		return fmt.Errorf("product one|sized|tiers DUMP LOOKUPS, not %q", args)
	}
	runtime.LockOSThread() // times are this thread's
	d, err := workload.Read(args[1])
	if err != nil {
		return err
	}
	lookups, err := strconv.Atoi(args[2])
	if err != nil {
		return err
	}
	var ix *product.Index
	fresh := func() phase.Index {
		ix = product.New(d.Workload, args[0] == "sized")
		return ix
	}
	measure := phase.OneTier
	if args[0] == "tiers" {
		measure = phase.TwoTiers
	}
	m := measure(d, lookups, product.Floor(d.Workload), fresh)
	// Less work is no speed.
	if n := m["wrong_depths"] + m["wrong_depths_after"]; n > 0 || ix.Refused() > 0 {
		return fmt.Errorf("%v depths are wrong, %d events were not taken in full", n, ix.Refused())
	}
	return json.NewEncoder(os.Stdout).Encode(m)
}
