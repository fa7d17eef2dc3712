package export

import (
	"encoding/base64"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agentctl.dev/agentctl/runner/secret"
)

func scannerOf(values ...string) *scanner {
	s := &scanner{}
	var all []secret.Value
	for _, v := range values {
		all = append(all, secret.NewValue(v))
		s.known = append(s.known, known{"KEY-" + v[:1], secret.NewRedactor(secret.NewValue(v))})
	}
	s.all = secret.NewRedactor(all...)
	return s
}

// A secret is found in any form that is hidden elsewhere, wherever the windows end.
func TestASecretIsFoundInLargeFiles(t *testing.T) {
	const key = "a-secret-of-thirty-characters-xx"
	for _, form := range []string{key, base64.StdEncoding.EncodeToString([]byte(key)), strings.ReplaceAll(key, "-", "-\n")} {
		for _, at := range []int{0, 100, window - 10, window, 2*window - 5, 3*window - len(form)} {
			s := scannerOf(key, "b-secret-that-is-not-in-the-file")
			text := strings.Repeat("x ", 3*window/2)
			text = text[:at] + form + text[min(at+len(form), len(text)):]
			if _, err := io.Copy(io.Discard, s.reader("files/f", strings.NewReader(text))); err != nil {
				t.Fatal(err)
			}
			if len(s.places) != 1 || s.places[0] != (Place{"KEY-a", "files/f"}) {
				t.Errorf("%q at %d: found %v", form, at, s.places)
			}
		}
	}
}

func TestWhatHoldsNoSecretPasses(t *testing.T) {
	s := scannerOf("a-secret-of-thirty-characters-xx")
	if _, err := io.Copy(io.Discard, s.reader("files/f", strings.NewReader(strings.Repeat("harmless text ", window/4)))); err != nil {
		t.Fatal(err)
	}
	if err := s.found("r"); err != nil {
		t.Error(err)
	}
}

// What CI writes into the configuration of a repository is a credential.
func TestARepositoryWithCredentialsIsNotExported(t *testing.T) {
	for name, c := range map[string]struct {
		config  string
		refused bool
	}{
		"plain":    {"[remote \"origin\"]\n\turl = https://example.com/a/b.git\n[branch \"main\"]\n", false},
		"ssh":      {"[remote \"origin\"]\n\turl = git@example.com:a/b.git\n", false},
		"header":   {"[http \"https://example.com/\"]\n\textraheader = AUTHORIZATION: basic eDp5\n", true},
		"password": {"[remote \"origin\"]\n\turl = https://me:pass@example.com/a/b.git\n", true},
		"token":    {"[remote \"origin\"]\n\turl = https://ghp_token@example.com/a/b.git\n", true},
		"helper":   {"[credential]\n\thelper = store\n", true},
	} {
		dir := t.TempDir()
		if err := os.Mkdir(filepath.Join(dir, ".git"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, ".git", "config"), []byte(c.config), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := noCredentials(dir); (err != nil) != c.refused {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestFilesAreLeftOut(t *testing.T) {
	m := Manifest{Excluded: []string{"*.log", "build/", "a/b/*.bin"}}
	for name, want := range map[string]bool{
		".env": true, "deep/id_rsa": true, "key.pem": true, ".env.example": false, "main.go": false,
		"x.log": true, "deep/x.log": true, "build/f": true, "deep/build/f": true, "a/b/c.bin": true, "x/a/b/c.bin": false,
	} {
		if got := m.LeavesOut(name); got != want {
			t.Errorf("%s is left out: %v, want %v", name, got, want)
		}
	}
}
