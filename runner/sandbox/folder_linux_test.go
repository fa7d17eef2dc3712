package sandbox

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// A plugin may end while its address is checked: the descriptor of its folder may be that
// of another file then. The race detector sees it if that is not excluded.
func TestTheFolderOfAPluginThatEndedIsNotUsed(t *testing.T) {
	for range 50 {
		sockets, err := os.Open(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		defer sockets.Close()
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "s"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		open, err := os.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		f := &pluginFolder{scratch: &scratch{sockets: sockets}, open: open}
		var wg sync.WaitGroup
		wg.Go(f.close)
		wg.Go(func() { _, _ = f.away("s") }) // before or after
		wg.Wait()
		f.close()
		if _, err := f.away("s"); !errors.Is(err, os.ErrClosed) {
			t.Fatalf("the folder of a plugin that ended is used: %v", err)
		}
	}
}
