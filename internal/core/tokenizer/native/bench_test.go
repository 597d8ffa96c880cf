package native_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/eppctl/eppctl/internal/core/tokenizer/native"
)

// BenchmarkEncode encodes 128 kB again and again (warm) and a whole corpus with
// scratches that know nothing of it (new), when TOKENIZER_CORPUS names the folder
// that scripts/tokenizer-data.sh fills. make bench-tokenizer is the comparison.
func BenchmarkEncode(b *testing.B) {
	for _, name := range names() {
		for _, lang := range []string{"en", "code", "zh"} {
			text, err := os.ReadFile(filepath.Join(os.Getenv("TOKENIZER_CORPUS"), lang+".txt"))
			if err != nil {
				b.Fatal(err)
			}
			b.Run(name+"/"+lang+"/warm", func(b *testing.B) {
				tok := load(b, name)
				s := string(text[:128<<10])
				b.SetBytes(int64(len(s)))
				b.ReportAllocs()
				for b.Loop() {
					if _, err := tok.Encode(s, false); err != nil {
						b.Fatal(err)
					}
				}
			})
			b.Run(name+"/"+lang+"/new", func(b *testing.B) {
				tok := load(b, name)
				b.SetBytes(int64(len(text)))
				for b.Loop() {
					tok.Forget()
					for s := string(text); s != ""; {
						n := min(128<<10, len(s))
						if _, err := tok.Encode(s[:n], false); err != nil {
							b.Fatal(err)
						}
						s = s[n:]
					}
				}
			})
		}
	}
}

// BenchmarkLoad reads a file and builds the tables.
func BenchmarkLoad(b *testing.B) {
	for _, name := range names() {
		b.Run(name, func(b *testing.B) {
			var raw []byte
			load := native.LoadHuggingFace
			if v, ok := vocabularies[name]; ok {
				raw, load = unpack(b, v.file), v.load
			} else {
				var err error
				if raw, err = os.ReadFile(filepath.Join(os.Getenv("TOKENIZER_MODELS"), name, "tokenizer.json")); err != nil {
					b.Fatal(err)
				}
			}
			b.SetBytes(int64(len(raw)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := load(raw); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
