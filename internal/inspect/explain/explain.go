package explain

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"time"

	"github.com/eppctl/eppctl/internal/core/pick"
	"github.com/eppctl/eppctl/internal/core/reason"
	"github.com/eppctl/eppctl/internal/inspect"
	"github.com/eppctl/eppctl/internal/inspect/out"
)

// Formats are the values of -o.
func Formats() []string { return []string{"table", "wide", "json", "yaml"} }

// Asker is the admin API as far as explain needs it.
type Asker interface {
	Explain(ctx context.Context, r inspect.Request) ([]byte, error)
	RecentIf(ctx context.Context, requestID string, s inspect.Suppose) ([]byte, error)
}

// Command is one run of explain.
type Command struct {
	Input
	RequestID string // explain a pick that was made; excludes an Input
	Format    string
	All       bool
	// Suppose is what the decision is to be shown with, beside as it is.
	Suppose inspect.Suppose
	// Typed are flags that a suggested command needs as well: --addr, --read. Config is
	// the one that commands need which read a configuration, "" = they find it.
	// ConfigOf asks who answered for it instead; nil = Config stands.
	Typed    []string
	Config   string
	ConfigOf func(context.Context) string
	// ShowTokens prints the prompt's token ids. Engine is the URL of an engine whose
	// ids are compared with them; "" = none.
	ShowTokens bool
	Engine     string
	Patience   time.Duration // of one question to it, 0 = enginePatience
	Save       string        // FILE that the answer is written to as JSON, "" = none
	// Past: who is asked plays a recording. A prompt without token ids is then an
	// error: an answer by load alone is not what was asked for.
	Past bool
}

// Run asks the server and prints its answer. It ends with a Negative error when
// no pod is eligible; the explanation is printed all the same.
func (c *Command) Run(ctx context.Context, server Asker, s *out.Streams) error {
	r, answer, x, err := c.answer(ctx, server, s.In)
	if err != nil {
		return err
	}
	if !c.Suppose.Empty() && x.WhatIf == nil {
		return &inspect.Error{
			Kind: inspect.Failed, Code: "E_ANSWER", What: "the answer supposes nothing of what was asked",
			Hint: "eppctl serve there is older than this eppctl: update it",
		}
	}
	try := c.tries(ctx, x)
	answer = with(answer, "try", try)
	var against *Comparison
	if c.Engine != "" {
		if against, err = compare(ctx, cmp.Or(c.Patience, enginePatience), c.Engine, &r, x); err != nil {
			return err
		}
		answer = with(answer, "comparison", against)
	}
	if c.Save != "" {
		if err := save(c.Save, answer); err != nil {
			return err
		}
	}
	if err := c.print(s, answer, x, Options{Tokens: c.ShowTokens, Against: against, Try: try}); err != nil {
		return err
	}
	if against != nil && against.Difference != nil {
		return &inspect.Error{
			Kind: inspect.Negative, Code: "E_TOKENS_DIFFER",
			What: fmt.Sprintf("serve and %s make different token ids of the prompt: %s", c.Engine, against.Difference),
			Hint: "docs/tokens.md says what that can mean",
		}
	}
	return noPod(x)
}

// noPod is an error when nobody was picked, or would be by what is supposed.
func noPod(x *pick.Explanation) error {
	if w := x.WhatIf; x.Pick.Pod != nil && w != nil && w.Pick.Pod == nil {
		return &inspect.Error{
			Kind: inspect.Negative, Code: "E_NO_ELIGIBLE_POD",
			What: fmt.Sprintf("no pod would be eligible: %s", cmp.Or(deref(w.Pick.Why), w.Pick.Outcome)),
		}
	}
	if x.Pick.Pod != nil {
		return nil
	}
	return &inspect.Error{
		Kind: inspect.Negative, Code: "E_NO_ELIGIBLE_POD",
		What: fmt.Sprintf("no pod is eligible: %s", cmp.Or(commonest(x), deref(x.Pick.Why))),
	}
}

// answer asks, and reads what comes back.
func (c *Command) answer(ctx context.Context, server Asker, stdin io.Reader) (r inspect.Request, answer []byte, x *pick.Explanation, err error) {
	if r, answer, err = c.ask(ctx, server, stdin); err != nil {
		return r, nil, nil, err
	}
	if x, err = parse(answer); err == nil && c.Past {
		err = untokenized(x)
	}
	return r, answer, x, err
}

// untokenized is an error when nobody told the prompt's token ids.
func untokenized(x *pick.Explanation) error {
	switch why := reason.Code(deref(x.Unmatched)); why {
	case reason.NoTokenizer, reason.TokenizeFailed, reason.TokenizeSlow, reason.Deadline:
		return &inspect.Error{
			Kind: inspect.Unreachable, Code: "E_TOKENIZE", What: fmt.Sprintf("the prompt cannot be turned into token ids: %s", why),
			Why:  "that takes the model's files or an engine, which a recording does not hold",
			Hint: "try: --token-ids 1,2,3, or --config FILE with models[].tokenizer.source, or with pods that answer now",
		}
	}
	return nil
}

func (c *Command) ask(ctx context.Context, server Asker, stdin io.Reader) (r inspect.Request, answer []byte, err error) {
	if c.RequestID != "" {
		if c.ShowTokens || c.Engine != "" {
			return r, nil, usage("found --request-id and --show-tokens or --compare-engine; expected one of them: no prompt of a past pick is kept", "try: -f with the request itself")
		}
		if c.Prompt != "" || c.Tokens != "" || c.File != "" {
			return r, nil, usage("found --request-id and a request; expected one of them: the id explains a pick that was made", "")
		}
		answer, err = server.RecentIf(ctx, c.RequestID, c.Suppose)
		return r, answer, err
	}
	if r, err = c.Request(stdin); err != nil {
		return r, nil, err
	}
	r.Tokens, r.Suppose = c.ShowTokens || c.Engine != "", c.Suppose
	answer, err = server.Explain(ctx, r)
	return r, answer, err
}

// print writes the answer; JSON is the server's, byte for byte but for what was added
// here and what a terminal would obey.
func (c *Command) print(s *out.Streams, answer []byte, x *pick.Explanation, o Options) error {
	switch c.Format {
	case "json":
		_, err := s.Out.Write(out.JSON(answer))
		return err
	case "yaml":
		text, err := out.YAML(answer)
		if err != nil {
			return err
		}
		_, err = s.Out.Write(text)
		return err
	}
	o.All, o.Wide, o.Now = c.All, c.Format == "wide", time.Now()
	return Render(s.Out, s, x, o)
}
