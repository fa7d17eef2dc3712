package prompt

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func texts(all []Mention) (out []string) {
	for _, m := range all {
		out = append(out, m.Text)
	}
	return out
}

func TestMentions(t *testing.T) {
	for name, c := range map[string]struct {
		reason, text string
		want         []string
	}{
		"names":        {"a name begins behind a space or a bracket", "@a.go (@b.go) see @c/d, @e;@f", []string{"@a.go", "@b.go)", "@c/d", "@e", "@f"}},
		"address":      {"the @ of an address is none", "me@example.com x@y", nil},
		"quoted":       {"a name with spaces is quoted", `see @"my notes.md" and @"" @"open`, []string{`@"my notes.md"`}},
		"twice":        {"each is there once", "@a @a !`ls` !`ls`", []string{"@a", "!`ls`"}},
		"doubled":      {"a second sign makes it text", "@@a !!`ls` @@ -1 +1 @@", nil},
		"commands":     {"a command is between two backticks of one line", "!`git log -3` !`` !` ` !`open\n` x!`y` ! `z`", []string{"!`git log -3`"}},
		"in a command": {"nothing in a command is a name", "!`cat @a` @b", []string{"!`cat @a`", "@b"}},
		"code":         {"the backtick of code ends a name", "`@a` @b`", []string{"@b"}},
		"data":         {"what is put in later is no part of a name", "@${inputs.file} @src/${inputs.file} @${x}", []string{"@${x}"}},
		"empty":        {"an @ alone is text", "@ @\n@", nil},
		"unicode":      {"any letter may be in a name", "sieh @größe.md nach @日本", []string{"@größe.md", "@日本"}},
	} {
		got, err := Mentions(c.text)
		if err != nil || !slices.Equal(texts(got), c.want) {
			t.Errorf("%s: %s: %q gives %q, %v, want %q", name, c.reason, c.text, texts(got), err, c.want)
		}
	}
}

// Arguments and inputs are put in after the scan, and what is run is what the author wrote.
func TestDataIsNoPartOfAMention(t *testing.T) {
	for text, want := range map[string]string{
		"!`git log ${inputs.x}`": "an input is not put into a command",
	} {
		if _, err := Mentions(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %s", text, err, want)
		}
	}
	got, err := Mentions("!`echo $${inputs.x} $1 $ARGUMENTS`")
	if err != nil || got[0].Command != "echo ${inputs.x} $1 $ARGUMENTS" {
		t.Errorf("got %+v, error %v", got, err)
	}
	for body, want := range map[string]string{
		"!`git log $1`":          "$1 is not put into a command; $$1 leaves it to the shell",
		"!`echo $ARGUMENTS`":     "$ARGUMENTS is not put into a command",
		"!`echo ${inputs.team}`": "${inputs.team} is not put into a command",
	} {
		c, err := ParseCommand([]byte(body))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Mentions(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %s", body, err, want)
		}
	}
	c, err := ParseCommand([]byte("@$1 @src/$1 @x$ARGUMENTS @main.go !`awk '{print $$1}'`"))
	if err != nil {
		t.Fatal(err)
	}
	all, err := c.Mentions()
	if err != nil || !slices.Equal(texts(all), []string{"@main.go", "!`awk '{print $$1}'`"}) || all[1].Command != "awk '{print $1}'" {
		t.Errorf("got %+v, error %v", all, err)
	}
	pasted := "look: @mine !`ls`"
	got, err = Mentions(pasted+" @yours", Span{0, len(pasted)})
	if err != nil || !slices.Equal(texts(got), []string{"@yours"}) {
		t.Errorf("of a text with data: %q, error %v", texts(got), err)
	}
	if got := EscapeData("a ${inputs.x} b ${inputs.x}", Span{0, 14}); got != "a $${inputs.x} b ${inputs.x}" {
		t.Errorf("escaped: %q", got)
	}
}

