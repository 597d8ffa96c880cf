package serve

import (
	"fmt"
	"io"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// scrapePage reads the metrics page as Prometheus would.
func scrapePage(t testing.TB, m *metrics, openMetrics bool) string {
	t.Helper()
	req := httptest.NewRequest("GET", "/metrics", nil)
	if openMetrics {
		req.Header.Set("Accept", "application/openmetrics-text; version=1.0.0")
	}
	w := httptest.NewRecorder()
	m.handler().ServeHTTP(w, req)
	b, err := io.ReadAll(w.Result().Body)
	if err != nil || w.Code != 200 {
		t.Fatalf("status %d: %v", w.Code, err)
	}
	return string(b)
}

func TestMetricsPage(t *testing.T) {
	t.Run("EP-41", func(t *testing.T) {
		r := newRig(t, rigOptions{})
		c := r.talk()
		c.send(reqHeaders(fullDuplex, true, "/v1/models"))
		c.rest()
		for i := range 300 {
			r.route(completion(fmt.Sprintf("client-model-%d", i), ids(1, 20)))
		}
		page := scrapePage(t, r.picker.met, false)
		p := expfmt.NewTextParser(model.UTF8Validation)
		families, err := p.TextToMetricFamilies(strings.NewReader(page))
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(page, "client-model") {
			t.Fatal("a client's model name is a label")
		}
		if n := len(families["eppctl_prompt_tokens_total"].GetMetric()); n > 2 {
			t.Fatalf("%d model labels", n)
		}
	})
}
