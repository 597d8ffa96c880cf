package serve

import (
	"bytes"
	"compress/gzip"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"

	extproc "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"github.com/klauspost/compress/zstd"

	"github.com/eppctl/eppctl/internal/core/reason"
)

// deflate compresses text as a client does.
func deflate(tb testing.TB, coding string, text []byte) []byte {
	tb.Helper()
	var b bytes.Buffer
	switch coding {
	case "gzip":
		w := gzip.NewWriter(&b)
		if _, err := w.Write(text); err != nil {
			tb.Fatal(err)
		}
		if err := w.Close(); err != nil {
			tb.Fatal(err)
		}
	case "zstd":
		w, err := zstd.NewWriter(&b)
		if err != nil {
			tb.Fatal(err)
		}
		if _, err := w.Write(text); err != nil {
			tb.Fatal(err)
		}
		if err := w.Close(); err != nil {
			tb.Fatal(err)
		}
	}
	return b.Bytes()
}

func TestInflate(t *testing.T) {
	const limit = 1 << 20
	text := []byte(`{"model":"m","prompt":"hi"}`)
	for _, coding := range []string{"gzip", "zstd"} {
		packed := deflate(t, coding, text)
		for name, encoding := range map[string]string{"as is": coding, "upper case": " " + strings.ToUpper(coding)} {
			if got, err := inflate(packed, encoding, limit); err != nil || !bytes.Equal(got, text) {
				t.Errorf("%s %s: %q %v", coding, name, got, err)
			}
		}
		if got, err := inflate(append(bytes.Clone(packed), packed...), coding, limit); err != nil || len(got) != 2*len(text) {
			t.Errorf("%s: two in a row: %q %v", coding, got, err)
		}
		if _, err := inflate(packed[:len(packed)-3], coding, limit); err == nil {
			t.Errorf("%s: a cut body is read", coding)
		}
		full := make([]byte, limit)
		if got, err := inflate(deflate(t, coding, full), coding, limit); err != nil || len(got) != limit {
			t.Errorf("%s: a body of the limit: %d %v", coding, len(got), err)
		}
		bomb := deflate(t, coding, make([]byte, 64*limit))
		if ratio := 64 * limit / len(bomb); ratio < 500 {
			t.Fatalf("%s: no bomb: it grows %d times", coding, ratio)
		}
		if got, err := inflate(bomb, coding, limit); !errors.Is(err, errBomb) || got != nil {
			t.Errorf("%s: a bomb gives %d bytes and %v", coding, len(got), err)
		}
	}
	// Frames of RFC 8878, 3.1.1: one raw block, and a window of 8 and of 16 MiB.
	for window, refused := range map[byte]bool{13 << 3: false, 14 << 3: true} {
		frame := append([]byte{0x28, 0xb5, 0x2f, 0xfd, 0, window, byte(len(text)<<3 | 1), byte(len(text) >> 5), 0}, text...)
		if got, err := inflate(frame, "zstd", limit); (err != nil) != refused || !refused && !bytes.Equal(got, text) {
			t.Errorf("a window of 1<<%d bytes: %q %v", 10+window>>3, got, err)
		}
	}
	for _, encoding := range []string{"br", "deflate", "gzip, zstd", "gzip,", "x"} {
		if _, err := inflate(text, encoding, limit); !errors.Is(err, errCoding) {
			t.Errorf("%q: %v", encoding, err)
		}
	}
	for _, encoding := range []string{"", "identity", " Identity"} {
		if c := coding(encoding); c != "" {
			t.Errorf("%q is taken for %q", encoding, c)
		}
	}
}

