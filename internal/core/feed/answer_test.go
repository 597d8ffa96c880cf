package feed

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// What an engine tells of itself is read up to 1 MiB; more is no answer.
func TestAnswerIsBounded(t *testing.T) {
	for size, want := range map[int]bool{1 << 20: true, 1<<20 + 1: false} {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte(`"` + strings.Repeat("x", size-2) + `"`))
		}))
		var got string
		err := askJSON(t.Context(), srv.Client(), srv.URL, nil, &got)
		srv.Close()
		if ok := err == nil && len(got) == size-2; ok != want {
			t.Errorf("%d bytes: %d read, %v", size, len(got), err)
		}
		if !want && (!errors.Is(err, errNotJSON) || !strings.Contains(err.Error(), "larger than 1048576 bytes")) {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
}
