package cli

import (
	"context"
	"slices"
	"strings"

	"agentctl.dev/agentctl/cmd/agentctl/internal/display"
	"agentctl.dev/agentctl/runner/export"
	"agentctl.dev/agentctl/runner/runs"
)

// placeEnd is the end of a run, where a place is named.
const placeEnd = "end"

// cutPlace splits RUN@PLACE. The @ of @latest does not separate, nor does one in the name of
// an export.
func cutPlace(word string) (run, place string, ok bool) {
	from := 0
	if at := strings.LastIndex(word, export.Suffix+"@"); at >= 0 {
		from = at + len(export.Suffix)
	} else if export.Is(word) {
		return word, "", false
	} else if at := strings.Index(word, runs.Latest); at == 0 || at > 0 && word[at-1] == '/' {
		from = at + len(runs.Latest)
	}
	at := strings.IndexByte(word[from:], '@')
	if at < 0 {
		return word, "", false
	}
	return word[:from+at], word[from+at+1:], true
}

// places reports whether a word names a place in a run, so that two are compared.
func places(words []string) bool {
	return slices.ContainsFunc(words, func(w string) bool { _, _, ok := cutPlace(w); return ok })
}

// runCompare compares two places.
func (o *diffOptions) runCompare(ctx context.Context, words []string) error {
	if len(words) != 2 {
		return usagef("two runs are compared, and %d are named", len(words)).try("agentctl diff RUN@PLACE RUN@PLACE; the end of a run is RUN@end")
	}
	var sides [2]runs.Place
	for i, word := range words {
		run, place, named := cutPlace(word)
		if named && place == "" {
			return usagef("%q names no place: it is RUN@turn/N, RUN@step/N, RUN@CALL, RUN@MESSAGE or RUN@end", word)
		}
		src, err := o.openWord(ctx, run)
		if err != nil {
			return err
		}
		defer src.close()
		id, err := src.local("diff")
		if err != nil {
			return err
		}
		if place == placeEnd {
			place = ""
		}
		sides[i] = runs.Place{State: src.state, Ref: id, At: place}
		if src.export != nil {
			sides[i].Files = src.export.Files
		}
	}
	c, err := runs.Compare(ctx, sides[0], sides[1])
	if err != nil {
		return err
	}
	shown := display.Comparison{Comparison: c, Stat: o.stat}
	if o.output.value == display.FormatJSON {
		return shown.WriteJSON(o.app.stdout())
	}
	return shown.WriteText(o.app.stdout())
}
