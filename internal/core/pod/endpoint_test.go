package pod

import "testing"

func TestSplitEndpoint(t *testing.T) {
	for text, want := range map[string]struct {
		host string
		port int
	}{
		"tcp://10.0.0.7:5557": {"10.0.0.7", 5557}, "10.0.0.7:5557": {"10.0.0.7", 5557}, "tcp://*:5557": {"*", 5557}, "*:5557": {"*", 5557},
		":5557": {"", 5557}, "tcp://:5557": {"", 5557}, "5557": {"", 5557}, "pod-0.svc:5557": {"pod-0.svc", 5557},
		"tcp://[fd00::1]:5557": {"fd00::1", 5557}, "tcp://:::5557": {"::", 5557}, "[::]:1": {"::", 1},
	} {
		if host, port, err := SplitEndpoint(text); err != nil || host != want.host || port != want.port {
			t.Errorf("%s: %q %d %v", text, host, port, err)
		}
	}
	for _, text := range []string{
		"", "host", "tcp://5557", "ipc:///tmp/x", "http://h:1", "h:0", "h:65536", "h:99999", "h:", "h:x", "[fd00::1:5557", "[h]:1", "a:b:1", "a b:1", "a/b:1", "[1.2.3.4]:1",
	} {
		if host, port, err := SplitEndpoint(text); err == nil {
			t.Errorf("%q is accepted: %q %d", text, host, port)
		}
	}
}
