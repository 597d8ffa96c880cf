// Command roots prints the certificates of the authorities that Mozilla trusts,
// as the file in which programs look for them. They are those of a module in
// go.mod, so that an image does not depend on the machine that builds it.
package main

import (
	"bufio"
	"encoding/pem"
	"fmt"
	"io"
	"os"

	"golang.org/x/crypto/x509roots/fallback/bundle"
)

func main() {
	if err := write(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "roots:", err)
		os.Exit(1)
	}
}

func write(to io.Writer) error {
	w := bufio.NewWriter(to)
	for root := range bundle.Roots() {
		if root.Constraint != nil {
			continue // a file cannot say for what such a one is trusted
		}
		if err := pem.Encode(w, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}); err != nil {
			return err
		}
	}
	return w.Flush()
}
