package cli

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// scriptFacts is a line of "policy facts" as another program reads it.
type scriptFacts struct {
	Commands []string `json:"commands"`
	Writes   []string `json:"writes"`
	Reads    []string `json:"reads"`
	Network  bool     `json:"network"`
	Dynamic  bool     `json:"dynamic"`
}

func (f *scriptFacts) sort() {
	slices.Sort(f.Commands)
	slices.Sort(f.Writes)
	slices.Sort(f.Reads)
}

func TestPolicyFactsAreThoseOfTheCorpus(t *testing.T) {
	text, err := os.ReadFile("../../../../runner/policy/shell/testdata/corpus.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var corpus []struct {
		Command string      `json:"command"`
		Expect  scriptFacts `json:"expect"`
	}
	if err := yaml.Unmarshal(text, &corpus); err != nil {
		t.Fatal(err)
	}
	if len(corpus) < 69 {
		t.Fatalf("the corpus has %d commands", len(corpus))
	}
	var in, out, stderr bytes.Buffer
	for _, c := range corpus {
		if err := json.NewEncoder(&in).Encode(c.Command); err != nil {
			t.Fatal(err)
		}
	}
	if code := Main([]string{"policy", "facts", "-o", "jsonl"}, Streams{In: &in, Out: &out, Err: &stderr}); code != 0 || stderr.Len() > 0 {
		t.Fatalf("exit code %d: %s", code, &stderr)
	}
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	if len(lines) != len(corpus) {
		t.Fatalf("got %d lines for %d commands", len(lines), len(corpus))
	}
	for i, c := range corpus {
		var got scriptFacts
		if err := json.Unmarshal([]byte(lines[i]), &got); err != nil {
			t.Fatalf("%q: %v", c.Command, err)
		}
		if got.Commands == nil || got.Writes == nil || got.Reads == nil {
			t.Errorf("%q: a list is null: %s", c.Command, lines[i])
		}
		got.sort()
		c.Expect.sort()
		if diff := cmp.Diff(c.Expect, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", c.Command, diff)
		}
	}
}

func TestPolicyFactsAnswerEveryLine(t *testing.T) {
	tests := map[string]struct{ reason, line, want string }{
		"null":        {"null is no text", "null", `{"error":"the line is not a JSON string","dynamic":true}`},
		"object":      {"a call is no command", `{"command":"ls"}`, `{"error":"the line is not a JSON string","dynamic":true}`},
		"empty":       {"an empty line keeps its place", "", `{"error":"the line is empty, not a JSON string","dynamic":true}`},
		"bare":        {"a command without quotes", "ls -l", `{"error":"the line is not a JSON string","dynamic":true}`},
		"open":        {"the string does not end", `"ls`, `{"error":"the line is not a JSON string: unexpected end of JSON input","dynamic":true}`},
		"no UTF-8":    {"a decoder would judge another command", "\"ls \xff\"", `{"error":"the line is not UTF-8 text","dynamic":true}`},
		"too long":    {"a line is not kept in memory for ever", `"` + strings.Repeat("x", 2<<20) + `"`, `{"error":"the line is longer than 1048576 bytes","dynamic":true}`},
		"blank":       {"nothing is done", `" "`, `{"commands":[],"writes":[],"reads":[],"network":false,"dynamic":false,"opaque":false,"details":{"commands":[],"writes":[],"reads":[],"network":false,"opaque":false,"dynamic":false}}`},
		"white space": {"JSON may stand between blanks", ` "true" ` + "\r", `{"commands":["true"],"writes":[],"reads":[],"network":false,"dynamic":false,"opaque":false,"details":{"commands":[{"name":"true","argv":["true"],"decisive":true}],"writes":[],"reads":[],"network":false,"opaque":false,"dynamic":false}}`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			// The line behind it is answered as if nothing had happened, without a line feed too.
			code := Main([]string{"policy", "facts"}, Streams{In: strings.NewReader(tc.line + "\n" + `"ls"`), Out: &out, Err: io.Discard})
			got, rest, _ := strings.Cut(out.String(), "\n")
			if code != 0 || got != tc.want || !strings.HasPrefix(rest, `{"commands":["ls"],`) {
				t.Errorf("%s: exit code %d\n got %s\nwant %s\nthen %s", tc.reason, code, got, tc.want, rest)
			}
		})
	}
}

// A program that asks line by line gets its answer before it says more.
func TestPolicyFactsAnswerAtOnce(t *testing.T) {
	in, ask := io.Pipe()
	answer, out := io.Pipe()
	done := make(chan int, 1)
	go func() {
		done <- Main([]string{"policy", "facts"}, Streams{In: in, Out: out, Err: io.Discard})
		_ = out.Close()
	}()
	lines := bufio.NewScanner(answer)
	for _, question := range []string{"\"ls\"\n", "\"cat x\"\n\"rm", " y\"\n"} {
		if _, err := io.WriteString(ask, question); err != nil {
			t.Fatal(err)
		}
		if !lines.Scan() {
			t.Fatalf("no answer to %q: %v", question, lines.Err())
		}
	}
	if !strings.HasPrefix(lines.Text(), `{"commands":["rm"],"writes":["y"]`) {
		t.Errorf("got %s", lines.Text())
	}
	_ = ask.Close()
	if lines.Scan() {
		t.Errorf("one more line: %s", lines.Text())
	}
	if code := <-done; code != 0 {
		t.Errorf("exit code %d", code)
	}
}
