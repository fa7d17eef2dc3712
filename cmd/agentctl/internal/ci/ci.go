// Package ci writes what CI systems read of a run: reports in files, and the commands in a job's log.
//
// What a model, a tool or a file of the run says is data in all of it. It never becomes
// a command of the system, a column of a table, or an element of a document.
package ci

import (
	"strings"

	"agentctl.dev/agentctl/api/safetext"
)

// System is a CI system that runs the job.
type System string

// The systems, and Auto, which Detect resolves.
const (
	None   System = "none"
	Auto   System = "auto"
	GitHub System = "github"
	GitLab System = "gitlab"
)

// Detect returns the system whose variables the environment has, where s is Auto.
func Detect(s System, getenv func(string) string) System {
	switch {
	case s != Auto:
		return s
	case getenv("GITHUB_ACTIONS") == "true":
		return GitHub
	case getenv("GITLAB_CI") == "true":
		return GitLab
	}
	return None
}

// line is untrusted text as one line in which everything can be seen.
func line(text string) string {
	return strings.Join(strings.Fields(prose(text)), " ")
}

// prose is untrusted text in which everything can be seen; line breaks and tabs stay.
func prose(text string) string {
	return safetext.Visible(strings.ReplaceAll(text, "\r\n", "\n"), safetext.Prose)
}

// clip cuts a text to so many bytes, at a whole character, and says that it did.
func clip(text string, most int) string {
	if len(text) <= most {
		return text
	}
	const more = "…"
	return strings.ToValidUTF8(text[:max(0, most-len(more))], "") + more
}
