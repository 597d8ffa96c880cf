package index

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"testing/iotest"
	"time"

	"github.com/eppctl/eppctl/internal/core/block"
	"github.com/eppctl/eppctl/internal/core/event"
	"github.com/eppctl/eppctl/internal/core/pod"
)

// full has something of everything a snapshot can hold.
func full(t *testing.T) *rig {
	r := newRig(t, Options{Seed: 7})
	p := tokens(1, 16*100)
	r.store(r1, gpu, top, hashes(1, 40), p[:640])
	r.store(r1, host, top, hashes(1, 20), p[:320])
	r.remove(r1, gpu, 3, 9)
	r.store(r1, gpu, top, hashes(1, 2), p[:32])            // copies
	r.store(r1, gpu, 20, hashes(201, 240), tokens(2, 640)) // a fork
	r.store(r1, gpu, top, hashes(301, 303), p[:48])        // other hashes of the same places
	e := r.event(host, top, hashes(901, 902), p[:512])     // chunks
	e.BlockSize = 256
	r.apply(r1, e, Applied)
	e = r.event(gpu, top, hashes(1, 30), p[:480])
	e.Salt, e.HasSalt = "s", true
	r.apply(r2, e, Applied)
	e = r.event(gpu, top, hashes(29, 30), nil)
	e.Tokens, e.Group, e.SpecKind, e.Window = p[448:480], 1, "sliding_window", 33
	r.apply(r2, e, Applied)
	e.Group, e.SpecKind, e.Hashes = 2, "mamba", nil
	r.apply(r2, e, OtherGroup)
	return r
}

// small is full in few bytes: a fuzzer takes long to cut a large seed down.
func small(t *testing.T) *rig {
	r := newRig(t, Options{Seed: 7})
	p := tokens(1, 96)
	r.store(r1, gpu, top, hashes(1, 3), p[:48])
	r.store(r1, host, top, hashes(1, 2), p[:32])
	r.store(r1, gpu, top, hashes(1, 1), p[:16])
	r.store(r1, gpu, 1, hashes(4, 4), p[80:])
	e := r.event(host, top, hashes(9, 9), p[:32])
	e.BlockSize = 32
	r.apply(r1, e, Applied)
	e = r.event(gpu, top, hashes(3, 3), p[:16])
	e.Group, e.SpecKind, e.Window = 1, "sliding_window", 33
	r.apply(r1, e, Applied)
	return r
}

// saved is the snapshot of an index.
func (r *rig) saved() []byte {
	var b bytes.Buffer
	if err := r.ix.Save(&b, func(m pod.Member) string { return []string{"one", "two"}[m] }); err != nil {
		r.Fatal(err)
	}
	return b.Bytes()
}

func (r *rig) loaded(file []byte) *rig {
	ix, err := Load(bytes.NewReader(file), Options{TTL: time.Minute}, r.now, nil)
	if err != nil {
		r.Fatal(err)
	}
	return &rig{T: r.T, ix: ix, size: r.size, now: r.now}
}

