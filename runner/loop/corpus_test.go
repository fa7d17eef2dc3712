package loop

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"text/template"
	"time"

	"github.com/rogpeppe/go-internal/txtar"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/reason"
)

// corpusBytes and corpusSteps bound a case without an end. The steps are fewer
// than the default of limits.maxSteps: a run that the guard does not end before
// that is ended by another limit, and counts as not found.
const (
	corpusBytes = 400_000
	corpusSteps = 50
)

// TestGuardOverTheCorpus runs every transcript of testdata/guard through the
// loop with the default guard. No legitimate run may be ended, and of the stuck
// ones at least 95 of 100 must be.
func TestGuardOverTheCorpus(t *testing.T) {
	legitimate, stuck, found := 0, 0, 0
	var missed []string
	for _, file := range corpusFiles(t) {
		archive, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		isStuck := strings.HasPrefix(filepath.Base(file), "stuck-")
		for _, c := range archive.Files {
			name := strings.TrimSuffix(filepath.Base(file), ".txt") + "/" + c.Name
			end := runCase(t, name, string(c.Data))
			switch {
			case !isStuck:
				legitimate++
				// A run whose calls are all refused has not succeeded, but is not ended.
				if end.Reason != reason.Completed && end.Reason != reason.Denied {
					t.Errorf("%s: a legitimate run ended %s: %s", name, end.Reason, end.Message)
				}
			default:
				stuck++
				if end.Reason == reason.LoopDetected {
					found++
					continue
				}
				missed = append(missed, fmt.Sprintf("%s (%s)", name, end.Reason))
			}
		}
	}
	t.Logf("%d legitimate runs, %d of %d stuck ones found, not found: %s", legitimate, found, stuck, strings.Join(missed, "; "))
	if legitimate < 100 || stuck < 50 {
		t.Errorf("the corpus has %d legitimate and %d stuck runs, want 100 and 50", legitimate, stuck)
	}
	if found*100 < stuck*95 {
		t.Errorf("%d of %d stuck runs were found, not found: %s", found, stuck, strings.Join(missed, "; "))
	}
}

// TestCorpusCasesDiffer guards the corpus against padding: no two cases are alike.
func TestCorpusCasesDiffer(t *testing.T) {
	names, contents := map[string]string{}, map[string]string{}
	for _, file := range corpusFiles(t) {
		archive, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range archive.Files {
			where := filepath.Base(file) + "/" + c.Name
			kind, _, _ := strings.Cut(filepath.Base(file), "-")
			if other, ok := names[kind+c.Name]; ok {
				t.Errorf("%s has the name of %s", where, other)
			}
			if other, ok := contents[string(c.Data)]; ok {
				t.Errorf("%s has the content of %s", where, other)
			}
			names[kind+c.Name], contents[string(c.Data)] = where, where
		}
	}
}

func corpusFiles(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("testdata/guard/*.txt")
	if err != nil || len(files) < 8 {
		t.Fatalf("the corpus is not there: %v %v", files, err)
	}
	return files
}

// corpusStep is one answer of a case, and what its calls bring.
type corpusStep struct {
	text, reasoning strings.Builder
	calls           []*corpusCall
	length          bool
}

type corpusCall struct {
	tool, args, state string
	output            strings.Builder
	exit              int
	code              message.ErrorCode
	took              time.Duration
}

func runCase(t *testing.T, name, source string) End {
	t.Helper()
	steps, limit := parseCase(t, name, expandCase(t, name, source))
	w := newWorld(t)
	calls := map[string]*corpusCall{}
	state := "start"
	for i, s := range steps {
		a := answer{out: message.Output{Text: s.text.String(), Reasoning: s.reasoning.String(), Finish: message.FinishStop}}
		a.emit = append(pieces(message.DeltaReasoning, s.reasoning.String()), pieces(message.DeltaText, s.text.String())...)
		if s.length {
			a.out.Finish = message.FinishLength
		}
		for j, c := range s.calls {
			id := fmt.Sprintf("call-%d-%d", i, j)
			calls[id] = c
			a.out.Calls = append(a.out.Calls, message.CallRequest{ID: id, Tool: c.tool, Args: c.args})
			first := true
			for _, d := range pieces(message.DeltaTool, c.args) {
				d.Index = j
				if first {
					d.Tool, d.Call = c.tool, id
				}
				first = false
				a.emit = append(a.emit, d)
			}
		}
		w.answers = append(w.answers, a)
	}
	w.decide = func(c message.ToolCall) (message.Decision, error) {
		if s := calls[c.ID]; s.code == message.CodeDenied {
			return message.Decision{Action: message.Deny, Rule: "p/r", Message: s.output.String()}, nil
		}
		return message.Decision{Action: message.Allow}, nil
	}
	w.run = func(_ context.Context, c message.ToolCall) (*message.ToolResult, error) {
		s := calls[c.ID]
		r := &message.ToolResult{Output: s.output.String(), Code: s.code, DurationMicros: s.took.Microseconds(), Writes: c.Tool != "read" && c.Tool != "grep"}
		if s.code == "not_found" {
			r.Code = message.CodeTool
		}
		if s.code == "" && s.exit >= 0 && c.Tool == "bash" {
			r.ExitCode = &s.exit
		}
		// The footer of a result has the duration of the call.
		r.Text = r.Output + "\n[" + (s.took + 7*time.Millisecond).String() + "]"
		if s.state != "" {
			state = s.state
		}
		return r, nil
	}
	return w.start(t.Context(), func(c *Config) {
		c.Toolbox = corpusTools{toolbox{w}, calls}
		c.Files = stateFunc(func() string { return state })
		c.Limits.ReserveOutput = limit
		c.Guard = DefaultGuard()
	})
}

