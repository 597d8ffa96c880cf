package tap

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// took is how long the stream lasted: by its own clock when it is a recording.
func (r *run) took() time.Duration {
	if f, past := r.Source.(*File); past {
		from := max(r.recorded.from, uint64(f.from.Load())) // connections older than --from are shown too
		return time.Duration(max(r.recorded.to, from) - from)
	}
	return time.Since(r.begun)
}

// complete brings the account up to date.
func (r *run) complete() {
	if f, ok := r.Source.(*File); ok {
		r.account.UnknownRecords = f.Unknown()
	}
	r.account.close(r.took(), &r.thin, r.Wanted)
	r.account.Written = r.recorder.written()
}

// report prints the account as it is now.
func (r *run) report() {
	r.complete()
	if r.Format == "jsonl" || r.Format == "json" {
		if b, err := json.Marshal(r.account); err == nil {
			fmt.Fprintf(r.s.Err, "%s\n", b)
		}
		return
	}
	r.account.write(r.s.Err)
}

// end writes what comes last: tallies, the rest of the output, the account, and
// the end of the recording. The cause is an error that ended the run.
func (r *run) end(cause error) error {
	var err error
	if r.stats != nil {
		err = r.tallies()
	}
	if r.visible() {
		r.print.close()
	}
	if e := r.out.close(); e != nil && !errors.Is(e, context.DeadlineExceeded) {
		err = errors.Join(err, e)
	}
	r.complete()
	err = errors.Join(err, r.recorder.end(r.account))
	r.account.Written = r.recorder.written()
	if cause == nil || r.taken {
		r.report() // else there is nothing to account for
	}
	return err
}

func (r *run) tallies() error {
	r.stats.close(r.took())
	switch r.Format {
	case "table", "wide", "":
		return r.stats.write(r.out, r.s)
	}
	form := "jsonl" // one object, which is a document of JSON too
	if r.Format == "yaml" {
		form = "yaml"
	}
	(&objects{w: r.out, form: form}).put(r.stats)
	return nil
}
