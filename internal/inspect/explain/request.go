// Package explain shows the scorecard of one request: what eppctl serve decided,
// or would decide, and from which numbers.
package explain

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"

	"github.com/eppctl/eppctl/internal/inspect"
)

// Input is a request as the command line describes it. At most one of Prompt,
// Tokens and File is set.
type Input struct {
	Prompt  string // text of a completion
	Tokens  string // comma-separated token ids of a completion
	File    string // an OpenAI body, "-" = stdin
	Model   string // replaces the body's model
	Path    string // of the request; "" = what the body looks like
	Headers []string
	Subset  string
}

// maxBody bounds what is read before the server's own limit applies.
const maxBody = 1 << 30

// Request makes the request that serve is asked about. A body from a file goes
// out byte for byte unless the model is replaced.
func (in Input) Request(stdin io.Reader) (inspect.Request, error) {
	r := inspect.Request{Path: in.Path, Header: http.Header{"Content-Type": {"application/json"}}}
	body, err := in.body(stdin)
	if err != nil {
		return r, err
	}
	r.Body = body
	if r.Path == "" {
		r.Path = pathOf(body)
	}
	for _, h := range in.Headers {
		k, v, ok := strings.Cut(h, "=")
		if !ok || k == "" {
			return r, usage(fmt.Sprintf("--header: found %q; expected KEY=VALUE", h), "try: --header x-tenant=a")
		}
		r.Header.Add(k, v)
	}
	if in.Subset != "" {
		r.SetSubset(in.Subset)
	}
	return r, nil
}

func (in Input) body(stdin io.Reader) ([]byte, error) {
	given := 0
	for _, s := range []string{in.Prompt, in.Tokens, in.File} {
		if s != "" {
			given++
		}
	}
	switch {
	case given == 0:
		return nil, usage("found no request to explain; expected one of --prompt, --token-ids, -f and --request-id", "try: --prompt TEXT, --token-ids 1,2,3, -f chat.json, or --request-id ID")
	case given > 1:
		return nil, usage("found two of --prompt, --token-ids and -f; expected one", "")
	case in.File != "":
		return in.file(stdin)
	}
	c := completion{Model: in.Model, Prompt: in.Prompt}
	if in.Tokens != "" {
		ids, err := tokenIDs(in.Tokens)
		if err != nil {
			return nil, err
		}
		c.Prompt = ids
	}
	return json.Marshal(c)
}

// completion is the smallest body of /v1/completions.
type completion struct {
	Model  string `json:"model,omitempty"`
	Prompt any    `json:"prompt"`
}

func (in Input) file(stdin io.Reader) ([]byte, error) {
	from := stdin
	if in.File != "-" {
		f, err := os.Open(in.File)
		if err != nil {
			return nil, &inspect.Error{Kind: inspect.Usage, Code: "E_USAGE", What: "cannot read the request: " + err.Error(), Err: err}
		}
		defer f.Close()
		from = f
	}
	body, err := io.ReadAll(io.LimitReader(from, maxBody))
	if err != nil {
		return nil, fmt.Errorf("request body: %w", err)
	}
	if in.Model == "" {
		return body, nil
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(body, &fields); err != nil {
		return nil, &inspect.Error{
			Kind: inspect.Usage, Code: "E_USAGE", What: "--model cannot replace the model of a body that is no JSON object",
			Why: err.Error(), Hint: "try: --prompt TEXT for what is no request body", Err: err,
		}
	}
	fields["model"], _ = json.Marshal(in.Model) // a string always marshals
	return json.Marshal(fields)
}

func tokenIDs(s string) ([]uint32, error) {
	var ids []uint32
	for _, f := range strings.FieldsFunc(s, func(r rune) bool { return strings.ContainsRune(", []\n\t", r) }) {
		id, err := strconv.ParseUint(f, 10, 32)
		if err != nil {
			return nil, usage(fmt.Sprintf("--token-ids: found %q; expected token ids", f), "try: --token-ids 1,2,3, or --tokens to print those of a prompt")
		}
		ids = append(ids, uint32(id))
	}
	if len(ids) == 0 {
		return nil, usage("--token-ids: found none; expected token ids", "try: --token-ids 1,2,3")
	}
	return ids, nil
}

// pathOf guesses the endpoint a body is meant for.
func pathOf(body []byte) string {
	var fields struct {
		Messages json.RawMessage `json:"messages"`
	}
	if json.Unmarshal(bytes.TrimSpace(body), &fields) == nil && fields.Messages != nil {
		return "/v1/chat/completions"
	}
	return "/v1/completions"
}

func usage(what, hint string) error {
	return &inspect.Error{Kind: inspect.Usage, Code: "E_USAGE", What: what, Hint: hint}
}
