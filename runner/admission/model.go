package admission

import (
	"cmp"
	"encoding/json"
	"strings"

	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/cassette"
	"agentctl.dev/agentctl/runner/manifest"
	"agentctl.dev/agentctl/runner/model/price"
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
	a.cassette(d, m)
	a.positive(d, "spec.retry.maxDelay", m.Spec.Retry.MaxDelay.Duration)
	if t := m.Spec.Retry.StallTimeout; t != nil {
		a.positive(d, "spec.retry.stallTimeout", t.Duration)
	}
}

// unread tells of what only another provider reads. To speak an API that is not
// there is a mistake; a script or a recording may wait beside a model for a line
// to be changed.
func (a *admitter) unread(d *manifest.Document, m *v1alpha1.Model) {
	p := m.Spec.Provider
	if m.Spec.API == v1alpha1.APIResponses && p != v1alpha1.ProviderOpenAI {
		a.add(d.KeyErrorf("spec.api", "provider %s has no api %s: it is one of openai", p, m.Spec.API).With("leave spec.api out"))
	}
	if m.Spec.Scripted != nil && p != v1alpha1.ProviderScripted {
		f := d.KeyErrorf("spec.scripted", "provider %s does not read it", p).With("for its answers write provider: scripted")
		f.Severity = manifest.Warning
		a.add(f)
	}
	if m.Spec.Cassette != nil && p != v1alpha1.ProviderCassette {
		f := d.KeyErrorf("spec.cassette", "provider %s does not read it", p).With("for its answers write provider: cassette")
		f.Severity = manifest.Warning
		a.add(f)
	}
}

// listed warns of a model that is in no list of its provider's: a misspelt name is
// refused only by the first request. Who declares a price knows the model.
func (a *admitter) listed(d *manifest.Document, m *v1alpha1.Model) {
	if _, known := price.Listed(&m.Spec); known || m.Spec.Pricing != nil || m.Spec.Model == "" || !price.Own(&m.Spec) {
		return
	}
	var sold []string
	for _, e := range price.All() {
		if e.Provider == m.Spec.Provider {
			sold = append(sold, e.Model)
		}
	}
	a.add(d.Warnf("spec.model", "%q is not among the models of %s that this version knows: its price and its window are unknown", clip(m.Spec.Model), m.Spec.Provider).
		With(cmp.Or(manifest.Suggest(m.Spec.Model, sold), "agentctl models lists them; declare spec.pricing and spec.contextWindow of a newer one")))
}

// longest warns of answers that are longer than a well-known model gives: most
// providers refuse such a request. What is known may be out of date.
func (a *admitter) longest(d *manifest.Document, m *v1alpha1.Model) {
	var p struct{ MaxOutputTokens int64 }
	if m.Spec.Parameters == nil || json.Unmarshal(m.Spec.Parameters.Raw, &p) != nil {
		return // it is told elsewhere
	}
	if e, ok := price.Listed(&m.Spec); ok && e.MaxOutput > 0 && p.MaxOutputTokens > e.MaxOutput {
		a.add(d.Warnf("spec.parameters.maxOutputTokens", "an answer of %s has at most %d tokens, as of %s: the provider may refuse every request", m.Spec.Model, e.MaxOutput, e.AsOf).
			With("agentctl models " + e.Model + " tells what is known"))
	}
}

// room refuses a limit of the answer that leaves nothing of the window for the
// conversation: it would be shortened before every request, or every request be
// refused.
func (a *admitter) room(d *manifest.Document, m *v1alpha1.Model) {
	window := price.Window(&m.Spec)
	if a.opts.OutputLimit == nil || window == 0 {
		return
	}
	limit := a.opts.OutputLimit(&m.Spec)
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

// cassette looks whether a recording is one. What stands in it is read when the
// model is asked: it may be large.
func (a *admitter) cassette(d *manifest.Document, m *v1alpha1.Model) {
	if m.Spec.Provider != v1alpha1.ProviderCassette || m.Spec.Cassette == nil || m.Spec.Cassette.Path == "" || d.Dir == "" {
		return
	}
	if err := cassette.Begins(absolute(d.Dir, m.Spec.Cassette.Path)); err != nil {
		a.add(d.Errorf("spec.cassette.path", "%v", err).With("agentctl run --record FILE records one"))
	}
}

// parameters asks the provider what it takes.
func (a *admitter) parameters(d *manifest.Document, m *v1alpha1.Model) {
	if a.opts.Parameters == nil || m.Spec.Parameters == nil || len(m.Spec.Parameters.Raw) == 0 {
		return
	}
	for _, p := range a.opts.Parameters(&m.Spec) {
		text, advice, _ := strings.Cut(p.Message, "; ")
		f := d.KeyErrorf(p.Path, "%s", text).With(advice)
		if list, ok := strings.CutPrefix(advice, "it has "); ok { // the names it knows: one may be near
			list, _, _ = strings.Cut(list, ", and ")
			name := p.Path[strings.LastIndexByte(p.Path, '.')+1:]
			f.Suggestion = cmp.Or(manifest.Suggest(name, strings.Split(list, ", ")), advice)
		}
		a.add(f)
	}
}
