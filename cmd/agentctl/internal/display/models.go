package display

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// ModelList is a table of well-known models.
type ModelList struct {
	Models    []ListedModel
	Providers []ListedProvider
	// Format is text or wide.
	Format string
}

// ListedModel is a model in a list; what is not known is empty or nil. Prices are
// US dollars per million tokens.
type ListedModel struct {
	Provider, Model                      string
	Context, MaxInput, MaxOutput         *int64
	Input, CacheRead, CacheWrite, Output string
	// LongAbove is the number of tokens above which the long prices hold, or 0.
	LongAbove             int64
	LongInput, LongOutput string
	Capabilities          []string
	AsOf, Source          string
}

// ListedProvider is who sells the models.
type ListedProvider struct{ Name, BaseURL, KeyVariable string }

// allCapabilities a model may have, in the order of the snapshot.
var allCapabilities = []string{"tools", "images", "pdf", "reasoning", "structuredOutput"}

// Write writes one line a model, and what the figures mean.
func (l ModelList) Write(s *Screen) error {
	head := []string{"PROVIDER", "MODEL", "CONTEXT", "OUTPUT", "$ IN", "$ OUT", "CAN", "AS OF"}
	if l.Format == FormatWide {
		head = []string{"PROVIDER", "MODEL", "CONTEXT", "INPUT", "OUTPUT", "$ IN", "$ CACHED", "$ CACHE WRITE", "$ OUT", "$ LONG REQUESTS", "CAN", "AS OF", "SOURCE"}
	}
	rows := [][]string{head}
	long := false
	for i := range l.Models {
		m := &l.Models[i]
		long = long || m.LongAbove > 0
		if l.Format == FormatWide {
			rows = append(rows, m.wide())
			continue
		}
		in, out := dash(m.Input), dash(m.Output)
		if m.LongAbove > 0 {
			in, out = in+"+", out+"+"
		}
		rows = append(rows, []string{m.Provider, m.Model, tokens(m.Context), tokens(m.MaxOutput), in, out, abilities(m.Capabilities), m.AsOf})
	}
	s.print(table(rows) + "\n")
	for _, p := range l.Providers {
		s.print(fmt.Sprintf("%s: %s, key in %s\n", p.Name, p.BaseURL, p.KeyVariable))
	}
	text := "US dollars per million tokens: list prices of the standard tier; reasoning is output.\n"
	if l.Format != FormatWide {
		text += "all: " + strings.Join(allCapabilities, ", ") + "\n"
	}
	if long && l.Format != FormatWide {
		text += "+ dearer for long requests, see -o wide\n"
	}
	s.print(text + `This is a snapshot inside agentctl. It is never fetched, and prices may have changed since AS OF.
It counts at a provider's own address; spec.pricing and spec.contextWindow override it.
`)
	return s.Err()
}

func (m *ListedModel) wide() []string {
	long := "-"
	if m.LongAbove > 0 {
		long = fmt.Sprintf("%s in, %s out above %s", m.LongInput, m.LongOutput, tokens(&m.LongAbove))
	}
	input := m.MaxInput
	if input == nil {
		input = m.Context
	}
	return []string{
		m.Provider, m.Model, tokens(m.Context), tokens(input), tokens(m.MaxOutput), dash(m.Input), dash(m.CacheRead), dash(m.CacheWrite), dash(m.Output),
		long, dash(strings.Join(m.Capabilities, " ")), m.AsOf, m.Source,
	}
}

// abilities names the few that a model lacks, or else those that it has.
func abilities(has []string) string {
	var lacks []string
	for _, c := range allCapabilities {
		if !slices.Contains(has, c) {
			lacks = append(lacks, c)
		}
	}
	switch {
	case len(lacks) == 0:
		return "all"
	case len(lacks) <= 2:
		return "no " + strings.Join(lacks, ", ")
	}
	return dash(strings.Join(has, ", "))
}

// tokens is a number of tokens in short: 200k, 1.05M.
func tokens(n *int64) string {
	switch {
	case n == nil:
		return "-"
	case *n >= 1_000_000:
		return strconv.FormatFloat(float64(*n/10_000)/100, 'f', -1, 64) + "M"
	case *n >= 1000:
		return strconv.FormatInt(*n/1000, 10) + "k"
	}
	return strconv.FormatInt(*n, 10)
}
