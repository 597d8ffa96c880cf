package workload

import (
	"bytes"
	"testing"
)

// Whatever a file holds, what is read of it is a sound workload or a plain error.
func FuzzRead(f *testing.F) {
	for _, text := range []string{
		bailian,
		"TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03.9799600,4808,10\n2024-05-10 00:00:00.009930+00:00,1,2\n",
		`{"timestamp": 0, "input_length": 600, "output_length": 5, "hash_ids": [1, 2]}` + "\n" + `{"timestamp": 1e300, "input_length": 0}`,
		"\x1f\x8b", "\xef\xbb\xbf{}", "",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if bytes.HasPrefix(b, []byte{0x1f, 0x8b}) && len(b) > 1<<10 {
			return // a bomb costs the fuzzer its time, and the caps hold for unpacked text
		}
		w, err := Read("fuzz", bytes.NewReader(b), 1000)
		if err != nil {
			return
		}
		if w.Distinct > MaxBlocks || len(w.Requests) == 0 {
			t.Fatalf("%d blocks, %d requests", w.Distinct, len(w.Requests))
		}
		sound(t, w)
		w.Spread(1)
	})
}
