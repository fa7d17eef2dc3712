package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestARunIsLocatedByEveryName is the table of names and places. The control plane
// has the Runs a-1 (the newest), b-1 and b-2, and the Approval a-1-ask of a-1.
func TestARunIsLocatedByEveryName(t *testing.T) {
	const one, two = "11111111-1111-1111-1111-111111111111", "22222222-2222-2222-2222-222222222222"
	ids := []string{
		"review-01a", "review-01b", "fix-01a", "a-1-01c",
		"nightly-" + one, "nightly-" + one + "-2", "daily-" + one, "daily-" + two,
	}
	for name, c := range map[string]struct {
		reason, word, namespace string
		// want is the id of a run of the state folder, or /NAME of a Run.
		want string
		err  string
	}{
		"id":                   {"an id is the run", "review-01a", "", "review-01a", ""},
		"kind and id":          {"as verbs print it", "run/review-01a", "", "review-01a", ""},
		"plural":               {"as people write it", "runs/review-01a", "", "review-01a", ""},
		"group and id":         {"as objects are printed", "run.agentctl.dev/review-01a", "", "review-01a", ""},
		"prefix":               {"one begins like this", "fix", "", "fix-01a", ""},
		"kind and prefix":      {"the same behind a kind", "run/fix", "", "fix-01a", ""},
		"latest":               {"the one that was started last", "@latest", "", "daily-" + two, ""},
		"kind and latest":      {"the same behind a kind", "run/@latest", "", "daily-" + two, ""},
		"ambiguous":            {"the candidates are listed, the newest first", "review", "", "", `run "review": 2 runs begin like this: run/review-01b, run/review-01a`},
		"name there":           {"a whole name comes before a prefix here", "a-1", "", "/a-1", ""},
		"group and name there": {"as it is printed", "run.agentctl.dev/a-1", "", "/a-1", ""},
		"prefix there":         {"nothing here begins like this", "b-2", "", "/b-2", ""},
		"ambiguous there":      {"the candidates are listed", "b", "", "", `run "b": 2 runs begin like this: run/b-1, run/b-2`},
		"approval":             {"it leads to its run", "approval.agentctl.dev/a-1-ask", "", "/a-1", ""},
		"approval, short":      {"the same", "approval/a-1-ask", "", "/a-1", ""},
		"no approval":          {"it is not there", "approval/none", "", "", `approval "none": not found`},
		"name of an object":    {"its newest attempt is here", "nightly", "", "nightly-" + one + "-2", ""},
		"of two objects":       {"two objects had this name", "daily", "", "", `run "daily": 2 runs begin like this`},
		"flag":                 {"a flag means there", "a-1", "web", "/a-1", ""},
		"flag and latest":      {"the newest there", "@latest", "web", "/a-1", ""},
		"flag and prefix":      {"the only one there that begins like this", "a", "web", "/a-1", ""},
		"flag and id":          {"what is here is not meant", "fix-01a", "web", "", `run "fix-01a": not found`},
		"nowhere":              {"neither here nor there", "nobody", "", "", `run "nobody": not found`},
		"another kind":         {"an agent is not a run", "agent/a-1", "", "", `"agent/a-1" is not a run`},
		"a call":               {"a call is not a run", "a-1/call_1", "", "", `"a-1/call_1" names a call of a run`},
		"nothing":              {"a kind alone", "run/", "", "", `"run/" names no run`},
		"a path":               {"a path is not a name", "../x/y", "", "", "is not a run"},
	} {
		t.Run(name, func(t *testing.T) {
			newPlane(t)
			state := os.Getenv("AGENTCTL_STATE")
			for i, id := range ids {
				dir := filepath.Join(state, "runs", id)
				if err := os.MkdirAll(dir, 0o700); err != nil {
					t.Fatal(err)
				}
				at := time.Date(2026, 1, 1, i, 0, 0, 0, time.UTC).Format(time.RFC3339)
				line := fmt.Sprintf(`{"seq":1,"time":%q,"type":"run.started","run":%q,"data":{}}`+"\n", at, id)
				if err := os.WriteFile(filepath.Join(dir, "events-20260101.jsonl"), []byte(line), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			a := &app{getenv: os.Getenv}
			src, err := (&target{app: a, namespace: c.namespace}).locateWord(t.Context(), c.word)
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Errorf("%s: got %v, want %s", c.reason, err, c.err)
				}
				return
			}
			if err != nil {
				t.Fatalf("%s: %v", c.reason, err)
			}
			defer src.close()
			got := src.id
			if src.client != nil {
				got = "/" + src.run.Name
			}
			if got != c.want {
				t.Errorf("%s: got %s, want %s", c.reason, got, c.want)
			}
		})
	}
}
