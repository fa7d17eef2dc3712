package runs

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/view"
	"agentctl.dev/agentctl/runner/journal"
	"agentctl.dev/agentctl/runner/moment"
	"agentctl.dev/agentctl/runner/workspace"
)

func TestTheFirstDifferenceIsFound(t *testing.T) {
	t.Parallel()
	prompt, call := Said{Kind: SaidPrompt, Text: "go"}, Said{Kind: SaidCall, Tool: "bash", Text: `{"command":"ls"}`}
	other, result := Said{Kind: SaidCall, Tool: "read", Text: `{"command":"ls"}`}, Said{Kind: SaidResult, Tool: "bash", Text: "a"}
	for name, c := range map[string]struct {
		reason string
		a, b   []Said
		want   *Divergence
	}{
		"the same":       {"nothing differs", []Said{prompt, call}, []Said{prompt, call}, nil},
		"nothing at all": {"both are at their beginning", nil, nil, nil},
		"another tool":   {"the same arguments of another tool are another call", []Said{prompt, call}, []Said{prompt, other}, &Divergence{Same: 1, A: &call, B: &other}},
		"shorter":        {"one has nothing more", []Said{prompt, call, result}, []Said{prompt, call}, &Divergence{Same: 2, A: &result}},
		"another kind":   {"a call is no result", []Said{prompt, call}, []Said{prompt, result}, &Divergence{Same: 1, A: &call, B: &result}},
	} {
		if d := cmp.Diff(c.want, diverge(c.a, c.b), cmpopts.IgnoreUnexported(Said{})); d != "" {
			t.Errorf("%s: %s (-want +got):\n%s", name, c.reason, d)
		}
	}
}

func TestALongTextIsCutAroundTheDifference(t *testing.T) {
	t.Parallel()
	same := strings.Repeat("é", 20_000)
	d := diverge([]Said{{Text: same + "x" + same}}, []Said{{Text: same + "y" + same}})
	if !strings.Contains(d.A.Text, "éx") || !strings.Contains(d.B.Text, "éy") {
		t.Error("the difference is not in the text")
	}
	if len(d.A.Text) > mostShown+2*len("…") || !strings.HasPrefix(d.A.Text, "…é") || !strings.HasSuffix(d.A.Text, "é…") {
		t.Errorf("a text of %d bytes, %q to %q", len(d.A.Text), d.A.Text[:5], d.A.Text[len(d.A.Text)-5:])
	}
}

func TestEqualCallsAreComparedInTheirOrder(t *testing.T) {
	t.Parallel()
	call := func(id, text string, action message.Action, answer message.ApprovalState) Said {
		return Said{Kind: SaidCall, Tool: "bash", Call: id, Text: text, call: &message.ToolPart{Decision: &message.Decision{Action: action, Rule: "p/" + string(action)}, Approval: answer}}
	}
	a := []Said{call("1", "x", message.Allow, ""), call("2", "x", message.Allow, ""), call("3", "y", message.Ask, message.Approved), call("4", "only a", message.Deny, "")}
	b := []Said{call("5", "y", message.Ask, message.Rejected), call("6", "x", message.Allow, ""), call("7", "x", message.Deny, "")}
	want := []DecisionPair{
		{"bash", "x", Decided{"2", 0, message.Allow, "p/allow", ""}, Decided{"7", 0, message.Deny, "p/deny", ""}},
		{"bash", "y", Decided{"3", 0, message.Ask, "p/ask", message.Approved}, Decided{"5", 0, message.Ask, "p/ask", message.Rejected}},
	}
	if d := cmp.Diff(want, decisionPairs(a, b)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestArgumentsAreComparedByTheirValues(t *testing.T) {
	t.Parallel()
	if got := ordered(`{ "b": 12345678901234567890, "a": "<" }`); got != `{"a":"<","b":12345678901234567890}` {
		t.Errorf("got %s", got)
	}
	if got := ordered(`not json`); got != `not json` {
		t.Errorf("got %s", got)
	}
}

// The folder of a run may hold anything by now: only a regular file in it that has the
// recorded hash is the content of then.
func TestContentsAreNeverThoseOfAnotherFile(t *testing.T) {
	t.Parallel()
	dir, outside := t.TempDir(), t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(filepath.Join(outside, "secret"), "secret")
	write(filepath.Join(dir, "same"), "then")
	write(filepath.Join(dir, "changed"), "now")
	for name, to := range map[string]string{"link": filepath.Join(outside, "secret"), "linked": outside} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	hash := func(text string) string {
		sum := sha256.Sum256([]byte(text))
		return "sha256:" + hex.EncodeToString(sum[:])
	}
	entry := func(path, text string) workspace.Entry {
		return workspace.Entry{Path: workspace.Path(path), Type: workspace.TypeFile, Size: int64(len(text)), Hash: hash(text)}
	}
	for name, c := range map[string]struct {
		reason string
		entry  workspace.Entry
		want   bool
	}{
		"unchanged":     {"it has the hash", entry("same", "then"), true},
		"changed":       {"it has another hash", entry("changed", "before"), false},
		"a link":        {"a link is no file", entry("link", "secret"), false},
		"below a link":  {"a link leads out of the folder", entry("linked/secret", "secret"), false},
		"out of it":     {"a path leads out of the folder", entry("../"+filepath.Base(outside)+"/secret", "secret"), false},
		"gone":          {"there is no file", entry("gone", "gone"), false},
		"other content": {"a blob of another name", entry("same", "secret"), false},
	} {
		m := &moment.Moment{Run: &view.Run{}}
		m.Run.Started.Workspace.Dir = dir
		s := &side{found: journal.Found{Dir: t.TempDir()}, at: m}
		texts := newContents(s, s, &workspace.Snapshot{Entries: []workspace.Entry{c.entry}})
		got, err := texts.GetBlob(c.entry.Hash)
		if (err == nil) != c.want || c.want && string(got) != "then" {
			t.Errorf("%s: %s: got %q, %v", name, c.reason, got, err)
		}
		texts.close()
	}
}
