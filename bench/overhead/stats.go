package main

import (
	"cmp"
	"slices"
)

// percentile returns the value below which p percent of all lie; 0 of none.
func percentile[T cmp.Ordered](all []T, p int) T {
	var zero T
	if len(all) == 0 {
		return zero
	}
	sorted := slices.Sorted(slices.Values(all))
	return sorted[min(len(sorted)*p/100, len(sorted)-1)]
}

// each collects one figure of every sample.
func each[S, T any](all []S, figure func(S) T) []T {
	list := make([]T, len(all))
	for i, s := range all {
		list[i] = figure(s)
	}
	return list
}
