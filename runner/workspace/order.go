package workspace

import (
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// unplaced is the place of what is not in a snapshot.
const unplaced = -1

// listed are the places of the names of a part of a folder. What is new has a negative one:
// -1 is the first of fresh, -2 the second.
type listed struct {
	dir    Path
	number int
	places []int32
	fresh  []Path
}

// add adds a name that is new, or whose entry may have changed.
func (l *listed) add(dir *folder, f *found) {
	switch {
	case l.places == nil: // there is nothing to compare with
	case f.place != unplaced:
		l.places = append(l.places, f.place)
	default:
		l.fresh = append(l.fresh, Path(dir.child(f.name)))
		l.places = append(l.places, -int32(len(l.fresh))) //nolint:gosec // at most listBytes
	}
}

// place is where a path is in Entries; unplaced if it is not there.
func (s *Snapshot) place(p Path) int32 {
	i := s.from(p)
	if i == len(s.Entries) || s.Entries[i].Path != p {
		return unplaced
	}
	return int32(i) //nolint:gosec // at most MaxListed
}

// from is where the paths begin that are not before p.
func (s *Snapshot) from(p Path) int {
	i, _ := slices.BinarySearchFunc(s.Entries, p, func(e Entry, p Path) int { return strings.Compare(string(e.Path), string(p)) })
	return i
}

// now is the snapshot of the tree after a walk: what is as it was known, and what is not.
func (t *tree) now(tick unix.Timespec) *Snapshot {
	if t.known == nil {
		return newSnapshot(t.entries, tick)
	}
	s, to := t.unchanged(tick), []int32(nil)
	if s == nil {
		s, to = t.merged(tick)
	}
	s.order = t.ordered(s, to)
	return s
}

// unchanged is the snapshot of a tree in which everything is as it was known; nil if
// something is not.
func (t *tree) unchanged(tick unix.Timespec) *Snapshot {
	if len(t.entries) > 0 {
		return nil
	}
	s := &Snapshot{Entries: t.known.Entries}
	for i := range s.Entries {
		e := &s.Entries[i]
		if !t.same[i] || !e.sig.racy && e.sig.late(tick) {
			return nil
		}
		s.add(e)
	}
	return s
}

// merged is the snapshot of what is the same and what is not. To are the new places of what
// was known, nil if they are the old ones.
func (t *tree) merged(tick unix.Timespec) (s *Snapshot, to []int32) {
	known := t.known.Entries
	all, to := make([]Entry, 0, len(known)+len(t.entries)), make([]int32, len(known))
	slices.SortFunc(t.entries, byPath)
	next := t.entries
	for i := range known {
		old := &known[i]
		for len(next) > 0 && next[0].Path < old.Path {
			all, next = append(all, next[0]), next[1:]
		}
		to[i] = int32(len(all)) //nolint:gosec // at most MaxListed
		switch {
		case len(next) > 0 && next[0].Path == old.Path:
			all, next = append(all, next[0]), next[1:]
		case t.same[i]:
			all = append(all, *old)
		default:
			to[i] = unplaced
		}
	}
	return sorted(append(all, next...), tick), to
}

// ordered puts the listed parts of the folders together. To are the places in s of what was
// known, nil if they are the same.
func (t *tree) ordered(s *Snapshot, to []int32) map[Path][]int32 {
	slices.SortFunc(t.parts, func(a, b listed) int {
		if c := strings.Compare(string(a.dir), string(b.dir)); c != 0 {
			return c
		}
		return a.number - b.number
	})
	order := t.remaining(to)
	for _, l := range t.parts {
		if l.number == 0 {
			delete(order, l.dir)
		}
		places := order[l.dir]
		if places == nil && to == nil && len(l.fresh) == 0 {
			order[l.dir] = l.places
			continue
		}
		for _, i := range l.places {
			switch {
			case i < 0:
				i = s.place(l.fresh[-i-1])
			case to != nil:
				i = to[i]
			}
			if i != unplaced {
				places = append(places, i)
			}
		}
		order[l.dir] = places
	}
	return order
}

// remaining are the listed parts of the folders that were not listed again.
func (t *tree) remaining(to []int32) map[Path][]int32 {
	order := make(map[Path][]int32, len(t.known.order))
	if t.touched == nil {
		return order
	}
	for dir, places := range t.known.order {
		if to != nil {
			places = moved(places, to)
		}
		if len(places) > 0 {
			order[dir] = places
		}
	}
	return order
}

// moved are the new places of what is still there.
func moved(places, to []int32) []int32 {
	out := make([]int32, 0, len(places))
	for _, i := range places {
		if to[i] != unplaced {
			out = append(out, to[i])
		}
	}
	return out
}