// The whole property is held in TestOracle, where worlds are saved and loaded at
// random points and go on; here is what it does not look at.
func TestSnapshot(t *testing.T) {
	p := tokens(1, 16*100)
	salted := block.Prompt{Tokens: p[:496], Salt: "s", Cut: -1}
	t.Run("all of it", func(t *testing.T) {
		r := full(t)
		l := r.loaded(r.saved())
		for _, q := range []block.Prompt{{Tokens: p, Cut: -1}, salted, {Tokens: slices.Concat(p[:320], tokens(2, 640)), Cut: -1}} {
			if got, want := l.lookup(q), r.lookup(q); got[r1] != want[r1] || got[r2] != want[r2] || len(want) == 0 {
				t.Errorf("got %+v, want %+v", got, want)
			}
		}
		if x := l.lookup(salted)[r2]; x.Depth != 30 || !x.Approximate {
			t.Errorf("%+v", x)
		}
		for _, m := range []pod.Member{r1, r2} {
			got, want := l.stats(m), r.stats(m)
			got.Verdicts, want.Verdicts = [NumVerdicts]uint64{}, [NumVerdicts]uint64{}
			got.Unknown, want.Unknown = 0, 0
			gotOthers, wantOthers := got.Others, want.Others
			got.Others, want.Others = nil, nil
			if !slices.Equal(gotOthers, wantOthers) || !equalStats(got, want) {
				t.Errorf("member %d: %+v %+v, want %+v %+v", m, got, gotOthers, want, wantOthers)
			}
		}
		// Engines go on as if nothing had happened.
		for _, x := range []*rig{r, l} {
			x.remove(r1, gpu, 1)
			x.remove(r1, host, 901)
			x.store(r1, gpu, 2, hashes(3, 3), p[32:48])
			x.store(r1, gpu, 240, hashes(241, 241), p[:16])
			x.apply(r2, &event.Event{Kind: event.Removed, Hashes: hashes(29, 29), Group: 1}, Applied)
		}
		for _, q := range []block.Prompt{{Tokens: p, Cut: -1}, salted} {
			if got, want := l.lookup(q), r.lookup(q); got[r1] != want[r1] || got[r2] != want[r2] {
				t.Errorf("later: got %+v, want %+v", got, want)
			}
		}
		l.ix.Purge(r1)
		l.ix.Purge(r2)
		if s := l.ix.Stats(); s.Blocks != 0 || s.Runs != 0 {
			t.Errorf("left over: %+v", s)
		}
	})
	t.Run("age goes on", func(t *testing.T) {
		r := full(t)
		r.now += int64(30 * time.Second)
		r.ix.Sweep(r.now) // moves the clock
		file := r.saved()
		r.now = int64(5 * time.Second) // the other process counts from elsewhere
		l := r.loaded(file)
		l.wait(20 * time.Second)
		if s := l.stats(r1); s.Blocks[host] != 20 {
			t.Errorf("%+v", s)
		}
		l.wait(20 * time.Second)
		if s := l.stats(r1); s.Blocks[host] != 0 || s.Chunks != 0 {
			t.Errorf("%+v", s)
		}
	})
	t.Run("members by name", func(t *testing.T) {
		r := full(t)
		ix, err := Load(bytes.NewReader(r.saved()), Options{}, r.now, func(name string, _ pod.Member) (pod.Member, bool) { return 500, name == "two" })
		if err != nil {
			t.Fatal(err)
		}
		l := &rig{T: t, ix: ix}
		if got := l.lookup(salted); len(got) != 1 || got[500].Depth != 30 {
			t.Errorf("%+v", got)
		}
		if got := l.lookup(block.Prompt{Tokens: p, Cut: -1}); len(got) != 0 {
			t.Errorf("of a member left out: %+v", got)
		}
		if s := ix.Stats(); s.Members != 1 || s.Blocks != 30 || s.Runs != 1 {
			t.Errorf("%+v", s)
		}
	})
	t.Run("long runs take several records", func(t *testing.T) {
		r := newRig(t, Options{})
		r.size = 1
		long := make([]uint32, 3*recordKeys+5)
		for i := range long {
			long[i] = uint32(i)
		}
		r.store(r1, gpu, top, hashes(1, uint64(len(long))), long)
		r.store(r1, gpu, 2*recordKeys, hashes(1<<40, 1<<40), []uint32{99})
		l := r.loaded(r.saved())
		l.depth(r1, long, len(long))
		l.depth(r1, append(long[:2*recordKeys:2*recordKeys], 99), 2*recordKeys+1)
		if s := l.ix.Stats(); s.Runs != 2 {
			t.Errorf("%+v", s)
		}
	})
	t.Run("empty", func(t *testing.T) {
		r := newRig(t, Options{})
		if s := r.loaded(r.saved()).ix.Stats(); s.Members != 2 || s.Blocks != 0 {
			t.Errorf("%+v", s)
		}
	})
	t.Run("a writer that fails", func(t *testing.T) {
		r := full(t)
		if err := r.ix.Save(failing{}, nil); !errors.Is(err, io.ErrShortWrite) {
			t.Error(err)
		}
		r.store(r1, gpu, 40, hashes(50, 50), p[:16]) // nothing is locked
	})
}

func equalStats(a, b MemberStats) bool {
	a.Others, b.Others = nil, nil
	return a.BlockSize == b.BlockSize && a.Group == b.Group && a.Approximate == b.Approximate && a.Blocks == b.Blocks && a.Copies == b.Copies && a.Chunks == b.Chunks
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, io.ErrShortWrite }

// No damage goes unnoticed, and what is refused says where.
func TestSnapshotRefused(t *testing.T) {
	file := full(t).saved()
	refused := func(b []byte, what string) {
		t.Helper()
		ix, err := Load(bytes.NewReader(b), Options{}, 0, nil)
		var e *SnapshotError
		if ix != nil || !errors.As(err, &e) || e.Offset < 0 || e.Offset > int64(len(b)) {
			t.Fatalf("%s: %v, %v", what, ix != nil, err)
		}
	}
	for n := range file {
		refused(file[:n], "cut off")
	}
	for i := range file {
		b := slices.Clone(file)
		b[i] ^= 1 << (i % 8)
		refused(b, "a bit that is wrong")
	}
	b := slices.Clone(file)
	b[len(snapshotMagic)] = 9
	refused(b, "a version of later")
	if _, err := Load(iotest.ErrReader(io.ErrClosedPipe), Options{}, 0, nil); !errors.Is(err, io.ErrClosedPipe) {
		t.Error(err)
	}
	// A length that lies costs no memory.
	b = append(slices.Clone(file[:headerSize]), byte(frameRuns), 0, 0, 0x3f, 0)
	if n := testing.AllocsPerRun(1, func() { refused(b, "a frame that is not there") }); n > 1e5 {
		t.Errorf("%.0f allocations", n)
	}
}

