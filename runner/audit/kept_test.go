package audit

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/view"
	"agentctl.dev/agentctl/runner/audit/trail"
	"agentctl.dev/agentctl/runner/journal"
	"agentctl.dev/agentctl/runner/workspace"
)

// signCommand has the test program sign its standard input with the key file that follows.
const signCommand = "sign-with"

func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == signCommand {
		os.Exit(signStdin(os.Args[2:]))
	}
	goleak.VerifyTestMain(m)
}

// signStdin is the program of a signer: it prints the signature as it is, or in base64.
func signStdin(args []string) int {
	key, err := ReadKey(context.Background(), args[0])
	if err != nil {
		return 1
	}
	text, err := io.ReadAll(os.Stdin)
	if err != nil {
		return 1
	}
	sig, _ := key.Sign(context.Background(), text) // never fails
	if len(args) > 1 {
		sig = []byte(base64.StdEncoding.EncodeToString(sig) + "\n")
	}
	_, err = os.Stdout.Write(sig)
	if err != nil {
		return 1
	}
	return 0
}

// kept is a run whose process keeps its journal and its audit log.
type kept struct {
	t          testing.TB
	state, id  string
	dir        string
	w          *journal.Writer
	calls      int
	blob, plan string
}

// files are what the runs of these tests leave.
var files = map[string]string{"README.md": "# Hello\n", "src/new.go": "package src\n"}

// begin begins a run; Parent may be nil.
func begin(t testing.TB, state, id string, parent *event.Parent) *kept {
	t.Helper()
	k := &kept{t: t, state: state, id: id, dir: journal.Dir(state, id)}
	var err error
	if k.w, err = trail.Create(t.Context(), journal.Options{Dir: k.dir, Run: id}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = k.w.Close() })
	k.plan = k.put(`{"agent":{"kind":"Agent","metadata":{"name":"worker"}},"model":{"kind":"Model","metadata":{"name":"script"}},` +
		`"tools":[{"tool":{"kind":"Tool","metadata":{"name":"bash"}}}],"policies":[{"kind":"Policy","metadata":{"name":"p"}}],"skills":[{"name":"tidy"}]}`)
	k.add("user", "", event.RunStarted{
		Agent: "worker", Model: message.ModelRef{Name: "script", Provider: "scripted"}, Prompt: "go", Inputs: json.RawMessage(`{"pin":"1234"}`), Plan: k.plan, Version: "test", User: "jane",
		Isolation: "Sandbox", Workspace: event.Workspace{Source: "/src", Dir: "/copy", Strategy: "Copy"}, Parent: parent, Audit: trail.Begin(),
		Prices: []event.ModelPrice{{Model: "script", Source: "free", TokenRates: event.TokenRates{Input: "0", Output: "0"}}},
	})
	k.add("", "", event.SecretResolved{From: "env", Name: "TOKEN", Tool: "bash", Field: "spec.env[0]"})
	return k
}

func (k *kept) put(text string) string {
	k.t.Helper()
	id, err := k.w.PutBlob([]byte(text))
	if err != nil {
		k.t.Fatal(err)
	}
	return id
}

func (k *kept) add(in, call string, p event.Payload) {
	k.t.Helper()
	if _, err := k.w.Append(event.Event{Message: in, Part: "p" + call, Call: call, Data: p}); err != nil {
		k.t.Fatal(err)
	}
}

// turn adds one answer of the model with one call, and what comes of it.
func (k *kept) turn(decision message.Decision, output string) {
	k.t.Helper()
	k.calls++
	in, call, args := fmt.Sprint("m", k.calls), fmt.Sprint("call_", k.calls), json.RawMessage(`{"command":"date","prompt":"tell the time"}`)
	k.add(in, "", event.StepStart{Step: k.calls})
	k.add(in, "", event.ModelRequest{Step: k.calls})
	k.add(in, "", event.TextStart{})
	for range 10 {
		k.add(in, "", event.TextDelta{Text: "a piece of a text "})
	}
	k.add(in, "", event.TextEnd{Text: strings.Repeat("a piece of a text ", 10)})
	k.add(in, call, event.ToolInputStart{Tool: "bash"})
	k.add(in, call, event.ToolInputDelta{Text: string(args)})
	k.add(in, "", event.ModelResponse{Model: message.ModelRef{Name: "script", Provider: "scripted"}, Finish: message.FinishToolCalls, Tokens: message.Usage{Input: 10, Output: 2}})
	k.add(in, call, event.ToolInputEnd{Tool: "bash", Raw: string(args), Input: args})
	k.add(in, call, event.PolicyDecision{Decision: decision})
	if decision.Action == message.Ask {
		k.add(in, call, event.ApprovalRequested{Tool: "bash", Args: args, Rule: decision.Rule, Risk: decision.Risk})
		k.add(in, call, event.ApprovalDecided{Answer: message.Answer{State: message.Approved, By: "jane@pts/3", Scope: message.Once}})
	}
	if decision.Action == message.Deny {
		k.add(in, call, event.ToolError{ToolResult: message.ToolResult{Code: message.CodeDenied, Text: "denied"}})
		return
	}
	k.add(in, call, event.ToolCall{Tool: "bash", Args: args})
	code := 0
	r := message.ToolResult{Text: output, Output: output, ExitCode: &code, DurationMicros: 1500}
	if len(output) > 1000 {
		r.Blob = k.put(output)
		k.blob = r.Blob
	}
	k.add(in, call, event.ToolResult{ToolResult: r})
}

