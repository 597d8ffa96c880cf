package main

import (
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// libzmq is the real library, spoken to through libzmq/peer.c.
type libzmq struct{ program, library string }

//go:embed libzmq/peer.c
var peerSource []byte

// findLibrary is what python3 loads for pyzmq.
const findLibrary = `
import zmq
print(zmq.zmq_version(), next(l.split()[-1] for l in open("/proc/self/maps") if "libzmq" in l))`

// buildLibzmq compiles the peer into dir and says which libzmq it uses.
func buildLibzmq(dir string) (z libzmq, version string, err error) {
	out, err := exec.Command("python3", "-c", findLibrary).CombinedOutput()
	if err != nil {
		return z, "", fmt.Errorf("no libzmq: this needs python3 with pyzmq (`make bench-feed` brings it), on Linux: %w\n%s", err, out)
	}
	version, library, _ := strings.Cut(strings.TrimSpace(string(out)), " ")
	z = libzmq{program: filepath.Join(dir, "peer"), library: library}
	source := z.program + ".c"
	if err := os.WriteFile(source, peerSource, 0o600); err != nil {
		return z, "", err
	}
	out, err = exec.Command("cc", "-O2", "-o", z.program, source, "-ldl").CombinedOutput()
	if err != nil {
		return z, "", fmt.Errorf("cannot compile the libzmq peer: this needs a C compiler: %w\n%s", err, out)
	}
	return z, version, nil
}

// publisher is a process with a number of PUB sockets.
type publisher struct {
	*process
	endpoints []string
}

// publish starts a publisher. A lossless one waits for slow subscribers, another
// loses messages as an engine's does.
func (z libzmq) publish(batches string, sockets int, lossless bool) (publisher, error) {
	slow := "drop"
	if lossless {
		slow = "block"
	}
	p, err := start(z.program, z.library, "pub", batches, fmt.Sprint(sockets), slow)
	if err != nil {
		return publisher{}, err
	}
	line, err := p.line()
	return publisher{p, strings.Fields(line)}, err
}

// subscribe starts a subscriber.
func (z libzmq) subscribe(warm, count int, endpoints []string) (*process, error) {
	return start(z.program, append([]string{z.library, "sub", fmt.Sprint(warm), fmt.Sprint(count)}, endpoints...)...)
}
