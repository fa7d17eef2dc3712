package shell

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"agentctl.dev/agentctl/plugins/sdk"
)

// gitSettings override those of a repository that start programs, and what makes git
// take a folder of the workspace for a repository that nobody made.
var gitSettings = []string{
	"--no-pager", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "safe.bareRepository=explicit", "-c", "log.showSignature=false",
	"-c", "gpg.program=false", "-c", "gpg.openpgp.program=false", "-c", "gpg.ssh.program=false", "-c", "gpg.x509.program=false",
	"-c", "diff.submodule=short", "-c", "status.submoduleSummary=false", "-c", "submodule.recurse=false", "-c", "color.ui=false",
}

// starting are settings whose names are free, so that they cannot be overridden: git runs
// their values when it compares or shows files.
var starting = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?im)^(filter\..*\.(clean|smudge|process)|diff\..*\.(command|textconv)|merge\..*\.driver)$`)
})

// gitArgs returns the arguments with which git is started. A repository that is not all in
// the workspace, or whose settings start programs, is refused.
func (l *listed) gitArgs(ctx context.Context, call *sdk.Call, at *place, git string, args []string, end time.Time) ([]string, error) {
	where, err := l.gitSays(ctx, call, at, end, git, "rev-parse", "--path-format=absolute", "--show-toplevel", "--git-dir", "--git-common-dir")
	if err != nil {
		return nil, err
	}
	for dir := range strings.Lines(where) {
		dir = strings.TrimSuffix(dir, "\n")
		if leads, err := resolve(dir); err != nil || !at.holds(leads) {
			return nil, sdk.Errorf("the repository is not all in the workspace: it uses %s", word(dir))
		}
	}
	names, err := l.gitSays(ctx, call, at, end, git, "config", "--list", "--name-only")
	if err != nil {
		return nil, err
	}
	if found := starting().FindString(names); found != "" {
		return nil, sdk.Errorf("the settings of this repository start programs: %s", word(found))
	}
	return slices.Concat(gitSettings, args[:1], programs["git"].commands[args[0]].fixed, args[1:]), nil
}

// gitSays returns all that git prints.
func (l *listed) gitSays(ctx context.Context, call *sdk.Call, at *place, end time.Time, git string, args ...string) (string, error) {
	quiet := &sdk.Call{ID: call.ID, Run: call.Run, Workspace: call.Workspace}
	j, err := l.follow(ctx, quiet, at, at.dir, end, maxOutput, slices.Concat([]string{git}, gitSettings, args))
	if err != nil {
		return "", err
	}
	text := ""
	for _, p := range j.out.pieces() {
		text += string(p)
	}
	switch {
	case j.why != stopNone:
		return "", sdk.Errorf("git did not answer in time")
	case !j.cmd.ProcessState.Success():
		return "", sdk.Errorf("git: %s", strings.TrimSpace(text))
	case int64(len(text)) != j.out.written():
		return "", sdk.Errorf("git has settings that cannot be read")
	}
	return text, nil
}
