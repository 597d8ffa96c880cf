package native

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// ErrUnsupported is wrapped by every error about an element of a file that this
// package does not know. The text names it.
var ErrUnsupported = errors.New("not supported")

// typed is the member that every component of a file has.
type typed struct {
	Type string `json:"type"`
}

func typeOf(raw json.RawMessage) (string, error) {
	var v typed
	if err := json.Unmarshal(raw, &v); err != nil {
		return "", err
	}
	if v.Type == "" {
		return "", fmt.Errorf("component without a type: %w", ErrUnsupported)
	}
	return v.Type, nil
}

func isNull(raw json.RawMessage) bool {
	raw = bytes.TrimSpace(raw)
	return len(raw) == 0 || string(raw) == "null"
}

// strict reads a component. A member that v has no field for may change the result
// and is an error.
func strict(raw json.RawMessage, v any) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return fmt.Errorf("%w: %w", ErrUnsupported, err)
	}
	return nil
}
