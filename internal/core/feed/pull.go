package feed

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/eppctl/eppctl/internal/core/event"
	"github.com/eppctl/eppctl/internal/core/pod"
	"github.com/eppctl/eppctl/internal/core/reason"
)

const (
	// pullTimeout bounds one read. trtllm-serve holds an answer back for seconds
	// while there is no event, and an answer cut short is lost: be patient.
	pullTimeout = 15 * time.Second
	// pullBytes caps an answer. JSON takes some 70 bytes per token, so a prompt of
	// 100,000 tokens takes 7 MB.
	pullBytes = 64 << 20
	// pullPatience is the number of reads in a row that an engine may leave
	// unanswered, being busy, before it counts as gone.
	pullPatience = 3
	// pullRetry is the longest wait after failures. An engine's buffer of events is
	// small (event_buffer_max_size), so it is not left alone for long.
	pullRetry = 2 * time.Second
)

// puller fetches the events of one engine that does not publish them
// (TensorRT-LLM's POST /kv_cache_events) and queues them for the ranks they
// belong to. Reading takes the events away from the engine: whoever else reads
// finds a part of them, and both see gaps. run is its only goroutine, and the
// only one that puts into the ranks' queues.
type puller struct {
	url    string
	client *http.Client
	every  time.Duration
	ranks  []*subscriber // started without a reader
	log    *slog.Logger

	wait   backoff
	read   bool // a read has succeeded
	up     bool // the ranks were told that the engine answers
	failed int  // reads in a row
	warned bool // of a rank that is not configured
}

func pullURL(s *pod.Spec) string { return "http://" + s.Address + "/kv_cache_events" }

// pull starts the subscribers of a pod whose events are pulled, and what feeds
// them.
func (w *work) pull(s pod.Spec) {
	k, f := w.keeper, w.keeper.feed
	w.subs = make([]*subscriber, len(k.pod.Members))
	for rank := range k.pod.Members {
		sub := w.subscriber(s, rank, nil)
		sub.pulled(k.created)
		w.subs[rank] = sub
		w.wg.Go(func() {
			defer sub.observer.close("no longer followed")
			sub.applyAll(w.ctx)
		})
	}
	k.mu.Lock()
	k.subs = w.subs
	k.mu.Unlock()
	p := &puller{url: pullURL(&s), client: f.opts.HTTP, every: s.Pull, ranks: w.subs, log: k.log}
	w.wg.Go(func() { p.run(w.ctx) })
}

// pulled makes a subscriber one of events that are pulled.
func (s *subscriber) pulled(created func(blocks int)) {
	d := &event.PullDecoder{}
	s.decoder, s.forget, s.created = d, d.Forget, created
}

// run reads until ctx ends.
func (p *puller) run(ctx context.Context) {
	p.wait.max = max(pullRetry, p.every)
	for {
		pause := p.every
		err := p.poll(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			p.fail(ctx, err)
			pause = max(pause, p.wait.next())
		default:
			p.failed = 0
			p.wait.reset()
		}
		if sleep(ctx, pause) != nil {
			return
		}
	}
}

// errCut marks an answer whose events are partly lost: they are gone from the
// engine.
var errCut = errors.New("answer cut short")

// poll makes one read.
func (p *puller) poll(ctx context.Context) error {
	try, cancel := context.WithTimeout(ctx, pullTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(try, http.MethodPost, p.url, nil)
	if err != nil {
		return &linkError{FaultDial, err}
	}
	resp, err := send(p.client, req)
	if err != nil {
		return &linkError{pullFault(err), bare(err)}
	}
	defer resp.Body.Close()
	if err := checkStatus(resp); err != nil {
		return &linkError{FaultProtocol, err}
	}
	p.answered(ctx)
	return p.page(ctx, resp.Body)
}

// page takes an answer, up to its cap.
func (p *puller) page(ctx context.Context, answer io.Reader) error {
	body := &io.LimitedReader{R: answer, N: pullBytes + 1}
	err := event.ReadPage(body, func(e event.Pulled) { p.deliver(ctx, e) })
	switch {
	case err == nil:
		return nil
	case body.N <= 0:
		return &linkError{FaultOversize, fmt.Errorf("%w: more than %d bytes", errCut, pullBytes)}
	}
	return &linkError{cmp.Or(pageFault(err), FaultProtocol), fmt.Errorf("%w: %w", errCut, err)}
}

// pullFault names why there was no answer.
func pullFault(err error) Fault {
	var op *net.OpError
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return FaultTimeout
	case errors.As(err, &op) && op.Op == "dial":
		return FaultDial
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return FaultEOF
	}
	return FaultReset
}

// pageFault names why an answer ended early, "" when it was not the connection.
func pageFault(err error) Fault {
	var op *net.OpError
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return FaultTimeout
	case errors.Is(err, io.ErrUnexpectedEOF), errors.As(err, &op):
		return FaultTruncated
	}
	return ""
}

// answered tells the ranks that the engine is there.
func (p *puller) answered(ctx context.Context) {
	if !p.read {
		p.read = true
		p.log.Info("reading KV events takes them away from the engine: nothing else may read them", "url", p.url, "every", p.every)
	}
	if p.up {
		return
	}
	p.up = true
	for _, sub := range p.ranks {
		sub.count.add(func(c *Counters) { c.Connections++ })
		sub.queue.put(ctx, item{kind: itemUp, session: ctx, how: "HTTP"})
	}
}

// fail counts a failed read, and tells the ranks when it means that the engine is
// gone or that events are. An engine that is only slow to answer is neither.
func (p *puller) fail(ctx context.Context, err error) {
	p.failed++
	fault := faultOf(err)
	p.log.Debug("KV events not read", "err", err, "failed", p.failed)
	down := fault == FaultDial || errors.Is(err, errCut) || p.failed >= pullPatience
	p.up = p.up && !down
	apart := reason.Disconnected
	if fault == FaultDial {
		apart = reason.Unreachable
	}
	for _, sub := range p.ranks {
		sub.count.add(func(c *Counters) { inc(&c.Faults, string(fault)) })
		if down {
			sub.queue.put(ctx, item{kind: itemDown, apart: apart, at: Now(), why: printable(err.Error(), 200)})
		}
	}
}

// deliver queues an event for its rank.
func (p *puller) deliver(ctx context.Context, e event.Pulled) {
	rank := max(e.Rank, 0)
	if rank >= len(p.ranks) {
		// Each rank numbers its own events: they cannot pass for another's.
		p.ranks[0].count.add(func(c *Counters) { c.RankMismatch++ })
		if !p.warned {
			p.warned = true
			p.log.Warn("events of a rank that is not configured: set ranks", "rank", rank, "ranks", len(p.ranks))
		}
		return
	}
	sub := p.ranks[rank]
	sub.count.add(func(c *Counters) {
		c.Batches++
		c.Bytes += uint64(len(e.Body))
	})
	it := item{seq: e.ID, payload: bytes.Clone(e.Body), at: Now()}
	if sub.observer.watched() {
		// Who looks on is shown the event as a message whose topic names the source.
		it.frames = [][]byte{[]byte(event.LayoutPull), binary.BigEndian.AppendUint64(nil, e.ID), it.payload}
	}
	if !sub.queue.put(ctx, it) {
		sub.count.add(func(c *Counters) { c.QueueDrops++ })
	}
}
