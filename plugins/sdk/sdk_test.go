package sdk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

type greetIn struct {
	Name  string `json:"name" jsonschema:"whom to greet"`
	Times int    `json:"times,omitempty" jsonschema:"how often"`
}

func greet(_ context.Context, call *Call, in greetIn) (*Result, error) {
	if in.Name == "nobody" {
		return nil, Errorf("there is nobody")
	}
	fmt.Fprintf(call.Output(), "greeting %s\n", in.Name)
	return &Result{Text: strings.Repeat("hello "+in.Name+"\n", max(in.Times, 1))}, nil
}

func TestDescribeIsStableAndWhole(t *testing.T) {
	got, err := Describe(New("greet", "Greets somebody.", greet), New("other", "Is another.", greet, Schema([]byte(`{"type":"object"}`))))
	if err != nil {
		t.Fatal(err)
	}
	want := `[
  {
    "name": "greet",
    "description": "Greets somebody.",
    "parameters": {
      "type": "object",
      "properties": {
        "name": {
          "type": "string",
          "description": "whom to greet"
        },
        "times": {
          "type": "integer",
          "description": "how often"
        }
      },
      "required": [
        "name"
      ],
      "additionalProperties": false
    }
  },
  {
    "name": "other",
    "description": "Is another.",
    "parameters": {
      "type": "object"
    }
  }
]`
	if d := cmp.Diff(want, string(got)); d != "" {
		t.Errorf("description (-want +got):\n%s", d)
	}
}

func TestUnusableToolsAreReported(t *testing.T) {
	ok := New("ok", "d", greet)
	for want, tools := range map[string][]Tool{
		"no tools to serve":              nil,
		`tool "ok": two tools`:           {ok, ok},
		`tool "a b": the name is not`:    {ok, New("a b", "d", greet)},
		`its type is "string"`:           {New("x", "d", func(context.Context, *Call, string) (*Result, error) { return nil, nil })},
		"schema of the arguments":        {New("x", "d", func(context.Context, *Call, chan int) (*Result, error) { return nil, nil })},
		"schema of the arguments: inval": {New("x", "d", greet, Schema([]byte(`{`)))},
		"schema of the arguments: ":      {New("x", "d", greet, Schema([]byte(`{"type":"object","$ref":"#/nowhere"}`)))},
	} {
		if _, err := Describe(tools...); err == nil || !strings.Contains(err.Error(), want) {
			if want == "schema of the arguments: inval" && err != nil {
				continue // the parser's words are its own
			}
			t.Errorf("error = %v, want %q", err, want)
		}
		if _, err := newServer(tools); err == nil {
			t.Errorf("served although %q", want)
		}
	}
	if _, err := New("a b", "d", greet).Run(t.Context(), nil, nil); err == nil {
		t.Error("an unusable tool ran")
	}
}

func TestServePanicsOnUnusableTools(t *testing.T) {
	defer func() {
		if p := recover(); p == nil || !strings.Contains(fmt.Sprint(p), "no tools to serve") {
			t.Errorf("panic = %v", p)
		}
	}()
	Serve()
}

func TestServePanicsOnADescriptionOfOtherTools(t *testing.T) {
	described, err := Describe(New("greet", "d", greet), New("other", "d", greet))
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{string(described): "description of other tools", "{": "read the description"} {
		func() {
			defer func() {
				if p := recover(); p == nil || !strings.Contains(fmt.Sprint(p), want) {
					t.Errorf("panic = %v, want %q", p, want)
				}
			}()
			ServeDescribed([]byte(text), New("greet", "d", greet))
		}()
	}
}

func TestADescribedServerMakesASchemaWithTheFirstCall(t *testing.T) {
	tools := []Tool{
		New("greet", "d", greet),
		New("broken", "d", greet, Schema([]byte(`{"type":"object","$ref":"#/nowhere"}`))),
	}
	s, err := describedServer(tools, []toolInfo{{Name: "greet", Description: "kept", Parameters: []byte(`{"kept":true}`)}, {Name: "broken"}})
	if err != nil {
		t.Fatalf("a schema was made although no call needs it: %v", err)
	}
	got, err := s.Describe(t.Context(), nil)
	if err != nil || string(got.GetTools()[0].GetParametersJson()) != `{"kept":true}` {
		t.Errorf("described as %v, %v", got, err)
	}
	if _, err := s.tools["broken"].run(t.Context(), &Call{}, []byte(`{"name":"x"}`)); err == nil || !strings.Contains(err.Error(), `tool "broken": schema of the arguments: `) {
		t.Errorf("error = %v", err)
	}
	if res, err := s.tools["greet"].run(t.Context(), &Call{}, []byte(`{"name":1}`)); err != nil || !res.IsError {
		t.Errorf("arguments are not checked: %+v, %v", res, err)
	}
}

