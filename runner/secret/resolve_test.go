package secret

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/v1alpha1"
)

func TestResolve(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, mode os.FileMode, content string) string {
		p := filepath.Join(dir, name)
		if err := os.WriteFile(p, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(p, mode); err != nil {
			t.Fatal(err)
		}
		return p
	}
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(write("target", 0o400, "linked\n"), link); err != nil {
		t.Fatal(err)
	}
	env := map[string]string{"KEY": "from-env", "EMPTY": ""}
	r := Resolver{
		LookupEnv: func(n string) (string, bool) { v, ok := env[n]; return v, ok },
		Exec: func(_ context.Context, argv []string) ([]byte, error) {
			switch argv[0] {
			case "pass":
				return []byte("from-exec " + argv[1] + "\r\n"), nil
			case "large":
				return bytes.Repeat([]byte("x"), maxSize+1), nil
			case "silent":
				return nil, nil
			}
			return []byte("half-a-secret"), errors.New("exit status 1")
		},
	}
	cases := map[string]struct {
		reason string
		from   v1alpha1.ValueFrom
		want   string
		says   string
	}{
		"env":         {"a variable is taken as it is", v1alpha1.ValueFrom{Env: "KEY"}, "from-env", ""},
		"env missing": {"the name is told", v1alpha1.ValueFrom{Env: "NOPE"}, "", "variable NOPE is not set"},
		"env empty":   {"an empty key is no key", v1alpha1.ValueFrom{Env: "EMPTY"}, "", "is empty"},
		"file":        {"one final line break goes", v1alpha1.ValueFrom{File: write("ok", 0o600, "from-file\n\n")}, "from-file\n", ""},
		"read-only":   {"0400 is private too", v1alpha1.ValueFrom{File: link}, "linked", ""},
		"group":       {"readable by the group is refused", v1alpha1.ValueFrom{File: write("group", 0o640, "x")}, "", "0640"},
		"others":      {"readable by others is refused", v1alpha1.ValueFrom{File: write("others", 0o604, "x")}, "", "0604"},
		"writable":    {"writable by others is refused", v1alpha1.ValueFrom{File: write("writable", 0o602, "x")}, "", "0602"},
		"no file":     {"the path is told", v1alpha1.ValueFrom{File: filepath.Join(dir, "none")}, "", "none does not exist"},
		"folder":      {"a folder is no file", v1alpha1.ValueFrom{File: dir}, "", "not a regular file"},
		"pipe":        {"a pipe does not block", v1alpha1.ValueFrom{File: pipe}, "", "not a regular file"},
		"device":      {"a device has no end", v1alpha1.ValueFrom{File: "/dev/zero"}, "", "not a regular file"},
		"large file":  {"a value is bounded", v1alpha1.ValueFrom{File: write("large", 0o600, strings.Repeat("x", maxSize+10))}, "", "longer than"},
		"empty file":  {"an empty file is no key", v1alpha1.ValueFrom{File: write("empty", 0o600, "\n")}, "", "empty"},
		"NUL":         {"a NUL cannot be sent", v1alpha1.ValueFrom{File: write("nul", 0o600, "a\x00b")}, "", "NUL"},
		"exec":        {"a command's output is the value", v1alpha1.ValueFrom{Exec: []string{"pass", "show"}}, "from-exec show", ""},
		"exec fails":  {"the failure is told", v1alpha1.ValueFrom{Exec: []string{"broken"}}, "", "exit status 1"},
		"exec large":  {"its output is bounded", v1alpha1.ValueFrom{Exec: []string{"large"}}, "", "longer than"},
		"exec silent": {"no output is no key", v1alpha1.ValueFrom{Exec: []string{"silent"}}, "", "empty"},
		"secret":      {"there is no cluster here", v1alpha1.ValueFrom{SecretKeyRef: &v1alpha1.SecretKeyRef{Name: "s", Key: "k"}}, "", "cluster"},
		"nothing":     {"one place must be named", v1alpha1.ValueFrom{}, "", "names no place"},
	}
	for name, c := range cases {
		v, err := r.Resolve(t.Context(), `model "fast": spec.apiKey`, c.from)
		if v.Reveal() != c.want || (err == nil) != (c.says == "") {
			t.Errorf("%s: %s: got %q, %v", name, c.reason, v.Reveal(), err)
			continue
		}
		if err == nil {
			continue
		}
		if reason.Of(err) != reason.CredentialMissing || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), "spec.apiKey") {
			t.Errorf("%s: error %v, reason %s, want %q", name, err, reason.Of(err), c.says)
		}
		if strings.Contains(err.Error(), "half-a-secret") {
			t.Errorf("%s: the error shows what the command printed", name)
		}
	}
}

