package cassette

import (
	"path/filepath"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/cassette"
	"agentctl.dev/agentctl/runner/model"
)

// Provider describes provider cassette. It ignores all parameters: a recorded
// answer was given with those of its time.
func Provider() model.Provider {
	return model.Provider{
		Name: v1alpha1.ProviderCassette, Free: true,
		Section: model.Section{Field: "cassette", Set: func(s *v1alpha1.ModelSpec) bool { return s.Cassette != nil }},
		Open: func(s model.Setup, _ message.Prompt) (model.Conversation, error) {
			return New(s.Spec.Cassette.Path, Options{Name: s.Name})
		},
		CheckFiles: checkFile,
	}
}

// checkFile reports a file that is not a cassette. Its content is read when the
// model is asked: it may be large.
func checkFile(dir string, spec *v1alpha1.ModelSpec) []model.Problem {
	file := spec.Cassette.Path
	if file == "" {
		return nil
	}
	if !filepath.IsAbs(file) {
		file = filepath.Join(dir, file)
	}
	if err := cassette.Begins(file); err != nil {
		return []model.Problem{{Path: "spec.cassette.path", Message: err.Error(), Advice: "agentctl run --record FILE records one"}}
	}
	return nil
}
