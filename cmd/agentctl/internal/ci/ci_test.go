package ci

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/owenrumney/go-sarif/v3/pkg/report/v210/sarif"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/view"
	"agentctl.dev/agentctl/cmd/agentctl/internal/junit"
)

// attacks are texts that want to be more than text.
var attacks = []string{
	"::set-output name=a::b", "x\n::set-output name=a::b", "\r::add-mask::x", "%0A::error::x", "\n \t::stop-commands::x", "\u00a0::warning::x", "\u3000::group::x",
	"##[set-env name=PATH]/x", "x ##[group]y", "section_start:1:x\r\x1b[0K", "\x1b[0Ksection_end:1:agentctl_run\r\x1b[0K", "::", ":", "##", "#",
	"<script>alert(1)</script>", "![x](https://evil.example/?q)", "| a | b |\n|---|---|", "```\n# out\n```", "</code><img src=x>", "www.evil.example @someone",
	"\x00\x01\x1b[31m\x7f\u202e", "]]></failure><testcase/>", "\xff\xfe", "EOF\nphase<<EOF\nSucceeded\nEOF",
}

func hostile(text string) *view.Result {
	no, denied, rule := "deny", "denied", "p/"+text
	raw, _ := json.Marshal(map[string]any{"findings": []any{
		map[string]any{"file": "a/b c.go", "line": 3, "severity": "high", "message": text + "!", "rule": text},
		map[string]any{"file": "../" + text, "line": 3, "message": text + "!"},
		"no finding",
		map[string]any{"file": "x"},
		map[string]any{"message": 7},
	}})
	args, _ := json.Marshal(map[string]string{"command": text})
	return &view.Result{
		Run: "r", Agent: "a", Phase: view.Failed, Reason: "EvidenceMissing", ExitCode: 6, Message: text, Output: text, Structured: raw,
		ToolCalls: []view.CallResult{{ID: "c1", Tool: "bash", Args: args, Decision: &no, Error: &denied, Rule: &rule, State: "error"}},
		Evidence:  []event.Evidence{{Name: "tests", Message: text}, {Name: "lint", Met: true}}, ChangedFiles: []event.FileChange{{Path: text, Change: "added"}},
	}
}

// obeyed are the lines of a log that GitHub or GitLab would take for commands. GitHub looks
// for :: behind the space of a line, and for ##[ anywhere; GitLab for its sections.
func obeyed(log string) (all []string) {
	for _, l := range strings.FieldsFunc(log, func(r rune) bool { return r == '\n' || r == '\r' }) {
		if strings.HasPrefix(strings.TrimSpace(l), "::") || strings.Contains(l, "##[") || strings.Contains(l, "section_start:") || strings.Contains(l, "section_end:") {
			all = append(all, l)
		}
	}
	return all
}

func TestNoTextBecomesACommandOfTheSystem(t *testing.T) {
	for _, text := range attacks {
		for cut := range len(text) + 1 {
			var log bytes.Buffer
			w := Guard(&log, GitHub, false)
			for _, part := range []string{"before\n", text[:cut], text[cut:], "\nafter\n"} {
				if n, err := w.Write([]byte(part)); err != nil || n != len(part) {
					t.Fatalf("wrote %d of %q: %v", n, part, err)
				}
			}
			if got := obeyed(log.String()); got != nil {
				t.Errorf("%q cut at %d: the system obeys %q", text, cut, got)
			}
		}
	}
	var log bytes.Buffer
	const harmless = "a::b C::D # [x] time 12:30:00\n"
	if _, err := Guard(&log, GitLab, false).Write([]byte(harmless)); err != nil || log.String() != harmless {
		t.Errorf("got %q, want it as it was", log.String())
	}
}

func TestObjectsKeepTheirValues(t *testing.T) {
	for _, text := range attacks {
		want := map[string]string{"output": text + "##[x]"}
		raw, err := json.MarshalIndent(want, "", " ")
		if err != nil {
			t.Fatal(err)
		}
		var log bytes.Buffer
		w := Guard(&log, GitHub, true)
		for i := range raw { // the smallest writes there are
			if _, err := w.Write(raw[i : i+1]); err != nil {
				t.Fatal(err)
			}
		}
		var got, plain map[string]string
		if err := json.Unmarshal(log.Bytes(), &got); err != nil {
			t.Fatalf("%q is no JSON any more: %v", log.String(), err)
		}
		if err := json.Unmarshal(raw, &plain); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(plain, got); diff != "" || strings.Contains(log.String(), "##[") {
			t.Errorf("%q: %s\n%s", text, log.String(), diff)
		}
	}
}

