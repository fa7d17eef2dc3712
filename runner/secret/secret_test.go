package secret

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
)

func TestValueNeverShows(t *testing.T) {
	const key = "sk-very-secret"
	v := NewValue(key)
	type holder struct {
		Public  Value
		private Value
		Pointer *Value
		Any     any
	}
	h := holder{v, v, &v, v}
	var shown []string
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%10s"} {
		shown = append(shown, fmt.Sprintf(verb, v), fmt.Sprintf(verb, &v), fmt.Sprintf(verb, h), fmt.Sprintf(verb, []Value{v}), fmt.Sprintf(verb, map[string]Value{"k": v}))
	}
	for _, x := range []any{v, h, map[string]any{"k": v}} {
		b, err := json.Marshal(x)
		if err != nil {
			t.Fatal(err)
		}
		shown = append(shown, string(b))
	}
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("m", "v", v, "h", h)
	slog.New(slog.NewTextHandler(&log, nil)).Info("m", "v", v, "h", h)
	shown = append(shown, log.String(), fmt.Sprint(v), v.String())
	for _, s := range shown {
		if strings.Contains(s, key) || strings.Contains(s, "736b2d") || strings.Contains(s, "736B2D") {
			t.Errorf("shown: %s", s)
		}
	}
	if v.Reveal() != key || v.IsZero() || !(Value{}).IsZero() {
		t.Errorf("Reveal = %q", v.Reveal())
	}
}
