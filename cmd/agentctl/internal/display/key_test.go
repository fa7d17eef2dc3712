package display

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestKeyListShowsWhichValueCounts(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	at := func(d time.Duration) *time.Time { t := now.Add(-d); return &t }
	list := KeyList{Now: now, Keys: []ListedKey{
		{Name: "A_KEY", Source: "environment"},
		{Name: "B_KEY", Source: "both", EnvironmentWins: true, Set: at(3 * time.Hour)},
		{Name: "C_KEY", Source: "stored", Set: at(50 * time.Hour), Problem: "file has mode 0644\x1b[2J"},
	}}
	var out strings.Builder
	if err := list.Write(&Screen{w: &out}); err != nil {
		t.Fatal(err)
	}
	want := `NAME   SOURCE                  SET
A_KEY  environment             -
B_KEY  both: environment wins  3h
C_KEY  stored, unusable        2d
`
	if diff := cmp.Diff(want, out.String()[:len(want)]); diff != "" {
		t.Error(diff)
	}
	if rest := out.String()[len(want):]; !strings.HasPrefix(rest, "C_KEY: file has mode 0644") || strings.Contains(rest, "\x1b") {
		t.Errorf("below: %q", rest)
	}
	out.Reset()
	list.Format = FormatName
	if err := list.Write(&Screen{w: &out}); err != nil || out.String() != "A_KEY\nB_KEY\nC_KEY\n" {
		t.Errorf("names: %q, %v", out.String(), err)
	}
}