type stateFunc func() string

func (f stateFunc) State(context.Context, string) string { return f() }
func (f stateFunc) Snapshot(context.Context, int)        {}

// corpusTools reject the calls that a case marks as invalid.
type corpusTools struct {
	toolbox
	calls map[string]*corpusCall
}

func (b corpusTools) Check(req message.CallRequest) (message.Checked, error) {
	switch c := b.calls[req.ID]; c.code { //nolint:exhaustive // the others are valid
	case message.CodeUnknownTool, message.CodeSchema, message.CodeBadJSON:
		return message.Checked{}, &message.CallError{Code: c.code, Text: c.output.String()}
	}
	return b.toolbox.Check(req)
}

// pieces splits a text as a provider streams it.
func pieces(kind message.DeltaKind, text string) (all []message.Delta) {
	for len(text) > 0 {
		n := min(len(text), 700)
		all = append(all, message.Delta{Kind: kind, Text: text[:n]})
		text = text[n:]
	}
	return all
}

var errLongEnough = errors.New("long enough")

// cutter takes what a template writes until there is enough of it.
type cutter struct {
	bytes.Buffer
	most int
}

func (c *cutter) Write(b []byte) (int, error) {
	if c.Len() > c.most || bytes.Count(c.Bytes()[max(0, c.Len()-len(b)):], []byte("@step")) > corpusSteps {
		return 0, errLongEnough
	}
	return c.Buffer.Write(b)
}

func upTo(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

func pseudo(i int) uint64 {
	h := fnv.New64a()
	_, _ = fmt.Fprint(h, i)
	return h.Sum64()
}

var syllables = strings.Fields("ba ce di fo gu ha je ki lo mu na pe qui ro su ta ve wi xo yu zar bel con der fin gol hem jin kor lam")

func word(i int) string {
	p := pseudo(i)
	return syllables[p%29] + syllables[p/29%29] + syllables[p/900%29]
}

var caseFuncs = template.FuncMap{
	"n": upTo, "forever": func() []int { return upTo(corpusBytes) },
	"mod": func(a, b int) int { return a % b }, "add": func(a, b int) int { return a + b }, "mul": func(a, b int) int { return a * b },
	"rep":  func(n int, s string) string { return strings.Repeat(s, n) },
	"pick": func(i int, list ...any) any { return list[i%len(list)] },
	"word": word,
	"words": func(i, n int) string {
		var all []string
		for k := range n {
			all = append(all, word(1000*i+k))
		}
		return strings.Join(all, " ")
	},
	"hex": func(i, n int) string {
		var b strings.Builder
		for k := 0; b.Len() < n; k++ {
			fmt.Fprintf(&b, "%016x", pseudo(1000*i+k))
		}
		return b.String()[:n]
	},
}

func expandCase(t *testing.T, name, source string) string {
	t.Helper()
	tmpl, err := template.New(name).Funcs(caseFuncs).Parse(source)
	if err != nil {
		t.Fatal(err)
	}
	out := cutter{most: corpusBytes}
	if first, _, _ := strings.Cut(source, "\n"); strings.HasPrefix(first, "@bytes ") {
		out.most = int(atoi(t, strings.TrimPrefix(first, "@bytes ")))
	}
	if err := tmpl.Execute(&out, nil); err != nil && !errors.Is(err, errLongEnough) {
		t.Fatalf("%s: %v", name, err)
	}
	return out.String()
}

// parseCase reads the lines of a case: see testdata/guard/README.md.
func parseCase(t *testing.T, name, text string) (steps []*corpusStep, limit int64) {
	t.Helper()
	if !slices.ContainsFunc(strings.Split(text, "\n"), func(l string) bool { return strings.HasPrefix(l, "@") }) {
		s := &corpusStep{}
		s.text.WriteString(text)
		return []*corpusStep{s}, 0
	}
	var s *corpusStep
	var c *corpusCall
	var into *strings.Builder
	for line := range strings.Lines(text) {
		directive, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		if !strings.HasPrefix(directive, "@") {
			if into != nil && (line != "\n" || into.Len() > 0) {
				into.WriteString(line)
			}
			continue
		}
		switch directive {
		case "@bytes":
		case "@limit":
			limit = atoi(t, rest)
		case "@step":
			s = &corpusStep{}
			steps, c, into = append(steps, s), nil, &s.text
		case "@reason":
			into = &s.reasoning
		case "@length":
			s.length = true
		case "@call":
			c = &corpusCall{}
			c.tool, c.args, _ = strings.Cut(rest, " ")
			s.calls, into = append(s.calls, c), nil
		case "@out":
			into = &c.output
		case "@exit":
			n, err := strconv.Atoi(rest)
			if err != nil {
				t.Fatalf("%s: %q", name, line)
			}
			c.exit, into = n, &c.output
		case "@err":
			c.code, into = message.ErrorCode(rest), &c.output
		case "@wrote":
			c.state, into = rest, nil
		case "@took":
			d, err := time.ParseDuration(rest)
			if err != nil {
				t.Fatalf("%s: %q", name, line)
			}
			c.took, into = d, nil
		default:
			if into == nil {
				t.Fatalf("%s: %q", name, line)
			}
			into.WriteString(line)
		}
	}
	return steps, limit
}
