// Package approval asks a person about a call, or answers as was declared.
//
// An approver is consulted only when the policy asks: what it denies never
// comes here, so no answer can lift a deny.
package approval

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"sync"
	"time"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/v1alpha1"
)

// Mode is how asks are answered.
type Mode string

// The modes of --approve.
const (
	// ModeAuto prompts where there is a terminal and else is never.
	ModeAuto   Mode = ""
	ModeNever  Mode = "never"
	ModePrompt Mode = "prompt"
	ModeAll    Mode = "all"
	ModeFile   Mode = "file"
)

// Choice is a parsed --approve flag.
type Choice struct {
	Mode Mode
	// R3 lets all answer calls that cannot be undone.
	R3 bool
	// File the approvals come from, and how often each call hash stands in it.
	File   string
	hashes map[string]int
}

// Approver answers questions. It is what the loop asks.
type Approver interface {
	Ask(ctx context.Context, q message.Question) (message.Answer, error)
}

// fileLimit bounds a file of approvals.
const fileLimit = 1 << 20

var hashLine = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)
})

// Parse reads the value of --approve: never, prompt, all, all,R3 or a file with
// one call hash a line. An empty value is ModeAuto.
func Parse(spec string) (Choice, error) {
	switch spec {
	case "", "never", "prompt", "all":
		return Choice{Mode: Mode(spec)}, nil
	case "all,R3":
		return Choice{Mode: ModeAll, R3: true}, nil
	}
	if strings.HasPrefix(spec, "all,") {
		return Choice{}, fmt.Errorf("--approve %s: the only addition to all is R3", spec)
	}
	hashes, err := readHashes(spec)
	if errors.Is(err, os.ErrNotExist) {
		return Choice{}, fmt.Errorf("--approve %s: neither never, prompt, all, all,R3 nor a file", spec)
	}
	if err != nil {
		return Choice{}, fmt.Errorf("--approve %s: %w", spec, err)
	}
	return Choice{Mode: ModeFile, File: spec, hashes: hashes}, nil
}

func readHashes(name string) (map[string]int, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	// A pipe would block before anything has started.
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("it is no regular file")
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return parseHashes(f)
}

