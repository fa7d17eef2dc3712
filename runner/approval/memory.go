package approval

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"agentctl.dev/agentctl/api/message"
)

// Memory is what was approved for always in a run. It is asked only about calls
// that would be asked about: it lifts no deny.
type Memory struct {
	mu     sync.Mutex
	grants []message.Grant
}

// NewMemory returns a memory that holds what was remembered before.
func NewMemory(grants []message.Grant) *Memory { return &Memory{grants: slices.Clone(grants)} }

// Covers says whether everything that the call would be remembered as is
// remembered already. A call that cannot be undone, or that may have happened
// already, never is.
func (m *Memory) Covers(q message.Question) bool {
	if m == nil || !rememberable(q) {
		return false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return !slices.ContainsFunc(q.Decision.Always, func(g message.Grant) bool {
		return !slices.ContainsFunc(m.grants, func(have message.Grant) bool { return covers(have, g) })
	})
}

// rememberable says whether a question can be answered for always.
func rememberable(q message.Question) bool {
	switch q.Decision.Risk {
	case "R0", "R1", "R2":
		return !q.Unknown && len(q.Decision.Always) > 0
	}
	return false
}

// covers compares grants. A folder covers the folders in it.
func covers(have, g message.Grant) bool {
	if have == g {
		return true
	}
	dir, folder := strings.CutSuffix(have.Pattern, "/*")
	return folder && have.Permission != "" && have.Permission == g.Permission && strings.HasPrefix(g.Pattern, dir+"/")
}

// add remembers.
func (m *Memory) add(grants []message.Grant) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, g := range grants {
		if !slices.Contains(m.grants, g) {
			m.grants = append(m.grants, g)
		}
	}
}

// Summary names grants on one line.
func Summary(grants []message.Grant) string {
	var parts []string
	for _, g := range grants {
		if g.Tool != "" {
			parts = append(parts, g.Tool+" when "+g.When)
		} else {
			parts = append(parts, g.Permission+" "+strconv.Quote(g.Pattern))
		}
	}
	return strings.Join(parts, ", ")
}

// Policy writes grants as a manifest that somebody may keep.
func Policy(grants []message.Grant) string {
	var permissions, rules strings.Builder
	for i, g := range grants {
		if g.Tool != "" {
			fmt.Fprintf(&rules, "  - name: always-%d\n    match: {tools: [%q]}\n    when: %q\n    action: allow\n", i+1, g.Tool, g.When)
		} else {
			fmt.Fprintf(&permissions, "  - {permission: %q, pattern: %q, action: allow}\n", g.Permission, g.Pattern)
		}
	}
	text := "apiVersion: agentctl.dev/v1alpha1\nkind: Policy\nmetadata: {name: remembered}\nspec:\n"
	if permissions.Len() > 0 {
		text += "  permissions:\n" + permissions.String()
	}
	if rules.Len() > 0 {
		text += "  rules:\n" + rules.String()
	}
	return text
}