// TestCompressedBodies: a compressed prompt is matched as any other and goes on as
// it came. Where its model is renamed it goes on as text, without the header.
func TestCompressedBodies(t *testing.T) {
	r := newRig(t, rigOptions{config: func(c *Config) { c.Limits.RequestBytes = 1 << 20 }})
	const name = "m"
	for _, coding := range []string{"gzip", "zstd"} {
		for _, header := range []string{"content-encoding", "x-body-compressed"} {
			t.Run(coding+" "+header, func(t *testing.T) {
				packed := deflate(t, coding, []byte(`{"model":"`+name+`","prompt":[1,2,3]}`))
				got := r.ask(reqHeaders(fullDuplex, false, completionsPath, header, coding), reqBody(packed, true))
				wantKinds(t, got, "headers body+eos")
				if why := metadataOf(got[0], reasonKey); why == string(reason.Compressed) {
					t.Errorf("reason %q", why)
				}
				if !bytes.Equal(bodyOf(got), packed) {
					t.Error("the body goes on changed")
				}
				if removes(got[0], header) {
					t.Error("the header of a body that stays is removed")
				}

				packed = deflate(t, coding, []byte(`{"model":"m-alias","prompt":[1,2,3]}`))
				want := `{"model":"` + name + `","prompt":[1,2,3]}`
				got = r.ask(reqHeaders(fullDuplex, false, completionsPath, header, coding, "content-length", strconv.Itoa(len(packed))), reqBody(packed, true))
				if body := bodyOf(got); string(body) != want {
					t.Errorf("renamed: %q", body)
				}
				if !removes(got[0], header) {
					t.Error("renamed: the header stays")
				}
				buffered := r.ask(reqHeaders(protocol(modeBuffered, modeNone), false, completionsPath, header, coding), reqBody(packed, true))
				last := buffered[len(buffered)-1]
				if body := last.GetRequestBody().GetResponse().GetBodyMutation().GetBody(); string(body) != want || !removes(last, header) {
					t.Errorf("renamed, buffered: %q", body)
				}
				if n, _ := headerOf(got[0], lengthHeader); n != strconv.Itoa(len(want)) {
					t.Errorf("renamed: content-length %s, want %d", n, len(want))
				}
			})
		}
	}
	for name, c := range map[string]struct {
		coding string
		body   []byte
	}{
		"a bomb":      {"gzip", deflate(t, "gzip", make([]byte, 8<<20))},
		"a zstd bomb": {"zstd", deflate(t, "zstd", make([]byte, 8<<20))},
		"brotli":      {"br", []byte("\x0b\x02\x80{}\x03")},
		"two codings": {"gzip, zstd", deflate(t, "zstd", deflate(t, "gzip", []byte(`{"model":"x"}`)))},
		"not gzip":    {"gzip", []byte(`{"model":"x"}`)},
	} {
		got := r.ask(reqHeaders(fullDuplex, false, completionsPath, "content-encoding", c.coding), reqBody(c.body, true))
		if why := metadataOf(got[0], reasonKey); why != string(reason.Compressed) || !bytes.Equal(bodyOf(got), c.body) {
			t.Errorf("%s: reason %q, %d bytes go on of %d", name, why, len(bodyOf(got)), len(c.body))
		}
	}
}

func removes(m *extproc.ProcessingResponse, header string) bool {
	return slices.Contains(mutationOf(m).GetRemoveHeaders(), header)
}

// FuzzInflate: whatever claims to be compressed ends within the limit.
func FuzzInflate(f *testing.F) {
	for _, coding := range []string{"gzip", "zstd"} {
		f.Add(coding == "zstd", deflate(f, coding, []byte(`{"model":"m"}`)))
		f.Add(coding == "zstd", deflate(f, coding, make([]byte, 100_000)))
	}
	f.Fuzz(func(t *testing.T, isZstd bool, body []byte) {
		const limit = 64 << 10
		coding := "gzip"
		if isZstd {
			coding = "zstd"
		}
		if got, err := inflate(body, coding, limit); err == nil && len(got) > limit || err != nil && got != nil {
			t.Fatalf("%d bytes, %v", len(got), err)
		}
	})
}