func TestAnnotationsAreCommandsOfTheirOwnOnly(t *testing.T) {
	for _, text := range attacks {
		r := hostile(text)
		found, _ := Findings(r.Structured)
		for i, l := range strings.Split(strings.TrimSuffix(annotations(r, found), "\n"), "\n") {
			want := []string{"::error ", "::error ", "::warning"}[i]
			if !strings.HasPrefix(l, want) || strings.ContainsAny(l, "\r") || strings.Contains(strings.TrimPrefix(l, "::"), "\n") {
				t.Errorf("%q: line %d is %q", text, i, l)
			}
			head, _, _ := strings.Cut(strings.TrimPrefix(l, "::"), "::")
			for property := range strings.SplitSeq(head, ",") {
				if _, value, _ := strings.Cut(property, "="); strings.Contains(value, ":") {
					t.Errorf("%q: the property %q ends the command", text, property)
				}
			}
		}
	}
	got := command("error", "50%\nof it", "file", "a,b:c.go", "line", "", "title", "x")
	if want := "::error file=a%2Cb%3Ac.go,title=x::50%25%0Aof it\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestOnlyTenAnnotationsOfALevel(t *testing.T) {
	found := make([]Finding, 25)
	for i := range found {
		found[i] = Finding{Level: Warning, Message: "x"}
	}
	got := annotations(&view.Result{Phase: view.Succeeded}, found)
	if strings.Count(got, "::warning::x\n") != 10 || !strings.Contains(got, "15 more findings") {
		t.Errorf("got %s", got)
	}
}

