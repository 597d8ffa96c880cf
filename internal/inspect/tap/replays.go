package tap

import "github.com/eppctl/eppctl/internal/core/recording"

// replays follows which streams have come to the end of their replay, for -e.
type replays struct {
	streams map[*recording.Pod]bool // over
}

// over takes a record and reports whether the replays of all streams have ended,
// of which there are to be at least so many. A stream without a connection has
// none to wait for.
func (s *replays) over(r *recording.Record, wanted int) bool {
	if r.Pod == nil {
		return false
	}
	if s.streams == nil {
		s.streams = map[*recording.Pod]bool{}
	}
	switch {
	case r.Type == recording.TypePod && r.Pod.Direction == recording.Dial:
		if _, ok := s.streams[r.Pod]; !ok {
			s.streams[r.Pod] = false
		}
		return false
	case r.Type == recording.TypeNotice && (r.Notice.Kind == recording.Replay || r.Notice.Kind == recording.Down):
		s.streams[r.Pod] = true
	default:
		return false
	}
	for _, over := range s.streams {
		if !over {
			return false
		}
	}
	return len(s.streams) >= wanted
}
