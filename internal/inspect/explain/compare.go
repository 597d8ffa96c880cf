package explain

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"time"

	"github.com/eppctl/eppctl/internal/core/feed"
	"github.com/eppctl/eppctl/internal/core/parity"
	"github.com/eppctl/eppctl/internal/core/pick"
	"github.com/eppctl/eppctl/internal/core/pod"
	"github.com/eppctl/eppctl/internal/core/prompt"
	"github.com/eppctl/eppctl/internal/core/tokenizer"
	"github.com/eppctl/eppctl/internal/inspect"
)

// Comparison is what an engine makes of the prompt, or of each of several, beside serve's
// token ids.
type Comparison struct {
	Engine     string    `json:"engine"` // URL
	By         string    `json:"by"`     // the engine's interface: render, tokenize
	Tokens     int       `json:"tokens"` // that the engine makes
	Compared   int       `json:"compared"`
	Equal      bool      `json:"equal"`
	Difference *differed `json:"difference"` // null = equal
}

// differed is where the two part, with a little of what stands around.
type differed struct {
	Prompt int      `json:"prompt,omitempty"` // number of the first prompt that differs, from 1; absent of one
	At     int      `json:"at"`               // first position that differs
	Block  *int     `json:"block"`            // it is in, from 0; null = no block size is known
	From   int      `json:"from"`             // position of the first id below
	Ours   []uint32 `json:"ours"`
	Theirs []uint32 `json:"theirs"`
	// The same as text, where the engine can tell; null = it cannot.
	OursText   *string `json:"ours_text"`
	TheirsText *string `json:"theirs_text"`
}

func (d *differed) String() string {
	where := fmt.Sprintf("from id %d on", d.At)
	if d.Prompt > 0 {
		where = fmt.Sprintf("in prompt %d ", d.Prompt) + where
	}
	if d.Block != nil {
		where += fmt.Sprintf(" (block %d)", *d.Block)
	}
	return where
}

// enginePatience is how long one question to an engine may take while a person looks
// on: the same as of a question to serve.
const enginePatience = 5 * time.Second

// compare asks an engine what it makes of the request. The prompt goes there, as the
// user wants. patience is for one question.
func compare(ctx context.Context, patience time.Duration, engine string, r *inspect.Request, x *pick.Explanation) (*Comparison, error) {
	u, err := url.Parse(engine)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, usage(fmt.Sprintf("--compare-engine: found %q; expected the URL of an engine", engine), "try: --compare-engine http://10.0.0.7:8000")
	}
	if x.Prompt == nil {
		return nil, &inspect.Error{
			Kind: inspect.Unreachable, Code: "E_TOKENIZE", What: "serve has no token ids of this prompt to compare",
			Why: deref(x.Unmatched), Hint: "eppctl explain without --compare-engine says who could not tell them",
		}
	}
	base := x.Model
	if x.Base != nil {
		base = *x.Base
	}
	req, bad := prompt.Parse(r.Path, r.Header.Get("Content-Type"), r.Body, prompt.Limits{DefaultModel: base})
	if bad != nil || req.Shape == 0 || len(req.TokenIDs) > 0 {
		return nil, usage("--compare-engine: the request has no text to tokenize", "try: --prompt TEXT, or -f with a chat")
	}
	res, by, err := engineIDs(ctx, patience, engine, tokenizer.Text{Model: base, Shape: req.Shape, Body: r.Body, Media: req.Media > 0})
	if err != nil {
		return nil, noIDs(ctx, patience, engine, base, err)
	}
	c := &Comparison{Engine: engine, By: by, Equal: true}
	if c.add(x.Prompt, &res); !c.Equal {
		d := c.Difference
		d.OursText, d.TheirsText = detokenize(ctx, patience, engine, base, d.Ours), detokenize(ctx, patience, engine, base, d.Theirs)
	}
	return c, nil
}

// add compares prompt by prompt, up to the first that differs.
func (c *Comparison) add(x *pick.ExplainedPrompt, res *tokenizer.Result) {
	ours, theirs := slices.Insert(slices.Clone(x.Further), 0, x.IDs), slices.Insert(slices.Clone(res.Further), 0, res.IDs)
	for _, ids := range theirs {
		c.Tokens += len(ids)
	}
	for i := range max(len(ours), len(theirs)) {
		a, b := promptAt(ours, i), promptAt(theirs, i)
		if x.Cut != nil { // behind it the ids determine nothing
			a, b = a[:min(*x.Cut, len(a))], b[:min(*x.Cut, len(b))]
		}
		c.Compared += len(a)
		d := parity.Compare("", a, b)
		if d == nil {
			continue
		}
		c.Equal = false
		c.Difference = &differed{At: d.At, From: d.From, Ours: d.Ours, Theirs: d.Theirs}
		if len(ours) > 1 {
			c.Difference.Prompt = i + 1
		}
		if size := x.BlockSize; size != nil && *size > 0 {
			block := d.At / *size
			c.Difference.Block = &block
		}
		return
	}
}

// promptAt is the i-th of prompts, nil where they are fewer.
func promptAt(prompts [][]uint32, i int) []uint32 {
	if i >= len(prompts) {
		return nil
	}
	return prompts[i]
}

// engineIDs asks the interface that knows the whole request first.
func engineIDs(ctx context.Context, patience time.Duration, engine string, t tokenizer.Text) (res tokenizer.Result, by string, err error) {
	one := func(string) []feed.TokenizerEndpoint {
		return []feed.TokenizerEndpoint{{URL: engine, Engine: pod.EngineUnknown}}
	}
	// What the first has no form for, the second may.
	for _, client := range []*feed.RemoteTokenizer{feed.NewRenderClient(nil, one), feed.NewTokenizeClient(nil, one)} {
		res, err = within(ctx, patience, client, t)
		client.Close()
		if err == nil || !errors.Is(err, feed.ErrNotOffered) && !errors.Is(err, tokenizer.ErrShape) {
			return res, client.Name(), err
		}
	}
	return tokenizer.Result{}, "", err
}

func within(ctx context.Context, patience time.Duration, client *feed.RemoteTokenizer, t tokenizer.Text) (tokenizer.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return client.Tokenize(ctx, t)
}

// with adds a field to serve's answer, which stays as it is otherwise.
func with(answer []byte, key string, value any) []byte {
	more, err := json.Marshal(value)
	end := bytes.LastIndexByte(answer, '}')
	if err != nil || end < 0 {
		return answer
	}
	return append(fmt.Appendf(bytes.Clone(answer[:end]), `,%q:%s`, key, more), answer[end:]...)
}
