package programs

import (
	"slices"
	"testing"
)

func TestEveryDescriptionParses(t *testing.T) {
	index, err := entries()
	if err != nil {
		t.Fatal(err)
	}
	for name, entry := range index {
		p, err := parse(entry, 0)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		seen := map[string]bool{}
		for _, o := range p.Options {
			for _, n := range o.Names {
				if seen[n] {
					t.Errorf("%s: the option %s is described twice", name, n)
				}
				seen[n] = true
			}
		}
		for _, r := range p.Rules {
			for _, o := range slices.Concat(r.With, r.Without) {
				if !(condition(o) && o[0] != '-') && !seen[o] && o != "--help" && o != "--version" {
					t.Errorf("%s: %s has a condition on %s, which is no option of it", name, r.Verb, o)
				}
			}
		}
	}
}

func TestOptionsCutShort(t *testing.T) {
	p, ok := Find("rm")
	if !ok {
		t.Fatal("rm is not described")
	}
	for name, want := range map[string]bool{"--rec": true, "--recursive": true, "--r": true, "--in": true, "--no": true, "-r": true, "--x": false, "--": false, "-": false} {
		if o, ok := p.Option(name); ok != want {
			t.Errorf("%s is %v (%v), not %v", name, ok, o, want)
		}
	}
}
