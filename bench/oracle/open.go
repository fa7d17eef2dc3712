//go:build linux && amd64

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
)

// openFinding is a finding that is known and not yet fixed.
type openFinding struct {
	// Effect is the kind of effect that is missing, and the program that had it.
	Effect string `json:"effect"`
	// Script shows it.
	Script string `json:"script"`
}

// openFindings are those of a file.
type openFindings []openFinding

// readOpen reads a file of open findings, one JSON object a line.
func readOpen(path string) (all openFindings, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the open findings: %w", err)
	}
	lines := json.NewDecoder(bytes.NewReader(text))
	for {
		var one openFinding
		switch err := lines.Decode(&one); {
		case errors.Is(err, io.EOF):
			return all, nil
		case err != nil:
			return nil, fmt.Errorf("read the open findings of %s: %w", path, err)
		}
		all = append(all, one)
	}
}

// Has reports whether findings with all missing effects of a result are open.
func (o openFindings) Has(r result) bool {
	return !slices.ContainsFunc(r.Missing, func(e Effect) bool {
		return !slices.ContainsFunc(o, func(known openFinding) bool { return known.Effect == e.sort() })
	})
}

// sort is the kind of an effect and the program that had it.
func (e Effect) sort() string { return string(e.Kind) + " by " + e.By }
