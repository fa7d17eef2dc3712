package model

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/v1alpha1"
)

// Registry is the providers of a program.
type Registry []Provider

// Of returns the provider of a name.
func (r Registry) Of(name v1alpha1.Provider) (*Provider, bool) {
	for i := range r {
		if r[i].Name == name {
			return &r[i], true
		}
	}
	return nil, false
}

// Remote are the providers that are reached over the network.
func (r Registry) Remote() Registry {
	return slices.DeleteFunc(slices.Clone(r), func(p Provider) bool { return !p.Remote() })
}

// Open begins a conversation with a model.
func (r Registry) Open(s Setup, prompt message.Prompt) (Conversation, error) {
	p, ok := r.Of(s.Spec.Provider)
	if !ok {
		var names []string
		for _, p := range r {
			names = append(names, string(p.Name))
		}
		return nil, reason.New(reason.ProviderUnavailable, "model %q: this version does not speak to provider %s", s.Name, s.Spec.Provider).
			WithHint("use one of the providers %s", strings.Join(names, ", "))
	}
	if s.Shows == nil {
		media := r.media(s.Spec)
		s.Shows = func(mime string) bool { return slices.Contains(media, capability(mime)) }
	}
	return p.Open(s, prompt)
}

// media are the kinds of files that a model can be shown. A server that imitates a
// provider may answer a request with an image with an error, which would end the run.
func (r Registry) media(spec *v1alpha1.ModelSpec) []string {
	if spec.Media != nil {
		return spec.Media
	}
	if e, ok := r.Listed(spec); ok {
		return e.Capabilities
	}
	if r.Own(spec) {
		return []string{images, papers}
	}
	return nil
}

// The capabilities of a catalog that are media.
const (
	images = "images"
	papers = "pdf"
)

func capability(mime string) string {
	if mime == "application/pdf" {
		return papers
	}
	return images
}

// Problems returns what is wrong with spec.parameters. A name that only other
// providers take is reported with theirs instead of similar names.
func (r Registry) Problems(spec *v1alpha1.ModelSpec) []Problem {
	p, ok := r.Of(spec.Provider)
	if !ok || p.CheckParameters == nil || spec.Parameters == nil || len(spec.Parameters.Raw) == 0 {
		return nil
	}
	found := p.CheckParameters(spec.API, spec.Parameters.Raw)
	for i := range found {
		text, advice, _ := strings.Cut(found[i].Message, "; ")
		if strings.Contains(text, unknownParameter) && strings.HasPrefix(advice, "it has ") {
			if takers := r.takers(strings.TrimPrefix(found[i].Path, parametersPath+".")); takers != "" {
				found[i].Message = text + "; " + takers
			}
		}
	}
	return found
}

// takers returns which providers have a parameter, or "" if none has it.
func (r Registry) takers(name string) string {
	raw, err := json.Marshal(map[string]any{name: nil})
	if err != nil {
		return ""
	}
	var takers []string
	for _, p := range r.Remote() {
		if p.CheckParameters == nil {
			continue
		}
		apis := p.APIs
		if len(apis) == 0 {
			apis = []v1alpha1.ModelAPI{""}
		}
		for _, api := range apis {
			unknown := func(p Problem) bool { return strings.Contains(p.Message, unknownParameter) }
			if !slices.ContainsFunc(p.CheckParameters(api, raw), unknown) {
				takers = append(takers, p.api(api))
			}
		}
	}
	if len(takers) == 0 {
		return ""
	}
	return "it is a parameter of " + strings.Join(takers, ", ")
}

// OutputLimit is the most tokens that requests let an answer of a model hold; 0 is
// not known.
func (r Registry) OutputLimit(spec *v1alpha1.ModelSpec) int64 {
	if p, ok := r.Of(spec.Provider); ok && p.OutputLimit != nil {
		return p.OutputLimit(spec)
	}
	return maxOutputTokens(spec)
}

// maxOutputTokens is the parameter of that name; 0 is not given.
func maxOutputTokens(spec *v1alpha1.ModelSpec) int64 {
	var p struct{ MaxOutputTokens int64 }
	if spec.Parameters == nil || json.Unmarshal(spec.Parameters.Raw, &p) != nil {
		return 0 // the provider's check reports it
	}
	return p.MaxOutputTokens
}

// Price returns what the tokens of a model cost: what its manifest declares, else
// the list price. False is an unknown price, which is not zero.
func (r Registry) Price(spec *v1alpha1.ModelSpec) (Price, bool) {
	if spec.Pricing != nil {
		return Price{Pricing: *spec.Pricing}, true
	}
	if p, ok := r.Of(spec.Provider); ok && p.Free {
		return Price{Pricing: v1alpha1.Pricing{Input: "0", Output: "0"}}, true
	}
	e, ok := r.Listed(spec)
	return e.Price, ok && standard(spec.Parameters)
}

// Window is how many tokens a request to a model and its answer may have together: as
// declared by its manifest, otherwise as listed in the catalog. 0 is not known. If the
// input is limited to less than the window, it is that limit plus the output limit of the
// request.
func (r Registry) Window(spec *v1alpha1.ModelSpec) int64 {
	if spec.ContextWindow > 0 {
		return spec.ContextWindow
	}
	e, _ := r.Listed(spec)
	if e.MaxInput == 0 {
		return e.ContextWindow
	}
	return min(e.ContextWindow, e.MaxInput+max(0, maxOutputTokens(spec)))
}

// Listed returns the catalog entry of a model: by its exact id, or the id and the date of
// a snapshot; only at the provider's own endpoint.
func (r Registry) Listed(spec *v1alpha1.ModelSpec) (CatalogEntry, bool) {
	p, ok := r.Of(spec.Provider)
	if !ok || spec.Model == "" || !r.Own(spec) {
		return CatalogEntry{}, false
	}
	var dated CatalogEntry
	for line := range strings.Lines(p.Catalog) {
		name, _, _ := strings.Cut(line, ",")
		if !strings.HasPrefix(spec.Model, name) {
			continue
		}
		e, ok := parseEntry(p.Name, line)
		switch {
		case !ok:
		case e.Model == spec.Model:
			return e, true
		case snapshot(spec.Model, e.Model):
			dated = e
		}
	}
	return dated, dated.Model != ""
}

// Models are all that the catalogs list: by provider, the newest first.
func (r Registry) Models() []CatalogEntry {
	var all []CatalogEntry
	for i := range r {
		all = append(all, ParseCatalog(r[i].Name, r[i].Catalog)...)
	}
	return all
}

// Own reports whether a model is asked for where the provider sells at its list
// prices. A compatible server, a gateway or a regional endpoint has prices and
// limits of its own; so has a provider that sells nothing.
func (r Registry) Own(spec *v1alpha1.ModelSpec) bool {
	p, ok := r.Of(spec.Provider)
	if !ok || !p.Remote() {
		return false
	}
	if spec.BaseURL == "" {
		return true
	}
	u, err := url.Parse(spec.BaseURL)
	return err == nil && u.Scheme == "https" && strings.EqualFold(u.Host, p.Host())
}
