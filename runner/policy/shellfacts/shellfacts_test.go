package shellfacts

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

func TestEachLineIsAnsweredInItsPlace(t *testing.T) {
	lines := map[string]struct {
		reason, line, want string
	}{
		"command":  {"what it does", `"rm -r x > out"`, `"commands":["rm"],"writes":["x","out"]`},
		"nothing":  {"lists are lists", `""`, `"commands":[],"writes":[],"reads":[],"network":false,"dynamic":false`},
		"no JSON":  {"it may be anything", `rm -rf /`, `{"error":"the line is not a JSON string","dynamic":true}`},
		"no text":  {"another command would be judged than runs", "\"\xff\"", `{"error":"the line is not UTF-8 text","dynamic":true}`},
		"empty":    {"an empty line is no empty command", ``, `{"error":"the line is empty, not a JSON string","dynamic":true}`},
		"too long": {"nothing of it is kept", `"` + strings.Repeat("x", maxLine) + `"`, `longer than 1048576 bytes`},
	}
	for name, c := range lines {
		var got []Line
		read := strings.NewReader(c.line + "\n\"ls\"\n")
		if err := Read(t.Context(), read, func(l Line) error { got = append(got, l); return nil }, func() error { return nil }); err != nil || len(got) != 2 {
			t.Fatalf("%s: %d answers, %v", name, len(got), err)
		}
		b, err := json.Marshal(got[0])
		if err != nil || !strings.Contains(string(b), c.want) {
			t.Errorf("%s: %s: got %s, %v, want %s", name, c.reason, b, err, c.want)
		}
		if got[1].Err != nil || len(got[1].Commands) != 1 || got[1].Commands[0] != "ls" {
			t.Errorf("%s: the next line is answered with %+v", name, got[1])
		}
	}
}

func TestReadingEndsWithWhoListens(t *testing.T) {
	gone := errors.New("nobody reads")
	quiet := func() error { return nil }
	if err := Read(t.Context(), strings.NewReader("\"ls\"\n\"ls\"\n"), func(Line) error { return gone }, quiet); !errors.Is(err, gone) {
		t.Errorf("got %v", err)
	}
	if err := Read(t.Context(), strings.NewReader("\"ls\"\n"), func(Line) error { return nil }, func() error { return gone }); !errors.Is(err, gone) {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(gone)
	if err := Read(ctx, strings.NewReader("\"ls\"\n"), func(Line) error { t.Error("a line was read"); return nil }, quiet); !errors.Is(err, gone) {
		t.Errorf("got %v", err)
	}
}
