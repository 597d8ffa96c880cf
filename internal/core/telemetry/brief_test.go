package telemetry

import "testing"

// TestBriefSaysWhatTheSampleSays puts samples that differ in one thing on a board.
func TestBriefSaysWhatTheSampleSays(t *testing.T) {
	for _, c := range []struct {
		has    Has
		sample Sample
	}{
		{0, Sample{}},
		{HasWaiting, Sample{Waiting: known(3)}},
		{HasRunning, Sample{Running: known(4)}},
		{HasKVUsage, Sample{KVUsage: known(0.5)}},
		{HasKVUsage | HasKVEstimate, Sample{KVUsage: known(0.5), KVEstimate: true}},
		{HasAsleep, Sample{Asleep: true}},
		{HasCacheOff, Sample{CacheOff: true}},
		{HasDevice, Sample{Device: Device{Known: true}}},
		{HasDevice, Sample{Device: Device{Utilisation: known(0.1)}}},
		{HasDevice, Sample{Device: Device{Envelope: known(0.1)}}},
	} {
		var b Board
		s := c.sample
		s.At = 7
		b.Put(3, &s)
		b.Fail(3, "HTTP 500", 9) // the last good one stays
		got := b.At(3).Brief
		want := Brief{
			At: 7, WaitingAt: 7, Has: c.has,
			Waiting: s.Waiting.V, Running: s.Running.V, KVUsage: s.KVUsage.V,
		}
		if got != want {
			t.Errorf("brief %+v, want %+v", got, want)
		}
	}
	var b Board
	b.Put(3, &Sample{At: 7, Waiting: Value{V: 1, Known: true, At: 5}})
	if got := b.At(3).Brief.WaitingAt; got != 5 {
		t.Errorf("a number carried over is of %d, want 5", got)
	}
}

// TestBriefOfThePool holds what is derived from more numbers than one against odd ones.
func TestBriefOfThePool(t *testing.T) {
	for name, c := range map[string]struct {
		sample Sample
		block  int32
		pool   float64
		usage  float64
	}{
		"nothing told":      {},
		"size alone":        {Sample{KVBlockSize: known(16)}, 16, 0, 0},
		"blocks alone":      {Sample{KVBlocks: known(4000)}, 0, 0, 0},
		"both":              {Sample{KVBlockSize: known(16), KVBlocks: known(4000)}, 16, 64_000, 0},
		"size of nothing":   {Sample{KVBlockSize: known(0), KVBlocks: known(4000)}, 1, 0, 0},
		"size beyond words": {Sample{KVBlockSize: known(1e300)}, mostBlock, 0, 0},
		"more than all":     {Sample{KVUsage: known(1.5)}, 0, 0, 1},
		"less than nothing": {Sample{KVUsage: known(-1)}, 0, 0, 0},
	} {
		if b := BriefOf(&c.sample); b.Block != c.block || b.Pool != c.pool || b.KVUsage != c.usage {
			t.Errorf("%s: block %d, pool %v, usage %v; want %d, %v, %v", name, b.Block, b.Pool, b.KVUsage, c.block, c.pool, c.usage)
		}
	}
}
