package telemetry

// Brief is what every decision reads of a Sample, in one cache line: a Sample is
// ten of them, which for a thousand pods is more than a processor has at hand.
type Brief struct {
	At        int64 // of the sample
	WaitingAt int64 // of the page that Waiting is from
	// The numbers of the Sample; what Has does not name is unknown.
	Waiting, Running, KVUsage, KVBlockSize, KVBlocks float64
	Has                                              Has
}

// Has says what a Brief knows.
type Has uint16

// What it may know.
const (
	HasWaiting Has = 1 << iota
	HasRunning
	HasKVUsage
	HasKVBlockSize
	HasKVBlocks
	HasKVEstimate // KVUsage is an estimate
	HasAsleep
	HasCacheOff
	HasDevice // an exporter tells something of the pod's devices
)

// BriefOf takes from a sample what decisions read.
func BriefOf(s *Sample) Brief {
	b := Brief{
		At: s.At, WaitingAt: s.Waiting.At,
		Waiting: s.Waiting.V, Running: s.Running.V, KVUsage: s.KVUsage.V, KVBlockSize: s.KVBlockSize.V, KVBlocks: s.KVBlocks.V,
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
		{s.KVBlockSize.Known, HasKVBlockSize},
		{s.KVBlocks.Known, HasKVBlocks},
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
