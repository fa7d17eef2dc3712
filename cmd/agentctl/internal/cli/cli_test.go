package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"agentctl.dev/agentctl/api/crds"
	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/reason"
)

// command runs a command line as main does.
func command(stdin string, args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	code = Main(args, Streams{In: strings.NewReader(stdin), Out: &out, Err: &errs})
	return code, out.String(), errs.String()
}

func TestUsageErrorsAreShortAndExitWith2(t *testing.T) {
	folder := t.TempDir()
	manifest := filepath.Join(folder, "agent.yaml")
	for name, text := range map[string]string{manifest: "kind: Agent\n", filepath.Join(folder, "empty"): " \n", filepath.Join(folder, "binary"): "\xff"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cases := map[string]struct {
		reason string
		args   []string
		want   string // the first line without "error: "
		then   string // the line after it
	}{
		"unknown command":  {"nothing is near", []string{"frobnicate"}, `unknown command "frobnicate"`, "see: agentctl --help"},
		"slip":             {"a near command is named, with the rest of the line", []string{"rnu", "-f", "x"}, `unknown command "rnu"`, "did you mean: agentctl run -f x"},
		"manifest":         {"a manifest is no command", []string{"agent.yaml", "-p", "hi"}, `"agent.yaml" is a manifest, not a command`, "did you mean: agentctl run -f agent.yaml -p hi"},
		"folder":           {"a folder is no command", []string{folder}, fmt.Sprintf("%q is a manifest, not a command", folder), "did you mean: agentctl run -f " + folder},
		"after a flag":     {"a manifest behind a flag is no command either", []string{"--color", "never", "agent.yaml"}, `"agent.yaml" is a manifest, not a command`, "did you mean: agentctl run -f agent.yaml"},
		"unknown flag":     {"the verb's help is named", []string{"run", "--promt", "x"}, "unknown flag: --promt; did you mean --prompt?", "see: agentctl run --help"},
		"the version":      {"so other programs say it", []string{"--version"}, "unknown flag: --version", "did you mean: agentctl version"},
		"a shell":          {"what is no shell gets no script", []string{"completion", "bsh"}, `unknown command "bsh" of agentctl completion`, "did you mean: agentctl completion bash"},
		"an agent's path":  {"an agent has one name", []string{"run", "agent/a/b"}, `"agent/a/b" names no agent`, "see: agentctl run --help"},
		"half a goal":      {"kubectl's goal has a word before it", []string{"wait", "agent/a", "--for=Ready"}, "--for=Ready: did you mean --for=condition=Ready?", "see: agentctl wait --help"},
		"no such flag":     {"nothing is near", []string{"run", "--frobnicate"}, "unknown flag: --frobnicate", "see: agentctl run --help"},
		"no manifests":     {"a run needs manifests", []string{"run"}, "say which manifests with -f FILE, -f FOLDER or -f -, or name an agent of a control plane: agent/NAME", "see: agentctl run --help"},
		"empty -f":         {"an unset variable is no path", []string{"run", "-f", ""}, "-f must not be empty", "see: agentctl run --help"},
		"stdin twice":      {"there is one stdin", []string{"validate", "-f", "-", "-f", "-"}, "-f - may be given once: there is only one stdin", "see: agentctl validate --help"},
		"stdin for both":   {"there is one stdin", []string{"run", "-f", "-", "-p", "-"}, "-f - and -p - cannot both read stdin", "see: agentctl run --help"},
		"format":           {"formats are a closed list", []string{"run", "-f", "x", "-o", "yaml"}, `--output "yaml": must be one of text, json, jsonl`, "see: agentctl run --help"},
		"colour":           {"colours are a closed list", []string{"version", "--color", "blue"}, `--color "blue": must be one of auto, always, never`, "see: agentctl version --help"},
		"loose manifest":   {"run takes no words", []string{"run", manifest}, fmt.Sprintf("unexpected argument %q: manifests are named with -f %s", manifest, manifest), "see: agentctl run --help"},
		"loose prompt":     {"run takes no words", []string{"run", "review it"}, `unexpected argument "review it": a prompt is given with -p, an agent of a control plane is named agent/NAME`, "see: agentctl run --help"},
		"validate a file":  {"validate takes no words", []string{"validate", manifest}, fmt.Sprintf("unexpected argument %q: manifests are named with -f %s", manifest, manifest), "see: agentctl validate --help"},
		"validate a word":  {"validate takes no words", []string{"validate", "all"}, `unexpected argument "all"`, "see: agentctl validate --help"},
		"timeout":          {"a run needs time", []string{"run", "-f", "x", "--timeout", "0s"}, "--timeout must be longer than 0", "see: agentctl run --help"},
		"no duration":      {"a timeout is a duration", []string{"run", "-f", "x", "--timeout", "soon"}, `--timeout "soon": a number with its unit is expected, for example 30s, 5m or 1h30m`, "see: agentctl run --help"},
		"input":            {"an input has a key and a value", []string{"run", "-f", "x", "--input", "a"}, `--input "a" is not of the form key=value`, "see: agentctl run --help"},
		"input without":    {"an input has a key and a value", []string{"run", "-f", "x", "--input", "=b"}, `--input "=b" is not of the form key=value`, "see: agentctl run --help"},
		"input twice":      {"one of two would be lost", []string{"run", "-f", "x", "--input", "a=1", "--input", "a=2"}, `--input a is given twice`, "see: agentctl run --help"},
		"empty prompt":     {"an unset variable is no prompt", []string{"run", "-f", "x", "-p", ""}, "-p is empty", "see: agentctl run --help"},
		"empty file":       {"an empty file is no prompt", []string{"run", "-f", "x", "-p", "@" + folder + "/empty"}, "the prompt in " + folder + "/empty is empty", "see: agentctl run --help"},
		"binary file":      {"a prompt is text", []string{"run", "-f", "x", "-p", "@" + folder + "/binary"}, "the prompt in " + folder + "/binary is not UTF-8 text", "see: agentctl run --help"},
		"folder as prompt": {"a folder is no prompt", []string{"run", "-f", "x", "-p", "@" + folder}, "read the prompt: " + folder + " is not a regular file; pipe it into -p -", "see: agentctl run --help"},
		"no such prompt":   {"a prompt has to exist", []string{"run", "-f", "x", "-p", "@/no/such"}, "read the prompt: stat /no/such: no such file or directory", "see: agentctl run --help"},
		"no run":           {"diff needs a run", []string{"diff"}, "the run (run/ID or @latest) is missing", "see: agentctl diff --help"},
		"two runs":         {"resume takes one run", []string{"resume", "a", "b"}, `unexpected argument "b" after the run (run/ID or @latest)`, "see: agentctl resume --help"},
		"two fields":       {"explain takes one field", []string{"explain", "agent", "policy"}, `unexpected argument "policy": one field is explained`, "see: agentctl explain --help"},
		"wrong field":      {"a near field is named", []string{"explain", "agent.spec.limts"}, `agent.spec has no field "limts"; did you mean "limits"?`, "see: agentctl explain --help"},
		"wrong schema":     {"the other schemas are offered, too", []string{"schema", "reslt"}, `there is no kind "reslt"; did you mean "result"?`, "see: agentctl schema --help"},
		"version of what":  {"version takes no words", []string{"version", "x"}, `unexpected argument "x"`, "see: agentctl version --help"},
		"no such topic":    {"a topic that is none is an error", []string{"help", "exitcodes"}, `there is no help for "exitcodes"`, "see: agentctl --help"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			code, stdout, stderr := command("", c.args...)
			lines := strings.Split(stderr, "\n")
			if code != reason.ExitUsage || stdout != "" || lines[0] != "error: "+c.want || lines[1] != c.then || len(lines) > 4 {
				t.Errorf("%s: exit code %d, stdout %q, stderr\n%s", c.reason, code, stdout, stderr)
			}
		})
	}
}