func parseHashes(r io.Reader) (map[string]int, error) {
	limited := &io.LimitedReader{R: r, N: fileLimit + 1}
	lines := bufio.NewScanner(limited)
	hashes := map[string]int{}
	for n := 1; lines.Scan(); n++ {
		text, _, _ := strings.Cut(lines.Text(), "#")
		if text = strings.TrimSpace(text); text == "" {
			continue
		}
		if !hashLine().MatchString(text) {
			return nil, fmt.Errorf("line %d is no call hash: want sha256: and 64 hex digits", n)
		}
		hashes[text]++
	}
	if limited.N <= 0 {
		return nil, fmt.Errorf("it is larger than %d bytes", fileLimit)
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	return hashes, nil
}

// Options are what an approver works with.
type Options struct {
	// OnAsk and Timeout as the agent declares them; empty is Deny and 10 minutes.
	OnAsk   v1alpha1.OnAsk
	Timeout time.Duration
	// Terminal to ask on; nil when stdin or stderr is none.
	Terminal *Terminal
	// Attendance lets people answer from outside; nil when they cannot.
	Attendance *Attendance
}

// defaultTimeout of a question, as the API declares it.
const defaultTimeout = 10 * time.Minute

// Approver returns the approver for the choice.
func (c Choice) Approver(o Options) Approver {
	if o.Timeout <= 0 {
		o.Timeout = defaultTimeout
	}
	own := c.own(o)
	if o.Attendance == nil {
		return own
	}
	return &attended{Attendance: *o.Attendance, next: own}
}

// Waits is how long a question of the choice waits for an answer; 0 is not at all.
func (c Choice) Waits(o Options) time.Duration {
	if o.Timeout <= 0 {
		o.Timeout = defaultTimeout
	}
	prompts := o.Terminal != nil && (c.Mode == ModeAuto || c.Mode == ModePrompt)
	if prompts || c.Mode != ModeAll && o.OnAsk == v1alpha1.OnAskWait {
		return o.Timeout
	}
	return 0
}

// own is the approver that the command line names.
func (c Choice) own(o Options) Approver {
	nobody := Nobody{OnAsk: o.OnAsk, Timeout: o.Timeout}
	switch c.Mode {
	case ModeAll:
		return All{R3: c.R3}
	case ModeFile:
		return &Listed{name: c.File, left: c.hashes, otherwise: nobody}
	case ModeAuto, ModePrompt:
		if o.Terminal != nil {
			p := &Prompt{terminal: o.Terminal, timeout: o.Timeout}
			if o.Attendance != nil {
				p.memory = o.Attendance.Memory
			}
			return p
		}
		nobody.why = "no terminal"
	case ModeNever:
	}
	return nobody
}

// Nobody answers when no person can be asked, as the agent declares it: Deny at
// once, Wait until the time is over, Suspend the run.
type Nobody struct {
	OnAsk   v1alpha1.OnAsk
	Timeout time.Duration
	// why nobody can be asked, besides --approve never.
	why string
}

// Ask never approves.
func (n Nobody) Ask(ctx context.Context, _ message.Question) (message.Answer, error) {
	by := "--approve never"
	if n.why != "" {
		by = n.why
	}
	switch n.OnAsk {
	case v1alpha1.OnAskSuspend:
		return message.Answer{State: message.Unanswered, By: by + ", onAsk: Suspend", Reason: "the run waits for an approval", Suspend: true}, ctx.Err()
	case v1alpha1.OnAskDeny:
	case v1alpha1.OnAskWait:
		timer := time.NewTimer(n.Timeout)
		defer timer.Stop()
		select {
		case <-ctx.Done():
			return message.Answer{}, context.Cause(ctx)
		case <-timer.C:
			return message.Answer{State: message.Expired, By: by + ", onAsk: Wait", Reason: "nobody answered in time"}, nil
		}
	}
	if err := ctx.Err(); err != nil {
		return message.Answer{}, context.Cause(ctx)
	}
	return message.Answer{State: message.Unanswered, By: by + ", onAsk: Deny", Reason: "nobody is there to approve the call"}, nil
}

// All approves every call that is asked about; one that cannot be undone only
// with R3, and never one that may have happened already: what was declared
// beforehand was said of the first time.
type All struct{ R3 bool }

// Ask approves.
func (a All) Ask(ctx context.Context, q message.Question) (message.Answer, error) {
	if err := ctx.Err(); err != nil {
		return message.Answer{}, context.Cause(ctx)
	}
	if q.Unknown {
		return message.Answer{State: message.Unanswered, By: "--approve all", Reason: "a call that may have happened already is repeated only when a person says so"}, nil
	}
	switch q.Decision.Risk {
	case "R0", "R1", "R2":
		return message.Answer{State: message.Approved, By: "--approve all"}, nil
	case "R3":
		if a.R3 {
			return message.Answer{State: message.Approved, By: "--approve all,R3"}, nil
		}
	}
	return message.Answer{State: message.Unanswered, By: "--approve all", Reason: "a call that cannot be undone needs --approve all,R3 or a person"}, nil
}

// Listed approves calls whose hash stands in a file, each line once.
type Listed struct {
	name      string
	otherwise Nobody

	mu   sync.Mutex
	left map[string]int
}

// Ask approves a listed call and uses its line up.
func (l *Listed) Ask(ctx context.Context, q message.Question) (message.Answer, error) {
	if err := ctx.Err(); err != nil {
		return message.Answer{}, context.Cause(ctx)
	}
	l.mu.Lock()
	left := l.left[q.Decision.Hash]
	if q.Unknown {
		left = 0 // its line was for the first time
	}
	if left > 0 {
		l.left[q.Decision.Hash]--
	}
	l.mu.Unlock()
	if left > 0 {
		return message.Answer{State: message.Approved, By: "--approve " + l.name}, nil
	}
	n := l.otherwise
	n.why = "not in " + l.name
	return n.Ask(ctx, q)
}
