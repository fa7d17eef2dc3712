package audit

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/binary"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/sandbox"
	"agentctl.dev/agentctl/runner/secret"
	"agentctl.dev/agentctl/runner/tool"
)

// Signer signs receipts.
type Signer interface {
	// Public is the key with which they are verified.
	Public() ed25519.PublicKey
	// Sign returns the Ed25519 signature of a text.
	Sign(ctx context.Context, text []byte) ([]byte, error)
}

// KeyID is how a receipt names a key: by its fingerprint, as ssh-keygen prints it. Verifiers
// of DSSE that know a key only as a file name it so, and skip signatures of other names.
func KeyID(key ed25519.PublicKey) string {
	var wire []byte
	for _, part := range []string{"ssh-ed25519", string(key)} {
		wire = append(binary.BigEndian.AppendUint32(wire, uint32(len(part))), part...) //nolint:gosec // of a few bytes
	}
	sum := sha256.Sum256(wire)
	return "SHA256:" + base64.RawStdEncoding.EncodeToString(sum[:])
}

const generate = "openssl genpkey -algorithm ed25519 -out receipt.key && chmod 600 receipt.key && openssl pkey -in receipt.key -pubout -out receipt.pub"

// FileKey is a private key in a file.
type FileKey struct{ key ed25519.PrivateKey }

// ReadKey reads a private key: PEM of PKCS #8, Ed25519, in a file that only its owner may
// read. Errors hold nothing of it.
func ReadKey(ctx context.Context, path string) (*FileKey, error) {
	text, err := secret.Resolver{}.Resolve(ctx, "the key for receipts", v1alpha1.ValueFrom{File: path})
	if err != nil {
		return nil, (&reason.UsageError{Err: err}).WithHint(reason.Hint(err))
	}
	block, rest := pem.Decode([]byte(text.Reveal()))
	wrong := func(what string) error {
		return reason.Usagef("the key for receipts: %s %s", path, what).WithHint("make one with: " + generate)
	}
	switch {
	case block == nil:
		return nil, wrong("is not PEM")
	case block.Type == "ENCRYPTED PRIVATE KEY":
		return nil, wrong("is encrypted, and nobody is asked for a passphrase here")
	case block.Type == "PUBLIC KEY":
		return nil, wrong("is a public key: a receipt is signed with the private one")
	case block.Type != "PRIVATE KEY":
		return nil, wrong("is not PKCS #8 (BEGIN PRIVATE KEY)")
	case len(bytes.TrimSpace(rest)) > 0:
		return nil, wrong("holds more than one key")
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, wrong("is not a private key of PKCS #8")
	}
	key, ok := parsed.(ed25519.PrivateKey)
	if !ok {
		return nil, wrong(fmt.Sprintf("is a key of type %T: receipts are signed with Ed25519", parsed))
	}
	return &FileKey{key}, nil
}

// Public implements Signer.
func (k *FileKey) Public() ed25519.PublicKey {
	public, _ := k.key.Public().(ed25519.PublicKey)
	return public
}

// Sign implements Signer.
func (k *FileKey) Sign(_ context.Context, text []byte) ([]byte, error) {
	return ed25519.Sign(k.key, text), nil
}

// maxKey bounds a file with a public key.
const maxKey = 64 << 10

// ReadPublicKey reads a public key: PEM (BEGIN PUBLIC KEY), Ed25519.
func ReadPublicKey(path string) (ed25519.PublicKey, error) {
	text, err := readFile(path, maxKey)
	if err != nil {
		return nil, reason.Usagef("the public key: %w", err)
	}
	block, _ := pem.Decode(text)
	wrong := func(what string) error {
		return reason.Usagef("the public key: %s %s", path, what).WithHint("openssl pkey -in receipt.key -pubout writes the public key of a private one")
	}
	switch {
	case block == nil:
		return nil, wrong("is not PEM")
	case block.Type != "PUBLIC KEY":
		return nil, wrong(fmt.Sprintf("holds a %s, not a PUBLIC KEY", brief(block.Type)))
	}
	parsed, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		return nil, wrong("is not a public key")
	}
	key, ok := parsed.(ed25519.PublicKey)
	if !ok {
		return nil, wrong(fmt.Sprintf("is a key of type %T: receipts are signed with Ed25519", parsed))
	}
	return key, nil
}

// readFile reads a regular file of a limited size. It waits for nobody.
func readFile(path string, limit int64) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0) //nolint:gosec // the user names the file
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // nothing was written
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	b, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(b)) > limit {
		err = fmt.Errorf("%s has more than %d bytes", path, limit)
	}
	return b, err
}

const (
	// signTime bounds a program that signs, as one that prints a secret.
	signTime = 10 * time.Second
	// maxSignature is more than a signature in base64 has.
	maxSignature = 4 << 10
)

// Program signs with a program: it is given the text on its standard input, and prints the
// signature in base64, or as it is. It is started without a shell, in the environment that a
// program of valueFrom.exec has.
type Program struct {
	// Argv is the program and its arguments, Key the public key of its signatures. Required.
	Argv []string
	Key  ed25519.PublicKey
	// Dir is the working folder; "" is the current one.
	Dir string
	// Timeout is 10 s by default.
	Timeout time.Duration
}

// Public implements Signer.
func (p *Program) Public() ed25519.PublicKey { return p.Key }

// Sign implements Signer. What the program prints is repeated in no error.
func (p *Program) Sign(ctx context.Context, text []byte) (_ []byte, err error) {
	limit := p.Timeout
	if limit <= 0 {
		limit = signTime
	}
	dir := p.Dir
	if dir == "" {
		if dir, err = os.Getwd(); err != nil {
			return nil, fmt.Errorf("sign the receipt: %w", err)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	launcher := sandbox.New(sandbox.Options{})
	defer launcher.Close() //nolint:errcheck // the program has ended, or was killed
	var out signature
	started, err := launcher.Start(ctx, sandbox.Spec{Argv: p.Argv, Env: tool.Environment(nil), Dir: dir, Stdin: bytes.NewReader(text), Stdout: &out})
	failed := func(format string, args ...any) error {
		return reason.New(reason.CredentialMissing, "sign the receipt: program %s: %w", p.Argv[0], fmt.Errorf(format, args...)).
			WithHint("run it by hand: it is given the text on its standard input, and prints the signature in base64")
	}
	if err != nil {
		return nil, failed("%w", err)
	}
	select {
	case <-started.Done():
	case <-ctx.Done():
		started.Kill(time.Second)
		<-started.Done()
		return nil, failed("no answer within %s", limit)
	}
	if end := started.Wait(); end != (sandbox.ExitInfo{}) {
		return nil, failed("%s", end.String())
	}
	if out.long {
		return nil, failed("it prints more than %d bytes", maxSignature)
	}
	sig := out.Bytes()
	if len(sig) != ed25519.SignatureSize {
		if sig, err = base64.StdEncoding.DecodeString(string(bytes.TrimSpace(sig))); err != nil || len(sig) != ed25519.SignatureSize {
			return nil, failed("what it prints is not a signature of %d bytes", ed25519.SignatureSize)
		}
	}
	return sig, nil
}

// errLong ends the reading of an output that cannot be a signature.
var errLong = errors.New("too long")

// signature keeps what a signature can have.
type signature struct {
	bytes.Buffer
	long bool
}

func (s *signature) Write(b []byte) (int, error) {
	if s.Len()+len(b) > maxSignature {
		s.long = true
		return 0, errLong
	}
	return s.Buffer.Write(b)
}
