package feed

import (
	"net/http"
	"strings"
)

// maxRedirects is how often one answer may send on: from /metrics to /metrics/, which
// is what Starlette's mounts do, takes one.
const maxRedirects = 3

// send sends a request for an answer of this server and of none that it names:
// whoever answers at a pod's address must have neither our questions sent to other
// hosts of our network nor another server's page taken for its own. A redirect that is
// not followed is the answer.
func send(client *http.Client, req *http.Request) (*http.Response, error) {
	own := *client
	own.CheckRedirect = func(next *http.Request, via []*http.Request) error {
		asked := via[0].URL
		if len(via) > maxRedirects || next.URL.Scheme != asked.Scheme || !strings.EqualFold(next.URL.Host, asked.Host) {
			return http.ErrUseLastResponse
		}
		return nil
	}
	req, name := traced(req)
	resp, err := own.Do(req)
	return resp, name.blame(err)
}

// sentOn says where an answer wants to send whoever asks, "" = nowhere.
func sentOn(resp *http.Response) string {
	to := resp.Header.Get("Location")
	if resp.StatusCode < 300 || resp.StatusCode > 399 || to == "" {
		return ""
	}
	return "it sends on to " + printable(to, 80) + ", which is not followed: set the address of what is to be asked"
}
