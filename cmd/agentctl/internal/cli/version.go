package cli

import (
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"agentctl.dev/agentctl/cmd/agentctl/internal/display"
)

func (a *app) versionCmd() *cobra.Command {
	format := newChoice(display.FormatText, display.FormatJSON)
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  noArgs,
		RunE: func(*cobra.Command, []string) error {
			if format.value == display.FormatJSON {
				return readVersion().WriteJSON(a.stdout())
			}
			return readVersion().WriteText(a.stdout())
		},
	}
	output(cmd, &format, "format: a line, or one object")
	return cmd
}

// readVersion asks the binary itself: the go command has stamped it.
func readVersion() display.Version {
	v := display.Version{Version: "(devel)", Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	if info.Main.Version != "" {
		v.Version = info.Main.Version
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Commit = s.Value
		case "vcs.modified":
			v.Modified = s.Value == "true"
		}
	}
	return v
}
