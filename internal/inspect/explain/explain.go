package explain

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/eppctl/eppctl/internal/core/pick"
	"github.com/eppctl/eppctl/internal/inspect"
	"github.com/eppctl/eppctl/internal/inspect/out"
)

// Formats are the values of -o.
func Formats() []string { return []string{"table", "wide", "json", "yaml"} }

// Asker is the admin API as far as explain needs it.
type Asker interface {
	Explain(ctx context.Context, r inspect.Request) ([]byte, error)
	Recent(ctx context.Context, requestID string) ([]byte, error)
}

// Command is one run of explain.
type Command struct {
	Input
	RequestID string // explain a pick that was made; excludes an Input
	Format    string
	All       bool
}

// Run asks the server and prints its answer. It ends with a Negative error when
// no pod is eligible; the explanation is printed all the same.
func (c *Command) Run(ctx context.Context, server Asker, s *out.Streams) error {
	answer, err := c.ask(ctx, server, s.In)
	if err != nil {
		return err
	}
	var x pick.Explanation
	if err := json.Unmarshal(answer, &x); err != nil || x.Kind != "Explanation" {
		return &inspect.Error{
			Kind: inspect.Failed, Code: "E_ANSWER", What: "the answer is no Explanation", Err: err,
			Hint: "does eppctl serve listen there? try: --addr HOST:PORT",
		}
	}
	if err := c.print(s, answer, &x); err != nil {
		return err
	}
	if x.Pick.Pod == nil {
		return &inspect.Error{
			Kind: inspect.Negative, Code: "E_NO_ELIGIBLE_POD",
			What: fmt.Sprintf("no pod is eligible: %s", deref(x.Pick.Why)),
		}
	}
	return nil
}

func (c *Command) ask(ctx context.Context, server Asker, stdin io.Reader) ([]byte, error) {
	if c.RequestID != "" {
		if c.Prompt != "" || c.Tokens != "" || c.File != "" {
			return nil, usage("found --request-id and a request; expected one of them: the id explains a pick that was made", "")
		}
		return server.Recent(ctx, c.RequestID)
	}
	r, err := c.Request(stdin)
	if err != nil {
		return nil, err
	}
	return server.Explain(ctx, r)
}

// print writes the answer; JSON is the server's, byte for byte.
func (c *Command) print(s *out.Streams, answer []byte, x *pick.Explanation) error {
	switch c.Format {
	case "json":
		_, err := s.Out.Write(answer)
		return err
	case "yaml":
		text, err := yaml.JSONToYAML(answer)
		if err != nil {
			return err
		}
		_, err = s.Out.Write(text)
		return err
	}
	return Render(s.Out, s, x, Options{All: c.All, Wide: c.Format == "wide", Now: time.Now()})
}
