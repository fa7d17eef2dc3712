package report

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agentctl.dev/agentctl/api/message"
)

func result(name string, pass bool, steps int, cost message.Cost) Case {
	test, one, _ := strings.Cut(name, "/")
	return Case{Test: test, Case: one, Pass: pass, Used: Used{Steps: steps, Cost: cost, Tokens: int64(10 * steps), DurationMs: 5}}
}

func reported(cases ...Case) *Report {
	r := &Report{Columns: []Column{{}}, Results: cases}
	r.Sum()
	return r
}

func TestSums(t *testing.T) {
	left := result("b/2", false, 0, 0)
	left.NotRun = "later"
	r := reported(result("a", true, 2, 3), result("b/1", false, 1, 4), left)
	want := Report{Tests: 2, Cases: 3, Passed: 1, Failed: 1, NotRun: 1, Results: r.Results, Columns: []Column{{
		Passed: 1, Failed: 1, NotRun: 1, Used: Used{Steps: 3, Tokens: 30, Cost: 7, DurationMs: 10 + 5},
	}}}
	if diff := cmp.Diff(want, *r); diff != "" {
		t.Error(diff)
	}
}

func TestRegressions(t *testing.T) {
	const cent = message.Cost(10_000_000_000)
	unpriced := result("a", true, 2, 0)
	unpriced.Unpriced = true
	left := result("a", false, 0, 0)
	left.NotRun = "later"
	for name, c := range map[string]struct {
		reason                                string
		before, now                           []Case
		tolerance                             float64
		regressions, improvements, gone, news []string
	}{
		"same":        {"nothing differs", []Case{result("a", true, 2, cent)}, []Case{result("a", true, 2, cent)}, 0, nil, nil, nil, nil},
		"fails":       {"what passed fails", []Case{result("a", true, 2, cent)}, []Case{result("a", false, 2, cent)}, 0, []string{"passed a passed failed"}, nil, nil, nil},
		"still":       {"what failed may fail", []Case{result("a", false, 2, cent)}, []Case{result("a", false, 9, cent)}, 0, nil, nil, nil, nil},
		"better":      {"what failed passes", []Case{result("a", false, 2, cent)}, []Case{result("a", true, 9, cent)}, 0, nil, []string{"passed a failed passed"}, nil, nil},
		"new":         {"a new case that passes", []Case{result("a", true, 1, 0)}, []Case{result("a", true, 1, 0), result("b/x", true, 5, cent)}, 0, nil, nil, nil, []string{"b/x"}},
		"new fails":   {"a new case that fails has never passed", []Case{result("a", true, 1, 0)}, []Case{result("a", true, 1, 0), result("b", false, 5, cent)}, 0, []string{"passed b not there failed"}, nil, nil, []string{"b"}},
		"gone":        {"a case that is gone is named", []Case{result("a", true, 1, 0), result("b", true, 1, 0)}, []Case{result("a", true, 1, 0)}, 0, nil, nil, []string{"b"}, nil},
		"steps":       {"more steps", []Case{result("a", true, 10, 0)}, []Case{result("a", true, 11, 0)}, 0, []string{"steps  10 11"}, nil, nil, nil},
		"tolerated":   {"as many as are tolerated", []Case{result("a", true, 10, cent)}, []Case{result("a", true, 11, cent)}, 10, nil, nil, nil, nil},
		"not so many": {"and not one more", []Case{result("a", true, 10, 0)}, []Case{result("a", true, 12, 0)}, 10, []string{"steps  10 12"}, nil, nil, nil},
		"cost":        {"more cost", []Case{result("a", true, 1, cent)}, []Case{result("a", true, 1, 2*cent)}, 50, []string{"cost  $0.01 $0.02"}, nil, nil, nil},
		"cheaper":     {"less cost", []Case{result("a", true, 2, 2*cent)}, []Case{result("a", true, 1, cent)}, 0, nil, []string{"steps  2 1", "cost  $0.02 $0.01"}, nil, nil},
		"unknown":     {"a cost that is not known is not compared", []Case{unpriced}, []Case{result("a", true, 2, cent)}, 0, nil, nil, nil, nil},
		"not run":     {"what was not run says nothing", []Case{result("a", true, 2, cent)}, []Case{left}, 0, nil, nil, []string{"a"}, nil},
		"first":       {"what was free may cost nothing more", []Case{result("a", true, 0, 0)}, []Case{result("a", true, 1, 0)}, 1000, []string{"steps  0 1"}, nil, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			r := reported(c.now...)
			r.Compare(reported(c.before...), "base.json", c.tolerance)
			lines := func(changes []Change) (all []string) {
				for _, x := range changes {
					all = append(all, strings.Join([]string{x.What, x.Case, x.Before, x.Now}, " "))
				}
				return all
			}
			list := func(l []string) []string { return append([]string(nil), l...) }
			got := [][]string{lines(r.Comparison.Regressions), lines(r.Comparison.Improvements), list(r.Comparison.Missing), list(r.Comparison.New)}
			if diff := cmp.Diff([][]string{c.regressions, c.improvements, c.gone, c.news}, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.reason, diff)
			}
		})
	}
}