func TestAskedForHelpIsOnStdout(t *testing.T) {
	for _, args := range [][]string{{}, {"help"}, {"--help"}, {"run", "--help"}, {"help", "run"}, {"help", "exit-codes"}, {"exit-codes"}, {"diff", "-h"}, {"help", "completion"}} {
		code, stdout, stderr := command("", args...)
		if code != 0 || stderr != "" || len(stdout) < 100 {
			t.Errorf("%v: exit code %d, stderr %q, stdout %q", args, code, stderr, stdout)
		}
	}
}

func TestEverySchemaIsJSON(t *testing.T) {
	names := append([]string{"", "agents", "result", "event", "EVENT"}, crds.Kinds()...)
	for _, name := range names {
		args := []string{"schema"}
		if name != "" {
			args = append(args, name)
		}
		code, stdout, stderr := command("", args...)
		var schema struct {
			Schema string `json:"$schema"`
		}
		if err := json.Unmarshal([]byte(stdout), &schema); err != nil || code != 0 || stderr != "" || !strings.Contains(schema.Schema, "json-schema.org/draft") {
			t.Errorf("schema %s: exit code %d, %v, stderr %q, $schema %q", name, code, err, stderr, schema.Schema)
		}
	}
}

func TestExplainTellsTheDefault(t *testing.T) {
	code, stdout, stderr := command("", "explain", "agent.spec.limits.maxSteps")
	if code != 0 || stderr != "" || !strings.Contains(stdout, "default: 50") {
		t.Errorf("exit code %d, stderr %q, stdout\n%s", code, stderr, stdout)
	}
}

