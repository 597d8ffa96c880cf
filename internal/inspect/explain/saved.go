package explain

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/eppctl/eppctl/internal/core/pick"
	"github.com/eppctl/eppctl/internal/inspect"
	"github.com/eppctl/eppctl/internal/inspect/out"
)

// maxSaved bounds a saved answer: one of a thousand pods takes some 5 MB.
const maxSaved = 64 << 20

// IsSaved reports whether a file is a saved answer, which begins as JSON does, and
// not a recording.
func IsSaved(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	begin := make([]byte, 64)
	n, _ := io.ReadFull(f, begin)
	return bytes.HasPrefix(bytes.TrimSpace(begin[:n]), []byte("{"))
}

// readSaved reads an answer that --save or -o json wrote.
func readSaved(path string) (answer []byte, x *pick.Explanation, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, usage("cannot read the saved answer: "+err.Error(), "eppctl explain --save FILE writes one")
	}
	defer f.Close()
	answer, err = io.ReadAll(io.LimitReader(f, maxSaved+1))
	switch {
	case err != nil:
		return nil, nil, fmt.Errorf("%s: %w", path, err)
	case len(answer) > maxSaved:
		return nil, nil, usage(fmt.Sprintf("%s is larger than %d MiB; expected a saved answer", path, maxSaved>>20), "eppctl explain --save FILE writes one")
	}
	if x, err = parse(answer); err != nil {
		return nil, nil, usage(path+" is no saved answer of explain", "eppctl explain --save FILE writes one")
	}
	return answer, x, nil
}

// RunSaved shows an answer that was saved, as it was.
func (c *Command) RunSaved(path string, s *out.Streams) error {
	answer, x, err := readSaved(path)
	if err != nil {
		return err
	}
	var added struct {
		Try        []Try       `json:"try"`
		Comparison *Comparison `json:"comparison"`
	}
	if err := json.Unmarshal(answer, &added); err != nil {
		return usage(path+" is no saved answer of explain: "+err.Error(), "")
	}
	if err := c.print(s, answer, x, Options{Tokens: c.ShowTokens, Against: added.Comparison, Try: added.Try, File: path}); err != nil {
		return err
	}
	return noPod(x)
}

// save writes the answer for RunSaved and RunDiff, readable for its user alone: with
// --show-tokens it tells the prompt.
func save(path string, answer []byte) error {
	if err := os.WriteFile(path, out.JSON(answer), 0o600); err != nil {
		return fmt.Errorf("the answer cannot be saved: %w", err)
	}
	return nil
}

// RunDiff asks again and prints what is no longer as a saved answer has it. It ends
// with a Negative error when another pod would be picked.
func (c *Command) RunDiff(ctx context.Context, path string, server Asker, s *out.Streams) error {
	_, old, err := readSaved(path)
	if err != nil {
		return err
	}
	if c.RequestID == "" { // the same id, since it breaks ties
		c.Headers = append([]string{"x-request-id=" + old.RequestID}, c.Headers...)
	}
	_, answer, x, err := c.answer(ctx, server, s.In)
	if err != nil {
		return err
	}
	if c.Save != "" {
		if err := save(c.Save, with(answer, "try", c.tries(ctx, x))); err != nil {
			return err
		}
	}
	if text := otherRequest(old, x); text != "" {
		fmt.Fprintf(s.Err, "warn: not the same request as in %s: %s\n", out.Clean(path), out.Clean(text))
	}
	d := newReplicas(path, x.Source, old, x)
	if err := c.printReplicas(s, d); err != nil {
		return err
	}
	if !d.SamePick {
		return &inspect.Error{
			Kind: inspect.Negative, Code: "E_PICK_CHANGED",
			What: fmt.Sprintf("the pick has changed: %s in %s, %s now", d.outcome(&d.A), path, d.outcome(&d.B)),
		}
	}
	return nil
}

// otherRequest says by what two answers are of different requests, so that what differs
// is not of the fleet alone; "" = by nothing that they tell.
func otherRequest(a, b *pick.Explanation) string {
	switch {
	case a.Model != b.Model:
		return fmt.Sprintf("model %q there, %q here", a.Model, b.Model)
	case deref(a.LoRA) != deref(b.LoRA):
		return fmt.Sprintf("adapter %q there, %q here", deref(a.LoRA), deref(b.LoRA))
	case a.Prompts != b.Prompts:
		return "another number of prompts"
	case a.TokensExact == b.TokensExact && a.Tokens != b.Tokens:
		return fmt.Sprintf("%s there, %d here", out.Plural(a.Tokens, "token"), b.Tokens)
	case a.Prompt != nil && b.Prompt != nil && (!slices.Equal(a.Prompt.IDs, b.Prompt.IDs) || !slices.EqualFunc(a.Prompt.Further, b.Prompt.Further, slices.Equal)):
		return "other token ids"
	}
	return ""
}
