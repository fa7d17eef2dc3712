package files

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"agentctl.dev/agentctl/plugins/sdk"
)

// past collects what a process answers, for the one after it.
type past []sdk.Past

func (p *past) add(t *testing.T, d *desk, res *sdk.Result) {
	t.Helper()
	b, err := json.Marshal(res.Metadata)
	if err != nil {
		t.Fatal(err)
	}
	*p = append(*p, sdk.Past{Run: d.run, Workspace: d.dir, Metadata: b})
}

// restart gives the desk the tools of another process, which recalls the past.
func (d *desk) restart(p past) {
	s := &set{seen: newSeen(), locks: newLocks()}
	for _, told := range p {
		s.recall(told)
	}
	for _, tool := range s.tools() {
		d.tools[tool.Name()] = tool
	}
}

func TestAnotherProcessKnowsWhatWasReadAndWritten(t *testing.T) {
	d := newDesk(t, map[string]string{"read": "one\n", "edited": "one\n", "foreign": "one\n", "gone": "one\n", "unread": "one\n", "dir/x": "one\n"})
	d.link("dir/x", "link")
	var p past
	for _, f := range []string{"read", "edited", "foreign", "gone", "link", "dir"} {
		p.add(t, d, d.call(t.Context(), "read", args{"path": f}))
	}
	p.add(t, d, d.call(t.Context(), "edit", args{"path": "edited", "oldString": "one", "newString": "two"}))
	p.add(t, d, d.call(t.Context(), "write", args{"path": filepath.Join(d.dir, "new"), "content": "two\n"}))
	d.put("foreign", "changed\n")
	d.restart(p)
	for file, tc := range map[string]struct{ reason, before, refused string }{
		"read":    {"it was read", "one", ""},
		"edited":  {"the newest answer counts", "two", ""},
		"new":     {"what was written is known", "two", ""},
		"dir/x":   {"it was read through a link", "one", ""},
		"foreign": {"somebody changed it since", "changed", "has changed since it was read"},
		"unread":  {"nobody read it", "one", "was not read in this run"},
	} {
		in := args{"path": file, "oldString": tc.before, "newString": "three"}
		if tc.refused == "" {
			d.ok("edit", in)
			d.want(tc.reason, d.get(file), "three\n")
			continue
		}
		if got := d.call(t.Context(), "edit", in); !got.IsError || !strings.Contains(got.Text, tc.refused) {
			t.Errorf("%s: %+v, want it refused: %s", tc.reason, got, tc.refused)
		}
	}
}

func TestAMemoryThatIsNotWholeKnowsNothing(t *testing.T) {
	d := newDesk(t, map[string]string{"f": "one\n"})
	d.ok("read", args{"path": "f"})
	whole := d.call(t.Context(), "read", args{"path": "f"}).Metadata.(fileData)
	for name, spoil := range map[string]func(*sdk.Past){
		"another run":     func(p *sdk.Past) { p.Run = "r2" },
		"no workspace":    func(p *sdk.Past) { p.Workspace = "" },
		"no folder":       func(p *sdk.Past) { p.Workspace += "x" },
		"hash redacted":   func(p *sdk.Past) { p.Metadata = swap(p, whole.Hash, "[redacted]") },
		"hash in part":    func(p *sdk.Past) { p.Metadata = swap(p, whole.Hash[20:], "***") },
		"hash without it": func(p *sdk.Past) { p.Metadata = swap(p, whole.Hash[7:], strings.Repeat("z", 64)) },
		"path redacted":   func(p *sdk.Past) { p.Metadata = swap(p, `"path":"f"`, `"path":"[redacted]"`) },
		"path outside":    func(p *sdk.Past) { p.Metadata = swap(p, `"path":"f"`, `"path":"../f"`) },
		"path empty":      func(p *sdk.Past) { p.Metadata = swap(p, `"path":"f"`, `"path":""`) },
		"no JSON":         func(p *sdk.Past) { p.Metadata = p.Metadata[1:] },
		"another shape":   func(p *sdk.Past) { p.Metadata = []byte(`{"path":5}`) },
		"nothing":         func(p *sdk.Past) { p.Metadata = nil },
	} {
		var p past
		p.add(t, d, d.call(t.Context(), "read", args{"path": "f"}))
		spoil(&p[0])
		d.restart(p)
		got := d.call(t.Context(), "edit", args{"path": "f", "oldString": "one", "newString": "two"})
		if !got.IsError || !strings.Contains(got.Text, "was not read in this run") {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func swap(p *sdk.Past, before, after string) json.RawMessage {
	return json.RawMessage(strings.Replace(string(p.Metadata), before, after, 1))
}
