package approval

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

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
	// File holds the approvals; the map counts how often each call hash is in it.
	File   string
	hashes map[string]int
	mu     *sync.Mutex
	// Person, if there is one, answers in place of all others.
	Person Person
}

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
	return Choice{Mode: ModeFile, File: spec, hashes: hashes, mu: &sync.Mutex{}}, nil
}

// Approver returns the approver for the choice.
func (c Choice) Approver(o Options) Approver {
	if o.Timeout <= 0 {
		o.Timeout = defaultTimeout
	}
	own := c.own(o)
	if o.Remote == nil {
		return own
	}
	return &remoteApprover{Remote: *o.Remote, next: own}
}

// Waits is how long a question of the choice waits for an answer; 0 is not at all.
func (c Choice) Waits(o Options) time.Duration {
	if c.Person != nil {
		return 0
	}
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
	if c.Person != nil {
		return declared{person: c.Person, agent: o.Agent, onAsk: o.OnAsk}
	}
	headless := Headless{OnAsk: o.OnAsk, Timeout: o.Timeout}
	switch c.Mode {
	case ModeAll:
		return All{R3: c.R3}
	case ModeFile:
		return &Listed{name: c.File, mu: cmp.Or(c.mu, &sync.Mutex{}), left: c.hashes, otherwise: headless}
	case ModeAuto, ModePrompt:
		if o.Terminal != nil {
			p := &Prompt{terminal: o.Terminal, timeout: o.Timeout, of: o.Of}
			if o.Remote != nil {
				p.memory = o.Remote.Memory
			}
			return p
		}
		headless.why = "no terminal"
	case ModeNever:
	}
	return headless
}
