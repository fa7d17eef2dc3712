package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"agentctl.dev/agentctl/cmd/agentctl/internal/display"
	"agentctl.dev/agentctl/runner/audit"
)

// signing says with what a receipt is signed.
type signing struct {
	key, program, public string
	args                 []string
}

// flags adds the flags, with a prefix where a verb has others of these names.
func (s *signing) flags(cmd *cobra.Command, prefix string) {
	f := cmd.Flags()
	f.StringVar(&s.key, prefix+"key", "", "`file` with the private key: PEM of PKCS #8, Ed25519, mode 0600")
	f.StringVar(&s.program, prefix+"signer", "", "`program` that signs in place of a key file: stdin is the text, stdout the signature in base64")
	f.StringArrayVar(&s.args, prefix+"signer-arg", nil, "`argument` of the program; may be repeated")
	f.StringVar(&s.public, prefix+"signer-public-key", "", "`file` with the public key of the program's signatures")
	for _, name := range []string{"key", "signer", "signer-public-key"} {
		_ = cmd.MarkFlagFilename(prefix + name) // these fail only for a flag that is not there
	}
	_ = cmd.RegisterFlagCompletionFunc(prefix+"signer-arg", cobra.NoFileCompletions)
}

// open reads the keys. Prefix is that of the flags, for errors.
func (s *signing) open(ctx context.Context, prefix string) (audit.Signer, error) {
	switch {
	case s.key != "" && s.program != "":
		return nil, usagef("--%[1]skey and --%[1]ssigner exclude each other", prefix)
	case s.program == "" && (len(s.args) > 0 || s.public != ""):
		return nil, usagef("--%[1]ssigner-arg and --%[1]ssigner-public-key are about the program of --%[1]ssigner", prefix)
	case s.key != "":
		return audit.ReadKey(ctx, s.key)
	case s.program == "":
		return nil, usagef("a receipt is signed: name a key with --%[1]skey, or a program with --%[1]ssigner", prefix)
	case s.public == "":
		return nil, usagef("--%[1]ssigner needs --%[1]ssigner-public-key: what the program prints is verified", prefix)
	}
	key, err := audit.ReadPublicKey(s.public)
	if err != nil {
		return nil, err
	}
	program := s.program
	if _, err := os.Stat(program); err == nil { // a relative path begins at the current folder
		if program, err = filepath.Abs(program); err != nil {
			return nil, fmt.Errorf("find %s: %w", s.program, err)
		}
	}
	return &audit.Program{Argv: append([]string{program}, s.args...), Key: key}, nil
}

type auditReceiptOptions struct {
	target
	signing
	file string
}

func (a *app) auditReceiptCmd() *cobra.Command {
	o := &auditReceiptOptions{target: target{app: a}}
	cmd := &cobra.Command{
		Use:   "receipt RUN",
		Short: "Sign a receipt of a run that has ended",
		Long: `Sign a receipt of a run that has ended: an in-toto statement in a DSSE envelope.

Its subjects are the files that the run has added or modified, with their digests. It
says which manifests and policies the run had, what was decided and approved, by whom,
which models answered, what it cost and by which prices, how it ended, and the head of
its journal. The journal is verified before.

The key is a file (PEM of PKCS #8, Ed25519) that only its owner may read, or a program
that is given the text on its standard input and prints the signature in base64, within
10 seconds. "agentctl audit verify FILE --key PUB" verifies the receipt, and so does
every verifier of DSSE.`,
		Example: `  openssl genpkey -algorithm ed25519 -out receipt.key && chmod 600 receipt.key
  openssl pkey -in receipt.key -pubout -out receipt.pub
  agentctl audit receipt @latest --key receipt.key -o receipt.json
  agentctl audit receipt run/hello --signer ./sign --signer-arg hsm1 --signer-public-key receipt.pub`,
		Args:              oneArg("the run"),
		ValidArgsFunction: a.completeAnyRun,
		RunE:              func(cmd *cobra.Command, args []string) error { return o.runReceipt(cmd.Context(), args[0]) },
	}
	o.signing.flags(cmd, "")
	cmd.Flags().StringVarP(&o.file, "output", "o", "", "`file` for the receipt (default stdout)")
	_ = cmd.MarkFlagFilename("output", "json") // fails only for a flag that is not there
	o.target.flags(cmd)
	return cmd
}

func (o *auditReceiptOptions) runReceipt(ctx context.Context, word string) error {
	signer, err := o.open(ctx, "")
	if err != nil {
		return err
	}
	dirs, src, err := o.audited(ctx, word, "audit receipt")
	if err != nil {
		return err
	}
	if src != nil {
		defer src.close()
	}
	if len(dirs) > 1 {
		return usagef("%d runs are in %s: name the folder of one", len(dirs), word)
	}
	receipt, err := audit.Sign(ctx, dirs[0], signer)
	if err != nil {
		return err
	}
	if o.file == "" || o.file == "-" {
		return display.Text(o.app.stdout(), string(receipt))
	}
	return writeReceipt(o.file, receipt)
}

// writeReceipt replaces a file by a receipt, as a whole.
func writeReceipt(file string, receipt []byte) error {
	f, err := os.CreateTemp(filepath.Dir(file), ".receipt-*")
	if err != nil {
		return fmt.Errorf("write the receipt: %w", err)
	}
	_, err = f.Write(receipt)
	err = errors.Join(err, f.Chmod(0o644), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), file)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("write the receipt: %w", err), os.Remove(f.Name()))
	}
	return nil
}
