package journal

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agentctl.dev/agentctl/api/event"
)

// The latest run is never that of a subagent, not even one that was killed while its
// first event was written.
func TestTheLatestRunIsNoSubagents(t *testing.T) {
	dir := t.TempDir()
	begin := func(run string, parent *event.Parent) {
		w, err := Create(t.Context(), Options{Dir: Dir(dir, run), Run: run})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Append(event.Event{Data: event.RunStarted{Agent: "a", Parent: parent}}); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	begin("lead-01m83", nil)
	child := "scout-" + ChildSuffix("lead-01m83", "call_1", "scout")
	begin(child, &event.Parent{Run: "lead-01m83", Call: "call_1", Root: "lead-01m83"})
	torn := "scout-" + ChildSuffix("lead-01m83", "call_2", "scout")
	if err := os.MkdirAll(Dir(dir, torn), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(Dir(dir, torn), "events-20300101.jsonl"), []byte(`{"seq":1,"ty`), 0o600); err != nil {
		t.Fatal(err)
	}
	if f, err := FindRun(dir, Latest); err != nil || f.ID != "lead-01m83" {
		t.Errorf("the latest is %q, %v", f.ID, err)
	}
	if f, err := FindRun(dir, child); err != nil || f.Parent != "lead-01m83" {
		t.Errorf("%+v, %v", f, err)
	}
	all, err := List(dir)
	if err != nil || len(all) != 3 {
		t.Errorf("%v, %v", all, err)
	}
}

func TestAChildsIDFollowsFromItsCall(t *testing.T) {
	one := ChildSuffix("run", "call_1", "a")
	if one != ChildSuffix("run", "call_1", "a") {
		t.Error("a call that is repeated has another run")
	}
	for _, other := range []string{ChildSuffix("run", "call_2", "a"), ChildSuffix("other", "call_1", "a"), ChildSuffix("run", "call_1", "b"), ChildSuffix("run\x00call", "_1", "a")} {
		if other == one {
			t.Error("two calls have one run")
		}
	}
	if !looksLikeChild("a-"+one) || !validRun("a-"+one) || looksLikeChild("a-01m83140jsmph79ks855xf2rgc") || looksLikeChild(strings.Repeat("c", 25)) {
		t.Errorf("%s is not told apart", one)
	}
}