func TestColumnsAreComparedWithTheirOwn(t *testing.T) {
	of := func(model string, c Case) Case {
		c.Model = model
		return c
	}
	before := &Report{Columns: []Column{{Model: "x"}, {Model: "y"}}, Results: []Case{of("x", result("a", true, 1, 0)), of("y", result("a", false, 9, 0))}}
	now := &Report{Columns: []Column{{Model: "x"}, {Model: "y"}}, Results: []Case{of("x", result("a", true, 2, 0)), of("y", result("a", true, 9, 0))}}
	now.Compare(before, "b", 0)
	want := []Change{{What: "steps", Model: "x", Before: "1", Now: "2"}}
	if diff := cmp.Diff(want, now.Comparison.Regressions); diff != "" {
		t.Error(diff)
	}
	if len(now.Comparison.Improvements) != 1 || now.Comparison.Improvements[0].Model != "y" {
		t.Errorf("got %+v", now.Comparison)
	}
}

func TestAStoredReportIsReadAgain(t *testing.T) {
	file := filepath.Join(t.TempDir(), "base.json")
	r := reported(result("a", true, 2, 3_000_000_000), result("b/c", false, 1, 0))
	for range 2 { // the second time it replaces the first
		if err := r.Write(file); err != nil {
			t.Fatal(err)
		}
	}
	got, err := Read(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(r, got); diff != "" {
		t.Error(diff)
	}
	if left, err := os.ReadDir(filepath.Dir(file)); err != nil || len(left) != 1 {
		t.Errorf("left beside it: %v, %v", left, err)
	}
}

func TestWhatIsNotAReportIsNeitherReadNorReplaced(t *testing.T) {
	whole, err := json.Marshal(reported(result("a", true, 2, 3)))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, c := range map[string]struct{ text, want string }{
		"empty": {"", "empty or was cut off"}, "cut": {string(whole[:len(whole)/2]), "empty or was cut off"}, "other": {"{}", "it has no results"},
		"list": {"[1]", "is not a report"}, "text": {"apiVersion: x", "is not a report"}, "types": {`{"columns": 1, "results": 2}`, "is not a report"},
	} {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Read(file); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
		if err := reported(result("a", true, 1, 0)).Write(file); err == nil || !strings.Contains(err.Error(), "it is not written over") {
			t.Errorf("%s was written over: %v", name, err)
		}
		if now, err := os.ReadFile(file); err != nil || string(now) != c.text { //nolint:gosec // of this test
			t.Errorf("%s is %q now, %v", name, now, err)
		}
	}
	for _, file := range []string{dir, filepath.Join(dir, "none", "x")} {
		if err := reported(result("a", true, 1, 0)).Write(file); err == nil {
			t.Errorf("%s was written", file)
		}
	}
}