func TestArgumentsAreTakenStrictly(t *testing.T) {
	tool := New("greet", "d", greet)
	loose := New("loose", "d", greet, Schema([]byte(`{"type":"object"}`)))
	for args, ok := range map[string]bool{
		`{"name":"x"}`:              true,
		`{"name":"x","times":2}`:    true,
		`{}`:                        false,
		`{"name":1}`:                false,
		`{"name":"x","times":1.5}`:  false,
		`{"name":"x","times":"2"}`:  false,
		`{"name":"x","extra":true}`: false,
		`{"NAME":"x"}`:              false,
		`{"name":null}`:             false,
		`[]`:                        false,
		`null`:                      false,
		``:                          false,
		`{"name":"x"} {}`:           false,
		`{"name":"x"`:               false,
	} {
		res, err := tool.Run(t.Context(), nil, json.RawMessage(args))
		if err != nil {
			t.Errorf("%s: %v", args, err)
			continue
		}
		if res.IsError == ok || (!ok && res.Code != CodeSchema) {
			t.Errorf("%s: %+v, want accepted %v", args, res, ok)
		}
	}
	res, err := loose.Run(t.Context(), nil, json.RawMessage(`{"name":"x","extra":1}`))
	if err != nil || res.Code != CodeSchema {
		t.Errorf("a loose schema lets an unknown field through: %+v, %v", res, err)
	}
}

func TestRunSettlesEveryOutcome(t *testing.T) {
	expired, cancel := context.WithDeadline(context.Background(), past)
	defer cancel()
	cancelled, stop := context.WithCancel(context.Background())
	stop()
	partial := &Result{Text: "so far", Writes: true}
	for name, c := range map[string]struct {
		ctx  context.Context
		res  *Result
		err  error
		want *Result
		fail string
	}{
		"nothing at all":        {res: nil, want: &Result{}},
		"error without code":    {res: &Result{IsError: true}, want: &Result{IsError: true, Code: CodeTool}},
		"code makes it one":     {res: &Result{Code: "x"}, want: &Result{IsError: true, Code: "x"}},
		"for the model":         {err: Errorf("no %s", "file"), want: &Result{Text: "no file", IsError: true, Code: CodeTool}},
		"for the model, nested": {err: fmt.Errorf("read: %w", Errorf("no file: %w", io.EOF)), want: &Result{Text: "read: no file: EOF", IsError: true, Code: CodeTool}},
		"with a result":         {res: partial, err: Errorf("broke"), want: &Result{Text: "so far\nbroke", Writes: true, IsError: true, Code: CodeTool}},
		"its own code":          {res: &Result{Code: "x"}, err: Errorf("broke"), want: &Result{Text: "broke", IsError: true, Code: "x"}},
		"time ran out":          {ctx: expired, err: errors.New("signal: killed"), want: &Result{Text: "signal: killed", IsError: true, Code: CodeTimeout}},
		"cancelled":             {ctx: cancelled, err: context.Canceled, want: &Result{Text: "context canceled", IsError: true, Code: CodeCancelled}},
		"late success":          {ctx: expired, res: &Result{Text: "done"}, want: &Result{Text: "done"}},
		"infrastructure":        {err: errors.New("no such host"), fail: "no such host"},
	} {
		t.Run(name, func(t *testing.T) {
			tool := New("x", "d", func(context.Context, *Call, greetIn) (*Result, error) {
				if c.res != nil {
					r := *c.res
					return &r, c.err
				}
				return nil, c.err
			})
			ctx := c.ctx
			if ctx == nil {
				ctx = t.Context()
			}
			got, err := tool.Run(ctx, &Call{}, json.RawMessage(`{"name":"x"}`))
			if c.fail != "" {
				if err == nil || err.Error() != c.fail {
					t.Errorf("error = %v, want %q", err, c.fail)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("result (-want +got):\n%s", d)
			}
		})
	}
}

func TestErrorfWraps(t *testing.T) {
	if err := Errorf("read: %w", io.EOF); !errors.Is(err, io.EOF) || err.Error() != "read: EOF" {
		t.Errorf("error = %v", err)
	}
}

func TestAPanicIsAResult(t *testing.T) {
	tool := New("x", "d", func(context.Context, *Call, greetIn) (*Result, error) { panic("boom") })
	res, err := tool.Run(t.Context(), nil, json.RawMessage(`{"name":"x"}`))
	if err != nil || !res.IsError || res.Code != CodeTool || !strings.Contains(res.Text, "boom") {
		t.Errorf("result = %+v, %v", res, err)
	}
}

func TestACallOfATestKeepsItsOutput(t *testing.T) {
	call := &Call{MaxOutput: 12}
	res, err := New("greet", "d", greet).Run(t.Context(), call, json.RawMessage(`{"name":"you"}`))
	if err != nil || res.Text != "hello you\n" || call.Written() != "greeting you" {
		t.Errorf("result %+v, %v, output %q", res, err, call.Written())
	}
	call.Progress("nobody watches")
}

func TestACallOfATestAsksWhomTheTestSays(t *testing.T) {
	var call Call
	if _, err := call.Ask(t.Context(), "who?"); !errors.Is(err, ErrNobody) {
		t.Errorf("ask = %v, want ErrNobody", err)
	}
	if _, err := call.History(t.Context(), 1); err == nil {
		t.Error("a history came from nowhere")
	}
	call.AskFunc = func(_ context.Context, q string, options []string) (string, error) { return q + options[0], nil }
	call.HistoryFunc = func(_ context.Context, most int) ([]Message, error) { return make([]Message, most), nil }
	if said, err := call.Ask(t.Context(), "who?", "me"); said != "who?me" || err != nil {
		t.Errorf("ask = %q, %v", said, err)
	}
	if said, err := call.History(t.Context(), 3); len(said) != 3 || err != nil {
		t.Errorf("history = %v, %v", said, err)
	}
}