func TestVersionIsForProgramsToo(t *testing.T) {
	code, stdout, _ := command("", "version", "-o", "json")
	var v map[string]any
	if err := json.Unmarshal([]byte(stdout), &v); err != nil || code != 0 {
		t.Fatalf("exit code %d, %v", code, err)
	}
	for _, key := range []string{"version", "commit", "modified", "go", "os", "arch"} {
		if _, ok := v[key]; !ok {
			t.Errorf("no %s in %s", key, stdout)
		}
	}
	if code, stdout, _ := command("", "version"); code != 0 || !strings.HasPrefix(stdout, "agentctl ") || strings.Count(stdout, "\n") != 1 {
		t.Errorf("exit code %d, stdout %q", code, stdout)
	}
}

// writeRun writes the journal of a run that began at a second of 1970.
func writeRun(t *testing.T, state, id string, second int64) {
	t.Helper()
	dir := filepath.Join(state, "runs", id)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	line, err := event.Event{Seq: 1, Time: time.Unix(second, 0), Run: id, Data: event.RunStarted{Agent: "a"}}.AppendJSON(nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "events-19700101.jsonl"), append(line, '\n'), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestCompletionKnowsNames(t *testing.T) {
	state := t.TempDir()
	writeRun(t, state, "01a", 1)
	writeRun(t, state, "01b", 2)
	t.Setenv("AGENTCTL_STATE", state)
	cases := map[string]struct {
		reason string
		args   []string
		want   []string
	}{
		"runs":      {"the newest run is the likeliest", []string{"diff", ""}, []string{"@latest", "run/01b", "run/01a"}},
		"one run":   {"diff takes one", []string{"apply-changes", "@latest", ""}, nil},
		"no state":  {"a state folder may be missing", []string{"diff", "--state", "/no/such", ""}, []string{"@latest"}},
		"kinds":     {"explain begins with a kind", []string{"explain", ""}, []string{"agent", "model", "tool", "policy", "skill", "workspace", "run", "approval", "test"}},
		"fields":    {"then come its fields", []string{"explain", "agent.spec.limits."}, []string{"agent.spec.limits.maxCost", "agent.spec.limits.maxDepth", "agent.spec.limits.maxParallelTools", "agent.spec.limits.maxSteps", "agent.spec.limits.maxTokens", "agent.spec.limits.timeout"}},
		"no fields": {"below nothing is nothing", []string{"explain", "agent.nope."}, nil},
		"schemas":   {"schemas are of kinds and of outputs", []string{"schema", ""}, []string{"agent", "model", "tool", "policy", "skill", "workspace", "run", "approval", "test", "result", "event", "audit", "receipt"}},
		"one kind":  {"schema takes one", []string{"schema", "agent", ""}, nil},
		"audit":     {"verify takes a run or a file", []string{"audit", "verify", ""}, []string{"@latest", "run/01b", "run/01a"}},
		"export":    {"in two formats", []string{"audit", "export", "-o", ""}, []string{"jsonl", "csv"}},
		"key":       {"a public key is a file", []string{"audit", "verify", "--key", ""}, []string{"pub", "pem"}},
		"formats":   {"formats are a closed list", []string{"run", "-o", ""}, []string{"text", "json", "jsonl"}},
		"files":     {"manifests are YAML or JSON", []string{"run", "-f", ""}, []string{"yaml", "yml", "json"}},
		"approve":   {"or a file", []string{"run", "--approve", ""}, []string{"never", "prompt", "all", "all,R3"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			code, stdout, _ := command("", append([]string{"__complete"}, c.args...)...)
			var got []string
			for line := range strings.Lines(stdout) {
				if !strings.HasPrefix(line, ":") {
					got = append(got, strings.TrimSpace(line))
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" || code != 0 {
				t.Errorf("%s: exit code %d (-want +got):\n%s", c.reason, code, diff)
			}
		})
	}
	for _, shell := range []string{"bash", "zsh", "fish"} {
		if code, stdout, _ := command("", "completion", shell); code != 0 || !strings.Contains(stdout, "agentctl") {
			t.Errorf("completion %s: exit code %d", shell, code)
		}
	}
}

func TestErrorDecidesTheExitCode(t *testing.T) {
	cases := map[string]struct {
		reason string
		err    error
		code   int
		stderr string
	}{
		"none":     {"nothing is said", nil, 0, ""},
		"said":     {"what was said is not repeated", exit(5), 5, ""},
		"plain":    {"any error is 1", errors.New("disk full"), 1, "error: disk full\n"},
		"reason":   {"a reason has a code and a hint", fmt.Errorf("read: %w", reason.New(reason.CredentialMissing, "no key").WithHint("set it")), 4, "error: read: no key\nhint: set it\n"},
		"internal": {"an object's reason is no end of a run", reason.New(reason.PluginFailed, "x"), 1, "error: x\n"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var stderr bytes.Buffer
			a := &app{Streams: Streams{Err: &stderr}, getenv: os.Getenv, color: newChoice("never")}
			if code := a.report(a.rootCmd(), c.err); code != c.code || stderr.String() != c.stderr {
				t.Errorf("%s: exit code %d, stderr %q", c.reason, code, stderr.String())
			}
		})
	}
}

func TestPromptComesFromTextFileOrStdin(t *testing.T) {
	file := filepath.Join(t.TempDir(), "prompt.md")
	if err := os.WriteFile(file, []byte("from a file\nof two lines\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for value, want := range map[string]string{"as it is\n": "as it is\n", "@" + file: "from a file\nof two lines", "-": "from stdin"} {
		if got, err := prompt(value, strings.NewReader("from stdin\n")); err != nil || got != want {
			t.Errorf("prompt(%q) = %q, %v", value, got, err)
		}
	}
	if _, err := prompt("-", strings.NewReader(strings.Repeat("x", maxPrompt+1))); err == nil {
		t.Error("a prompt without end is read")
	}
}

// echoAgent answers with its prompt; it needs neither tools nor a network.
const echoAgent = `apiVersion: agentctl.dev/v1alpha1
kind: Agent
metadata: {name: echo}
spec: {modelRef: {name: echo}}
---
apiVersion: agentctl.dev/v1alpha1
kind: Model
metadata: {name: echo}
spec:
  provider: scripted
  scripted: {steps: [{say: "${prompt}"}]}
`

func TestVerbsTakeARunFromBeginningToEnd(t *testing.T) {
	t.Setenv("AGENTCTL_STATE", t.TempDir())
	folder := t.TempDir()
	steps := []struct {
		reason string
		stdin  string
		args   []string
		code   int
		stdout string
	}{
		{"manifests come from stdin", echoAgent, []string{"validate", "-f", "-"}, 0, "2 documents valid\n"},
		{"an answer stands alone on stdout", echoAgent, []string{"run", "-f", "-", "-p", "hi", "--workspace", folder}, 0, "hi\n"},
		{"what changed nothing has an empty diff", "", []string{"diff", "@latest"}, 0, ""},
		{"and no files", "", []string{"diff", "@latest", "--stat"}, 0, ""},
		{"mistakes end before a run begins", "kind: Agent\n", []string{"run", "-f", "-"}, reason.ExitUsage, ""},
		{"mistakes are no success", "kind: Agent\n", []string{"validate", "-f", "-"}, reason.ExitUsage, ""},
		{"a run that does not exist is named", "", []string{"diff", "run/nope"}, reason.ExitUsage, ""},
		{"nothing is applied for it either", "", []string{"apply-changes", "run/nope"}, reason.ExitUsage, ""},
	}
	for _, s := range steps {
		code, stdout, stderr := command(s.stdin, s.args...)
		if code != s.code || stdout != s.stdout {
			t.Errorf("%v: %s: exit code %d, stdout %q, stderr\n%s", s.args, s.reason, code, stdout, stderr)
		}
		if (code != 0) != strings.HasPrefix(stderr, "error: ") {
			t.Errorf("%v: exit code %d, stderr\n%s", s.args, code, stderr)
		}
	}
}

// broken is a stream that panics, as a defect of this program would.
type broken struct{}

func (broken) Write([]byte) (int, error) { panic("defect") }

func TestPanicIsNoUsageError(t *testing.T) {
	var stderr bytes.Buffer
	if code := Main([]string{"version"}, Streams{In: strings.NewReader(""), Out: broken{}, Err: &stderr}); code != 1 {
		t.Errorf("exit code %d, want 1", code)
	}
	if !strings.Contains(stderr.String(), "agentctl failed: defect") || !strings.Contains(stderr.String(), "goroutine") {
		t.Errorf("stderr does not tell what happened:\n%s", stderr.String())
	}
}
