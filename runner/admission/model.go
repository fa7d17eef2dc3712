package admission

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"agentctl.dev/agentctl/runner/model"

	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/manifest"
)

func (a *admitter) model(d *manifest.Document, m *v1alpha1.Model) {
	known := names(a.catalog.Models)
	for i, ref := range m.Spec.Fallbacks {
		a.reference(d, manifest.Join(manifest.Index("spec.fallbacks", i), "name"), v1alpha1.KindModel, ref.Name, known)
	}
	a.unread(d, m)
	a.listed(d, m)
	a.parameters(d, m)
	a.longest(d, m)
	a.room(d, m)
	a.files(d, m)
	a.positive(d, "spec.retry.maxDelay", m.Spec.Retry.MaxDelay.Duration)
	if t := m.Spec.Retry.StallTimeout; t != nil {
		a.positive(d, "spec.retry.stallTimeout", t.Duration)
	}
}

// unread reports fields that only another provider reads. An API that the
// provider does not have is an error. A script or a recording is accepted, so
// that one line switches the model.
func (a *admitter) unread(d *manifest.Document, m *v1alpha1.Model) {
	own, known := a.opts.Models.Of(m.Spec.Provider)
	if !known {
		return
	}
	if api := m.Spec.API; api != "" && !slices.Contains(own.APIs, api) && api != v1alpha1.APIChat { // the default of the field
		a.add(d.KeyErrorf("spec.api", "provider %s has no api %s: it is one of %s", own.Name, api, strings.Join(a.havingAPI(api), ", ")).With("leave spec.api out"))
	}
	for i := range a.opts.Models {
		p := &a.opts.Models[i]
		if p.Name == own.Name || p.Section.Set == nil || !p.Section.Set(&m.Spec) {
			continue
		}
		f := d.KeyErrorf("spec."+p.Section.Field, "provider %s does not read it", own.Name).With("for its answers write provider: " + string(p.Name))
		f.Severity = manifest.Warning
		a.add(f)
	}
}

// havingAPI are the names of the providers that have an API.
func (a *admitter) havingAPI(api v1alpha1.ModelAPI) []string {
	var names []string
	for i := range a.opts.Models {
		if slices.Contains(a.opts.Models[i].APIs, api) {
			names = append(names, string(a.opts.Models[i].Name))
		}
	}
	return names
}

// listed warns of a model that is not in the list of its provider's models: a
// misspelt name is refused only by the first request. A declared price shows
// that the author knows the model.
func (a *admitter) listed(d *manifest.Document, m *v1alpha1.Model) {
	if _, known := a.opts.Models.Listed(&m.Spec); known || m.Spec.Pricing != nil || m.Spec.Model == "" || !a.opts.Models.Own(&m.Spec) {
		return
	}
	var sold []string
	for _, e := range a.opts.Models.Models() {
		if e.Provider == m.Spec.Provider {
			sold = append(sold, e.Model)
		}
	}
	a.add(d.Warnf("spec.model", "%q is not among the models of %s that this version knows: its price and its window are unknown", clip(m.Spec.Model), m.Spec.Provider).
		With(cmp.Or(manifest.Suggest(m.Spec.Model, sold), "agentctl models lists them; declare spec.pricing and spec.contextWindow of a newer one")))
}

// longest warns of answers that are longer than a well-known model can return:
// most providers refuse such a request. The list may be out of date.
func (a *admitter) longest(d *manifest.Document, m *v1alpha1.Model) {
	var p struct{ MaxOutputTokens int64 }
	if m.Spec.Parameters == nil || json.Unmarshal(m.Spec.Parameters.Raw, &p) != nil {
		return // reported elsewhere
	}
	if e, ok := a.opts.Models.Listed(&m.Spec); ok && e.MaxOutput > 0 && p.MaxOutputTokens > e.MaxOutput {
		a.add(d.Warnf("spec.parameters.maxOutputTokens", "an answer of %s has at most %d tokens, as of %s: the provider may refuse every request", m.Spec.Model, e.MaxOutput, e.AsOf).
			With("agentctl models " + e.Model + " tells what is known"))
	}
}

// room refuses a limit of the answer that leaves nothing of the window for the
// conversation: it would be shortened before every request, or every request be
// refused.
func (a *admitter) room(d *manifest.Document, m *v1alpha1.Model) {
	window := a.opts.Models.Window(&m.Spec)
	if window == 0 {
		return
	}
	limit := a.opts.Models.OutputLimit(&m.Spec)
	if limit < window {
		return
	}
	advice := "lower it below the window"
	if m.Spec.ContextWindow == 0 {
		advice += ", or set spec.contextWindow if the model holds more"
	}
	var p struct{ MaxOutputTokens int64 }
	if m.Spec.Parameters != nil && json.Unmarshal(m.Spec.Parameters.Raw, &p) == nil && p.MaxOutputTokens > 0 {
		a.add(d.Errorf("spec.parameters.maxOutputTokens", "an answer may hold %d tokens and the model holds %d: nothing is left for the conversation", limit, window).With(advice))
		return
	}
	a.add(d.Errorf("spec.contextWindow", "the model holds %d tokens and an answer may hold %d without spec.parameters.maxOutputTokens: nothing is left for the conversation", window, limit).
		With("set spec.parameters.maxOutputTokens below the window"))
}

// files checks the files that the provider's section names.
func (a *admitter) files(d *manifest.Document, m *v1alpha1.Model) {
	p, ok := a.opts.Models.Of(m.Spec.Provider)
	if !ok || p.CheckFiles == nil || !p.Section.Set(&m.Spec) || d.Dir == "" {
		return
	}
	for _, p := range p.CheckFiles(d.Dir, &m.Spec) {
		a.add(finding(d, p))
	}
}

// finding is a mistake that a provider has found. Advice follows a semicolon.
func finding(d *manifest.Document, p model.Problem) manifest.Finding {
	text, advice := p.Split()
	return d.Errorf(p.Path, "%s", text).With(advice)
}

// parameters asks the provider what it takes.
func (a *admitter) parameters(d *manifest.Document, m *v1alpha1.Model) {
	for _, p := range a.opts.Models.Problems(&m.Spec) {
		text, advice := p.Split()
		f := d.KeyErrorf(p.Path, "%s", text).With(advice)
		if list, ok := strings.CutPrefix(advice, "it has "); ok { // the names it knows: one may be similar
			list, _, _ = strings.Cut(list, ", and ")
			name := p.Path[strings.LastIndexByte(p.Path, '.')+1:]
			f.Suggestion = cmp.Or(manifest.Suggest(name, strings.Split(list, ", ")), advice)
		}
		a.add(f)
	}
}
