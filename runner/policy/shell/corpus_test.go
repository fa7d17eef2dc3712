package shell

import (
	"os"
	"slices"
	"testing"

	"go.yaml.in/yaml/v3"
)

type entry struct {
	Command string `yaml:"command"`
	Expect  struct {
		Commands []string `yaml:"commands"`
		Writes   []string `yaml:"writes"`
		Reads    []string `yaml:"reads"`
		Network  bool     `yaml:"network"`
		Dynamic  bool     `yaml:"dynamic"`
		Note     string   `yaml:"note"`
	} `yaml:"expect"`
}

func corpus(t testing.TB) []entry {
	t.Helper()
	b, err := os.ReadFile("testdata/corpus.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var entries []entry
	if err := yaml.Unmarshal(b, &entries); err != nil {
		t.Fatal(err)
	}
	if len(entries) < 69 {
		t.Fatalf("the corpus has %d entries", len(entries))
	}
	return entries
}

func names(f Facts) []string {
	out := []string{}
	for _, c := range f.Commands {
		out = append(out, c.Name)
	}
	return out
}

func sorted(s []string) []string {
	s = append([]string{}, s...)
	slices.Sort(s)
	return s
}

// missing returns what want holds more often than got.
func missing(want, got []string) []string {
	var out []string
	left := map[string]int{}
	for _, g := range got {
		left[g]++
	}
	for _, w := range want {
		if left[w]--; left[w] < 0 {
			out = append(out, w)
		}
	}
	return out
}

func TestCorpus(t *testing.T) {
	exact := 0
	entries := corpus(t)
	for _, e := range entries {
		f := Parse(e.Command, "")
		if e.Expect.Dynamic && !f.Dynamic {
			t.Errorf("%q is dynamic (%s), reported as known: %v", e.Command, e.Expect.Note, names(f))
		}
		if m := missing(e.Expect.Commands, names(f)); len(m) > 0 && !f.Dynamic {
			t.Errorf("%q: runs %v (%s), reported %v", e.Command, m, e.Expect.Note, names(f))
		}
		for _, p := range [][2][]string{{e.Expect.Writes, f.Writes}, {e.Expect.Reads, f.Reads}} {
			if m := missing(p[0], p[1]); len(m) > 0 && !f.Dynamic {
				t.Errorf("%q: touches %v (%s), reported %v", e.Command, m, e.Expect.Note, p[1])
			}
		}
		same := slices.Equal(sorted(e.Expect.Commands), sorted(names(f))) && slices.Equal(sorted(e.Expect.Writes), sorted(f.Writes)) &&
			slices.Equal(sorted(e.Expect.Reads), sorted(f.Reads)) && e.Expect.Network == f.Network && e.Expect.Dynamic == f.Dynamic
		if same {
			exact++
			continue
		}
		t.Logf("not exact: %q (%s)\n got  %v W%v R%v net=%v dyn=%v %q\n want %v W%v R%v net=%v dyn=%v", e.Command, e.Expect.Note,
			names(f), f.Writes, f.Reads, f.Network, f.Dynamic, f.Reasons, e.Expect.Commands, e.Expect.Writes, e.Expect.Reads, e.Expect.Network, e.Expect.Dynamic)
	}
	t.Logf("exact: %d of %d", exact, len(entries))
	if exact < len(entries) {
		t.Errorf("%d entries are not exact", len(entries)-exact)
	}
}
