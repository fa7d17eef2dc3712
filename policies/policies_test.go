package policies

import (
	"strings"
	"testing"
)

func TestLookup(t *testing.T) {
	for _, name := range Names() {
		file, text, ok := Lookup(name)
		if !ok || file != "(shipped)/policies/"+name+"/policy.yaml" || !strings.Contains(string(text), "name: "+name+"\n") {
			t.Errorf("%s: found %t in %s", name, ok, file)
		}
	}
	if len(Names()) < 4 {
		t.Errorf("only %v are shipped", Names())
	}
	for _, name := range []string{"", ".", "..", "../policies/ci", "/ci", "ci/policy.yaml", "nothing", "*"} {
		if _, _, ok := Lookup(name); ok {
			t.Errorf("%q is found", name)
		}
	}
}
