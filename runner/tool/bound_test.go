package tool

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/runner/sandbox/spec"
)

// A rule of the kernel about a folder is one about all that is below it.
func TestNoFileOfTheHostIsInAFolderThatEveryBoundCallMayChange(t *testing.T) {
	const cache, npm, telemetry = "/home/agent/.cache", "/home/agent/.npm", "/home/agent/.config/go/telemetry"
	for name, c := range map[string]struct {
		profile *spec.Profile
		outside string
		want    []string
	}{
		"no sandbox":                 {nil, "", nil},
		"files elsewhere":            {&spec.Profile{Workspace: "/home/me/src"}, "", []string{"/tmp", cache, npm, telemetry}},
		"no files":                   {&spec.Profile{}, "", []string{"/tmp", cache, npm, telemetry}},
		"a name that begins alike":   {&spec.Profile{Workspace: "/tmpfiles/src"}, "", []string{"/tmp", cache, npm, telemetry}},
		"files below it":             {&spec.Profile{Workspace: "/tmp/src"}, "", []string{cache, npm, telemetry}},
		"a mount below it":           {&spec.Profile{Workspace: "/src", Mounts: []spec.Mount{{Source: "/tmp/cache"}}}, "", []string{cache, npm, telemetry}},
		"the mount of it":            {&spec.Profile{Workspace: "/src", Mounts: []spec.Mount{{Source: "/tmp/"}}}, "", []string{cache, npm, telemetry}},
		"a mount that is put there":  {&spec.Profile{Workspace: "/src", Mounts: []spec.Mount{{Source: "/srv/x", Target: "/tmp/x"}}}, "", []string{cache, npm, telemetry}},
		"a mount from there":         {&spec.Profile{Workspace: "/src", Mounts: []spec.Mount{{Source: "/tmp/x", Target: "/opt/x"}}}, "", []string{"/tmp", cache, npm, telemetry}},
		"a file outside, for a call": {&spec.Profile{Workspace: "/src"}, "/tmp/notes", []string{cache, npm, telemetry}},
		"another file outside":       {&spec.Profile{Workspace: "/src"}, "/etc/notes", []string{"/tmp", cache, npm, telemetry}},
		"a cache of the host":        {&spec.Profile{Workspace: "/src", Mounts: []spec.Mount{{Source: "/srv/c", Target: cache + "/go"}}}, "", []string{"/tmp", npm, telemetry}},
		"the home of the host":       {&spec.Profile{Workspace: "/src", Mounts: []spec.Mount{{Source: "/home/me", Target: "/home/agent"}}}, "", []string{"/tmp"}},
		"all of the host":            {&spec.Profile{Workspace: "/src", Mounts: []spec.Mount{{Source: "/"}}}, "", nil},
	} {
		beyond := &outside{}
		if c.outside != "" {
			beyond.Paths = append(beyond.Paths, message.OutsidePath{Real: c.outside})
		}
		if diff := cmp.Diff(c.want, scratch(c.profile, beyond)); diff != "" {
			t.Errorf("%s (want, got): %s", name, diff)
		}
	}
}
