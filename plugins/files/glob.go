package files

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"agentctl.dev/agentctl/plugins/sdk"
)

const (
	// maxFound is how many paths glob and how many lines grep shows.
	maxFound = 100
	// maxPattern bounds the work of matching one path.
	maxPattern = 1000
)

type globIn struct {
	Pattern string `json:"pattern" jsonschema:"for example src/**/*.{ts,tsx}"`
	Path    string `json:"path,omitempty" jsonschema:"folder to start in, default: the workspace"`
}

func (s *set) glob(ctx context.Context, call *sdk.Call, in globIn) (*sdk.Result, error) {
	if err := checkPattern("pattern", in.Pattern); err != nil {
		return nil, err
	}
	from, pattern := splitPattern(in.Path, in.Pattern)
	w, base, err := start(call, from, "glob")
	if err != nil {
		return nil, err
	}
	defer w.close()
	var found []string
	more := 0
	k := &walker{w: w, ignore: true, visit: func(_ *folder, p string, e entry) error {
		if e.mode.IsDir() || slices.Contains(call.Hidden, w.show(p)) || !matches(pattern, relative(base, p)) {
			return nil
		}
		if len(found) == maxFound {
			more++
			return nil
		}
		found = append(found, readable([]byte(w.show(p))))
		return nil
	}}
	if err := k.walk(ctx, base); err != nil {
		return nil, w.fail("glob", base, err)
	}
	res := &sdk.Result{Title: in.Pattern, Metadata: foundData{Matches: len(found) + more, Files: found}}
	switch {
	case len(found) == 0 && !strings.Contains(in.Pattern, "/"):
		res.Text = fmt.Sprintf("no file matches; to search all folders use **/%s", in.Pattern)
	case len(found) == 0:
		res.Text = "no file matches"
	default:
		res.Text = strings.Join(found, "\n") + "\n"
	}
	if more > 0 {
		res.Text += fmt.Sprintf("(%d more)", more)
	}
	return res, nil
}

// foundData is the metadata of a search: the files that it showed.
type foundData struct {
	Matches int      `json:"matches"`
	Files   []string `json:"files"`
}

// checkPattern refuses patterns that mean nothing or would take too long.
func checkPattern(name, pattern string) error {
	switch {
	case pattern == "":
		return sdk.Errorf("%s is empty", name)
	case len(pattern) > maxPattern:
		return sdk.Errorf("%s is longer than %d bytes", name, maxPattern)
	case !doublestar.ValidatePattern(pattern):
		return sdk.Errorf("%s %q is no valid path pattern: use * ? ** [a-z] {a,b}, and \\ before a literal one", name, pattern)
	}
	return nil
}

// splitPattern moves the plain folders at the pattern's beginning into the
// path, so that only they are walked; an absolute pattern has its own path.
func splitPattern(from, pattern string) (string, string) {
	pattern = strings.TrimPrefix(pattern, "./")
	base, rest := doublestar.SplitPattern(pattern)
	if filepath.IsAbs(pattern) {
		return base, rest
	}
	if base == "." {
		return from, rest
	}
	return filepath.Join(from, base), rest
}

// matches reports whether a path matches a valid pattern.
func matches(pattern, rel string) bool {
	ok, err := doublestar.Match(pattern, rel)
	return err == nil && ok
}

// relative cuts base off a path beneath it.
func relative(base, p string) string {
	if base == "." {
		return p
	}
	return strings.TrimPrefix(p, base+"/")
}
