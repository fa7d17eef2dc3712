package decisions

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/runner/policy"
	"agentctl.dev/agentctl/runner/workspace"
)

func state(entries ...workspace.Entry) map[workspace.Path]*workspace.Entry {
	all := map[workspace.Path]*workspace.Entry{}
	for i := range entries {
		all[entries[i].Path] = &entries[i]
	}
	return all
}

func file(path, text string) workspace.Entry {
	sum := sha256.Sum256([]byte(text))
	return workspace.Entry{Path: workspace.Path(path), Type: workspace.TypeFile, Size: int64(len(text)), Hash: "sha256:" + hex.EncodeToString(sum[:])}
}

func link(path, target string) workspace.Entry {
	return workspace.Entry{Path: workspace.Path(path), Type: workspace.TypeLink, Target: workspace.Path(target)}
}

func folder(path string) workspace.Entry {
	return workspace.Entry{Path: workspace.Path(path), Type: workspace.TypeDir}
}

// What is there now: a.txt, out -> a.txt, d/b.txt, run.sh.
func TestWhatIsNotAsItWasKeepsACallFromBeingJudged(t *testing.T) {
	t.Parallel()
	now := []workspace.Entry{file("a.txt", "a"), link("out", "a.txt"), folder("d"), file("d/b.txt", "b"), file("run.sh", "true")}
	without := func(path string) []workspace.Entry {
		var left []workspace.Entry
		for _, e := range now {
			if string(e.Path) != path {
				left = append(left, e)
			}
		}
		return left
	}
	with := func(more ...workspace.Entry) []workspace.Entry {
		return append(without(string(more[0].Path)), more...)
	}
	for name, c := range map[string]struct {
		reason string
		then   []workspace.Entry
		later  []workspace.Entry // nil: then
		relies policy.Reliance
		want   string
	}{
		"the same":            {"all is as it was", now, nil, policy.Reliance{Paths: []string{"a.txt", "out", "d"}, Listed: true}, ""},
		"another content":     {"a path is judged by its name", with(file("a.txt", "other")), nil, policy.Reliance{Paths: []string{"a.txt"}}, ""},
		"a link elsewhere":    {"it was judged by where it led", with(link("out", "/etc")), nil, policy.Reliance{Paths: []string{"out"}}, "out was a link to /etc then"},
		"a link above":        {"each part of a path counts", with(link("d", "/etc")), nil, policy.Reliance{Paths: []string{"d/b.txt"}}, "d was a link to /etc then"},
		"not a link then":     {"the link was made since", with(file("out", "x")), nil, policy.Reliance{Paths: []string{"out"}}, "out was not a link then"},
		"a link of the step":  {"it is not known whether it was there already", without("out"), now, policy.Reliance{Paths: []string{"out"}}, "out became a link in that step"},
		"outside":             {"the journal holds nothing of the host", now, nil, policy.Reliance{Paths: []string{"/etc/passwd"}}, ""},
		"a file less":         {"a search is judged by the names below", without("d/b.txt"), now, policy.Reliance{Paths: []string{"d"}, Listed: true}, "which files were in d"},
		"names do not count":  {"no rule is about paths", without("d/b.txt"), now, policy.Reliance{Paths: []string{"d"}}, ""},
		"a pattern":           {"the names that match are facts", with(file("d/c.txt", "c")), nil, policy.Reliance{Folders: []string{"d"}}, "which files were in d"},
		"a pattern elsewhere": {"another folder is none of its", with(file("e.txt", "c")), nil, policy.Reliance{Folders: []string{"d"}}, ""},
		"a word":              {"a word may be a file", with(file("test", "x")), nil, policy.Reliance{Names: []string{"test"}}, "whether test exists"},
		"a word that is none": {"it was not there, and is not", now, nil, policy.Reliance{Names: []string{"test"}}, ""},
		"a script":            {"its commands are facts", with(file("run.sh", "false")), nil, policy.Reliance{Texts: []string{"run.sh"}}, "the text of run.sh"},
		"the same script":     {"its text is as it was", now, nil, policy.Reliance{Texts: []string{"run.sh"}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if err := os.Mkdir(filepath.Join(dir, "d"), 0o700); err != nil {
				t.Fatal(err)
			}
			for path, text := range map[string]string{"a.txt": "a", "d/b.txt": "b", "run.sh": "true"} {
				if err := os.WriteFile(filepath.Join(dir, path), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.Symlink("a.txt", filepath.Join(dir, "out")); err != nil {
				t.Fatal(err)
			}
			r := c.relies
			for _, list := range []*[]string{&r.Paths, &r.Folders, &r.Names, &r.Texts} {
				var all []string
				for _, p := range *list {
					if !filepath.IsAbs(p) {
						p = filepath.Join(dir, p)
					}
					all = append(all, p)
				}
				*list = all
			}
			in := comparison{dir: dir, own: true, then: state(c.then...), later: state(c.then...), last: state(now...)}
			if c.later != nil {
				in.later = state(c.later...)
			}
			got := in.differs(r)
			if c.want == "" && got != "" || !strings.Contains(got, c.want) {
				t.Errorf("%s: got %q, want %q", c.reason, got, c.want)
			}
		})
	}
}

// Files that were not recorded count as what they were if they were not changed since.
func TestFilesThatWereNotRecordedAreKnownByTheirTimes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a.txt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	r := policy.Reliance{Paths: []string{filepath.Join(dir, "a.txt")}}
	if why := untouched(dir, r, time.Now().Add(time.Hour)); why != "" {
		t.Errorf("not changed since: %s", why)
	}
	if why := untouched(dir, r, time.Now().Add(-time.Hour)); !strings.Contains(why, "a.txt was changed since") {
		t.Errorf("changed since: %q", why)
	}
	r.Paths = []string{filepath.Join(dir, "gone")}
	if why := untouched(dir, r, time.Now()); !strings.Contains(why, "gone is not there now") {
		t.Errorf("gone: %q", why)
	}
	r = policy.Reliance{Paths: []string{dir}, Listed: true}
	if why := untouched(dir, r, time.Now().Add(-time.Hour)); why == "" {
		t.Error("names in the folder have changed since")
	}
}

func TestEachDecisionHasTheStatesAroundIt(t *testing.T) {
	t.Parallel()
	var line timeline
	snapshot := func(step int, id string) {
		line.add(event.Event{Data: event.WorkspaceSnapshot{Step: step, Snapshot: id}})
	}
	before := line.here()
	snapshot(0, "base")
	line.add(event.Event{Data: event.StepStart{Step: 1}})
	alone := line.here()
	line.add(event.Event{Call: "x", Data: event.ToolCall{}})
	second := line.here()
	snapshot(1, "one")
	line.add(event.Event{Data: event.StepStart{Step: 2}})
	quiet := line.here()
	line.add(event.Event{Data: event.StepStart{Step: 3}})
	line.add(event.Event{Call: "y", Data: event.ToolCall{}})
	line.add(event.Event{Data: event.WorkspaceSnapshot{Step: 3, Error: "full"}})
	failed := line.here()
	line.end()
	for name, c := range map[string]struct {
		got  *recorded
		want recorded
	}{
		"before any program": {before, recorded{before: "base", after: "base", last: "one", alone: true}},
		"first of its step":  {alone, recorded{before: "base", after: "base", last: "one", alone: true}},
		"beside another":     {second, recorded{before: "base", after: "one", last: "one"}},
		"a step that reads":  {quiet, recorded{before: "one", after: "one", last: "one", alone: true}},
		"not recorded":       {failed, recorded{before: "one", after: "one", last: "one", failed: true}},
	} {
		if *c.got != c.want {
			t.Errorf("%s: got %+v, want %+v", name, *c.got, c.want)
		}
	}
}
