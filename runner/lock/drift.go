package lock

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"agentctl.dev/agentctl/api/reason"
)

// Change is something that is not as it was pinned. Was is "" for what is new, Is for what
// is gone.
type Change struct {
	Object string `json:"object"`
	Pin    string `json:"pin"`
	Was    string `json:"was"`
	Is     string `json:"is"`
}

// String is one line.
func (c Change) String() string {
	word := func(s string) string {
		if s == "" {
			return "nothing"
		}
		return s
	}
	return fmt.Sprintf("%s: %s: %s -> %s", c.Object, c.Pin, word(c.Was), word(c.Is))
}

// Describe pins what the program of a Tool describes.
func Describe(entries []Entry, name, call, digest string) []Entry {
	object := "tool/" + name
	if i := slices.IndexFunc(entries, func(e Entry) bool { return e.Object == object }); i >= 0 {
		entries[i].Pins[functions] = digest
		return entries
	}
	return append(entries, Entry{Object: object, Tool: call, Pins: map[string]string{functions: digest}})
}

// Moved compares entries with those of the lock. What programs describe is compared where
// the entries have it; objects that only the lock has are gone if the entries are whole.
func (l *Lock) Moved(entries []Entry, whole bool) (all []Change) {
	for _, now := range entries {
		i := slices.IndexFunc(l.Entries, func(e Entry) bool { return e.Object == now.Object })
		if i < 0 {
			all = append(all, Change{now.Object, "object", "", "new"})
			continue
		}
		was := l.Entries[i].Pins
		names := slices.Sorted(maps.Keys(was))
		for name := range now.Pins {
			if _, known := was[name]; !known {
				names = append(names, name)
			}
		}
		slices.Sort(names)
		for _, name := range names {
			if name == functions && now.Pins[name] == "" && !whole {
				continue // a run compares it when it starts the program
			}
			if was[name] != now.Pins[name] {
				all = append(all, Change{now.Object, name, was[name], now.Pins[name]})
			}
		}
	}
	for _, e := range l.Entries {
		if whole && !slices.ContainsFunc(entries, func(now Entry) bool { return now.Object == e.Object }) {
			all = append(all, Change{e.Object, "object", "pinned", ""})
		}
	}
	return all
}

// Hint is what to do about what has moved.
const Hint = "bring back what it was, or pin what it is now: agentctl lock -f DIR"

// Error is the error of changes; nil if there are none.
func Error(file string, changes []Change) error {
	if len(changes) == 0 {
		return nil
	}
	const most = 20
	lines := make([]string, 0, most+1)
	for i, c := range changes {
		if i == most {
			lines = append(lines, fmt.Sprintf("and %d more", len(changes)-most))
			break
		}
		lines = append(lines, c.String())
	}
	return reason.New(reason.LockDrift, "it is not as %s pins it: %s", file, strings.Join(lines, "; ")).
		WithHint(Hint)
}
