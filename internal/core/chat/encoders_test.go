package chat

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/eppctl/eppctl/internal/core/chat/jinja2"
	"github.com/eppctl/eppctl/internal/testdata"
)

// TestEncoders holds each encoder against what the published one writes for random
// conversations (testdata/encoders).
func TestEncoders(t *testing.T) {
	for name, own := range encoders {
		t.Run(name, func(t *testing.T) {
			v, err := jinja2.ParseJSON(testdata.Gunzip(t, filepath.Join(testdata.Dirs(t, "encoders")[0], name+".json.gz")))
			if err != nil {
				t.Fatal(err)
			}
			same, refused, wrong := 0, 0, 0
			for i, c := range v.AsList().Items {
				want, renders := jinja2.Get(c, "text")
				vars := map[string]jinja2.Value{}
				for _, key := range c.AsDict().Keys {
					vars[key] = member(c, key)
				}
				got, err := own.encode(member(c, "messages").AsList().Items, vars)
				var no *Rejected
				switch {
				case !renders && errors.As(err, &no):
					refused++
				case renders && err == nil && got == want.AsString():
					same++
				default:
					if wrong++; wrong < 4 {
						t.Errorf("conversation %d: %v\n%q\nwant\n%q %s", i, err, got, text(c, "text"), text(c, "error"))
					}
				}
			}
			t.Logf("%d texts are the same, %d are refused by both, %d differ", same, refused, wrong)
			if same < 300 || refused < 10 {
				t.Error("the conversations are too one-sided")
			}
		})
	}
}
