package tool

import (
	"testing"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/runner/sandbox/spec"
)

// A rule of the kernel about a folder is one about all that is below it.
func TestNoFileOfTheHostIsInAFolderThatEveryBoundCallMayChange(t *testing.T) {
	for name, c := range map[string]struct {
		profile *spec.Profile
		outside string
		want    bool
	}{
		"no sandbox":                 {nil, "", false},
		"files elsewhere":            {&spec.Profile{Workspace: "/home/me/src"}, "", true},
		"no files":                   {&spec.Profile{}, "", true},
		"a name that begins alike":   {&spec.Profile{Workspace: "/tmpfiles/src"}, "", true},
		"files below it":             {&spec.Profile{Workspace: "/tmp/src"}, "", false},
		"a mount below it":           {&spec.Profile{Workspace: "/src", Mounts: []spec.Mount{{Source: "/tmp/cache"}}}, "", false},
		"the mount of it":            {&spec.Profile{Workspace: "/src", Mounts: []spec.Mount{{Source: "/tmp/"}}}, "", false},
		"a mount that is put there":  {&spec.Profile{Workspace: "/src", Mounts: []spec.Mount{{Source: "/srv/x", Target: "/tmp/x"}}}, "", false},
		"a mount from there":         {&spec.Profile{Workspace: "/src", Mounts: []spec.Mount{{Source: "/tmp/x", Target: "/opt/x"}}}, "", true},
		"a file outside, for a call": {&spec.Profile{Workspace: "/src"}, "/tmp/notes", false},
		"another file outside":       {&spec.Profile{Workspace: "/src"}, "/etc/notes", true},
	} {
		beyond := &outside{}
		if c.outside != "" {
			beyond.Paths = append(beyond.Paths, message.OutsidePath{Real: c.outside})
		}
		if got := ownTemporary(c.profile, beyond); got != c.want {
			t.Errorf("%s: got %v", name, got)
		}
	}
}
