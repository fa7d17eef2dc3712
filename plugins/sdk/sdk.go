package sdk

import (
	"encoding/json"
	"fmt"
)

// toolInfo is a tool as Describe writes it.
type toolInfo struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
}

// Describe returns the tools' names, descriptions and schemas as a JSON array,
// in the order given. Generators use it; nothing is started.
func Describe(tools ...Tool) ([]byte, error) {
	if _, err := index(tools); err != nil {
		return nil, err
	}
	infos, err := describe(tools)
	if err != nil {
		return nil, err
	}
	b, err := json.MarshalIndent(infos, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("describe tools: %w", err)
	}
	return b, nil
}

// describe makes the schema of every tool, and refuses a tool that cannot be served.
func describe(tools []Tool) ([]toolInfo, error) {
	infos := make([]toolInfo, len(tools))
	for i := range tools {
		t := &tools[i]
		if err := t.check(); err != nil {
			return nil, err
		}
		infos[i] = toolInfo{Name: t.name, Description: t.description, Parameters: t.Parameters()}
	}
	return infos, nil
}

// index maps names to tools.
func index(tools []Tool) (map[string]*Tool, error) {
	if len(tools) == 0 {
		return nil, fmt.Errorf("no tools to serve")
	}
	m := make(map[string]*Tool, len(tools))
	for i := range tools {
		t := &tools[i]
		if m[t.name] != nil {
			return nil, fmt.Errorf("tool %q: two tools have this name", t.name)
		}
		m[t.name] = t
	}
	return m, nil
}
