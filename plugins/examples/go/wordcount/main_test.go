package main

import (
	"encoding/json"
	"testing"
)

func TestCount(t *testing.T) {
	for args, want := range map[string]string{
		`{"text":"to be or not"}`: "4 words",
		`{"text":" "}`:            "the text is empty",
	} {
		res, err := tool().Run(t.Context(), nil, json.RawMessage(args))
		if err != nil || res.Text != want {
			t.Errorf("%s: %+v, %v, want %q", args, res, err, want)
		}
	}
}
