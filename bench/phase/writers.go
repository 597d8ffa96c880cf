package phase

import (
	"sync"
	"time"

	"github.com/eppctl/eppctl/bench/workload"
)

// Writers stores the whole workload by several goroutines at once, each the one
// writer of its ranks: handles[i] belongs to the i-th. It returns the blocks stored
// and the time on the wall, which is what waiting costs.
func Writers(handles []Index, w *workload.Workload, per int) (blocks int, wall time.Duration) {
	work := make([][]workload.Stretch, len(handles))
	w.Stores(false, per, func(s *workload.Stretch) {
		i := s.Rank % len(handles)
		work[i] = append(work[i], *s)
		blocks += s.To - s.From
	})
	var all sync.WaitGroup
	start := time.Now()
	for i, ix := range handles {
		all.Go(func() {
			for k := range work[i] {
				tell(ix, &work[i][k])
			}
		})
	}
	all.Wait()
	return blocks, time.Since(start)
}
