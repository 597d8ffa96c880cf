package pod

import (
	"net/url"
	"strings"
)

// MaskURL hides what a URL may hold of secrets: a password, a user name (tokens are passed
// as one), and the values of a query.
func MaskURL(text string) string {
	u, err := url.Parse(text)
	if err != nil && strings.Contains(text, "@") && strings.Contains(text, "://") {
		return "xxxxx" // not understood, and shaped like one with a password
	}
	if err != nil || u.Host == "" || u.User == nil && u.RawQuery == "" {
		return text
	}
	if u.User != nil {
		u.User = url.User("xxxxx")
	}
	parts := strings.Split(u.RawQuery, "&")
	for i, part := range parts {
		if name, _, named := strings.Cut(part, "="); named {
			parts[i] = name + "=xxxxx"
		} else if part != "" {
			parts[i] = "xxxxx"
		}
	}
	u.RawQuery = strings.Join(parts, "&")
	return u.String()
}
