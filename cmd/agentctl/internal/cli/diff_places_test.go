package cli

import "testing"

func TestAPlaceIsBehindTheNameOfARun(t *testing.T) {
	t.Parallel()
	for word, want := range map[string]struct {
		run, place string
		named      bool
	}{
		"@latest":                {"@latest", "", false},
		"run/@latest":            {"run/@latest", "", false},
		"run/x":                  {"run/x", "", false},
		"@latest@step/3":         {"@latest", "step/3", true},
		"run/@latest@turn/2":     {"run/@latest", "turn/2", true},
		"run/x@call_1_1":         {"run/x", "call_1_1", true},
		"x@end":                  {"x", "end", true},
		"@latest@":               {"@latest", "", true},
		"run/x@a@b":              {"run/x", "a@b", true}, // an id that a model has made
		"@latest@@latest":        {"@latest", "@latest", true},
		"run/x/call_1_1":         {"run/x/call_1_1", "", false},
		"x@latest":               {"x", "latest", true},
		"a@b.tar.gz":             {"a@b.tar.gz", "", false},
		"./a@b.tar.gz@step/3":    {"./a@b.tar.gz", "step/3", true},
		"run.agentctl.dev/x@y/1": {"run.agentctl.dev/x", "y/1", true},
	} {
		run, place, named := cutPlace(word)
		if run != want.run || place != want.place || named != want.named {
			t.Errorf("%s: got %q, %q, %t, want %q, %q, %t", word, run, place, named, want.run, want.place, want.named)
		}
	}
}
