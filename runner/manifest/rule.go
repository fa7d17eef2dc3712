package manifest

// Rule names what a finding is about. The names are stable: others list those that they
// accept.
type Rule string

// The rules.
const (
	// RuleInvalid is every mistake without a rule of its own.
	RuleInvalid Rule = "invalid"
	// RuleDoubtful is every warning without a rule of its own.
	RuleDoubtful        Rule = "doubtful"
	RuleModelUnpinned   Rule = "model-unpinned"
	RuleProgramUnpinned Rule = "program-unpinned"
	RuleNetworkOpen     Rule = "network-open"
	RuleNeverMatches    Rule = "rule-never-matches"
	RulePromptUntrusted Rule = "prompt-untrusted"
	RuleSkill           Rule = "skill-specification"
	RuleEvidence        Rule = "evidence-constant"
)

// RuleMeanings say in a sentence what each rule looks for.
var RuleMeanings = map[Rule]string{
	RuleInvalid:         "A manifest cannot be used as it is.",
	RuleDoubtful:        "A manifest can be used, and probably does not do what its author wants.",
	RuleModelUnpinned:   "The name of a model has no version, so that another model may answer tomorrow.",
	RuleProgramUnpinned: "A tool's command fetches the newest version of a package.",
	RuleNetworkOpen:     "A tool reaches every server.",
	RuleNeverMatches:    "A rule or permission of a policy never counts.",
	RulePromptUntrusted: "The instructions of an agent hold an input that can be any text.",
	RuleSkill:           "A skill departs from the Agent Skills specification.",
	RuleEvidence:        "An evidence holds, or fails, whatever the run does.",
}

// Named gives each finding without a rule one of the general ones.
func (f Findings) Named() {
	for i := range f {
		if f[i].Rule != "" {
			continue
		}
		f[i].Rule = RuleInvalid
		if f[i].Severity == Warning {
			f[i].Rule = RuleDoubtful
		}
	}
}
