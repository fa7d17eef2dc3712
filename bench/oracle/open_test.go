//go:build linux && amd64

package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the open findings anew")

const openFile = "testdata/open.jsonl"

// The scripts of fixed seeds do nothing that is missing in exact facts, besides what is
// listed as open. What is fixed leaves the list: go test ./oracle -run TestOpenFindings -update
func TestOpenFindings(t *testing.T) {
	if testing.Short() {
		t.Skip("runs a thousand scripts")
	}
	open, err := readOpen(openFile)
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		open = nil
	}
	e := examiner{judge: local{}, boxes: testBoxes(t)}
	var still openFindings
	for _, known := range open {
		if r := e.Examine(sample{Script: known.Script}); r.err != nil {
			t.Fatal(r.err)
		} else if slices.ContainsFunc(r.Missing, func(m Effect) bool { return m.sort() == known.Effect }) {
			still = append(still, known)
			continue
		}
		t.Errorf("%q is fixed: it does not %s without saying so; take it out of %s with -update", known.Script, known.Effect, openFile)
	}
	samples, err := options{scripts: 500, seed: 18, dash: true}.samples()
	if err != nil {
		t.Fatal(err)
	}
	exact := 0
	for r := range e.ExamineAll(t.Context(), samples) {
		if r.Exact {
			exact++
		}
		if r.err != nil {
			t.Fatal(r.err)
		}
		// What happens in the background or is cut at the deadline may differ: a finding
		// has to repeat.
		if r.Trace.Cut || still.Has(r) {
			continue
		}
		if r = e.Examine(r.sample); r.Trace.Cut || still.Has(r) {
			continue
		}
		if r, err = e.Minimise(r); err != nil {
			t.Fatal(err)
		}
		for _, m := range r.Missing {
			if still.Has(result{Missing: []Effect{m}}) {
				continue
			}
			still = append(still, openFinding{m.sort(), r.text()})
			if !*update {
				t.Errorf("the facts of this script are called exact and lack %q:\n%s", m, r.text())
			}
		}
	}
	if exact < 200 {
		t.Errorf("only %d scripts have exact facts", exact)
	}
	if *update {
		writeOpen(t, still)
	}
}

func writeOpen(t *testing.T, open openFindings) {
	t.Helper()
	slices.SortFunc(open, func(a, b openFinding) int { return strings.Compare(a.Effect, b.Effect) })
	var text bytes.Buffer
	lines := json.NewEncoder(&text)
	lines.SetEscapeHTML(false)
	for _, one := range open {
		if err := lines.Encode(one); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(openFile, text.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestOpenFindingsAreOfOneEffect(t *testing.T) {
	open := openFindings{{"read by cat", "cat x"}}
	read, write := Effect{Read, "/a", "cat", false}, Effect{Write, "/a", "cat", false}
	if !open.Has(result{Missing: []Effect{read}}) || open.Has(result{Missing: []Effect{read, write}}) {
		t.Error("another effect of the same program is not open")
	}
}
