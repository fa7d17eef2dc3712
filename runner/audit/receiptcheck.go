package audit

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"

	"agentctl.dev/agentctl/api/audit"
	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/runner/journal"
)

// ReceiptOptions say what a receipt is compared with. File and Key are required.
type ReceiptOptions struct {
	File string
	Key  ed25519.PublicKey
	// State is the folder that holds runs: the journal of the receipt's run is compared, if
	// it is there.
	State string
	// Run is the id of the run that the receipt must be of; "" is any.
	Run string
	// Files is the folder with the files that the subjects name; "" compares none.
	Files string
}

// CheckReceipt verifies the signature of a receipt, and then compares what it says with the
// journal and the files. Nothing of it is read before the signature is verified. The error is
// set where something cannot be read; what differs is in the Verdict.
func CheckReceipt(ctx context.Context, o ReceiptOptions) (*Verdict, error) {
	v := &Verdict{Kind: KindReceipt, Path: o.File, Problems: []Problem{}, Notes: []string{}, Receipt: &ReceiptVerdict{KeyID: KeyID(o.Key)}}
	text, err := readFile(o.File, maxReceipt)
	if err != nil {
		return nil, reason.Usagef("the receipt: %w", err)
	}
	if err := v.receipt(ctx, o, text); err != nil {
		return nil, err
	}
	v.settle()
	return v, nil
}

func (v *Verdict) receipt(ctx context.Context, o ReceiptOptions, text []byte) error {
	payload, err := open(text, o.Key)
	if err != nil {
		v.add(Problem{Problem: err.Error()})
		return nil //nolint:nilerr // it is a problem of the receipt
	}
	v.Receipt.Signed = true
	var s audit.Statement
	switch err := json.Unmarshal(payload, &s); {
	case err != nil:
		v.add(Problem{Problem: fmt.Sprintf("what is signed is not a statement: %v", err)})
		return nil
	case s.Type != audit.StatementType || s.PredicateType != audit.PredicateType:
		v.add(Problem{
			Problem: "what is signed is not the receipt of a run", Expected: audit.StatementType + " with " + audit.PredicateType, Found: brief(s.Type) + " with " + brief(s.PredicateType),
		})
		return nil
	}
	if v.Run = s.Predicate.Run.ID; o.Run != "" && o.Run != v.Run {
		v.add(Problem{Problem: "the receipt is that of another run", Expected: o.Run, Found: brief(v.Run)})
		return nil
	}
	if err := v.withJournal(ctx, o, payload); err != nil {
		return err
	}
	if o.Files == "" {
		return nil
	}
	return v.withFiles(o.Files, &s)
}

// withJournal makes the statement again and compares it. What a later version adds to a
// statement is not compared, but everything that was signed is.
func (v *Verdict) withJournal(ctx context.Context, o ReceiptOptions, payload []byte) error {
	found, err := journal.FindRun(o.State, "run/"+v.Run)
	if err != nil || found.ID != v.Run {
		if o.Run != "" {
			return &reason.UsageError{Err: err}
		}
		v.note("run %s is not in the state folder: what the receipt says of it was not compared", brief(v.Run))
		return nil
	}
	var signedEnd struct {
		Predicate struct {
			Journal struct {
				Events int64 `json:"events"`
			} `json:"journal"`
		} `json:"predicate"`
	}
	_ = json.Unmarshal(payload, &signedEnd) // 0 is the newest end
	s, err := statement(ctx, found.Dir, signedEnd.Predicate.Journal.Events)
	if usage, ok := errors.AsType[*reason.UsageError](err); ok {
		v.add(Problem{Problem: "the journal has no such end: " + usage.Error()})
		return nil
	}
	if err != nil {
		if v.find(err) {
			return nil
		}
		return fmt.Errorf("run %s: %w", v.Run, err)
	}
	own, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("run %s: %w", v.Run, err)
	}
	var signed, made any
	if err := errors.Join(exact(payload, &signed), exact(own, &made)); err != nil {
		return fmt.Errorf("run %s: %w", v.Run, err)
	}
	v.Receipt.Journal = true
	v.compare("", signed, made)
	return nil
}

// exact reads JSON with its numbers as they are written.
func exact(text []byte, into *any) error {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	return dec.Decode(into)
}

// maxProblems bounds a list that nobody reads to its end.
const maxProblems = 20

// compare adds where what was signed differs from what the journal says.
func (v *Verdict) compare(at string, signed, made any) {
	if len(v.Problems) >= maxProblems {
		return
	}
	switch s := signed.(type) {
	case map[string]any:
		m, ok := made.(map[string]any)
		if !ok {
			break
		}
		for _, name := range slices.Sorted(maps.Keys(s)) {
			in := name
			if at != "" {
				in = at + "." + name
			}
			v.compare(in, s[name], m[name])
		}
		return
	case []any:
		m, ok := made.([]any)
		if !ok || len(m) != len(s) {
			break
		}
		for i := range s {
			v.compare(fmt.Sprintf("%s[%d]", at, i), s[i], m[i])
		}
		return
	default:
		if signed == made {
			return
		}
	}
	v.add(Problem{Problem: at + " of the receipt is not what the journal says", Expected: inWords(made), Found: inWords(signed)})
}

func inWords(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		return "?"
	}
	return brief(string(text))
}

// withFiles compares the subjects with the files of a folder, and what was deleted with what
// is there. Links are not followed out of the folder.
func (v *Verdict) withFiles(dir string, s *audit.Statement) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return reason.Usagef("the files: %w", err)
	}
	defer root.Close() //nolint:errcheck // nothing was written
	room := make([]byte, blobRoom)
	for _, f := range s.Subject {
		if f.Name == headSubject(s.Predicate.Run.ID) {
			continue
		}
		sum, err := digestIn(root, f, room)
		switch {
		case err != nil:
			v.add(Problem{File: f.Name, Problem: "the file cannot be compared", Expected: hashPrefix + f.Digest.SHA256, Found: err.Error()})
		case sum != f.Digest.SHA256:
			v.add(Problem{File: f.Name, Problem: "the file is not the one that the run has left", Expected: hashPrefix + f.Digest.SHA256, Found: hashPrefix + sum})
		default:
			v.Receipt.Files++
		}
	}
	for _, name := range s.Predicate.Changes.DeletedFiles {
		if _, err := root.Lstat(name); err == nil {
			v.add(Problem{File: name, Problem: "the run has deleted this file", Expected: "no file", Found: "one"})
		} else if !errors.Is(err, fs.ErrNotExist) {
			v.add(Problem{File: name, Problem: "the file cannot be looked for", Expected: "no file", Found: err.Error()})
		}
	}
	if n := s.Predicate.Changes.Omitted; n > 0 {
		v.note("%d changed files are too many for the receipt: they were not compared", n)
	}
	return nil
}

// digestIn is the digest of a subject as it is in a folder.
func digestIn(root *os.Root, s audit.Subject, room []byte) (string, error) {
	info, err := root.Lstat(s.Name)
	if err != nil {
		return "", err
	}
	if s.Annotations["type"] == "link" {
		if info.Mode().Type() != fs.ModeSymlink {
			return "", errors.New("it is not a symbolic link")
		}
		target, err := root.Readlink(s.Name)
		sum := sha256.Sum256([]byte(target))
		return hex.EncodeToString(sum[:]), err
	}
	if !info.Mode().IsRegular() {
		return "", errors.New("it is not a regular file")
	}
	f, err := root.Open(s.Name)
	if err != nil {
		return "", err
	}
	sum, _, err := hashOf(io.Reader(f), room)
	return sum, errors.Join(err, f.Close())
}
