package prompt

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestACommandIsFilledOnce(t *testing.T) {
	inputs := map[string]json.RawMessage{"team": json.RawMessage(`"docs"`)}
	for name, c := range map[string]struct {
		reason string
		body   string
		args   []string
		want   string
	}{
		"numbers":      {"each has its place", "Compare $1 with $2.", []string{"a", "b"}, "Compare a with b."},
		"rest":         {"the highest takes the rest", "Compare $1 with $2.", []string{"a", "b", "c"}, "Compare a with b c."},
		"twice":        {"a place may come again", "$1 and $1", []string{"a"}, "a and a"},
		"all":          {"all of them in one place", "Review $ARGUMENTS!", []string{"a", "b"}, "Review a b!"},
		"none":         {"no arguments are no text", "Review $ARGUMENTS", nil, "Review "},
		"no place":     {"they are not lost", "Review it.", []string{"a", "b"}, "Review it.\n\nArguments: a b"},
		"input":        {"inputs have their places", "For ${inputs.team}: $1", []string{"a"}, "For docs: a"},
		"literal":      {"two dollars write one", "$$1 $$ARGUMENTS $${inputs.team} costs $$5", []string{}, "$1 $ARGUMENTS ${inputs.team} costs $5"},
		"other dollar": {"a dollar is a dollar", "$HOME $ $0 $01 $$ $ARGUMENTSX $_ $", []string{}, "$HOME $ $0 $01 $$ $ARGUMENTSX $_ $"},
		"data":         {"arguments are not read", "$1 $2 $ARGUMENTS", []string{"$2", "${inputs.team} !`rm` @x $ARGUMENTS"}, "$2 ${inputs.team} !`rm` @x $ARGUMENTS $2 ${inputs.team} !`rm` @x $ARGUMENTS"},
		"joined":       {"nor what they make with the text", "$1{inputs.team} $1ARGUMENTS $${inputs.team}", []string{"$"}, "${inputs.team} $ARGUMENTS ${inputs.team}"},
		"escaping":     {"an argument escapes nothing", "$1${inputs.team}", []string{"$"}, "$docs"},
	} {
		cmd, err := ParseCommand([]byte("---\ndescription: x\n---\n" + c.body))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		got, err := cmd.Fill(c.args, inputs)
		if err != nil || got != c.want {
			t.Errorf("%s: %s: error %v (-want +got):\n%s", name, c.reason, err, cmp.Diff(c.want, got))
		}
	}
}

func TestACommandThatCannotBeFilled(t *testing.T) {
	for body, want := range map[string]string{
		"$1 $2":          "argument 2 is missing: it has a place for 2, and 1 are given",
		"${inputs.nope}": `input "nope" is not given`,
		"${inputs.nope":  "has no closing brace",
	} {
		c, err := ParseCommand([]byte(body))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Fill([]string{"a"}, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %s", body, err, want)
		}
	}
}

func TestParseCommand(t *testing.T) {
	c, err := ParseCommand([]byte("\ufeff---\r\ndescription: Reviews.\r\nagent: reviewer\r\nmodel: fast\r\n---\r\n\r\nReview $1.\r\n"))
	if err != nil || c.Description != "Reviews." || c.Agent != "reviewer" || c.Model != "fast" || c.body != "Review $1." {
		t.Errorf("got %+v, error %v", c, err)
	}
	for text, want := range map[string]string{
		"":                               "it holds no prompt",
		"---\nagent: a\n---\n \n":        "it holds no prompt",
		"---\nagent: a\nReview":          "its head has no end",
		"---\ntools: [bash]\n---\nx":     `unknown field "tools"`,
		"---\nagent: [a]\n---\nx":        "its head has description, agent and model",
		"\xff":                           "it is not UTF-8",
		strings.Repeat("x", 1<<20) + "x": "it is longer than 1 MiB",
	} {
		if _, err := ParseCommand([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.30q: error %v, want %s", text, err, want)
		}
	}
}

// Whatever an argument holds is in the prompt as it is.
func FuzzCommand(f *testing.F) {
	f.Add("Review $1 for ${inputs.team}.", "$ARGUMENTS")
	f.Add("$1$2", "${inputs.team}")
	f.Add("$$1", "a")
	f.Fuzz(func(t *testing.T, body, arg string) {
		c, err := ParseCommand([]byte(body + "\nEND $1"))
		if err != nil {
			return
		}
		got, err := c.Fill([]string{arg}, map[string]json.RawMessage{"team": json.RawMessage(`"t"`)})
		if err == nil && !strings.HasSuffix(got, "END "+arg) && !strings.Contains(body, "$") {
			t.Errorf("%q with %q is %q", body, arg, got)
		}
	})
}
