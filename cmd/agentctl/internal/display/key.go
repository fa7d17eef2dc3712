package display

import "time"

// KeyList is a table of keys. It has no values to show.
type KeyList struct {
	Keys []ListedKey
	// Now is the time from which ages count.
	Now time.Time
	// Format is text or name.
	Format string
}

// ListedKey is a key in a list.
type ListedKey struct {
	Name, Source string
	// EnvironmentWins says that there are two values.
	EnvironmentWins bool
	// Set is when it was stored; nil where it was not.
	Set *time.Time
	// Problem is why the stored value cannot be used, or "".
	Problem string
}

// Write writes one line a key, and what is wrong below.
func (l KeyList) Write(s *Screen) error {
	rows := [][]string{{"NAME", "SOURCE", "SET"}}
	for _, k := range l.Keys {
		if l.Format == FormatName {
			s.print(Line(k.Name) + "\n")
			continue
		}
		source, set := k.Source, "-"
		if k.EnvironmentWins {
			source += ": environment wins"
		}
		if k.Problem != "" {
			source = s.paint(red, source+", unusable")
		}
		if k.Set != nil {
			set = age(l.Now.Sub(*k.Set))
		}
		rows = append(rows, []string{Line(k.Name), source, set})
	}
	if l.Format == FormatName {
		return s.Err()
	}
	s.print(table(rows))
	for _, k := range l.Keys {
		if k.Problem != "" {
			s.print(Line(k.Name+": "+k.Problem) + "\n")
		}
	}
	return s.Err()
}
