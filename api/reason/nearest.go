package reason

import (
	"cmp"
	"slices"
	"strings"
)

// Nearest returns the known name that a user most likely meant, or "" when none
// is near: at most one mistake for each three letters, capitals not counted.
func Nearest(name string, known []string) string {
	name = strings.ToLower(name)
	best, bestDistance := "", len(name)/3+1
	if len(name) > longest {
		return ""
	}
	for _, k := range known {
		if len(k) > longest {
			continue
		}
		if d := distance(name, strings.ToLower(k)); d < bestDistance || (d == bestDistance && best == "") {
			best, bestDistance = k, d
		}
	}
	return best
}

// Sorted returns the names, those that differ least from the written one first.
func Sorted(name string, names []string) []string {
	far := make(map[string]int, len(names))
	for _, n := range names {
		far[n] = distance(name[:min(len(name), longest)], n[:min(len(n), longest)])
	}
	sorted := slices.Clone(names)
	slices.SortStableFunc(sorted, func(a, b string) int { return cmp.Compare(far[a], far[b]) })
	return sorted
}

// longest bounds the work on a text that is too long for a name.
const longest = 128

// distance counts the letters to insert, delete, replace or swap.
func distance(a, b string) int {
	var before []int
	prev := make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(a); i++ {
		cur := make([]int, len(b)+1)
		cur[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			cur[j] = min(cur[j-1]+1, prev[j]+1, prev[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				cur[j] = min(cur[j], before[j-2]+1)
			}
		}
		before, prev = prev, cur
	}
	return prev[len(b)]
}
