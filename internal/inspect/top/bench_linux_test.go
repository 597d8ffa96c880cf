package top

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/eppctl/eppctl/internal/core/view"
)

// manyPods are frames of a fleet of 256 pods as serve would write them, with 64 picks,
// a second of traffic apart.
func manyPods(b testing.TB, frames int) (list [][]byte) {
	r := newRig(b, 120, 40)
	s := &r.fleet
	few := s.Pods
	s.Pods = nil
	for i := range 256 {
		p := few[i%len(few)]
		p.Name = fmt.Sprintf("vllm-%03d", i)
		p.Ranks = slices.Clone(p.Ranks)
		s.Pods = append(s.Pods, p)
	}
	s.Totals.Pods, s.Total = len(s.Pods), len(s.Pods)
	for len(s.Picks) < picksShown {
		s.Picks = append(s.Picks, s.Picks...)
	}
	s.Picks = s.Picks[:picksShown]
	for range frames {
		s.At = r.time.Format(time.RFC3339Nano)
		raw, err := json.Marshal(s)
		if err != nil {
			b.Fatal(err)
		}
		list = append(list, raw)
		r.traffic()
		for i := range s.Pods { // every row has another number
			waiting := float64((i + len(list)) % 97)
			s.Pods[i].Telemetry.Waiting = &waiting
		}
		r.time = r.time.Add(time.Second)
	}
	return list
}

// BenchmarkFrame is the work of one frame of 256 pods, to be done once a second,
// and of one drawing; beside them what their reading alone is.
func BenchmarkFrame(b *testing.B) {
	frames := manyPods(b, 16)
	raw := frames[0]
	share := func(b *testing.B, hz float64) {
		b.ReportMetric(100*hz*b.Elapsed().Seconds()/float64(b.N), "%core")
	}
	b.Run("json", func(b *testing.B) {
		b.SetBytes(int64(len(raw)))
		for b.Loop() {
			var s view.Snapshot
			if err := json.Unmarshal(raw, &s); err != nil {
				b.Fatal(err)
			}
		}
		share(b, 1)
	})
	r := newRig(b, 120, 40)
	b.Run("frame", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			r.time = r.time.Add(time.Second)
			r.send(frameMsg{raw: frames[i%len(frames)], got: r.time})
		}
		share(b, 1)
	})
	b.Run("draw", func(b *testing.B) {
		for b.Loop() {
			r.m.drawn = ""
			r.m.View()
		}
		share(b, 1)
	})
}

// BenchmarkProgram runs the program on a terminal against 256 pods: how long until
// the first frame is on the screen, and what it takes of a core from then on.
func BenchmarkProgram(b *testing.B) {
	bin := b.TempDir() + "/eppctl"
	if out, err := exec.Command("go", "build", "-o", bin, "../../../cmd/eppctl").CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	frames := manyPods(b, 64)
	var next atomic.Int64
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	api := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(frames[next.Add(1)%int64(len(frames))])
	})}
	go func() { _ = api.Serve(l) }()
	defer api.Close()
	open := func(b *testing.B, args ...string) (*exec.Cmd, *os.File) {
		master, tty := pty(b)
		defer tty.Close()
		cmd := exec.Command(bin, args...)
		cmd.Stdin, cmd.Stdout, cmd.Stderr = tty, tty, tty
		cmd.Env = []string{"TERM=xterm-256color", "LANG=C.UTF-8"}
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
		if err := cmd.Start(); err != nil {
			b.Fatal(err)
		}
		return cmd, master
	}
	until := func(b *testing.B, master *os.File, text string) {
		var all strings.Builder
		for buf := make([]byte, 1<<16); !strings.Contains(all.String(), text); {
			n, err := master.Read(buf)
			if err != nil {
				b.Fatalf("%v behind %q", err, all.String())
			}
			all.Write(buf[:n])
		}
	}
	end := func(b *testing.B, cmd *exec.Cmd, master *os.File) {
		_, _ = master.WriteString("q")
		go func() { _, _ = io.Copy(io.Discard, master) }()
		if err := cmd.Wait(); err != nil {
			b.Fatal(err)
		}
		master.Close()
	}
	b.Run("version", func(b *testing.B) { // the floor: the program without a screen
		var used time.Duration
		for b.Loop() {
			cmd, master := open(b, "version")
			until(b, master, "eppctl")
			_ = cmd.Wait()
			used += cpu(cmd)
			master.Close()
		}
		opened(b, used)
	})
	b.Run("open", func(b *testing.B) {
		var used time.Duration
		for b.Loop() {
			cmd, master := open(b, "top", "--addr", l.Addr().String())
			until(b, master, "vllm-0")
			b.StopTimer()
			end(b, cmd, master)
			used += cpu(cmd)
			b.StartTimer()
		}
		opened(b, used)
	})
	b.Run("run", func(b *testing.B) {
		const span = 10 * time.Second
		used, sum := time.Duration(0), time.Duration(0)
		for b.Loop() {
			for _, d := range []time.Duration{0, span} { // what opening takes is taken off
				cmd, master := open(b, "top", "--addr", l.Addr().String())
				until(b, master, "vllm-0")
				go func() { time.Sleep(d); _, _ = master.WriteString("q") }()
				_, _ = io.Copy(io.Discard, master)
				_ = cmd.Wait()
				master.Close()
				if d == 0 {
					used -= cpu(cmd)
				} else {
					used += cpu(cmd)
				}
			}
			sum += span
		}
		b.ReportMetric(100*used.Seconds()/sum.Seconds(), "%core@256pods")
	})
}

func cpu(cmd *exec.Cmd) time.Duration {
	return cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
}

// opened tells the time by the clock, which others on the machine make longer, and
// by the processor, which they hardly do.
func opened(b *testing.B, used time.Duration) {
	b.ReportMetric(1000*b.Elapsed().Seconds()/float64(b.N), "ms/open")
	b.ReportMetric(1000*used.Seconds()/float64(b.N), "cpu-ms/open")
}

// pty is a terminal that answers nothing.
func pty(b testing.TB) (master, tty *os.File) {
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		b.Fatal(err)
	}
	fd := int(master.Fd())
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		err = unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Col: 120, Row: 40})
	}
	if err == nil {
		tty, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	}
	if err != nil {
		b.Fatal(err)
	}
	return master, tty
}
