package expr

import (
	"strings"
	"testing"
)

func TestWithin(t *testing.T) {
	for name, tt := range map[string]struct {
		reason, text string
		want         bool
	}{
		"token":       {"a known prefix and enough behind it", "curl -H 'Authorization: token ghp_" + strings.Repeat("a1", 18) + "'", true},
		"key":         {"a private key, whatever is in it", "-----BEGIN OPENSSH PRIVATE KEY-----\nx", true},
		"cloud":       {"an access key", "id = AKIA" + "IOSFODNN7EXAMPLE", true},
		"code":        {"code that reads a secret holds none", `password = os.Getenv("PASSWORD")`, false},
		"name":        {"a name that begins like a key", "ALTER TABLE x DROP CONSTRAINT pk_accounts_organizations_members", false},
		"short":       {"a prefix alone", "tokens begin with ghp_ or sk-", false},
		"public":      {"a public key may be shown", "-----BEGIN PUBLIC KEY-----\nMIIB", false},
		"no text":     {"nothing", "", false},
		"second hit":  {"the first find is a name, the second a key", "pk_accounts_organizations_members sk-" + strings.Repeat("a1", 12), true},
		"in the path": {"inside of a longer word it is none", "risk-assessment-of-the-whole-company-2024", false},
	} {
		if got := HoldsCredential(tt.text); got != tt.want {
			t.Errorf("%s: got %t, want %t: %s", name, got, tt.want, tt.reason)
		}
	}
}

func TestWhatIsRefusedIsAlsoHidden(t *testing.T) {
	text := "token ghp_" + strings.Repeat("a1", 18) + " AKIA" + "IOSFODNN7EXAMPLE https://me:hunter22@host/ Bearer abcdefghijklmnopqrst api_key=abcdef"
	hidden := HideCredentials(text, "[x]")
	if HoldsCredential(hidden) {
		t.Errorf("still there: %s", hidden)
	}
	if n := strings.Count(hidden, "[x]"); n != 5 {
		t.Errorf("hid %d of 5: %s", n, hidden)
	}
	if !NamesCredential("dbPassword", "hunter22") || NamesCredential("path", "hunter22") {
		t.Error("a field is judged by its name")
	}
}

func BenchmarkWithin(b *testing.B) {
	text := strings.Repeat("func main() { fmt.Println(x) } // nothing to see\n", 1<<20/50)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		HoldsCredential(text)
	}
}
