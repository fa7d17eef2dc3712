package execution

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/runner/loop"
	"agentctl.dev/agentctl/runner/secret"
)

// parrot tells some pieces and answers.
type parrot struct {
	loop.Model
	told []message.Delta
	out  message.Output
	err  error
}

func (p *parrot) Next(_ context.Context, _ message.Request, emit func(message.Delta) error) (*message.Output, error) {
	for _, d := range p.told {
		if err := emit(d); err != nil {
			return nil, err
		}
	}
	return &p.out, p.err
}

const canary = "canary-0123456789"

// cutInto are the pieces of a text, of n bytes each.
func cutInto(n int, kind message.DeltaKind, index int, text string) (all []message.Delta) {
	for len(text) > 0 {
		k := min(n, len(text))
		all = append(all, message.Delta{Kind: kind, Index: index, Tool: "bash", Call: "id-" + canary, Text: text[:k]})
		text = text[k:]
	}
	return all
}

func TestNoPieceOfAnAnswerHoldsASecret(t *testing.T) {
	redactor := secret.NewRedactor(secret.NewValue(canary))
	says := "I say " + canary + " and canary-01 as well"
	safe := "I say *** and canary-01 as well"
	args, safeArgs := `{"a":"`+canary+`"}`, `{"a":"***"}`
	for n := 1; n < 2*len(canary); n++ {
		p := &parrot{out: message.Output{
			Text: says, TextMetadata: []byte(args), Reasoning: says, ReasoningMetadata: []byte(args), Finish: message.FinishToolCalls,
			Calls: []message.CallRequest{{ID: "id-" + canary, Tool: canary, Args: args, Metadata: []byte(args)}, {ID: "own", Tool: "bash", Args: "{}"}},
		}}
		p.told = append(p.told, cutInto(n, message.DeltaText, 0, "void "+canary[:9])...)
		p.told = append(p.told, message.Delta{Kind: message.DeltaRetry, Retry: &message.Retry{}})
		p.told = append(p.told, cutInto(n, message.DeltaReasoning, 0, says)...)
		p.told = append(p.told, cutInto(n, message.DeltaText, 0, says)...)
		a, b := cutInto(n, message.DeltaTool, 0, args), cutInto(n, message.DeltaTool, 1, args)
		for i := range a { // through each other
			p.told = append(p.told, a[i], b[i])
		}
		got := map[string]string{}
		out, err := redact(p, redactor).Next(t.Context(), message.Request{}, func(d message.Delta) error {
			if d.Kind == message.DeltaRetry {
				clear(got)
				return nil
			}
			if strings.Contains(fmt.Sprintf("%+v", d), canary) {
				t.Fatalf("pieces of %d bytes: %+v", n, d)
			}
			got[fmt.Sprintf("%v %d", d.Kind, d.Index)] += d.Text
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]string{
			fmt.Sprintf("%v 0", message.DeltaText): safe, fmt.Sprintf("%v 0", message.DeltaReasoning): safe,
			fmt.Sprintf("%v 0", message.DeltaTool): safeArgs, fmt.Sprintf("%v 1", message.DeltaTool): safeArgs,
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Fatalf("pieces of %d bytes (-want +got):\n%s", n, d)
		}
		wantOut := &message.Output{
			Text: safe, TextMetadata: []byte(safeArgs), Reasoning: safe, ReasoningMetadata: []byte(safeArgs), Finish: message.FinishToolCalls,
			Calls: []message.CallRequest{{Tool: "***", Args: safeArgs, Metadata: []byte(safeArgs)}, {ID: "own", Tool: "bash", Args: "{}"}},
		}
		if d := cmp.Diff(wantOut, out); d != "" {
			t.Fatalf("pieces of %d bytes (-want +got):\n%s", n, d)
		}
	}
}

func TestHalfASecretIsNotToldWhenAnAnswerFails(t *testing.T) {
	broke := errors.New("it broke")
	p := &parrot{told: cutInto(4, message.DeltaText, 0, "so "+canary[:12]), err: broke}
	told := ""
	_, err := redact(p, secret.NewRedactor(secret.NewValue(canary))).Next(t.Context(), message.Request{}, func(d message.Delta) error {
		told += d.Text
		return nil
	})
	if !errors.Is(err, broke) || told != "so " {
		t.Errorf("%v, told %q", err, told)
	}
	stop := errors.New("seen enough")
	p = &parrot{told: cutInto(99, message.DeltaText, 0, canary[:12])}
	if _, err := redact(p, secret.NewRedactor(secret.NewValue(canary))).Next(t.Context(), message.Request{}, func(message.Delta) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("the watcher's error: %v", err)
	}
}

func TestAModelWithoutSecretsIsAskedItself(t *testing.T) {
	p := &parrot{}
	if m := redact(p, nil); m != loop.Model(p) {
		t.Errorf("got %T", m)
	}
}
