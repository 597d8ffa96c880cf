package native_test

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"unicode/utf8"

	"github.com/eppctl/eppctl/internal/core/tokenizer/native"
)

// oracle is a process of testdata/oracle.py.
type oracle struct {
	in     *bufio.Writer
	out    *bufio.Reader
	around bool // its library knows what is put around a text
}

// newOracle starts the engines' own library on a vocabulary. `make test` puts it on
// PYTHONPATH; scripts/tokenizers.sh fetches it.
func newOracle(t testing.TB, name string) *oracle {
	t.Helper()
	file := filepath.Join(os.Getenv("TOKENIZER_MODELS"), name, "tokenizer.json")
	if v, ok := vocabularies[name]; ok {
		file = filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(file, unpack(t, v.file), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	switch name {
	case "tekken":
		return newOracleOf(t, "tekken", file)
	case "mistral_v3":
		return newOracleOf(t, "spm", file)
	case "cl100k", "qwen3_6":
		return newOracleOf(t, "ranks", file, rankOptions(t, name))
	}
	return newOracleOf(t, "hf", file)
}

// newOracleOf starts testdata/oracle.py with its arguments.
func newOracleOf(t testing.TB, args ...string) *oracle {
	t.Helper()
	cmd := exec.Command("python3", append([]string{"testdata/oracle.py"}, args...)...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		io.Copy(io.Discard, out)
		if err := cmd.Wait(); err != nil {
			t.Errorf("oracle (is PYTHONPATH set to what scripts/tokenizers.sh prints?): %v\n%s", err, stderr.String())
		}
	})
	return &oracle{bufio.NewWriterSize(in, 1<<20), bufio.NewReaderSize(out, 1<<20), args[0] == "hf" || args[0] == "spm"}
}

func rankOptions(t testing.TB, name string) string {
	o := map[string]any{"nfc": name == "qwen3_6"}
	added := cl100kAdded
	o["pattern"] = `'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s`
	if name == "qwen3_6" {
		added = qwen36Added
		o["pattern"] = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	}
	specials := map[string]uint32{}
	for _, a := range added {
		specials[a.Content] = a.ID
	}
	o["specials"] = specials
	b, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// encode returns the ids of a batch of texts, with what is put around them if wanted.
func (o *oracle) encode(t testing.TB, texts []string, around bool) [][]uint32 {
	t.Helper()
	head := []uint32{uint32(len(texts)), 0}
	if around {
		head[1] = 1
	}
	sent := make(chan error, 1)
	go func() { // the other side may answer before it has read all
		send := func() error {
			if err := binary.Write(o.in, binary.LittleEndian, head); err != nil {
				return err
			}
			for _, s := range texts {
				if err := binary.Write(o.in, binary.LittleEndian, uint32(len(s))); err != nil {
					return err
				}
				o.in.WriteString(s)
			}
			return o.in.Flush()
		}
		sent <- send()
	}()
	out := make([][]uint32, len(texts))
	for i := range out {
		var n uint32
		if err := binary.Read(o.out, binary.LittleEndian, &n); err != nil {
			t.Fatal("oracle: ", err)
		}
		out[i] = make([]uint32, n)
		if err := binary.Read(o.out, binary.LittleEndian, out[i]); err != nil {
			t.Fatal("oracle: ", err)
		}
	}
	if err := <-sent; err != nil {
		t.Fatal("oracle: ", err)
	}
	return out
}

// compare holds a tokenizer's ids of a batch against the library's, and reports how many
// texts differ.
func (o *oracle) compare(t testing.TB, tok *native.Tokenizer, texts []string, around bool) (bad int) {
	t.Helper()
	for i, want := range o.encode(t, texts, around) {
		got, err := tok.Encode(texts[i], around)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got, want) {
			if bad++; bad < 4 {
				t.Errorf("%+.200q, with ids around it %v: %s", texts[i], around, difference(got, want))
			}
		}
	}
	return bad
}

// fuzzRunes is how many characters of random text each vocabulary is compared over, with
// and without what is put around a text; TOKENIZER_FUZZ multiplies it, and from 2 on every
// character is tried in all contexts instead of one.
const fuzzRunes = 1_000_000

// batchSize is how many texts the libraries get at once: they take the cores for it.
const batchSize = 512

// TestDifferential holds the ids against those of the engines' own library, over
// random texts and over every character of Unicode.
func TestDifferential(t *testing.T) {
	times := 1
	if v := os.Getenv("TOKENIZER_FUZZ"); v != "" {
		n, err := strconv.Atoi(v)
		if err != nil {
			t.Fatal(err)
		}
		times = n
	}
	random := raceSome(fuzzRunes * times)
	for i, name := range allNames() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tok, o := load(t, name), newOracle(t, name)
			bad, size := 0, 0
			w := newWriter(uint64(i) + 100*uint64(times))
			w.specials = specialsOf(t, name)
			for size < random {
				batch := make([]string, batchSize)
				for k := range batch {
					batch[k] = w.text(1 + w.IntN(400))
					size += utf8.RuneCountInString(batch[k])
				}
				bad += o.compare(t, tok, batch, false)
				if o.around {
					bad += o.compare(t, tok, batch, true)
				}
			}
			var batch []string
			flush := func() { bad += o.compare(t, tok, batch, false); batch = batch[:0] }
			for k, c := range contexts {
				if times > 1 || k == i%len(contexts) {
					every(c, func(s string) {
						if batch = append(batch, s); len(batch) == batchSize {
							flush()
						}
					})
				}
			}
			flush()
			t.Logf("%d random characters, %d texts differ", size, bad)
		})
	}
}
