package policy

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWhatNobodyMayReadIsMasked(t *testing.T) {
	asked := "permissions: [{permission: bash, pattern: '*', action: allow}, {permission: read, pattern: '*.env', action: ask}]"
	for name, c := range map[string]struct {
		policy string
		want   []string
	}{
		"list":  {ways["list"], []string{".env", "d/link", "d/x.env"}},
		"rule":  {ways["rule"], []string{".env", "d/link", "d/x.env"}},
		"asked": {asked, nil}, // a person may allow it
		"none":  {"permissions: [{permission: bash, pattern: '*', action: deny}]", nil},
	} {
		e := engine(t, c.policy)
		put(t, e.context.Workspace.Root, ".env", "a.go", "d/x.env")
		if err := os.Symlink("../.env", filepath.Join(e.context.Workspace.Root, "d", "link")); err != nil {
			t.Fatal(err)
		}
		got, err := e.Masked(t.Context(), []string{".env", "a.go", "d/link", "d/x.env", "gone"})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", name, diff)
		}
	}
}
