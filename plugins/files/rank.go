package files

import (
	"cmp"
	"math"
	"path"
	"slices"
	"strings"
)

// The weights of BM25, as usual, and what is more than one use of a term: a definition, a
// name of the path, and an identifier that is the query's own.
const (
	saturation, lengthShare = 1.2, 0.75
	ofDefinition            = 4.0
	ofPath                  = 0.8
	ofWhole                 = 2.0
)

// rank returns the best files, the best first, and how many have a term at all.
func (c *corpus) rank(t *terms, most int) (best []*codeFile, matching int) {
	mean := max(float64(c.size)/float64(max(c.files, 1)), 1)
	for _, f := range c.found {
		f.score = c.score(f, t, mean)
	}
	slices.SortFunc(c.found, func(a, b *codeFile) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.rel, b.rel))
	})
	return c.found[:min(most, len(c.found))], len(c.found)
}

func (c *corpus) score(f *codeFile, t *terms, mean float64) float64 {
	norm := saturation * (1 - lengthShare + lengthShare*float64(f.size)/mean)
	sum, words, present := 0.0, 0, 0
	for i := range t.len() {
		rare := math.Log(1 + (float64(c.files-c.has[i])+0.5)/(float64(c.has[i])+0.5))
		n := float64(f.uses[i]) + ofDefinition*float64(f.defined[i])
		s := rare * n * (saturation + 1) / (n + norm)
		if f.named&(1<<i) != 0 {
			s += rare * ofPath
		}
		if t.whole[i] {
			sum += ofWhole * s
			continue
		}
		sum += s
		words++
		if n > 0 || f.named&(1<<i) != 0 {
			present++
		}
	}
	// A file with all words is better than one with many of a single word.
	share := float64(present) / float64(max(words, 1))
	return sum * (0.25 + 0.75*share) * weight(f.rel)
}

// weight makes less of files that are seldom what is looked for.
func weight(rel string) float64 {
	w, base := 1.0, path.Base(rel)
	for part := range strings.SplitSeq(path.Dir(rel), "/") {
		switch strings.ToLower(part) {
		case "vendor", "node_modules", "third_party", "dist", "build", "generated":
			w = min(w, 0.4)
		case "test", "tests", "testdata", "fixtures", "__tests__", "spec", "mocks":
			w = min(w, 0.7)
		}
	}
	switch {
	case strings.Contains(base, ".min."), strings.Contains(base, ".pb."), strings.HasPrefix(base, "zz_generated"), strings.HasSuffix(base, ".lock"), strings.HasSuffix(base, ".sum"),
		strings.HasSuffix(base, "-lock.json"), strings.HasSuffix(base, ".svg"), strings.HasSuffix(base, ".map"):
		w = min(w, 0.4)
	case strings.Contains(base, "_test."), strings.Contains(base, ".test."), strings.Contains(base, ".spec."), strings.HasPrefix(base, "test_"):
		w = min(w, 0.7)
	case strings.HasSuffix(base, ".json"), strings.HasSuffix(base, ".md"), strings.HasSuffix(base, ".txt"):
		w = min(w, 0.8)
	}
	return w
}

// best are the numbers of the lines to show, in order: definitions before uses, those with
// more terms first.
func (f *codeFile) best(t *terms) []int {
	lines := slices.Clone(f.lines)
	worth := func(l codeLine) int {
		n := 0
		for i := range t.len() {
			switch {
			case l.defined&(1<<i) != 0:
				n += 4
			case l.terms&(1<<i) != 0:
				n++
			}
			if t.whole[i] && l.terms&(1<<i) != 0 {
				n += 2
			}
		}
		return n
	}
	slices.SortStableFunc(lines, func(a, b codeLine) int { return cmp.Compare(worth(b), worth(a)) })
	var at []int
	for _, l := range lines {
		if len(at) == maxStretches {
			break
		}
		if !slices.ContainsFunc(at, func(n int) bool { return l.number >= n-linesBefore && l.number <= n+linesAfter }) {
			at = append(at, l.number)
		}
	}
	if len(at) == 0 { // only its path has the terms
		at = []int{1}
	}
	slices.Sort(at)
	return at
}
