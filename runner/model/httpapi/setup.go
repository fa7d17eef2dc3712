package httpapi

import "agentctl.dev/agentctl/runner/model"

// ConfigOf is how the model of a setup is reached over the network.
func ConfigOf(s model.Setup) Config {
	spec := s.Spec
	cfg := Config{
		Name: s.Name, Model: spec.Model, BaseURL: spec.BaseURL, Transport: s.Transport, Blob: s.Blob, Shows: s.Shows,
		APIKey: s.APIKey, KeySource: s.KeySource,
		Retry: model.Retry{Attempts: int(spec.Retry.Attempts), MaxDelay: spec.Retry.MaxDelay.Duration},
	}
	if t := spec.Retry.StallTimeout; t != nil {
		cfg.Patience = model.Patience{FirstByte: t.Duration, Idle: t.Duration, Quiet: t.Duration, Busy: t.Duration}
	}
	if spec.Parameters != nil {
		cfg.Parameters = spec.Parameters.Raw
	}
	return cfg
}
