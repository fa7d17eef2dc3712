package cassette

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/v1alpha1"
)

var begin = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)

// story numbers the events of a run, a second apart.
func story(events ...event.Event) []event.Event {
	for i := range events {
		events[i].Seq, events[i].Time, events[i].Run = int64(i+1), begin.Add(time.Duration(i)*time.Second), "r-1"
	}
	return events
}

// small is a cassette with every kind of line.
func small() *Cassette {
	long := v1alpha1.Pricing{Input: "2", Output: "4"}
	return &Cassette{
		Name:   "fix.jsonl",
		Header: Header{Cassette: Format, Version: "1.2.3", Recorded: "2026-03-04T05:06:07Z", Run: "r-1", Agent: "a"},
		Plan:   json.RawMessage(`{"agent":{"a<b":"ü\u2028"}}`),
		Tools: []Tool{
			{Name: "bash", Description: "Runs.", Parameters: json.RawMessage(`{"type":"object"}`)},
			{Name: "push", Parameters: json.RawMessage(`{}`), Hidden: true},
		},
		Blobs: []Blob{{ID: "sha256:00", Content: []byte{0, 1, 255}}},
		Facts: Facts{
			Prices: map[string]Price{"fast": {Pricing: v1alpha1.Pricing{Input: "1", Output: "2"}, LongAbove: 9, Long: &long}},
			Window: 1000, SummarizerWindow: 10, PromptBytes: 7, ReserveOutput: 5,
		},
		Events: story(
			event.Event{Message: "m1", Part: "p1", Data: event.RunStarted{Agent: "a", Prompt: "go"}},
			event.Event{Data: event.StepStart{Step: 1}},
			event.Event{Message: "m2", Part: "p2", Data: event.ModelRequest{Step: 1, Messages: 1}},
			event.Event{Message: "m2", Part: "p3", Data: event.TextStart{}},
			event.Event{Message: "m2", Part: "p3", Data: event.TextEnd{Text: "a\n\"b\"<c>\u2028"}},
			event.Event{Message: "m2", Data: event.ModelResponse{Finish: message.FinishStop}},
			event.Event{Data: event.Unknown{Of: "from.tomorrow", Raw: json.RawMessage(`{"x":[1]}`)}},
			event.Event{Message: "m2", Part: "p4", Data: event.StepFinish{Step: 1, Finish: message.FinishStop}},
			event.Event{Data: event.RunFinished{Phase: "Succeeded", Reason: "Completed", Output: "a"}},
		),
	}
}

