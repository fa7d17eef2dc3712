package model

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agentctl.dev/agentctl/api/message"
)

func text(s string) message.Part { return message.Part{Type: message.PartText, Text: s} }

// What one provider or model has signed is never sent to another.
func TestMetadataGoesBackToItsOwnModelOnly(t *testing.T) {
	m := &message.Message{
		Role: message.RoleAssistant, Model: &message.ModelRef{Name: "a", Provider: "anthropic", Model: "x"},
		Parts: []message.Part{
			{Type: message.PartReasoning, Text: "hm", Metadata: []byte(`"r"`)},
			{Type: message.PartText, Text: "I look.", Metadata: []byte(`"t"`)},
			{Type: message.PartTool, Tool: &message.ToolPart{CallID: "c", Tool: "bash"}, Metadata: []byte(`"c"`)},
		},
	}
	for reason, c := range map[string]struct {
		reader message.ModelRef
		own    bool
	}{
		"the same model":                {message.ModelRef{Name: "a", Provider: "anthropic", Model: "x"}, true},
		"the same one by another Model": {message.ModelRef{Name: "b", Provider: "anthropic", Model: "x"}, false},
		"another model of the provider": {message.ModelRef{Name: "a", Provider: "anthropic", Model: "y"}, false},
		"another provider":              {message.ModelRef{Name: "a", Provider: "openai", Model: "x"}, false},
	} {
		s := ReadAnswer(m, c.reader, nil)
		if s.Text != "I look." || len(s.Calls) != 1 {
			t.Errorf("%s: %+v", reason, s)
		}
		if got := len(s.Reasoning) == 1 && s.TextMetadata != nil && s.Calls[0].Metadata != nil; got != c.own {
			t.Errorf("%s: metadata kept: %v, want %v", reason, got, c.own)
		}
		if none := len(s.Reasoning) == 0 && s.TextMetadata == nil && s.Calls[0].Metadata == nil; none == c.own {
			t.Errorf("%s: some metadata is kept and some is not", reason)
		}
	}
	m.Model = nil
	if s := ReadAnswer(m, message.ModelRef{}, nil); len(s.Reasoning) > 0 {
		t.Error("reasoning of nobody was sent to nobody")
	}
}

// A run that was stopped keeps what was complete.
func TestAnAnswerThatWasCutShort(t *testing.T) {
	result := &message.ToolResult{Text: "out"}
	m := &message.Message{Role: message.RoleAssistant, Error: message.Aborted, Parts: []message.Part{
		{Type: message.PartText, Text: "whole", End: 1},
		text("half"),
		{Type: message.PartTool, Tool: &message.ToolPart{CallID: "1", State: message.StateCompleted, Result: result}},
		{Type: message.PartTool, Tool: &message.ToolPart{CallID: "2", State: message.StateRunning}},
		{Type: message.PartTool, Tool: &message.ToolPart{CallID: "3", State: message.StatePending}},
	}}
	s := ReadAnswer(m, message.ModelRef{}, nil)
	if s.Text != "whole" || len(s.Calls) != 2 {
		t.Errorf("text %q, %d calls", s.Text, len(s.Calls))
	}
	m.Error = message.Void
	if s := ReadAnswer(m, message.ModelRef{}, nil); s.Text != "" || len(s.Calls) > 0 {
		t.Errorf("of a void message: %+v", s)
	}
}