// end ends the run with a change, and closes its journal.
func (k *kept) end() {
	k.t.Helper()
	change := workspace.Change{Strategy: "Copy"}
	patch := event.WorkspacePatch{Diff: k.put("--- a\n+++ b\n")}
	for _, name := range []string{"README.md", "old.txt", "src/new.go"} {
		text, there := files[name]
		c := workspace.FileChange{Path: workspace.Path(name), Change: workspace.Deleted, Old: &workspace.Version{Type: workspace.TypeFile, Hash: "sha256:" + sum(name)}}
		if there {
			c.Change = workspace.Modified
			c.New = &workspace.Version{Type: workspace.TypeFile, Mode: 0o644, Size: int64(len(text)), Hash: "sha256:" + sum(text), Blob: k.put(text)}
		}
		change.Files = append(change.Files, c)
		patch.Files = append(patch.Files, event.FileChange{Path: name, Change: c.Change})
	}
	b, err := json.Marshal(change)
	if err != nil {
		k.t.Fatal(err)
	}
	patch.Change = k.put(string(b))
	k.add("", "", patch)
	k.add("", "", event.RunFinished{Phase: view.Succeeded, Reason: "Completed", Steps: k.calls, Output: "done"})
	k.close()
}

func (k *kept) close() {
	k.t.Helper()
	if err := k.w.Close(); err != nil {
		k.t.Fatal(err)
	}
}

func sum(text string) string {
	s := sha256.Sum256([]byte(text))
	return hex.EncodeToString(s[:])
}

var (
	allow = message.Decision{Action: message.Allow, Rule: "default/byRisk", Risk: "R0"}
	ask   = message.Decision{Action: message.Ask, Rule: "p/ask", Source: "p.yaml:3", Risk: "R2"}
	deny  = message.Decision{Action: message.Deny, Rule: "p/no", Source: "p.yaml:7", Risk: "R3"}
)

// ended is a run that has ended, with a call of each kind.
func ended(t testing.TB) *kept {
	t.Helper()
	k := begin(t, t.TempDir(), "worker-1", nil)
	k.turn(allow, "ten past two\n")
	k.turn(ask, strings.Repeat("a long output\n", 100))
	k.turn(deny, "")
	k.end()
	return k
}

// copied copies a state folder: to change it, or to have a run whose process was killed.
func (k *kept) copied() *kept {
	k.t.Helper()
	c := *k
	c.state = k.t.TempDir()
	c.dir = journal.Dir(c.state, k.id)
	if err := os.CopyFS(c.state, os.DirFS(k.state)); err != nil {
		k.t.Fatal(err)
	}
	return &c
}

func (k *kept) verify() *Verdict {
	k.t.Helper()
	v, err := Verify(k.t.Context(), VerifyOptions{Dir: k.dir})
	if err != nil {
		k.t.Fatal(err)
	}
	return v
}

func (k *kept) path(name string) string { return filepath.Join(k.dir, name) }

func (k *kept) read(name string) []byte {
	k.t.Helper()
	b, err := os.ReadFile(k.path(name))
	if err != nil {
		k.t.Fatal(err)
	}
	return b
}

func (k *kept) write(name string, b []byte) {
	k.t.Helper()
	if err := os.WriteFile(k.path(name), b, 0o600); err != nil {
		k.t.Fatal(err)
	}
}

// everyFile lists the files of the run, but its lock.
func (k *kept) everyFile() (names []string) {
	k.t.Helper()
	err := filepath.WalkDir(k.dir, func(path string, d os.DirEntry, err error) error {
		if name, _ := filepath.Rel(k.dir, path); err == nil && !d.IsDir() && name != "lock" {
			names = append(names, name)
		}
		return err
	})
	if err != nil || len(names) < 5 {
		k.t.Fatal(names, err)
	}
	return names
}
