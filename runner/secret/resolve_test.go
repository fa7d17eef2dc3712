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
		"folder":      {"a folder is no file", v1alpha1.ValueFrom{File: dir}, "", "no regular file"},
		"pipe":        {"a pipe does not block", v1alpha1.ValueFrom{File: pipe}, "", "no regular file"},
		"device":      {"a device has no end", v1alpha1.ValueFrom{File: "/dev/zero"}, "", "no regular file"},
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
