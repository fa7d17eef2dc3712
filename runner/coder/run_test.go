package coder

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"
)

// lines is a reader that takes each line for an event, and "answer" for the end.
type lines struct{ said Said }

func (l *lines) Line(line []byte) string {
	l.said.Began = true
	if string(line) == "answer" {
		l.said.Done, l.said.Text = true, "yes"
	}
	return string(line)
}

func (l *lines) Said() Said { return l.said }

// hanging is a program that runs until it is killed.
type hanging struct {
	once   sync.Once
	done   chan struct{}
	killed time.Duration
}

func (h *hanging) Done() <-chan struct{} { return h.done }
func (h *hanging) Wait() Exit            { <-h.done; return Exit{Code: -1, Signal: "terminated"} }
func (h *hanging) Kill(grace time.Duration) {
	h.once.Do(func() { h.killed = grace; close(h.done) })
}

func job(begin func(out, errs io.Writer)) (Job, *hanging) {
	p := &hanging{done: make(chan struct{})}
	d := Driver{Name: "fake", Start: func(Task) Start { return Start{} }, Read: func() Reader { return &lines{} }}
	return Job{Driver: &d, Limits: DefaultLimits(), Launch: func(_ context.Context, _ Start, out, errs io.Writer) (Program, error) {
		begin(out, errs)
		return p, nil
	}}, p
}

func TestAProgramIsEndedAtItsLimits(t *testing.T) {
	for name, c := range map[string]struct {
		begin   func(out, errs io.Writer)
		cancel  bool
		outcome Outcome
		why     string
		after   time.Duration
	}{
		"it hangs after it has begun":    {func(out, _ io.Writer) { _, _ = io.WriteString(out, "begun\n") }, false, "timeout", "it was ended after 5m0s", 5 * time.Minute},
		"it never prints an event":       {func(_, errs io.Writer) { _, _ = io.WriteString(errs, "waits for a network\n") }, false, "timeout", "it has printed no event within 1m0s: waits for a network", time.Minute},
		"a complete answer is no end":    {func(out, _ io.Writer) { _, _ = io.WriteString(out, "answer\n") }, false, "timeout", "it was ended after 5m0s", 5 * time.Minute},
		"it prints without an end":       {func(out, _ io.Writer) { _, _ = out.Write(make([]byte, 64<<20+1)) }, false, "failed", "it has printed more than 67108864 bytes", 0},
		"the call is cancelled":          {func(io.Writer, io.Writer) {}, true, "failed", "the call was cancelled", 0},
		"a line without end is no event": {func(out, _ io.Writer) { _, _ = out.Write([]byte(strings.Repeat("x", longestLine+1) + "\n")) }, false, "timeout", "it has printed no event within 1m0s", time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				j, p := job(c.begin)
				if c.cancel {
					cancel()
				}
				began := time.Now()
				e, err := Run(ctx, j)
				if err != nil || e.Outcome != c.outcome || e.Why != c.why || p.killed != 3*time.Second {
					t.Errorf("%+v, killed after %s, %v", e, p.killed, err)
				}
				if took := time.Since(began); took != c.after {
					t.Errorf("ended after %s, want %s", took, c.after)
				}
			})
		})
	}
}

func TestAProgramThatCannotBeStarted(t *testing.T) {
	j, _ := job(func(io.Writer, io.Writer) {})
	j.Launch = func(context.Context, Start, io.Writer, io.Writer) (Program, error) {
		return nil, errors.New("no such file")
	}
	if e, err := Run(t.Context(), j); err == nil {
		t.Errorf("%+v", e)
	}
}

func TestABudgetIsTheReasonOfAFailure(t *testing.T) {
	e := Ended{Exit: Exit{Code: 1}, Said: Said{Began: true, Error: "400"}}
	if e.judge(notCut, "limits.maxCost is 1.00", DefaultLimits()); e.Outcome != "denied" || e.Why != "limits.maxCost is 1.00" {
		t.Errorf("%+v", e)
	}
}

func TestExcerptsAreCutBetweenCharacters(t *testing.T) {
	for _, text := range []string{strings.Repeat("ä", 3000), strings.Repeat("a\xff", 3000), strings.Repeat("日本", 1500)} {
		for _, got := range []string{Head(text), Tail(text)} {
			if !utf8.ValidString(got) || utf8.RuneCountInString(got) != 2048 {
				t.Errorf("%d characters, valid: %v", utf8.RuneCountInString(got), utf8.ValidString(got))
			}
		}
	}
	if Head("short") != "short" || Tail("short") != "short" || Tail(strings.Repeat("x", 2048) + "end")[2045:] != "end" {
		t.Error("a short text is cut, or the wrong end")
	}
}

func TestClaimsAreBounded(t *testing.T) {
	var all []string
	for range 1000 {
		all = Claim(all, strings.Repeat("x", 1000))
	}
	if len(all) != mostClaims || len(all[0]) != 200 {
		t.Errorf("%d claims of %d bytes", len(all), len(all[0]))
	}
}
