package display

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"time"
)

type writes string

func (w writes) Write(out io.Writer) error {
	if w == "" {
		return errors.New("broken")
	}
	_, err := io.WriteString(out, string(w))
	return err
}

func plainScreen(out io.Writer) *Screen {
	return NewScreen(out, ColorNever, func(string) string { return "" })
}

func TestWaitingListSaysHowToAnswer(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.Local)
	until := at.Add(time.Minute)
	var b bytes.Buffer
	err := WaitingList(plainScreen(&b), []Waiting{
		{Ref: "r/c", Agent: "a", State: "Waiting", AskedAt: at, ExpiresAt: &until, Call: writes("call of bash\n"), Answer: Approve("r/c", "")},
		{Ref: "s/c", Agent: "a", State: "Suspended", AskedAt: at, Call: writes("call of \x1b[2Jwrite\n"), Answer: Approve("s/c", "my state"), Resume: Resume("s", "my state")},
	})
	want := `r/c  agent a, asked 2026-01-02 03:04:05, until 03:05:05
call of bash
  agentctl approve r/c

s/c  agent a, suspended, asked 2026-01-02 03:04:05
call of <U+001B>[2Jwrite
  agentctl approve s/c --state 'my state'
  agentctl resume run/s --state 'my state'
`
	if err != nil || b.String() != want {
		t.Errorf("got %v\n%s\nwant\n%s", err, b.String(), want)
	}
	if err := WaitingList(plainScreen(&b), []Waiting{{Call: writes("")}}); err == nil {
		t.Error("a call that cannot be shown is an error")
	}
}

func TestAnsweredKeepsThePolicyApart(t *testing.T) {
	var out, errs bytes.Buffer
	a := Answered{Ref: "r/c", Tool: "bash", State: "approved", Taken: true, Policy: "kind: Policy\n", Next: "agentctl resume run/r"}
	if err := a.WriteText(plainScreen(&out), plainScreen(&errs)); err != nil || out.String() != "kind: Policy\n" || errs.String() != "approved bash of r/c\n" {
		t.Errorf("got %v, %q, %q", err, out.String(), errs.String())
	}
	out.Reset()
	errs.Reset()
	a.Taken, a.Policy = false, ""
	if err := a.WriteText(plainScreen(&out), plainScreen(&errs)); err != nil || out.String() != "approved bash of r/c\ncontinue with: agentctl resume run/r\n" || errs.Len() > 0 {
		t.Errorf("got %v, %q, %q", err, out.String(), errs.String())
	}
	out.Reset()
	a.Object = map[string]bool{"taken": true}
	if err := a.WriteJSON(plainScreen(&out)); err != nil || !strings.Contains(out.String(), `"taken": true`) {
		t.Errorf("got %v, %q", err, out.String())
	}
}
