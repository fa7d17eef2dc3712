package doctor

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/runner/keys"
	"agentctl.dev/agentctl/runner/model/provider"
)

// ModelSource is a way to models that this host may have: the key of a provider, or a
// server on this host.
type ModelSource struct {
	// Name is that of the provider, or of the program that serves models.
	Name string `json:"name"`
	// BaseURL is its address, spec.baseURL of a Model.
	BaseURL string `json:"baseURL"`
	// OK is set when the key is there, or the server answers. A key is not tried.
	OK bool `json:"ok"`
	// Why is what was found, Hint how to get it; "" where it is there.
	Why  string `json:"why"`
	Hint string `json:"hint"`
	// Models are those that a server lists, at most 100.
	Models []string `json:"models"`
}

// modelSources finds the keys of providers and asks the servers of this host, all at once.
func modelSources(ctx context.Context, state string, servers []server) []ModelSource {
	vendors := provider.Vendors()
	found := make([]ModelSource, len(vendors)+len(servers))
	var asked sync.WaitGroup
	for i, s := range servers {
		asked.Go(func() { found[len(vendors)+i] = s.ask(ctx) })
	}
	variables := make([]string, len(vendors))
	for i, v := range vendors {
		variables[i] = v.KeyVariable
	}
	listed, err := keys.List(state, variables)
	for i, v := range vendors {
		found[i] = keyOf(v, listed, err)
	}
	asked.Wait()
	return found
}

// keyOf looks for the key of a provider among those that there are.
func keyOf(v provider.Vendor, listed []keys.Key, err error) ModelSource {
	m := ModelSource{Name: v.Name, BaseURL: v.BaseURL, Models: []string{}}
	if err != nil {
		m.Why, m.Hint = "the stored keys cannot be read: "+err.Error(), reason.Hint(err)
		return m
	}
	for _, k := range listed {
		switch {
		case k.Name != v.KeyVariable:
			continue
		case k.Source == keys.Stored && k.Problem != "":
			m.Why, m.Hint = k.Name+" is stored, but "+k.Problem, "agentctl auth set "+k.Name+" stores it again"
		case k.Source == keys.Stored:
			m.OK, m.Why = true, k.Name+" is stored"
		case os.Getenv(k.Name) == "":
			m.Why, m.Hint = k.Name+" is set in the environment, but empty", "unset "+k.Name+", or give it the key"
		default:
			m.OK, m.Why = true, k.Name+" is set in the environment"
		}
		return m
	}
	m.Why = v.KeyVariable + " is neither stored nor set in the environment"
	m.Hint = "agentctl auth set " + v.KeyVariable
	return m
}

// manifest is how a Model names a server, in words.
func (m *ModelSource) manifest() string {
	if len(m.Models) == 0 {
		return ""
	}
	return fmt.Sprintf("a Model with spec {provider: openai, model: %q, baseURL: %s} asks it", m.Models[0], m.BaseURL)
}

// some are the first names of a list, with the number of the others.
func some(names []string, most int) string {
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}