// frames is a snapshot made of payloads, sums and all: what a fuzzer cannot make.
func frames(seed uint64, payloads []byte) []byte {
	f := frameWriter{}
	f.header(seed)
	for len(payloads) > 2 {
		k, n := payloads[0], int(binary.LittleEndian.Uint16(payloads[1:]))
		payloads = payloads[3:]
		n = min(n, len(payloads))
		f.begin(frameKind(k))
		f.buf = append(f.buf, payloads[:n]...)
		f.end()
		payloads = payloads[n:]
	}
	return f.buf
}

// unframed is the inverse of frames.
func unframed(file []byte) (out []byte) {
	for file = file[headerSize:]; len(file) > 0; {
		n := int(binary.LittleEndian.Uint32(file[1:]))
		out = append(out, file[0], byte(n), byte(n>>8))
		out = append(out, file[frameHead:frameHead+n]...)
		file = file[frameHead+n+crc32.Size:]
	}
	return out
}

// Chunks that name the same long run over and over ask for much work in few bytes.
func TestChunksOfASnapshotAreBounded(t *testing.T) {
	r := newRig(t, Options{Seed: 7})
	r.store(r1, gpu, top, hashes(1, 4000), make([]uint32, 16*4000))
	file := unframed(r.saved())
	f := frameWriter{open: -1}
	for h := range uint64(3000) {
		f.word(h)
		f.uint(1 << host)
		for range event.NumTiers {
			f.uint(0)
		}
		f.uint(0) // seconds
		f.uint(1) // stretches
		f.uint(1)
		f.uint(0)
		f.uint(4000)
	}
	one := file[:0:0]
	for rest := file; len(rest) > 0; { // the first member's frames, then the chunks
		n := 3 + int(binary.LittleEndian.Uint16(rest[1:]))
		if len(one) > 0 && frameKind(rest[0]) == frameMember {
			break
		}
		one, rest = append(one, rest[:n]...), rest[n:]
	}
	one = append(one, byte(frameChunks), byte(len(f.buf)), byte(len(f.buf)>>8))
	one = append(one, f.buf...)
	_, err := Load(bytes.NewReader(frames(7, one)), Options{}, 0, nil)
	var e *SnapshotError
	if !errors.As(err, &e) || e.Reason != "chunks of too many blocks" {
		t.Error(err)
	}
}

// loadFixed and loadPerByte bound what Load may allocate, in bytes: 1,024 members
// of one hash each with a page of their logs (40 KB), and per byte of the stream 64
// blocks of chunks (chunkShare) of 24 bytes a part, twice for growing.
const loadFixed, loadPerByte = 64 << 20, 4 << 10

// FuzzLoad loads anything, also with sums that are right. What is accepted must
// be an index that works: it is looked at, written to, saved and emptied.
func FuzzLoad(f *testing.F) {
	t := &testing.T{}
	file := small(t).saved()
	f.Add(file, true)
	f.Add(unframed(file), false)
	f.Add(unframed(newRig(t, Options{}).saved()), false)
	r := rand.New(rand.NewPCG(1, 90))
	for range 3 {
		b := unframed(file)
		for range 5 {
			b[r.IntN(len(b))] ^= 1 << r.IntN(8)
		}
		f.Add(b, false)
	}
	f.Fuzz(func(t *testing.T, data []byte, whole bool) {
		if !whole {
			data = frames(7, data)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		ix, err := Load(bytes.NewReader(data), Options{}, int64(time.Hour), nil)
		runtime.ReadMemStats(&after)
		if n := after.TotalAlloc - before.TotalAlloc; n > uint64(loadFixed+loadPerByte*len(data)) {
			t.Fatalf("%d bytes allocated for a stream of %d", n, len(data))
		}
		if err != nil {
			var e *SnapshotError
			if !errors.As(err, &e) {
				t.Fatal(err)
			}
			return
		}
		var out Result
		ix.Lookup(&block.Prompt{Model: "m", Tokens: tokens(1, 1600), Cut: -1}, &out)
		e := event.Event{Kind: event.Removed, Hashes: hashes(1, 100)}
		for m := range pod.Member(pod.MaxMembers) {
			ix.Apply(m, &e, 0)
		}
		ix.Sweep(int64(2 * time.Hour))
		if err := ix.Save(io.Discard, nil); err != nil {
			t.Fatal(err)
		}
		for m := range pod.Member(pod.MaxMembers) {
			ix.Purge(m)
		}
		if s := ix.Stats(); s.Blocks != 0 || s.Runs != 0 {
			t.Fatalf("left over: %+v", s)
		}
	})
}
