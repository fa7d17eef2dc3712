package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/cmd/agentctl/internal/display"
	"agentctl.dev/agentctl/runner/doctor"
)

type doctorOptions struct {
	app        *app
	containerd string
	output     choice
}

func (a *app) doctorCmd() *cobra.Command {
	o := &doctorOptions{app: a, output: newChoice(display.FormatText, display.FormatJSON)}
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Report what this host gives to runs, and what to do for more",
		Long: `Report what this host gives to runs, and what to do for more: isolation, models,
git and the way to the network.

The report is measured, not read from a table of kernels: doctor builds a sandbox,
a program in it tries every known way to escape, and containerd is asked for its
version. What killed runs have left in containerd is removed.

Models are looked for in two places: the keys of well-known providers, in the
environment and among those that are stored; and Ollama, llama.cpp and vLLM, which are
asked at their usual ports of this host. No key is used, and nothing leaves the host
but the connection to a proxy that the environment sets.

Exit code 0: tools run in a sandbox here. 1: they do not, or a program escaped.`,
		Example: `  agentctl doctor
  agentctl doctor -o json
  agentctl doctor --containerd-address /run/containerd/containerd.sock`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.runDoctor(cmd.Context()) },
	}
	a.stateFlag(cmd)
	containerd(cmd, &o.containerd)
	output(cmd, &o.output, "format: tables, or one object")
	return cmd
}

func (o *doctorOptions) runDoctor(ctx context.Context) error {
	d, err := doctor.Examine(ctx, doctor.Options{State: o.app.state, Containerd: o.containerd})
	if err != nil {
		return err
	}
	if o.output.value == display.FormatJSON {
		err = display.WriteObject(o.app.stdout(), d)
	} else {
		err = shownDiagnosis(d).Write(o.app.stdout())
	}
	if err != nil {
		return fmt.Errorf("write the diagnosis: %w", err)
	}
	if !d.OK {
		return exit(reason.ExitFailed)
	}
	return nil
}

func shownDiagnosis(d *doctor.Diagnosis) display.Diagnosis {
	s := display.Diagnosis{Tried: len(d.Escapes), Bad: !d.OK}
	for _, c := range d.Controls {
		s.Rows = append(s.Rows, display.DiagnosisRow{Name: c.Name, Level: string(c.Level), Why: c.Why, Hint: c.Hint, OK: c.OK, Needed: c.Needed})
	}
	for _, e := range d.Escapes {
		if e.Open {
			s.Open = append(s.Open, e.Name)
		}
	}
	for i := range d.Models {
		m := &d.Models[i]
		s.Models = append(s.Models, display.DiagnosisRow{Name: m.Name, Why: m.Why, Hint: m.Hint, OK: m.OK})
	}
	for _, n := range d.Host {
		s.Host = append(s.Host, display.DiagnosisRow{Name: n.Name, Why: n.Why, Hint: n.Hint, OK: n.OK})
	}
	switch {
	case len(s.Open) > 0:
		s.Verdict = "the sandbox of this host leaks: report it (SECURITY.md), and run tools that you do not trust elsewhere"
	case !d.OK:
		s.Verdict = "tools that ask for a sandbox do not run here without --allow-unsandboxed"
	case d.Containers:
		s.Verdict = "tools run in a sandbox here, and images in containers"
	default:
		s.Verdict = "tools run in a sandbox here; tools that are images do not run"
	}
	return s
}
