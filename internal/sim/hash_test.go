package sim

import "testing"

func sequenceOf(n int) []uint32 {
	out := make([]uint32, n)
	for i := range out {
		out[i] = uint32(i)
	}
	return out
}

// The page hashes SGLang's own code gives for these tokens.
func TestChainIsSGLangsPageHash(t *testing.T) {
	tests := []struct {
		name string
		ns   namespace
		size int
		n    int
		want []int64
	}{
		{"page 16", namespace{}, 16, 32, []int64{6738917275443968386, 5080553031686747138}},
		{"page 16 salted", namespace{salt: "tenant-a"}, 16, 32, []int64{3748403516937365244, -8552469713116419162}},
		{"page 4", namespace{}, 4, 8, []int64{-4977211910723114241, 90435953025800507}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := chainAll(nil, tt.ns, sequenceOf(tt.n), tt.size)
			if len(got) != len(tt.want) {
				t.Fatalf("%d digests, want %d", len(got), len(tt.want))
			}
			for i, d := range got {
				if int64(d.short()) != tt.want[i] {
					t.Errorf("block %d: %d, want %d", i, int64(d.short()), tt.want[i])
				}
			}
		})
	}
}