func TestNoOutputCanEndItsOwnAndBeginAnother(t *testing.T) {
	delimiter := "agentctl_" + strings.Repeat("61", 16)
	for _, text := range attacks {
		got, err := outputs(hostile(text), nil, strings.NewReader(strings.Repeat("a", 16)))
		if err != nil {
			t.Fatal(err)
		}
		names := []string{}
		for rest := got; rest != ""; { // as the runner reads it
			head, more, ok := strings.Cut(rest, "\n")
			name, end, isHead := strings.Cut(head, "<<")
			_, after, ends := strings.Cut(more, "\n"+end+"\n")
			if !ok || !isHead || !ends || end != delimiter {
				t.Fatalf("%q: %q", text, rest)
			}
			names, rest = append(names, name), after
		}
		want := []string{"run", "phase", "reason", "exit-code", "output", "structured", "findings", "changed-files", "cost", "journal"}
		if diff := cmp.Diff(want, names); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
	if got, err := outputs(&view.Result{Output: "x\n" + delimiter + "\nphase<<x"}, nil, strings.NewReader(strings.Repeat("a", 16))); err == nil {
		t.Errorf("a value with the delimiter was written: %q", got)
	}
	if got, err := outputs(&view.Result{Output: strings.Repeat("x", maxOutput+1)}, nil, strings.NewReader(strings.Repeat("a", 16))); err != nil || strings.Contains(got, "xx") {
		t.Errorf("a part of a long output was written: %v", err)
	}
}

func TestASummaryShowsTextAsText(t *testing.T) {
	for _, text := range attacks {
		r := hostile(text)
		found, omitted := Findings(r.Structured)
		page, answer, _ := strings.Cut(string(summary(r, found, omitted)), "### Answer\n\n")
		for l := range strings.SplitSeq(page, "\n") {
			l = strings.NewReplacer("<code>", "", "</code>", "").Replace(l)
			if strings.ContainsAny(l, "<>[]!`*_@\x1b\x00\r") || strings.Contains(l, "://") || strings.Contains(l, "www.") {
				t.Errorf("%q: the line %q is more than text", text, l)
			}
		}
		fence, rest, _ := strings.Cut(answer, "text\n")
		if body := strings.TrimSuffix(rest, "\n"+fence+"\n\n"); strings.Contains(body, fence) || len(fence) < 3 {
			t.Errorf("%q: the fence %q ends in %q", text, fence, body)
		}
	}
}

func TestTestResultsAreXMLWhateverTheyHold(t *testing.T) {
	for _, text := range attacks {
		raw, err := cases(hostile(text))
		if err != nil {
			t.Fatal(err)
		}
		var back junit.Document
		if err := xml.Unmarshal(raw, &back); err != nil {
			t.Fatalf("%q: %v\n%s", text, err, raw)
		}
		if len(back.Suites) != 1 || back.Tests != 4 || back.Failures != 2 || back.Suites[0].Skipped != 1 {
			t.Errorf("%q: got %+v, want the run and an evidence failed, and a call skipped", text, back)
		}
	}
}

func TestARefusedCallFailsWhereTheRunFailedForIt(t *testing.T) {
	r := hostile("x")
	r.Reason = "Denied"
	raw, err := cases(r)
	if err != nil || !strings.Contains(string(raw), `<failure message="refused by p/x">`) {
		t.Errorf("got %s, %v", raw, err)
	}
}

func TestFindingsAreSARIF(t *testing.T) {
	results := append([]string{"plain"}, attacks...)
	for _, text := range results {
		r := hostile(text)
		found, omitted := Findings(r.Structured)
		if len(found) != 2 || omitted != 3 {
			t.Fatalf("%q: %d findings, %d omitted, want 2 and 3", text, len(found), omitted)
		}
		a := Analysis{Category: "a", Version: "v1", ExitCode: 6, Problem: problem(r), Findings: found, Rules: map[string]string{"finding": "what it is"}}
		valid(t, &a)
	}
	valid(t, &Analysis{})
	valid(t, &Analysis{Findings: []Finding{{Rule: "x", Level: Note, Message: "m", File: "a:b/ü%.go", Line: 1, Column: 2}}})
}

// valid compares a report with the official schema.
func valid(t *testing.T, a *Analysis) {
	t.Helper()
	raw, err := a.SARIF()
	if err != nil {
		t.Fatal(err)
	}
	report, err := sarif.FromBytes(raw)
	if err != nil {
		t.Fatalf("%v\n%s", err, raw)
	}
	if err := report.Validate(); err != nil {
		t.Errorf("%v\n%s", err, raw)
	}
	again, err := json.Marshal(report) // a member that the schema does not have is left out
	if err != nil {
		t.Fatal(err)
	}
	var ours, theirs any
	if err := errors.Join(json.Unmarshal(raw, &ours), json.Unmarshal(again, &theirs)); err != nil {
		t.Fatal(err)
	}
	if lost := missing("", ours, theirs); lost != nil {
		t.Errorf("SARIF has no such members: %v\n%s", lost, raw)
	}
}

// missing are the members of a that b does not have.
func missing(at string, a, b any) (lost []string) {
	switch a := a.(type) {
	case map[string]any:
		other, _ := b.(map[string]any)
		for name, v := range a {
			if w, ok := other[name]; ok {
				lost = append(lost, missing(at+"."+name, v, w)...)
			} else if list, ok := v.([]any); !ok || len(list) > 0 {
				lost = append(lost, at+"."+name)
			}
		}
	case []any:
		other, _ := b.([]any)
		for i, v := range a {
			if i < len(other) {
				lost = append(lost, missing(at, v, other[i])...)
			} else {
				lost = append(lost, at)
			}
		}
	default:
		if a != b {
			lost = append(lost, at)
		}
	}
	return lost
}

func TestAFindingHasAPlaceInTheFolderOnly(t *testing.T) {
	for file, want := range map[string]string{
		"a/b.go": "a/b.go", "./a.go": "a.go", "a/../b.go": "b.go", "/etc/passwd": "", "../x": "", "a/../../x": "", "": "", ".": "", "a\nb": "", `a\b`: "", "C:\\x": "",
	} {
		if got := below(file); got != want {
			t.Errorf("%q: got %q, want %q", file, got, want)
		}
	}
	found, _ := Findings([]byte(`{"findings": [{"file": "/etc/x", "line": 3, "message": "m"}, {"file": "a", "line": -1, "column": 1.5, "severity": "INFO", "message": " m "}]}`))
	want := []Finding{{Level: Warning, Message: "/etc/x: m"}, {Level: Note, Message: "m", File: "a"}}
	if diff := cmp.Diff(want, found); diff != "" {
		t.Error(diff)
	}
	found, omitted := Findings([]byte(`{"findings": [{"title": " T ", "body": "B"}, {"title": "T"}, {"body": "B"}, {"message": "M", "title": "T"}, {"title": " ", "text": "x"}]}`))
	want = []Finding{{Level: Warning, Message: "T\nB"}, {Level: Warning, Message: "T"}, {Level: Warning, Message: "B"}, {Level: Warning, Message: "M"}}
	if diff := cmp.Diff(want, found); diff != "" || omitted != 1 {
		t.Errorf("%d omitted, %s", omitted, diff)
	}
	for _, other := range []string{"", "null", "[]", `{"findings": 1}`, `{"findings": null}`, `"findings"`} {
		if found, omitted := Findings([]byte(other)); len(found)+omitted > 0 {
			t.Errorf("%s: found %v", other, found)
		}
	}
}

func TestASummaryIsAddedToTheStepAsFarAsItFits(t *testing.T) {
	file := filepath.Join(t.TempDir(), "summary")
	j := &Job{System: GitHub, Getenv: func(string) string { return file }}
	write := func(n int) int64 {
		if err := j.add("X", bytes.Repeat([]byte("x"), n), maxSummary); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		return info.Size()
	}
	if n := write(1000); n != 1000 {
		t.Errorf("%d bytes", n)
	}
	if n := write(maxSummary - 2000); n != maxSummary-1000 {
		t.Errorf("%d bytes, want it appended", n)
	}
	short := write(2000) // does not fit: a line says so
	if short <= maxSummary-1000 || short > maxSummary-900 {
		t.Errorf("%d bytes, want a line", short)
	}
	if n := write(maxSummary); n > maxSummary {
		t.Errorf("%d bytes are more than GitHub takes", n)
	}
}

func TestReportsAreWrittenOrNamed(t *testing.T) {
	dir := t.TempDir()
	var log bytes.Buffer
	j := &Job{System: GitLab, Log: &log, Now: func() time.Time { return time.Unix(5, 0) }, Getenv: func(string) string { return "" }}
	for _, kind := range Kinds {
		j.Files = append(j.Files, File{kind, filepath.Join(dir, kind)})
	}
	if err := j.Check(); err != nil {
		t.Fatal(err)
	}
	if err := j.Begin(); err != nil {
		t.Fatal(err)
	}
	r := hostile("x")
	r.Phase = view.Succeeded
	if err := j.End(*r); err != nil {
		t.Fatal(err)
	}
	for _, f := range j.Files {
		if text, err := os.ReadFile(f.Path); err != nil || len(text) < 100 {
			t.Errorf("%s: %q, %v", f.Kind, text, err)
		}
	}
	if want := "\x1b[0Ksection_start:5:agentctl_run\r\x1b[0Kagentctl run\n\x1b[0Ksection_end:5:agentctl_run\r\x1b[0K\n"; log.String() != want {
		t.Errorf("log %q, want %q", log.String(), want)
	}
	j.Files = []File{{"junit", filepath.Join(dir, "none", "x")}, {"json", filepath.Join(dir, "again")}}
	if err := j.Check(); err == nil {
		t.Error("a folder that is not there was accepted")
	}
	err := j.End(*r)
	if _, there := os.Stat(filepath.Join(dir, "again")); err == nil || there != nil {
		t.Errorf("got %v, %v: one report failed, and the other was to be written", err, there)
	}
	for _, files := range [][]File{{{"json", dir}}, {{"json", "x"}, {"junit", "./x"}}} {
		if err := (&Job{Files: files}).Check(); err == nil {
			t.Errorf("%v was accepted", files)
		}
	}
}

func TestASystemIsFoundByItsVariables(t *testing.T) {
	for name, c := range map[string]struct {
		asked, want System
		variable    string
	}{
		"github": {Auto, GitHub, "GITHUB_ACTIONS"}, "gitlab": {Auto, GitLab, "GITLAB_CI"}, "neither": {Auto, None, "CI"}, "named": {GitLab, GitLab, "GITHUB_ACTIONS"}, "none": {None, None, "GITLAB_CI"},
	} {
		if got := Detect(c.asked, func(v string) string { return map[bool]string{true: "true"}[v == c.variable] }); got != c.want {
			t.Errorf("%s: got %s, want %s", name, got, c.want)
		}
	}
}
