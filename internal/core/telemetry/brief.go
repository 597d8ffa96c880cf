package telemetry

// Brief is what every decision reads of a Sample, in one cache line: a Sample is
// ten of them, which for a thousand pods is more than a processor has at hand.
type Brief struct {
	At        int64 // of the sample
	WaitingAt int64 // of the page that Waiting is from
	// The numbers of the Sample; what Has does not name is unknown.
	Waiting, Running float64
	KVUsage          float64 // a share, whatever the page says
	Pool             float64 // tokens of one rank's KV pool, 0 = not told
	Block            int32   // tokens, 0 = not told
	Has              Has
}

// Has says what a Brief knows.
type Has uint16

// What it may know.
const (
	HasWaiting Has = 1 << iota
	HasRunning
	HasKVUsage
	HasKVEstimate // KVUsage is an estimate
	HasAsleep
	HasCacheOff
	HasDevice // an exporter tells something of the pod's devices
)

// mostBlock bounds a block size from outside to what an int32 takes; engines have
// some hundred tokens at most.
const mostBlock = 1 << 20

// BriefOf takes from a sample what decisions read.
func BriefOf(s *Sample) Brief {
	b := Brief{
		At: s.At, WaitingAt: s.Waiting.At,
		Waiting: s.Waiting.V, Running: s.Running.V, KVUsage: min(max(s.KVUsage.V, 0), 1),
	}
	if size := s.KVBlockSize; size.Known {
		b.Block = int32(min(max(size.V, 1), mostBlock))
		if s.KVBlocks.Known {
			b.Pool = size.V * s.KVBlocks.V
		}
	}
	if b.WaitingAt == 0 {
		b.WaitingAt = s.At
	}
	d := &s.Device
	for _, x := range [...]struct {
		is  bool
		has Has
	}{
		{s.Waiting.Known, HasWaiting},
		{s.Running.Known, HasRunning},
		{s.KVUsage.Known, HasKVUsage},
		{s.KVEstimate, HasKVEstimate},
		{s.Asleep, HasAsleep},
		{s.CacheOff, HasCacheOff},
		{d.Known || d.Utilisation.Known || d.Envelope.Known, HasDevice},
	} {
		if x.is {
			b.Has |= x.has
		}
	}
	return b
}

// Told reports whether the brief knows all of these.
func (b *Brief) Told(has Has) bool { return b.Has&has == has }
