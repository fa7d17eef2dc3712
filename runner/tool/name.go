package tool

import (
	"slices"
	"strings"
)

// fold makes names equal that differ only in case, "-" and "_".
func fold(name string) string {
	return strings.ToLower(strings.NewReplacer("-", "", "_", "", " ", "").Replace(name))
}

// repair returns the one name that the written one can stand for; "" when there
// is none, or more than one.
func repair(written string, names []string) string {
	var found string
	for _, name := range names {
		if fold(name) == fold(written) {
			if found != "" {
				return ""
			}
			found = name
		}
	}
	return found
}

// Nearest returns the name closest to the written one, "" when none is close.
func Nearest(written string, names []string) string {
	best, near := "", len(written)/3+2
	for _, name := range names {
		if d := distance(strings.ToLower(written), strings.ToLower(name)); d < near {
			best, near = name, d
		}
	}
	return best
}

// byDistance orders names by how close they are to the written one.
func byDistance(written string, names []string) []string {
	sorted := slices.Clone(names)
	slices.SortStableFunc(sorted, func(a, b string) int { return distance(written, a) - distance(written, b) })
	return sorted
}

// distance is the number of insertions, deletions and replacements between two
// words (Levenshtein). Words longer than any tool's name are cut.
func distance(a, b string) int {
	const longest = 80
	a, b = a[:min(len(a), longest)], b[:min(len(b), longest)]
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost = 1 + min(diagonal, row[j], row[j+1])
			}
			diagonal, row[j+1] = row[j+1], cost
		}
	}
	return row[len(b)]
}
