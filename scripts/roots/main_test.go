package main

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"testing"
)

// Each certificate is an authority's, once; and what is left out is little.
func TestRoots(t *testing.T) {
	var b bytes.Buffer
	if err := write(&b); err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for rest := b.Bytes(); len(rest) > 0; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			t.Fatalf("%d bytes are no certificate", len(rest))
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil || !c.IsCA || names[string(c.Raw)] {
			t.Errorf("%v: authority %v, error %v", c.Subject, c.IsCA, err)
		}
		names[string(c.Raw)], names[c.Subject.CommonName] = true, true
	}
	for _, want := range []string{"ISRG Root X1", "Amazon Root CA 1", "GTS Root R1"} { // of the hubs that models come from
		if !names[want] {
			t.Errorf("%s is missing", want)
		}
	}
}
