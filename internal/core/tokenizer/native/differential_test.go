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
)

// oracle is a process of testdata/oracle.py.
type oracle struct {
	in  *bufio.Writer
	out *bufio.Reader
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
	return &oracle{bufio.NewWriterSize(in, 1<<20), bufio.NewReaderSize(out, 1<<20)}
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

// encode returns the ids of a batch of texts.
func (o *oracle) encode(t testing.TB, texts []string) [][]uint32 {
	t.Helper()
	sent := make(chan error, 1)
	go func() { // the other side may answer before it has read all
		send := func() error {
			if err := binary.Write(o.in, binary.LittleEndian, uint32(len(texts))); err != nil {
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

// fuzzBytes is how many bytes of random text each vocabulary is compared
// over; TOKENIZER_FUZZ multiplies it, and from 2 on every character is tried in all
// contexts instead of one.
const fuzzBytes = 400_000

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
	random := raceSome(fuzzBytes * times)
	for i, name := range allNames() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tok, o := load(t, name), newOracle(t, name)
			var batch []string
			size, bad := 0, 0
			flush := func() {
				for i, want := range o.encode(t, batch) {
					got, err := tok.Encode(batch[i], false)
					if err != nil {
						t.Fatal(err)
					}
					if !slices.Equal(got, want) {
						if bad++; bad < 5 {
							t.Errorf("%+q: %s", batch[i], difference(got, want))
						}
					}
				}
				batch = batch[:0]
			}
			add := func(s string) {
				batch = append(batch, s)
				if size += len(s); len(batch) == 512 {
					flush()
				}
			}
			w := newWriter(uint64(i) + 100*uint64(times))
			for size < random {
				add(w.text(1 + w.IntN(400)))
			}
			for k, c := range contexts {
				if times > 1 || k == i%len(contexts) {
					every(c, add)
				}
			}
			if len(batch) > 0 {
				flush()
			}
			t.Logf("%d bytes, %d texts differ", size, bad)
		})
	}
}
