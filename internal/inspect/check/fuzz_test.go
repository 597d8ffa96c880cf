package check

import (
	"bytes"
	"testing"

	"github.com/eppctl/eppctl/internal/core/pod"
	"github.com/eppctl/eppctl/internal/core/recording"
	"github.com/eppctl/eppctl/internal/testdata"
)

// FuzzStream: whatever a publisher sends, there is a verdict, and little is kept.
// The parts of a message are cut at a byte that the message chooses itself.
func FuzzStream(f *testing.F) {
	for _, c := range testdata.Captures(f) {
		for _, m := range c.Messages[:min(len(c.Messages), 20)] {
			f.Add([]byte("kv@a@m"), m.Payload, byte(0))
		}
	}
	f.Add([]byte("kv@\x1b[2J@m"), []byte("{}"), byte(3))
	f.Fuzz(func(t *testing.T, topic, payload []byte, cut byte) {
		s := newStream(pod.Spec{Name: "a", Address: "10.0.0.1:8000", BlockSize: 16}, 0)
		parts := message(string(topic), uint64(cut), payload)
		for i := range 40 {
			parts[1][7] = byte(i) * cut
			s.Record(&recording.Record{Type: recording.TypeFrame, Parts: parts, At: int64(i)})
			s.Record(&recording.Record{Type: recording.TypeReplay, Parts: parts[int(cut)%3:], At: int64(i)})
		}
		for _, fd := range s.Findings(witness{Computed: 1, Fleet: []pod.Spec{s.Pod, {Name: "b"}}}) {
			if bytes.ContainsAny([]byte(fd.Hint), "\x1b\r\n") {
				t.Errorf("a finding with control characters: %q", fd.Hint)
			}
		}
		if s.Fact(witness{}).Pod != "a" || len(s.topics) > maxKeys || len(s.content.layouts) > maxKeys || len(s.content.sizes) > maxKeys {
			t.Errorf("%d topics, %d layouts, %d sizes kept", len(s.topics), len(s.content.layouts), len(s.content.sizes))
		}
	})
}
