package main

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestBadFilesAreRefused: a lock, a receipt, a cassette and a journal that are damaged, cut,
// foreign or tampered with are refused with the exit code of the command and a word of what
// is wrong, and nothing is taken for a smaller one.
func TestBadFilesAreRefused(t *testing.T) {
	libexec := buildTools(t)
	kept := keptFolders(t)[0]
	half := func(s string) string { return s[:len(s)/2] }
	replaced := func(was, is string) func(string) string {
		return func(s string) string {
			if !strings.Contains(s, was) {
				t.Fatalf("it does not hold %q", was)
			}
			return strings.Replace(s, was, is, 1)
		}
	}
	withoutLine := func(n int) func(string) string {
		return func(s string) string {
			lines := strings.SplitAfter(s, "\n")
			return strings.Join(append(lines[:n:n], lines[n+1:]...), "")
		}
	}
	constant := func(text string) func(string) string { return func(string) string { return text } }
	payload := func(change func(string) string) func(string) string {
		return func(s string) string {
			at := regexp.MustCompile(`"payload": ?"([^"]*)"`).FindStringSubmatchIndex(s)
			b, err := base64.StdEncoding.DecodeString(s[at[2]:at[3]])
			if err != nil {
				t.Fatal(err)
			}
			return s[:at[2]] + base64.StdEncoding.EncodeToString([]byte(change(string(b)))) + s[at[3]:]
		}
	}
	const (
		lock, receipt, cassette, journal, log = "agentctl.lock", "receipt.json", "run.cassette.jsonl", "state/runs/keeper-*/events-*.jsonl", "state/runs/keeper-*/audit.log.jsonl"

		check, verify, play, audited, read = "lock -f agent.yaml --check", "audit verify receipt.json --key receipt.pub", "replay run.cassette.jsonl", "audit verify RUN", "logs RUN"
	)
	for _, c := range []struct {
		name, file string
		change     func(string) string
		command    string
		code       int
		want       string
	}{
		{"an empty lock", lock, constant(""), check, 2, "it is empty"},
		{"half a lock", lock, half, check, 2, "agentctl.lock: it "},
		{"a lock of another version", lock, replaced("lock/v1", "lock/v7"), check, 2, `its version is "agentctl.dev/lock/v7", and this program reads agentctl.dev/lock/v1`},
		{"a lock of another program", lock, constant("lockfileVersion: 3\n"), check, 2, "it is not a lock"},
		{"a lock that was changed", lock, replaced("provider: scripted", "provider: openai"), check, 2, "its digest is not that of its entries"},

		{"an empty receipt", receipt, constant(""), verify, 1, "receipt"},
		{"half a receipt", receipt, half, verify, 1, "receipt"},
		{"a receipt of another version", receipt, payload(replaced("attestation/run/v1", "attestation/run/v7")), verify, 1, "sign"},
		{"a receipt of another kind", receipt, replaced("application/vnd.in-toto+json", "application/json"), verify, 1, "application/json"},
		{"a receipt that was changed", receipt, payload(replaced("keeper", "hacker")), verify, 1, "sign"},
		{"no receipt", receipt, constant("a text\n"), verify, 1, "receipt"},

		{"an empty cassette", cassette, constant(""), play, 7, "the file is empty"},
		{"half a cassette", cassette, half, play, 7, "line"},
		{"a cassette of another version", cassette, replaced(`"cassette":"agentctl.dev/v1"`, `"cassette":"agentctl.dev/v7"`), play, 7, `has format "agentctl.dev/v7", this agentctl reads "agentctl.dev/v1"`},
		{"a cassette that was changed", cassette, replaced("I read.", "I lead."), play, 7, "line"},
		{"a cassette without a line", cassette, withoutLine(5), play, 7, "line"},
		{"no cassette", cassette, constant("a text\n"), play, 7, "this is not a cassette"},

		{"an empty journal", journal, constant(""), audited, 1, "journal"},
		{"half a journal", journal, half, read, 1, "journal"},
		{"half a journal, verified", journal, half, audited, 1, "journal"},
		{"a journal that was changed", journal, replaced("I read.", "I lead."), audited, 1, "changed"},
		{"a journal without a line", journal, withoutLine(5), read, 1, "line|event"},
		{"no journal", journal, constant("a text\n"), read, 1, "read event 1"},
		{"half an audit log", log, half, audited, 1, "audit.log"},
		{"an audit log that was changed", log, replaced("keeper", "hacker"), audited, 1, "audit.log"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.CopyFS(dir, os.DirFS(kept)); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(filepath.Join(dir, "state"), 0o700); err != nil { //nolint:gosec // a folder
				t.Fatal(err)
			}
			files, err := filepath.Glob(filepath.Join(dir, c.file))
			if err != nil || len(files) != 1 {
				t.Fatalf("%v, %v", files, err)
			}
			runs, err := filepath.Glob(filepath.Join(dir, "state", "runs", "keeper-*"))
			if err != nil || len(runs) != 1 {
				t.Fatalf("%v, %v", runs, err)
			}
			args := strings.Fields(strings.Replace(c.command, "RUN", "run/"+filepath.Base(runs[0]), 1))
			if out, code := runIn(t, dir, libexec, args...); code != 0 {
				t.Fatalf("as it was written: exit code %d\n%s", code, out)
			}
			b, err := os.ReadFile(files[0])
			if err != nil {
				t.Fatal(err)
			}
			put(t, files[0], c.change(string(b)))
			out, code := runIn(t, dir, libexec, args...)
			if code != c.code || !regexp.MustCompile(c.want).MatchString(out) || strings.Contains(out, "panic") {
				t.Errorf("agentctl %s: exit code %d, want %d and %q\n%s", c.command, code, c.code, c.want, out)
			}
		})
	}
}
