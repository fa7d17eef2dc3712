package plan

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/policy"
	"agentctl.dev/agentctl/runner/prompt"
)

// SystemPrompt writes the system prompt of a run whose tools see the folder root. It
// stays the same for the whole run, resumes included.
//
// Context files are judged as if read were called for them. Nobody can be asked yet: a
// file that would need an approval is left out, and a warning says so.
func (p *Plan) SystemPrompt(ctx context.Context, root string, host v1alpha1.IsolationLevel) (text string, warnings []string) {
	leftOut := func(file string, err error) {
		warnings = append(warnings, fmt.Sprintf("context file %s is left out: %s", file, err))
	}
	var engine *policy.Engine
	if len(p.Agent.Spec.ContextFiles)+len(p.Skills) > 0 && p.judged() {
		engine = policy.NewEngine(p.Rules, p.StandingContext())
	}
	var admit func(file, text string) (string, bool)
	if engine != nil {
		admit = func(file, text string) (string, bool) {
			text, err := engine.Load(ctx, file, text)
			if err != nil {
				leftOut(file, err)
			}
			return text, err == nil
		}
	}
	text = prompt.System{
		Instructions: p.Instructions, Workspace: root, Source: p.Workspace.Source, Git: p.IsGit(), Programs: p.programs(host),
		Platform: runtime.GOOS + "/" + runtime.GOARCH, Date: time.Now(), ContextFiles: p.Agent.Spec.ContextFiles, Admit: admit, Unread: leftOut,
		Skills: p.skillList(ctx, engine, func(file string, err error) {
			warnings = append(warnings, fmt.Sprintf("skill %s is not listed: %s", file, err))
		}),
	}.Text()
	return text, warnings
}