func text(t testing.TB, c *Cassette) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := c.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestWhatIsWrittenIsRead(t *testing.T) {
	c := small()
	file := text(t, c)
	got, err := Read(c.Name, bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(c, got, cmpopts.IgnoreUnexported(Cassette{})); diff != "" {
		t.Errorf("the cassette has changed (-written +read):\n%s", diff)
	}
	if again := text(t, got); !bytes.Equal(file, again) {
		t.Errorf("written again it is another file:\n%s\n%s", file, again)
	}
	for i, line := range bytes.Split(bytes.TrimSuffix(file, []byte("\n")), []byte("\n")) {
		if !json.Valid(line) {
			t.Errorf("line %d is not JSON: %s", i+1, line)
		}
	}
	for i, e := range got.Events {
		line := strings.Split(string(file), "\n")[got.Line(i)-1]
		if !strings.HasPrefix(line, fmt.Sprintf(`{"seq":%d,`, e.Seq)) {
			t.Errorf("event %d is said to stand on line %d: %s", e.Seq, got.Line(i), line)
		}
	}
}

// damage returns the line that is said to be damaged.
func damage(t *testing.T, file []byte) int {
	t.Helper()
	_, err := Read("fix.jsonl", bytes.NewReader(file))
	d, ok := errors.AsType[*DamageError](err)
	if !ok {
		t.Fatalf("got %v, want damage", err)
	}
	if reason.Of(err) != reason.ReplayDiverged || reason.Hint(err) == "" {
		t.Errorf("%v has reason %s and hint %q", err, reason.Of(err), reason.Hint(err))
	}
	if !strings.HasPrefix(err.Error(), fmt.Sprintf("fix.jsonl:%d: ", d.Line)) {
		t.Errorf("%q does not begin with its place", err)
	}
	return d.Line
}

func TestEveryChangedByteIsFoundAndItsLineNamed(t *testing.T) {
	file := text(t, small())
	line := 1
	for i, b := range file {
		for _, other := range []byte{b ^ 1, b ^ 0x20, '\n'} {
			if other == b {
				continue
			}
			changed := bytes.Clone(file)
			changed[i] = other
			if got := damage(t, changed); got != line {
				t.Fatalf("byte %d, %q for %q, of line %d: line %d is named", i, other, b, line, got)
			}
		}
		if b == '\n' {
			line++
		}
	}
}

func TestEveryLostOrAddedByteIsFound(t *testing.T) {
	file := text(t, small())
	line := 1
	for i, b := range file {
		if got := damage(t, append(bytes.Clone(file[:i]), file[i+1:]...)); got != line {
			t.Fatalf("byte %d of line %d is lost: line %d is named", i, line, got)
		}
		if got := damage(t, append(append(bytes.Clone(file[:i]), ' '), file[i:]...)); got != line {
			t.Fatalf("a blank before byte %d of line %d: line %d is named", i, line, got)
		}
		if got := damage(t, file[:i]); got != line {
			t.Fatalf("cut before byte %d of line %d: line %d is named", i, line, got)
		}
		if b == '\n' {
			line++
		}
	}
	if got := damage(t, append(bytes.Clone(file), '\n')); got != line {
		t.Errorf("a blank line at the end: line %d is named, want %d", got, line)
	}
}

func TestMovedLinesAreFound(t *testing.T) {
	lines := bytes.SplitAfter(text(t, small()), []byte("\n"))
	lines = lines[:len(lines)-1]
	for i := range lines {
		without := append(append([][]byte{}, lines[:i]...), lines[i+1:]...)
		if got := damage(t, bytes.Join(without, nil)); got != i+1 {
			t.Errorf("line %d is dropped: line %d is named", i+1, got)
		}
		double := append(append([][]byte{}, lines[:i+1]...), lines[i:]...)
		if got := damage(t, bytes.Join(double, nil)); got != i+2 {
			t.Errorf("line %d is doubled: line %d is named", i+1, got)
		}
		if i == 0 {
			continue
		}
		swapped := append([][]byte{}, lines...)
		swapped[i-1], swapped[i] = swapped[i], swapped[i-1]
		if got := damage(t, bytes.Join(swapped, nil)); got != i {
			t.Errorf("lines %d and %d are swapped: line %d is named", i, i+1, got)
		}
	}
}

// forge writes lines with hashes that fit.
func forge(t testing.TB, objects ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	ch := &chain{}
	for _, o := range objects {
		o = strings.ReplaceAll(o, "LINES", fmt.Sprint(ch.lines+1))
		o = strings.ReplaceAll(o, "HEAD", ch.head)
		if err := ch.add(&b, []byte(o)); err != nil {
			t.Fatal(err)
		}
	}
	return b.Bytes()
}

func TestWhatNobodyRecordedIsNoCassette(t *testing.T) {
	const (
		header = `{"cassette":"agentctl.dev/v1","run":"r-1"}`
		plan   = `{"plan":{}}`
		facts  = `{"facts":{}}`
		start  = `{"seq":1,"time":"2026-03-04T05:06:07Z","type":"run.started","run":"r-1","data":{}}`
		last   = `{"end":{"lines":LINES,"head":"HEAD"}}`
	)
	if _, err := Read("x", bytes.NewReader(forge(t, header, plan, facts, start, last))); err != nil {
		t.Fatalf("the frame of the cases is wrong: %v", err)
	}
	for name, c := range map[string]struct {
		reason string
		file   []byte
		line   int
		want   string
	}{
		"empty":           {"nothing is no cassette", nil, 1, "is empty"},
		"text":            {"some other file", []byte("hello\n"), 1, "not a cassette"},
		"one line":        {"some other file without a line break", []byte("<html>"), 1, "not a cassette"},
		"half a line":     {"the begin of one", []byte(`{"cassette":"agentctl.dev/v1"`), 1, "no end"},
		"CRLF":            {"version control may convert it", bytes.ReplaceAll(text(t, small()), []byte("\n"), []byte("\r\n")), 1, "CRLF"},
		"json":            {"some other JSON", []byte("{\"a\":1}\n"), 1, "not a cassette"},
		"foreign":         {"a format of tomorrow", forge(t, `{"cassette":"agentctl.dev/v2"}`), 1, `format "agentctl.dev/v2"`},
		"foreign, other":  {"a format whose hashes are others", []byte("{\"cassette\":\"agentctl.dev/v2\",\"sum\":1}\n"), 1, "or its first line was changed"},
		"no plan":         {"a run has a plan", forge(t, header, start, last), 2, "plan is missing"},
		"two plans":       {"and one", forge(t, header, plan, plan), 3, "missing"},
		"no facts":        {"what was known stands before the events", forge(t, header, plan, start), 3, "missing"},
		"late tool":       {"the lines have an order", forge(t, header, plan, facts, `{"tool":{}}`), 4, "no cassette has"},
		"no events":       {"a run has a beginning", forge(t, header, plan, facts, last), 4, "holds no events"},
		"another event":   {"and it comes first", forge(t, header, plan, facts, strings.Replace(start, "run.started", "warning", 1)), 4, "begin of a run"},
		"wrong number":    {"events are numbered", forge(t, header, plan, facts, start, strings.Replace(start, `"seq":1`, `"seq":3`, 1)), 5, "where event 2"},
		"other run":       {"a cassette is one run", forge(t, header, plan, facts, strings.Replace(start, "r-1", "r-2", 1)), 4, `of run "r-2"`},
		"no event":        {"payloads have their types", forge(t, header, plan, facts, strings.Replace(start, `"data":{}`, `"data":{"agent":1}`, 1)), 4, "not an event"},
		"wrong lines":     {"the end knows the number of lines", forge(t, header, plan, facts, start, `{"end":{"lines":4,"head":"HEAD"}}`), 5, "another cassette"},
		"wrong head":      {"and the line before", forge(t, header, plan, facts, start, `{"end":{"lines":LINES,"head":"x"}}`), 5, "another cassette"},
		"unreadable tool": {"a tool has a name", forge(t, header, plan, `{"tool":{"name":1}}`), 3, "cannot be read"},
		"no JSON":         {"lines are JSON", forge(t, header, `{"plan":{}`+"\x00}"), 2, "cannot be read"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := damage(t, c.file); got != c.line {
				t.Errorf("%s: line %d is named, want %d", c.reason, got, c.line)
			}
			if _, err := Read("fix.jsonl", bytes.NewReader(c.file)); !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: got %q, want %q in it", c.reason, err, c.want)
			}
		})
	}
}