func TestResultsAsTheModelReadsThem(t *testing.T) {
	for name, c := range map[string]struct {
		part message.ToolPart
		want string
	}{
		"result":                 {message.ToolPart{Result: &message.ToolResult{Text: "out"}}, "out"},
		"error":                  {message.ToolPart{Result: &message.ToolResult{Text: "no", Code: message.CodeTool}}, "tool: no"},
		"error with its code":    {message.ToolPart{Result: &message.ToolResult{Text: "denied by x", Code: message.CodeDenied}}, "denied by x"},
		"left out":               {message.ToolPart{Compacted: 1, Result: &message.ToolResult{Text: "long", Blob: "sha256:1"}}, "[output left out to save room; read blob:sha256:1 to see it]"},
		"left out without blob":  {message.ToolPart{Compacted: 1, Result: &message.ToolResult{Text: "long"}}, "[output left out to save room]"},
		"interrupted":            {message.ToolPart{}, interrupted},
		"interrupted on its way": {message.ToolPart{Progress: "so far\n"}, "so far\n" + interrupted},
	} {
		if got := ResultText(&c.part); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestFilesTheModelTakes(t *testing.T) {
	png := message.File{Mime: "image/png", URL: "blob:sha256:1"}
	svg := message.File{Mime: "image/svg+xml", Filename: "a.svg", URL: "data:image/svg+xml;base64,eA=="}
	m := &message.Message{Role: message.RoleUser, Parts: []message.Part{
		text("a"), {Type: message.PartFile, File: &png}, {Type: message.PartFile, File: &svg}, text("b"), {Type: message.PartText, Text: "i", Ignored: true},
	}}
	got := Pieces(m, func(f *message.File) bool { return Inline(f) && MimeOf(f) == "image/png" })
	want := []Piece{{Text: "a"}, {File: &png}, {Text: "[attached: a.svg (image/svg+xml), content not shown]\n\nb"}}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("pieces (-want +got):\n%s", d)
	}
	media, err := LoadMedia(&png, func(id string) ([]byte, error) { return []byte("bytes of " + id), nil })
	if err != nil || media.URL() != "data:image/png;base64,Ynl0ZXMgb2Ygc2hhMjU2OjE=" {
		t.Errorf("a blob: %v, %v", media, err)
	}
	if media, err := LoadMedia(&svg, nil); err != nil || media != (Media{"image/svg+xml", "eA=="}) {
		t.Errorf("a data address: %v, %v", media, err)
	}
	gone := errors.New("gone")
	if _, err := LoadMedia(&png, func(string) ([]byte, error) { return nil, gone }); !errors.Is(err, gone) {
		t.Errorf("a lost blob: %v", err)
	}
	for _, f := range []message.File{png, {URL: "file:///x"}} {
		if _, err := LoadMedia(&f, nil); err == nil {
			t.Errorf("%s: loaded from nowhere", f.URL)
		}
	}
}

func TestContractIsToldInWords(t *testing.T) {
	if got := OutputContract("Be brief.", nil); got != "Be brief." {
		t.Errorf("without a schema: %q", got)
	}
	got := OutputContract("Be brief.", []byte("{\n \"type\": \"object\"\n}"))
	if !strings.HasPrefix(got, "Be brief.\n\n") || !strings.HasSuffix(got, "\n{\"type\":\"object\"}") {
		t.Errorf("with a schema: %q", got)
	}
	if got := OutputContract("", []byte(`{}`)); strings.HasPrefix(got, "\n") {
		t.Errorf("without a system prompt: %q", got)
	}
}

func TestArgumentsAreAlwaysAnObject(t *testing.T) {
	for raw, want := range map[string]string{
		"": "{}", " ": "{}", `{"a": 1}`: `{"a": 1}`, `[1]`: `{"invalid_arguments":"[1]"}`, `{"a":`: `{"invalid_arguments":"{\"a\":"}`, "x": `{"invalid_arguments":"x"}`,
	} {
		if got := SentArguments(raw); got != want {
			t.Errorf("%q: %s, want %s", raw, got, want)
		}
	}
}

func TestSchemasAreSentWithoutWhiteSpace(t *testing.T) {
	got, err := CompactSchema([]byte("{\n  \"title\": \"a  <b>\",\n  \"enum\": [ 1.0, \"\\u00e4\" ]\n}\n"))
	if want := `{"title":"a  <b>","enum":[1.0,"\u00e4"]}`; err != nil || string(got) != want {
		t.Errorf("%s, %v, want %s", got, err, want)
	}
	if _, err := CompactSchema([]byte(`{"a":`)); err == nil {
		t.Error("what is not JSON is no schema")
	}
}
