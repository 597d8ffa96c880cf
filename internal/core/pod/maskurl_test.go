package pod

import "testing"

// What may be a secret in a URL is shown to nobody.
func TestMaskURL(t *testing.T) {
	for text, want := range map[string]string{
		"http://10.0.0.7:8000/metrics":          "http://10.0.0.7:8000/metrics",
		"http://user:s3cret@h:1/m":              "http://xxxxx@h:1/m",
		"http://s3cret@h:1/m":                   "http://xxxxx@h:1/m",
		"http://h:1/m?token=s3cret&a=s3cret":    "http://h:1/m?token=xxxxx&a=xxxxx",
		"http://h:1/m?s3cret":                   "http://h:1/m?xxxxx",
		"http://h:1/m?;s3cret":                  "http://h:1/m?xxxxx",
		"http://u:s3cret%zz@h:1/m":              "xxxxx",
		"tcp://10.0.0.1:5557":                   "tcp://10.0.0.1:5557",
		"tcp://*:5557":                          "tcp://*:5557",
		"10.0.0.1:8000":                         "10.0.0.1:8000",
		"[fd00::1]:8000":                        "[fd00::1]:8000",
		"unix:/run/eppctl.sock":                 "unix:/run/eppctl.sock",
		"meta-llama/Llama-3.3-70B-Instruct@abc": "meta-llama/Llama-3.3-70B-Instruct@abc",
	} {
		if got := MaskURL(text); got != want {
			t.Errorf("MaskURL(%q) = %q, want %q", text, got, want)
		}
	}
}
