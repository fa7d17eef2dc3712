package keys

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agentctl.dev/agentctl/api/reason"
)

// variables are some in which people keep keys.
var variables = []string{"OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY"}

// bare takes the variables out of the environment.
func bare(t *testing.T) {
	t.Helper()
	for _, name := range variables {
		t.Setenv(name, "") // so that it is put back
		if err := os.Unsetenv(name); err != nil {
			t.Fatal(err)
		}
	}
}

func TestKeysTellWhichValueCounts(t *testing.T) {
	bare(t)
	state := t.TempDir()
	if keys, err := List(state, variables); len(keys) != 0 || keys == nil || err != nil {
		t.Errorf("of nothing: %v, %v", keys, err)
	}
	for _, name := range []string{"ONE", "TWO", "OPENAI_API_KEY"} {
		if err := Set(state, name, []byte("canary-0123456789\n")); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(filepath.Join(state, "credentials", "TWO"), 0o640); err != nil {
		t.Fatal(err)
	}
	t.Setenv("OPENAI_API_KEY", "canary-of-the-environment")
	t.Setenv("GEMINI_API_KEY", "canary-of-the-environment")
	keys, err := List(state, variables)
	if err != nil || len(keys) != 4 {
		t.Fatalf("%v, %v", keys, err)
	}
	for i, want := range []Key{
		{Name: "GEMINI_API_KEY", Source: Environment},
		{Name: "ONE", Source: Stored},
		{Name: "OPENAI_API_KEY", Source: Both},
		{Name: "TWO", Source: Stored, Problem: "has mode 0640"},
	} {
		k := keys[i]
		if k.Name != want.Name || k.Source != want.Source || (k.Set == nil) != (k.Source == Environment) || !strings.Contains(k.Problem, want.Problem) || (k.Problem == "") != (want.Problem == "") {
			t.Errorf("%d is %+v, want %+v", i, k, want)
		}
	}
	if names := Names(state); strings.Join(names, " ") != "ONE OPENAI_API_KEY TWO" {
		t.Errorf("stored: %q", names)
	}
}

func TestSetAndRemoveSayWhatIsWrong(t *testing.T) {
	bare(t)
	state := t.TempDir()
	if err := Set(state, "MY_KEY", []byte("canary-0123456789")); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		err        error
		says, hint string
	}{
		"set a value as name":  {Set(state, "canary-0123456789", []byte("x")), "no name of an environment variable", ""},
		"set two lines":        {Set(state, "MY_KEY", []byte("canary-1\ncanary-2")), "MY_KEY: the value holds a line break", ""},
		"remove a near name":   {Remove(state, "MYKEY"), "no stored value of MYKEY", "did you mean MY_KEY?"},
		"remove a far name":    {Remove(state, "SOMETHING_ELSE"), "no stored value", "agentctl auth list"},
		"remove no name":       {Remove(state, "canary-0123456789"), "no name of an environment variable", ""},
		"remove what is there": {Remove(state, "MY_KEY"), "", ""},
	} {
		if c.says == "" {
			if c.err != nil {
				t.Errorf("%s: %v", name, c.err)
			}
			continue
		}
		u, ok := errors.AsType[*reason.UsageError](c.err)
		if !ok || !strings.Contains(c.err.Error(), c.says) || !strings.Contains(u.Hint, c.hint) || strings.Contains(c.err.Error(), "canary") {
			t.Errorf("%s: %v", name, c.err)
		}
	}
	t.Setenv("ELSEWHERE", "x")
	if u, ok := errors.AsType[*reason.UsageError](Remove(state, "ELSEWHERE")); !ok || !strings.Contains(u.Hint, "unset ELSEWHERE") {
		t.Errorf("remove what only the environment has: %v", u)
	}
}

func TestAFolderThatOthersMayOpenHoldsNoKeys(t *testing.T) {
	state := t.TempDir()
	if err := Set(state, "MY_KEY", []byte("canary-0123456789")); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(state, "credentials"), 0o755); err != nil {
		t.Fatal(err)
	}
	_, listErr := List(state, variables)
	value, found, getErr := Lookup(state)("MY_KEY")
	for what, err := range map[string]error{"set": Set(state, "MY_KEY", []byte("x")), "remove": Remove(state, "MY_KEY"), "list": listErr, "get": getErr} {
		if reason.Of(err) != reason.CredentialMissing || !strings.HasPrefix(reason.Hint(err), "chmod 700 ") {
			t.Errorf("%s: %v, hint %q", what, err, reason.Hint(err))
		}
	}
	if found || value != "" || len(Names(state)) > 0 {
		t.Errorf("a value was got: %t", found)
	}
	if _, found, err := Lookup(state)("no name"); found || err != nil {
		t.Errorf("what cannot be stored: %t, %v", found, err)
	}
}
