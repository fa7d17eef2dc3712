package main

import (
	"encoding/base64"
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// keptFolders are what earlier formats have written: a state folder with runs, a cassette, a
// receipt and a lock each. docs/releases.md says how one is added.
func keptFolders(t *testing.T) []string {
	t.Helper()
	all, err := filepath.Glob("testdata/kept/*")
	if err != nil || len(all) == 0 {
		t.Fatalf("nothing is kept: %v", err)
	}
	return all
}

// runIn runs agentctl in a folder, with the state folder in it.
func runIn(t *testing.T, dir, libexec string, args ...string) (out string, code int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "agentctl", args...)
	cmd.Dir, cmd.WaitDelay = dir, time.Second
	cmd.Env = append(os.Environ(), "AGENTCTL_STATE="+filepath.Join(dir, "state"), "AGENTCTL_LIBEXEC="+libexec, "AGENTCTL_OUTER_ISOLATION=container")
	b, _ := cmd.CombinedOutput() // judged by its code
	return string(b), cmd.ProcessState.ExitCode()
}

// TestKeptFilesAreRead: journals, audit logs, cassettes, receipts and locks of every format
// that was released are read as they are.
func TestKeptFilesAreRead(t *testing.T) {
	libexec := buildTools(t)
	for _, kept := range keptFolders(t) {
		t.Run(filepath.Base(kept), func(t *testing.T) {
			dir := t.TempDir()
			if err := os.CopyFS(dir, os.DirFS(kept)); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(filepath.Join(dir, "state"), 0o700); err != nil { //nolint:gosec // a folder
				t.Fatal(err)
			}
			run := func(agent string) string {
				found, err := filepath.Glob(filepath.Join(dir, "state", "runs", agent+"-*"))
				if err != nil || len(found) != 1 {
					t.Fatalf("runs of %s: %v, %v", agent, found, err)
				}
				return "run/" + filepath.Base(found[0])
			}
			keeper, waiter := run("keeper"), run("waiter")
			for _, c := range []struct {
				args string
				code int
				want string // a regular expression
			}{
				{"get runs", 0, `(?m)^keeper-\S+ +.*Succeeded`},
				{"describe " + keeper, 0, `(?s)Keep it\..*no-list.*new\.txt`},
				{"describe " + waiter, 0, `(?s)Read it\..*ApprovalRequired`},
				{"logs " + keeper, 0, `"kept": ?true`},
				{"events " + keeper + " -o jsonl", 0, `"type":"run\.finished"`},
				{"attach " + keeper + " -o json", 0, `(?s)"phase": "Succeeded".*"path": "new\.txt"`},
				{"diff " + keeper, 0, `(?m)^\+new$`},
				{"audit verify " + keeper, 0, `audit`},
				{"audit verify " + waiter, 0, `audit`},
				{"audit export " + keeper, 0, `"decision":"deny"`},
				{"audit verify receipt.json --key receipt.pub --run " + keeper, 0, `as it was signed`},
				{"replay run.cassette.jsonl", 0, `kept`},
				{"replay run.cassette.jsonl -f agent.yaml -o json", 0, `"phase": "Succeeded"`},
				{"lock -f agent.yaml --check", 0, `3 objects`},
				{"run -f agent.yaml --agent helper --locked -p go", 2, `mode Subagent`}, // not that the lock cannot be read
				{"approve", 0, strings.TrimPrefix(waiter, "run/")},
			} {
				out, code := runIn(t, dir, libexec, strings.Fields(c.args)...)
				if code != c.code || !regexp.MustCompile(c.want).MatchString(out) {
					t.Errorf("agentctl %s: exit code %d, want %d and %q\n%s", c.args, code, c.code, c.want, out)
				}
			}
			// A byte of a kept journal that is changed is still found.
			events, err := filepath.Glob(filepath.Join(dir, "state", "runs", strings.TrimPrefix(keeper, "run/"), "events-*.jsonl"))
			if err != nil || len(events) != 1 {
				t.Fatalf("%v, %v", events, err)
			}
			b, err := os.ReadFile(events[0])
			if err != nil {
				t.Fatal(err)
			}
			put(t, events[0], strings.Replace(string(b), "hello.txt", "hallo.txt", 1))
			if out, code := runIn(t, dir, libexec, "audit", "verify", keeper); code != 1 {
				t.Errorf("a changed journal: exit code %d\n%s", code, out)
			}
		})
	}
}

// formats are the versions that files say they have.
func formats(t *testing.T, dir string) map[string]string {
	t.Helper()
	read := func(pattern string) []byte {
		found, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil || len(found) != 1 {
			t.Fatalf("%s: %v, %v", pattern, found, err)
		}
		b, err := os.ReadFile(found[0])
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	object := func(what string, line []byte, v any) {
		if err := json.Unmarshal(line, v); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
	first := func(text []byte) []byte { return []byte(strings.SplitN(string(text), "\n", 2)[0]) }
	var cassette struct{ Cassette string }
	object("cassette", first(read("run.cassette.jsonl")), &cassette)
	var receipt struct{ PayloadType, Payload string }
	object("receipt", read("receipt.json"), &receipt)
	payload, err := base64.StdEncoding.DecodeString(receipt.Payload)
	if err != nil {
		t.Fatal(err)
	}
	var statement struct{ PredicateType string }
	object("statement", payload, &statement)
	var started struct {
		Type string
		Data map[string]json.RawMessage
	}
	object("journal", first(read("state/runs/keeper-*/events-*.jsonl")), &started)
	var audit map[string]json.RawMessage
	object("audit log", first(read("state/runs/keeper-*/audit.log.jsonl")), &audit)
	version := regexp.MustCompile(`(?m)^version: (.*)$`).FindSubmatch(read("agentctl.lock"))
	if version == nil {
		t.Fatal("the lock has no version")
	}
	return map[string]string{
		"cassette": cassette.Cassette, "receipt": receipt.PayloadType + " " + statement.PredicateType, "lock": string(version[1]),
		"journal": started.Type, "audit log": strings.Join(slices.Sorted(maps.Keys(audit)), " "),
	}
}

// TestEveryFormatHasKeptFiles: what this program writes has a version of which files are kept.
func TestEveryFormatHasKeptFiles(t *testing.T) {
	needSandbox(t)
	libexec, dir := buildTools(t), t.TempDir()
	kept := keptFolders(t)
	newest := kept[len(kept)-1]
	manifest, err := os.ReadFile(filepath.Join(newest, "agent.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(dir, "agent.yaml"), string(manifest))
	put(t, filepath.Join(dir, "src", "hello.txt"), "hello\n")
	put(t, filepath.Join(dir, "receipt.key"), signingKey(t))
	for _, args := range []string{
		"run -f agent.yaml --agent keeper -p go --workspace src --record run.cassette.jsonl --receipt receipt.json --receipt-key receipt.key", "lock -f agent.yaml",
	} {
		if out, code := runIn(t, dir, libexec, strings.Fields(args)...); code != 0 {
			t.Fatalf("agentctl %s: exit code %d\n%s", args, code, out)
		}
	}
	var all []map[string]string
	for _, folder := range kept {
		all = append(all, formats(t, folder))
	}
	for what, version := range formats(t, dir) {
		if !slices.ContainsFunc(all, func(f map[string]string) bool { return f[what] == version }) {
			t.Errorf("this program writes a %s of format %q, and testdata/kept has none: add a folder as docs/releases.md says", what, version)
		}
	}
}
