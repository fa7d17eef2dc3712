// Package provider lists the model providers of this program.
package provider

import (
	"agentctl.dev/agentctl/runner/model"
	"agentctl.dev/agentctl/runner/model/anthropic"
	"agentctl.dev/agentctl/runner/model/cassette"
	"agentctl.dev/agentctl/runner/model/gemini"
	"agentctl.dev/agentctl/runner/model/openai"
	"agentctl.dev/agentctl/runner/model/scripted"
)

// All returns the providers: a new one is a line here.
func All() model.Registry {
	return model.Registry{
		openai.Provider(),
		anthropic.Provider(),
		gemini.Provider(),
		scripted.Provider(),
		cassette.Provider(),
	}
}