// endless gives the same byte for ever.
type endless byte

func (e endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(e)
	}
	return len(p), nil
}

func TestALineHasABound(t *testing.T) {
	file := io.MultiReader(bytes.NewReader(forge(t, `{"cassette":"agentctl.dev/v1"}`)), endless('x'))
	_, err := Read("x", file)
	if d, ok := errors.AsType[*DamageError](err); !ok || d.Line != 2 || !strings.Contains(d.Problem, "longer than") {
		t.Errorf("got %v", err)
	}
	c := small()
	c.Tools[0].Description = strings.Repeat("x", MaxLine)
	if err := c.Write(io.Discard); err == nil || !strings.Contains(err.Error(), "line 3") {
		t.Errorf("a line that nobody could read is written: %v", err)
	}
}

func TestAReaderThatFailsIsNoDamage(t *testing.T) {
	broken := errors.New("input/output error")
	half := text(t, small())[:300]
	_, err := Read("x", io.MultiReader(bytes.NewReader(half), failing{broken}))
	if _, damaged := errors.AsType[*DamageError](err); damaged || !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

func TestSaveReplacesAtOnce(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "fix.jsonl")
	file, err := Place(path)
	if err != nil {
		t.Fatal(err)
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 0 {
		t.Errorf("looking for a place has left %v", entries)
	}
	c := small()
	if err := c.Save(file); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("others may read it: %v, %v", info.Mode(), err)
	}
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink("fix.jsonl", link); err != nil {
		t.Fatal(err)
	}
	c.Agent = "b"
	if file, err = Place(link); err != nil {
		t.Fatal(err)
	}
	if err := c.Save(file); err != nil {
		t.Fatal(err)
	}
	got, err := Open(path)
	if err != nil || got.Agent != "b" {
		t.Errorf("got %+v, %v", got, err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("the mode has changed to %v, %v", info.Mode(), err)
	}
	// One that cannot be written leaves the old one, and nothing else.
	c.Agent, c.Plan = "c", json.RawMessage(`{`)
	if err := c.Save(file); err == nil {
		t.Error("a plan that is not JSON is written")
	}
	if got, err := Open(path); err != nil || got.Agent != "b" {
		t.Errorf("the old cassette is %+v, %v", got, err)
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 2 {
		t.Errorf("left behind: %v", entries)
	}
}

func TestPlaceThatCannotBeWrittenIsRefused(t *testing.T) {
	dir := t.TempDir()
	if err := os.Symlink("nowhere", filepath.Join(dir, "dangling")); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		dir:                                "not a regular file",
		filepath.Join(dir, "no", "x"):      "no such file or directory",
		filepath.Join(dir, "dangling"):     "a file that does not exist",
		filepath.Join(dir, "dangling/x"):   "",
		"/dev/null":                        "not a regular file",
		"/proc/x":                          "",
		filepath.Join(dir, "a\x00b.jsonl"): "",
	} {
		if _, err := Place(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", path, err, want)
		}
	}
}

func TestFilesThatAreNone(t *testing.T) {
	dir := t.TempDir()
	if _, err := Open(dir); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("a folder: %v", err)
	}
	missing := filepath.Join(dir, "x")
	for name, read := range map[string]func(string) error{
		"open": func(p string) error { _, err := Open(p); return err }, "begins": Begins,
	} {
		if err := read(missing); err == nil || err.Error() != missing+": no such file or directory" || !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s of a file that is not there: %v", name, err)
		}
	}
	good := filepath.Join(dir, "good")
	file := text(t, small())
	for name, c := range map[string]struct {
		file []byte
		want string
	}{
		"whole":      {file, ""},
		"damaged":    {bytes.Replace(file, []byte("1.2.3"), []byte("1.2.4"), 1), ""},
		"first line": {bytes.SplitAfter(file, []byte("\n"))[0], ""},
		"other":      {[]byte("a\nb\n"), "not a cassette"},
		"no line":    {[]byte("{"), "not a cassette"},
		"foreign":    {forge(t, `{"cassette":"agentctl.dev/v9"}`), "v9"},
		"endless":    {bytes.Repeat([]byte("x"), maxHeader+1), "not a cassette"},
		"empty":      {nil, "not a cassette"},
	} {
		if err := os.WriteFile(good, c.file, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := Begins(good); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
}
