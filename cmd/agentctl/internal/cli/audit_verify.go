package cli

import (
	"context"

	"github.com/spf13/cobra"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/cmd/agentctl/internal/display"
	"agentctl.dev/agentctl/runner/audit"
	"agentctl.dev/agentctl/runner/statedir"
)

type auditVerifyOptions struct {
	target
	head, key, run, files string
	output                choice
}

func (a *app) auditVerifyCmd() *cobra.Command {
	o := &auditVerifyOptions{target: target{app: a}, output: newChoice(display.FormatText, display.FormatJSON)}
	cmd := &cobra.Command{
		Use:   "verify RUN|FOLDER|FILE",
		Short: "Find out whether what a run has recorded was changed",
		Long: `Find out whether what a run has recorded was changed.

RUN is a run ("agentctl help names"), FOLDER the folder of one, or of several. Each
line of the journal is compared with the hash chain, its end with head.json, each
blob with its name, and the audit log with the journal. The runs of subagents are
verified with the run that has started them. A changed, removed, added or moved
byte is named with file, line, byte, and what was expected there. What a crash has
kept from the audit log is added.

A chain alone finds accidents: who owns the files can write another one. The head of
a Run object (status.journal.headHash) is compared where the run is that of a control
plane that runs; --head gives one that was kept elsewhere.

FILE is a receipt of "agentctl audit receipt", which is verified with --key, or a
cassette. A receipt is also compared with the journal of its run, if that is in the
state folder, and with --files its subjects with the files in a folder.

Exit codes: 0, nothing was changed; 1, something was; 2, it could not be verified.`,
		Example: `  agentctl audit verify @latest
  agentctl audit verify run/hello -o json
  agentctl audit verify ~/.local/state/agentctl
  agentctl audit verify run/hello --head sha256:94f6...
  agentctl audit verify receipt.json --key receipt.pub --files .`,
		Args:              oneArg("the run, the folder or the file"),
		ValidArgsFunction: a.completeRunOrFile,
		RunE:              func(cmd *cobra.Command, args []string) error { return o.runVerify(cmd, args[0]) },
	}
	output(cmd, &o.output, "format: lines, or one object")
	f := cmd.Flags()
	f.StringVar(&o.head, "head", "", "`hash` of an event that the journal must have: sha256:..., or with its number before it, 95:sha256:...")
	f.StringVar(&o.key, "key", "", "`file` with the public key of a receipt (PEM, Ed25519)")
	f.StringVar(&o.run, "run", "", "`run` that the receipt must be of")
	f.StringVar(&o.files, "files", "", "`folder` with the files that the receipt names")
	_ = cmd.RegisterFlagCompletionFunc("head", cobra.NoFileCompletions) // these fail only for a flag that is not there
	_ = cmd.MarkFlagFilename("key", "pub", "pem")
	_ = cmd.RegisterFlagCompletionFunc("run", func(cmd *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		return a.completeAnyRun(cmd, nil, typed)
	})
	_ = cmd.MarkFlagDirname("files")
	o.flags(cmd)
	return cmd
}

// completeRunOrFile offers runs, and files where none fits.
func (a *app) completeRunOrFile(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	refs, _ := a.completeAnyRun(cmd, args, typed)
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return refs, cobra.ShellCompDirectiveDefault
}

func (o *auditVerifyOptions) runVerify(cmd *cobra.Command, word string) error {
	all, err := o.verify(cmd, word)
	if err != nil {
		return unverified(err)
	}
	if err := display.WriteVerdict(o.app.stdout(), o.output.value, all); err != nil {
		return err
	}
	for _, v := range all {
		if !v.OK {
			return exit(reason.ExitFailed)
		}
	}
	return nil
}

// verify verifies what a word names.
func (o *auditVerifyOptions) verify(cmd *cobra.Command, word string) ([]*audit.Verdict, error) {
	ctx := cmd.Context()
	if !namesRun(word) {
		found, err := audit.Look(word)
		if err != nil {
			return nil, err
		}
		if found.Kind != audit.KindJournal {
			return o.verifyFile(ctx, cmd, found)
		}
	}
	for _, name := range []string{"key", "run", "files"} {
		if cmd.Flags().Changed(name) {
			return nil, usagef("--%s is for a receipt, and %s is not one", name, word)
		}
	}
	dirs, src, err := o.audited(ctx, word, "audit verify")
	if err != nil {
		return nil, err
	}
	if src != nil {
		defer src.close()
	}
	head, err := o.headOf(ctx, src)
	if err != nil {
		return nil, err
	}
	if o.head != "" && len(dirs) > 1 {
		return nil, usagef("--head is that of one run, and %d are in %s", len(dirs), word)
	}
	var all []*audit.Verdict
	for _, dir := range dirs {
		opts := audit.VerifyOptions{Dir: dir, Head: head, Alone: len(dirs) > 1}
		if src != nil {
			opts.Run = src.id
		}
		v, err := audit.Verify(ctx, opts)
		if err != nil {
			return nil, err
		}
		all = append(all, v)
	}
	return all, nil
}

// headOf is the head that the journal of a run is compared with: the one that is given, or
// that of its object.
func (o *auditVerifyOptions) headOf(ctx context.Context, src *source) (audit.Head, error) {
	if o.head != "" {
		return audit.ParseHead(o.head)
	}
	if src == nil {
		return audit.Head{}, nil
	}
	object := src
	if object.seen == nil {
		if object = o.owner(ctx, src.id); object == nil {
			return audit.Head{}, nil
		}
		defer object.close()
	}
	seq, hash := object.seen.Number("status", "journal", "lastSeq"), object.seen.Text("status", "journal", "headHash")
	return audit.Head{Hash: hash, Seq: seq, From: object.run.String() + " (status.journal.headHash)"}, nil
}

// verifyFile verifies a receipt or a cassette.
func (o *auditVerifyOptions) verifyFile(ctx context.Context, cmd *cobra.Command, found *audit.Target) ([]*audit.Verdict, error) {
	if cmd.Flags().Changed("head") {
		return nil, usagef("--head is for a run, and %s is a file", found.Path)
	}
	if found.Kind == audit.KindCassette {
		v, err := audit.VerifyCassette(ctx, found.Path)
		return []*audit.Verdict{v}, err
	}
	if o.key == "" {
		return nil, usagef("a receipt is verified with the public key of who has signed it: --key FILE")
	}
	key, err := audit.ReadPublicKey(o.key)
	if err != nil {
		return nil, err
	}
	state, err := statedir.Find(o.app.state)
	if err != nil {
		return nil, err
	}
	opts := audit.ReceiptOptions{File: found.Path, Key: key, State: state, Files: o.files}
	if o.run != "" {
		src, err := o.locateWord(ctx, o.run)
		if err != nil {
			return nil, err
		}
		defer src.close()
		if opts.Run, err = src.local("audit verify"); err != nil {
			return nil, err
		}
		opts.State = src.state
	}
	v, err := audit.CheckReceipt(ctx, opts)
	return []*audit.Verdict{v}, err
}
