package check

import (
	"maps"
	"net"
	"slices"
	"strings"

	"github.com/eppctl/eppctl/internal/core/feed"
	"github.com/eppctl/eppctl/internal/core/pod"
	"github.com/eppctl/eppctl/internal/core/reason"
)

// topic: it names another pod of the fleet. An id that nobody has is no finding:
// orchestrators put names of their own there. Nor is it one that an endpoint is a
// pod's, when it was recorded as an endpoint.
func (v *judge) topic() {
	if !slices.ContainsFunc(v.w.Fleet, func(p pod.Spec) bool { return p.Name == v.s.Pod.Name }) {
		return
	}
	for _, topic := range slices.Sorted(maps.Keys(v.s.topics)) {
		id := podOf(topic)
		if id == "" || names(v.s.Pod, id) {
			continue
		}
		for _, other := range v.w.Fleet {
			if other.Name != v.s.Pod.Name && names(other, id) {
				f := v.add(feed.SeverityError, reason.TopicDiffers, "the topic %q is that of pod %s: the event ports are mixed up", topic, other.Name)
				f.Field, f.Value = "events", v.s.endpoint()
				return
			}
		}
	}
}

// podOf is the pod's id in a topic of the form kv@ID@MODEL; "" = it has none.
func podOf(topic string) string {
	parts := strings.SplitN(topic, "@", 3)
	if len(parts) < 3 {
		return ""
	}
	return parts[1]
}

// names reports whether a topic's id may mean this pod: by its name, its address
// or the host alone.
func names(s pod.Spec, id string) bool {
	host, _, err := net.SplitHostPort(s.Address)
	return id == s.Name || id == s.Address || err == nil && id == host
}
