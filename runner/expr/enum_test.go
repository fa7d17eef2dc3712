package expr

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

const enumSchema = `{"type":"object","properties":{
 "mode":{"type":"string","enum":["fast","slow"]},"kinds":{"type":"array","items":{"type":"string","enum":["a","b"]}},
 "level":{"type":"integer","enum":[1,4]},"count":{"type":"integer","minimum":0,"maximum":9},"least":{"type":"integer","minimum":3},
 "fixed":{"const":"on","type":"string"},"broken":{"type":"integer","minimum":9,"maximum":1},"half":{"type":"integer","minimum":0.5},
 "by":{"type":"object","properties":{"mode":{"type":"string","enum":["mail","sms"]}}},"text":{"type":"string"}}}`

func enumEnv(t *testing.T) *Env {
	t.Helper()
	args, err := FromSchema("Args", json.RawMessage(enumSchema))
	if err != nil {
		t.Fatal(err)
	}
	before, err := NewEnv(Var{"args", args})
	if err != nil {
		t.Fatal(err)
	}
	var of []Type
	for _, src := range []string{"args.mode", "args.kinds", "args.level"} {
		p, err := before.Any(src)
		if err != nil {
			t.Fatal(err)
		}
		of = append(of, p.Output())
	}
	env, err := NewEnv(Var{"args", args}, Var{"risk", Range(0, 3)}, Var{"n", Int}, Var{"names", List(String)}, Var{"modes", Map(Enum("a", "b"))},
		Var{"variables", NewObject("Variables", Field{Name: "mode", Type: of[0]}, Field{Name: "kinds", Type: of[1]}, Field{Name: "level", Type: of[2]})})
	if err != nil {
		t.Fatal(err)
	}
	return env
}

func TestALiteralThatAValueCanNeverBeIsRefused(t *testing.T) {
	env := enumEnv(t)
	for src, want := range map[string]string{
		"risk == 7": "risk is never 7; allowed are 0 to 3", "7 != risk": "risk is never 7", "risk in [2, 7]": "risk is never 7",
		"risk > 3": "risk is never > 3", "3 < risk": "risk is never > 3", "risk >= 4": "risk is never >= 4", "risk < 0": "risk is never < 0", "-1 >= risk": "risk is never <= -1",
		"args.kinds == ['c']": `args.kinds is never "c"`, "['a', 'c'] == args.kinds": `args.kinds is never "c"`,
		"sets.contains(args.kinds, ['c'])": `args.kinds is never "c"`, "sets.intersects(['c'], args.kinds)": `args.kinds is never "c"`,
		"sets.equivalent(args.kinds, ['a', 'c'])": `args.kinds is never "c"`, "args.level == 3": "args.level is never 3; allowed are 1, 4", "args.level in [1, 2]": "args.level is never 2",
		"args.count == 10": "args.count is never 10; allowed are 0 to 9", "args.count > 9": "args.count is never > 9", "args.least == 2": "args.least is never 2; at least 3 is allowed", "args.least <= 2": "args.least is never <= 2",
		"args.fixed == 'off'": `args.fixed is never "off"`, "args.?mode.orValue('') == 'fsat'": `args.mode is never "fsat"; did you mean fast?`,
		"args.?by.?mode.orValue('') in ['mial']": `is never "mial"; did you mean mail?`, "args.?mode.value() == 'fsat'": `args.mode is never "fsat"`,
		"args.?level.orValue(0) == 2":          "args.level is never 2; allowed are 1, 4, 0",
		"(n > 1 ? args.mode : 'none') == 'no'": `args.mode is never "no"`, "args.mode == (n > 1 ? 'fsat' : 'slow')": `args.mode is never "fsat"`,
		"(n > 1 ? args.by.mode : args.mode) == 'c'": `args.by.mode is never "c"; allowed are mail, sms, fast, slow`,
		"variables.mode == 'fsat'":                  `variables.mode is never "fsat"`, "'c' in variables.kinds": `variables.kinds is never "c"`,
		"variables.kinds.exists(k, k == 'c')": `variables.kinds is never "c"`, "variables.level == 2": "variables.level is never 2", "args.kinds[0] == 'c'": `args.kinds is never "c"`,
		"args.text.matches('[a')": `"[a" is no pattern`, "args.text.matches('(?=a)')": "is no pattern", "timestamp('2026-13-01') > timestamp('2026-01-01T00:00:00Z')": `"2026-13-01" is no timestamp`,
		"duration('5 minutes') > duration('5m')": `"5 minutes" is no duration`,
	} {
		_, err := env.Bool(src)
		if bad, ok := errors.AsType[*Error](err); !ok || !strings.Contains(err.Error(), want) || bad.Line != 1 || bad.Col < 1 || bad.Suggestion == "" {
			t.Errorf("%s: got %v, want %s", src, err, want)
		}
	}
}

func TestALiteralThatAValueCanBeIsNot(t *testing.T) {
	env := enumEnv(t)
	for _, src := range []string{
		"risk == 3", "risk >= 0", "risk <= 3", "risk > -1", "risk < 4", "n == 7", "risk == n", "risk in [0, 3]", "args.level == 4", "args.count < 9", "args.count > 8", "args.least > 2",
		"args.least == 9223372036854775807", "args.broken == 5", "args.half == 0", "args.kinds == []", "args.kinds == ['a', 'b']", "sets.contains(args.kinds, names)",
		"args.?mode.orValue('') == ''", "args.?mode.orValue(args.text) == 'x'", "args.?level.orValue(0) == 0", "(n > 1 ? args.mode : args.text) == 'x'", "variables.mode == 'slow'",
		"args.text == 'x'", "args.text.matches('^a$')", "timestamp(args.text) == timestamp(args.text)", "duration('1h30m') > duration('90s')",
	} {
		if _, err := env.Bool(src); err != nil {
			t.Errorf("%s: %v", src, err)
		}
	}
}

func TestALoopOverOtherThingsIsNoEnum(t *testing.T) {
	env := enumEnv(t)
	for _, text := range []string{
		"args.kinds.exists(k, k == 'a') && names.exists(k, k == 'c')", "modes.exists(k, k == 'c')", "names.exists(k, k == 'c')", "args.kinds.map(k, k + 'x').exists(k, k == 'ax')",
		"[args.text].exists(k, k == 'c') && (n > 1 ? args.kinds : names).exists(k, k == 'c')",
	} {
		if _, err := env.Bool(text); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// Tools that share a compiled rule must agree on what its arguments can be.
func TestTypesOfOtherRangesAreNotAlike(t *testing.T) {
	seen := map[string]int{}
	for i, typ := range []Type{Int, Range(0, 3), Range(0, 4), Numbers(0, 3), Numbers(0, 1, 3), String, Enum("a"), Enum("b"), List(Range(0, 3)), List(Range(0, 4))} {
		text, ok := typ.Plain()
		if before, twice := seen[text]; !ok || twice {
			t.Errorf("type %d is described as type %d: %q", i, before, text)
		}
		seen[text] = i
	}
}