func TestStoredValuesStandBehindTheEnvironment(t *testing.T) {
	env := map[string]string{"SET": "from-env", "BOTH": "from-env", "EMPTY": ""}
	stored := map[string]string{"STORED": "kept", "BOTH": "kept", "EMPTY": "kept", "LONG": strings.Repeat("x", maxSize+1)}
	r := Resolver{
		LookupEnv: func(n string) (string, bool) { v, ok := env[n]; return v, ok },
		Stored: func(n string) (string, bool, error) {
			if n == "BROKEN" {
				return "half-a-secret", true, reason.New(reason.CredentialMissing, "it has mode 0644").WithHint("chmod 600 it")
			}
			v, ok := stored[n]
			return v, ok, nil
		},
	}
	for name, c := range map[string]struct{ want, source, says, hint string }{
		"SET":    {"from-env", "environment variable SET", "", ""},
		"STORED": {"kept", "the value stored for STORED", "", ""},
		"BOTH":   {"from-env", "environment variable BOTH", "", ""},
		"EMPTY":  {"", "", "variable EMPTY is empty", "unset it"},
		"NONE":   {"", "", "NONE is not set, and no value is stored", "export NONE=..., or store it: agentctl auth set NONE"},
		"BROKEN": {"", "", "cannot be used: it has mode 0644", "chmod 600 it"},
		"LONG":   {"", "", "longer than", ""},
	} {
		v, err := r.Resolve(t.Context(), "f", v1alpha1.ValueFrom{Env: name})
		if v.Reveal() != c.want || v.Source() != c.source || (err == nil) != (c.says == "") {
			t.Errorf("%s: %q of %q, %v", name, v.Reveal(), v.Source(), err)
		}
		if err != nil && (reason.Of(err) != reason.CredentialMissing || !strings.Contains(err.Error(), c.says) || !strings.Contains(reason.Hint(err), c.hint)) {
			t.Errorf("%s: %v, hint %q", name, err, reason.Hint(err))
		}
		if err != nil && strings.Contains(err.Error()+reason.Hint(err), "half-a-secret") {
			t.Errorf("%s: the error tells the value: %v", name, err)
		}
	}
}

func TestASlipInTheNameOfAVariableIsNoticed(t *testing.T) {
	r := Resolver{
		LookupEnv: func(string) (string, bool) { return "", false },
		Environ:   func() []string { return []string{"OPENAI_API_KEY=x", "MISTRAL_API_KEY=", "=odd", "none"} },
		Stored:    func(string) (string, bool, error) { return "", false, nil },
	}
	for name, want := range map[string]string{
		"OPENAI_APIKEY":   "OPENAI_API_KEY is set: did you mean it? Else export OPENAI_APIKEY=..., or store it: agentctl auth set OPENAI_APIKEY",
		"GEMINI_API_KEY":  "export GEMINI_API_KEY=..., or store it: agentctl auth set GEMINI_API_KEY",
		"MISTRAL_API_KEI": "export MISTRAL_API_KEI=..., or store it: agentctl auth set MISTRAL_API_KEI",
	} {
		_, err := r.Resolve(t.Context(), "f", v1alpha1.ValueFrom{Env: name})
		if got := reason.Hint(err); got != want {
			t.Errorf("%s: hint %q, want %q", name, got, want)
		}
	}
}

func TestAValueKnowsItsSource(t *testing.T) {
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, []byte("k"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := Resolver{Exec: func(context.Context, []string) ([]byte, error) { return []byte("k"), nil }}
	for want, from := range map[string]v1alpha1.ValueFrom{"file " + file: {File: file}, "command pass": {Exec: []string{"pass", "show", "x"}}} {
		if v, err := r.Resolve(t.Context(), "f", from); err != nil || v.Source() != want {
			t.Errorf("%q, %v, want %q", v.Source(), err, want)
		}
	}
	if (Value{}).Source() != "" || NewValue("k").Source() != "" {
		t.Error("a value of nowhere has a source")
	}
}

func TestResolveExecHasADeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := Resolver{Exec: func(ctx context.Context, _ []string) ([]byte, error) {
			<-ctx.Done()
			return []byte("late"), nil
		}}
		start := time.Now()
		v, err := r.Resolve(t.Context(), "f", v1alpha1.ValueFrom{Exec: []string{"slow"}})
		if reason.Of(err) != reason.CredentialMissing || !v.IsZero() || time.Since(start) != execTimeout {
			t.Errorf("got %q, %v after %s", v.Reveal(), err, time.Since(start))
		}
	})
	if _, err := (Resolver{}).Resolve(t.Context(), "f", v1alpha1.ValueFrom{Exec: []string{"x"}}); reason.Of(err) != reason.CredentialMissing {
		t.Errorf("without Exec: %v", err)
	}
}

func TestResolveReadsTheEnvironment(t *testing.T) {
	t.Setenv("AGENTCTL_TEST_SECRET", "real")
	v, err := Resolver{}.Resolve(t.Context(), "f", v1alpha1.ValueFrom{Env: "AGENTCTL_TEST_SECRET"})
	if err != nil || v.Reveal() != "real" {
		t.Errorf("got %q, %v", v.Reveal(), err)
	}
}
