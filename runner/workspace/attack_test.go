package workspace

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A program makes many files in a folder with a long path: all paths together would
// take all memory.
func TestLongPathsWithoutEndAreNotListed(t *testing.T) {
	dir := t.TempDir()
	deep := filepath.Join(dir, strings.Repeat(strings.Repeat("n", 200)+"/", 10))
	must(t, os.MkdirAll(deep, 0o700))
	for i := range 50 {
		must(t, os.WriteFile(filepath.Join(deep, fmt.Sprint("f", i)), nil, 0o600))
	}
	filter, err := newFilter(nil, nil)
	must(t, err)
	for most, want := range map[int64]error{50_000: ErrTooLarge, 500_000: nil, 0: nil} {
		walk := tree{ctx: t.Context(), filter: filter, notes: silence{}, sizeLimit: 1 << 62, maxFiles: MaxListed, maxNames: most, root: dir}
		if _, err := walk.walk(nil); !errors.Is(err, want) || err != nil && !strings.Contains(err.Error(), "paths of more than") {
			t.Errorf("with %d bytes of paths: %v, want %v", most, err, want)
		}
	}
}
