package feed

import (
	"testing"

	"github.com/eppctl/eppctl/internal/sim/zmtp"
)

// TestTopicIsAHint: whose events they are is said by the socket alone. (What a
// topic says otherwise, eppctl tap --check tells.)
func TestTopicIsAHint(t *testing.T) {
	t.Run("KV-38", func(t *testing.T) {
		p := publisher(t, "127.0.0.1:0", zmtp.Options{})
		r := subscribe(t, to(p), "").start()
		subscribed(t, p)
		for i, topic := range []string{"kv@10.0.0.1@m", "kv@other:1@m", "", "x\x00sgl-kv-epoch=ab"} {
			p.Send(topic, uint64(i), stored(uint64(i+1)))
		}
		r.waitOps("+1 +2 +3 +4")
	})
}
