package httpapi

import (
	"strings"
	"testing"
)

// TestAddressesThatCannotBeMeant is about what would be left out of a request in
// silence, and about logins, which an error must not repeat.
func TestAddressesThatCannotBeMeant(t *testing.T) {
	for address, says := range map[string]string{
		"ftp://host/v1":                    "not an http or https address",
		"host/v1":                          "not an http or https address",
		"http://user:pa55word@host/v1":     "holds a login",
		"http://user:pa55word@host:x/v1":   "holds a login",
		"http://user:pa55word@ho st/v1":    "holds a login",
		"http://pa55word@host":             "holds a login",
		"https://host/v1?key=pa55word":     "holds a query",
		"https://host/v1?":                 "holds a query",
		"https://host/v1#part":             "a fragment",
		"https://host/v1?api-version=2026": "holds a query",
	} {
		_, err := New(Config{Name: "m", Model: "x", BaseURL: address}, test)
		if err == nil || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "pa55word") {
			t.Errorf("%s: %v, want %q", address, err, says)
		}
	}
	for _, address := range []string{"", "https://host", "http://127.0.0.1:8080/v1/", "https://host/openai/deployments/a@b/v1"} {
		if x, err := New(Config{Name: "m", Model: "x", BaseURL: address}, test); err != nil {
			t.Errorf("%s: %v", address, err)
		} else if err := x.Close(); err != nil {
			t.Error(err)
		}
	}
}