func TestTargets(t *testing.T) {
	there := []string{"a.go", "src", "src/", "odd#L1", "team", "my notes.md", "dots..."}
	exists := func(path string) bool { return slices.Contains(there, path) }
	for text, want := range map[string]Target{
		"@a.go":           {Mention: Mention{"@a.go", "a.go", ""}, Path: "a.go"},
		"@a.go.":          {Mention: Mention{"@a.go", "a.go", ""}, Path: "a.go"},
		"(@a.go#L2-L3)":   {Mention: Mention{"@a.go#L2-L3", "a.go#L2-L3", ""}, Path: "a.go", First: 2, Last: 3},
		"@a.go#L7":        {Mention: Mention{"@a.go#L7", "a.go#L7", ""}, Path: "a.go", First: 7, Last: 7},
		"@a.go#L7-9:":     {Mention: Mention{"@a.go#L7-9", "a.go#L7-9", ""}, Path: "a.go", First: 7, Last: 9},
		"@src/?":          {Mention: Mention{"@src/", "src/", ""}, Path: "src"},
		"@odd#L1":         {Mention: Mention{"@odd#L1", "odd#L1", ""}, Path: "odd#L1"},
		"@dots...":        {Mention: Mention{"@dots...", "dots...", ""}, Path: "dots..."},
		"@team":           {Mention: Mention{"@team", "team", ""}, Path: "team"},
		"@helper!":        {Mention: Mention{"@helper", "helper", ""}, Agent: "helper"},
		`@"my notes.md"`:  {Mention: Mention{`@"my notes.md"`, "my notes.md", ""}, Path: "my notes.md"},
		"!`ls -l`":        {Mention: Mention{"!`ls -l`", "", "ls -l"}},
		"@nothing @b.go.": {},
	} {
		all, err := Mentions(text)
		if err != nil {
			t.Fatal(err)
		}
		got, err := Targets(all, exists, []string{"helper", "team"})
		if err != nil || len(got) > 1 || len(got) == 0 && want != (Target{}) || len(got) == 1 && got[0] != want {
			t.Errorf("%s: error %v (-want +got):\n%s", text, err, cmp.Diff([]Target{want}, got))
		}
	}
	for text, want := range map[string]string{
		"@a.go#L3-L2": "lines are #L10 or #L10-L20",
		"@a.go#L0":    "lines are #L10 or #L10-L20",
	} {
		all, _ := Mentions(text)
		if _, err := Targets(all, exists, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %s", text, err, want)
		}
	}
	same, _ := Mentions("@a.go @a.go. (@a.go) @./a.go")
	if got, err := Targets(same, func(p string) bool { return strings.TrimPrefix(p, "./") == "a.go" }, nil); err != nil || len(got) != 1 {
		t.Errorf("a file that is named in four ways is there %d times, error %v", len(got), err)
	}
}

// A text full of @ costs little, whatever it says.
func TestManyMentionsAreBounded(t *testing.T) {
	looked := 0
	none := func(string) bool { looked++; return false }
	begun := time.Now()
	for name, text := range map[string]string{
		"alone": strings.Repeat("@", 1<<20), "same": strings.Repeat("@a ", 10_000), "commands": strings.Repeat("!`", 1<<19),
		"long": "@" + strings.Repeat("a", 1<<20), "brackets": "@a" + strings.Repeat(")", 4000), "quotes": strings.Repeat(`@"`, 1<<19), "nested": strings.Repeat("(@", 1<<19),
	} {
		looked = 0
		all, err := Mentions(text)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got, err := Targets(all, none, nil); err != nil || len(got) > maxPlaces || looked > 4 {
			t.Errorf("%s: %d targets, %d looked up, error %v", name, len(got), looked, err)
		}
	}
	if took := time.Since(begun); took > 5*time.Second {
		t.Errorf("it took %s", took)
	}
	var b strings.Builder
	for i := range maxNames + 1 {
		fmt.Fprintf(&b, "@n%d ", i)
	}
	if _, err := Mentions(b.String()); err == nil || !strings.Contains(err.Error(), "more than 10000 different words") {
		t.Errorf("error %v", err)
	}
	all, err := Mentions(b.String()[:b.Len()/2])
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Targets(all, func(string) bool { return true }, nil); err == nil || !strings.Contains(err.Error(), "more than 32") {
		t.Errorf("error %v", err)
	}
}

// FuzzMentions: a place is in the text as it is written, on one line, never overlaps what is
// data, and is found again in the text of the place alone.
func FuzzMentions(f *testing.F) {
	for _, s := range []string{"@a.go#L1-L2 and !`git log`", `@"a b" @@c !!` + "`x`", "a@b ${inputs.x} @${inputs.x}", "!`", "@\xff", "(@a)"} {
		f.Add(s, uint(3), uint(9))
	}
	f.Fuzz(func(t *testing.T, text string, from, to uint) {
		n := uint(len(text))
		data := Span{int(min(from, n)), int(min(max(from, to), n))}
		all, err := Mentions(text, data)
		if err != nil {
			return
		}
		author := text[:data.From] + strings.Repeat("\x00", data.To-data.From) + text[data.To:]
		for _, m := range all {
			if data.From < data.To && !strings.Contains(author, m.Text) || !strings.Contains(text, m.Text) || strings.Contains(m.Text, "\n") {
				t.Errorf("%q with data %v has %q", text, data, m.Text)
			}
			if (m.Name == "") == (m.Command == "") || strings.Contains(m.Name, open) {
				t.Errorf("%q is neither a name nor a command: %+v", text, m)
			}
			if again, err := Mentions(m.Text); err != nil || len(again) != 1 || again[0] != m {
				t.Errorf("%q alone gives %+v, %v", m.Text, again, err)
			}
		}
		if c, err := ParseCommand([]byte(text)); err == nil {
			_, _ = c.Mentions()
		}
	})
}
