package audit

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	intoto "github.com/in-toto/attestation/go/v1"
	"github.com/secure-systems-lab/go-securesystemslib/dsse"
	"google.golang.org/protobuf/encoding/protojson"

	"agentctl.dev/agentctl/api/audit"
	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/view"
	"agentctl.dev/agentctl/runner/audit/trail"
	"agentctl.dev/agentctl/runner/journal"
)

// keys writes a key pair and returns the paths.
func keys(t testing.TB) (private, public string, key *FileKey) {
	t.Helper()
	dir := t.TempDir()
	pub, priv, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	private, public = filepath.Join(dir, "receipt.key"), filepath.Join(dir, "receipt.pub")
	writePEM(t, private, "PRIVATE KEY", must(x509.MarshalPKCS8PrivateKey(priv)), 0o600)
	writePEM(t, public, "PUBLIC KEY", must(x509.MarshalPKIXPublicKey(pub)), 0o644)
	if key, err = ReadKey(t.Context(), private); err != nil {
		t.Fatal(err)
	}
	return private, public, key
}

func must(b []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return b
}

func writePEM(t testing.TB, path, kind string, der []byte, mode os.FileMode) {
	t.Helper()
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), mode); err != nil {
		t.Fatal(err)
	}
}

// signed is a run with its receipt.
type signed struct {
	*kept
	key  *FileKey
	file string
	tree string
}

func sign(t testing.TB) *signed {
	t.Helper()
	_, _, key := keys(t)
	s := &signed{kept: ended(t), key: key, file: filepath.Join(t.TempDir(), "receipt.json"), tree: t.TempDir()}
	text, err := Sign(t.Context(), s.dir, key)
	if err == nil {
		err = os.WriteFile(s.file, text, 0o600)
	}
	for name, content := range files {
		path := filepath.Join(s.tree, name)
		err = errors.Join(err, os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(content), 0o600))
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *signed) check(change ...func(*ReceiptOptions)) *Verdict {
	s.t.Helper()
	o := ReceiptOptions{File: s.file, Key: s.key.Public(), State: s.state}
	for _, c := range change {
		c(&o)
	}
	v, err := CheckReceipt(s.t.Context(), o)
	if err != nil {
		s.t.Fatal(err)
	}
	return v
}

func (s *signed) withFiles(o *ReceiptOptions) { o.Files = s.tree }

func TestAReceiptSaysWhatTheJournalSays(t *testing.T) {
	s := sign(t)
	v := s.check(s.withFiles, func(o *ReceiptOptions) { o.Run = s.id })
	if !v.OK || !v.Receipt.Signed || !v.Receipt.Journal || v.Receipt.Files != 2 || v.Run != s.id {
		t.Fatalf("got %+v, %+v", v, v.Receipt)
	}
	st, err := Statement(t.Context(), s.dir)
	if err != nil {
		t.Fatal(err)
	}
	conforms(t, st)
	p := st.Predicate
	_, head, err := journal.Head(s.dir)
	if err != nil || p.Journal.Head.SHA256 != strings.TrimPrefix(head, "sha256:") || p.AuditLog.Digest.SHA256 != sum(string(s.kept.read(logName))) {
		t.Errorf("journal %+v, log %+v", p.Journal, p.AuditLog)
	}
	if p.Decisions.Allow != 1 || p.Decisions.Ask != 1 || p.Decisions.Deny != 1 || len(p.Decisions.Refused) != 1 || p.Decisions.Refused[0].Source != "p.yaml:7" {
		t.Errorf("decisions %+v", p.Decisions)
	}
	if len(p.Approvals) != 1 || p.Approvals[0].By != "jane@pts/3" || p.Approvals[0].Scope != "Once" || !strings.HasPrefix(p.Approvals[0].ID, "approval_") {
		t.Errorf("approvals %+v", p.Approvals)
	}
	if len(p.Models) != 1 || p.Models[0].Answers != 3 || p.Models[0].Tokens.Input != 30 || len(p.PriceBasis) != 1 || len(p.Manifests) != 5 || p.PolicySet.Policies[0] != "p" {
		t.Errorf("models %+v, prices %+v, manifests %+v, policies %+v", p.Models, p.PriceBasis, p.Manifests, p.PolicySet)
	}
	if p.Changes.Modified != 2 || p.Changes.Deleted != 1 || len(p.Changes.DeletedFiles) != 1 || len(st.Subject) != 2 || st.Subject[0].Digest.SHA256 != sum(files["README.md"]) {
		t.Errorf("changes %+v, subjects %+v", p.Changes, st.Subject)
	}
}

// conforms compares a statement with its published schema.
func conforms(t *testing.T, st *audit.Statement) {
	t.Helper()
	var s jsonschema.Schema
	var v any
	b, err := json.Marshal(st)
	if err = errors.Join(err, json.Unmarshal(b, &v), json.Unmarshal(audit.StatementSchema, &s)); err != nil {
		t.Fatal(err)
	}
	resolved, err := s.Resolve(nil)
	if err == nil {
		err = resolved.Validate(v)
	}
	if err != nil {
		t.Errorf("%s does not satisfy the schema: %v", b, err)
	}
}

// verifier lets the reference implementation of DSSE verify with a key.
type verifier struct{ key ed25519.PublicKey }

func (v verifier) Verify(_ context.Context, data, sig []byte) error {
	if !ed25519.Verify(v.key, data, sig) {
		return errors.New("wrong")
	}
	return nil
}
func (v verifier) KeyID() (string, error)   { return "", nil }
func (v verifier) Public() crypto.PublicKey { return v.key }

// What we write is what others read, and what others write we read.
func TestReceiptsAreThoseOfTheReferenceImplementations(t *testing.T) {
	s := sign(t)
	text, err := os.ReadFile(s.file)
	if err != nil {
		t.Fatal(err)
	}
	var e dsse.Envelope
	if err := json.Unmarshal(text, &e); err != nil {
		t.Fatal(err)
	}
	ev, err := dsse.NewEnvelopeVerifier(verifier{s.key.Public()})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ev.Verify(t.Context(), &e); err != nil {
		t.Errorf("go-securesystemslib refuses the envelope: %v", err)
	}
	payload, err := e.DecodeB64Payload()
	if err != nil {
		t.Fatal(err)
	}
	var st intoto.Statement
	if err := protojson.Unmarshal(payload, &st); err != nil {
		t.Fatalf("in-toto cannot read the statement: %v", err)
	}
	if err := st.Validate(); err != nil || st.GetPredicateType() != audit.PredicateType || len(st.GetSubject()) != 2 {
		t.Errorf("in-toto refuses the statement: %v", err)
	}
	es, err := dsse.NewEnvelopeSigner(signerOf{s.key})
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := es.SignPayload(t.Context(), audit.PayloadType, payload)
	if err == nil {
		text, err = json.Marshal(theirs)
	}
	if err == nil {
		err = os.WriteFile(s.file, text, 0o600)
	}
	if v := s.check(); err != nil || !v.OK {
		t.Errorf("an envelope of go-securesystemslib: %v, %v", v.Problems, err)
	}
	// A verifier takes both alphabets of base64.
	theirs.Payload = base64.URLEncoding.EncodeToString(payload)
	for i := range theirs.Signatures {
		sig, _ := base64.StdEncoding.DecodeString(theirs.Signatures[i].Sig)
		theirs.Signatures[i].Sig = base64.URLEncoding.EncodeToString(sig)
	}
	if text, err = json.Marshal(theirs); err == nil {
		err = os.WriteFile(s.file, text, 0o600)
	}
	if v := s.check(); err != nil || !v.OK {
		t.Errorf("base64 for URLs: %v, %v", v.Problems, err)
	}
	st2 := &intoto.Statement{}
	none, err := Statement(t.Context(), withoutChange(t).dir)
	if err == nil {
		var b []byte
		if b, err = json.Marshal(none); err == nil {
			err = protojson.Unmarshal(b, st2)
		}
	}
	if err != nil || st2.Validate() != nil || len(st2.GetSubject()) != 1 {
		t.Errorf("a run without a change: %v, %v", err, st2.Validate())
	}
}

type signerOf struct{ *FileKey }

func (s signerOf) KeyID() (string, error) { return "", nil }

func withoutChange(t testing.TB) *kept {
	t.Helper()
	k := begin(t, t.TempDir(), "quiet-1", nil)
	k.add("", "", event.RunFinished{Phase: view.Succeeded, Reason: "Completed"})
	k.close()
	return k
}

func TestEveryChangedByteOfAReceiptIsFound(t *testing.T) {
	s := sign(t)
	whole, err := os.ReadFile(s.file)
	if err != nil {
		t.Fatal(err)
	}
	var e struct {
		Payload string `json:"payload"`
	}
	if err := json.Unmarshal(whole, &e); err != nil {
		t.Fatal(err)
	}
	hint := bytes.Index(whole, []byte(`"keyid"`))
	hintEnd := hint + bytes.Index(whole[hint:], []byte(`,`))
	refused := 0
	for at := 0; at < len(whole); at += 3 {
		if at >= hint && at < hintEnd {
			continue // a hint, which is not signed
		}
		changed := bytes.Clone(whole)
		changed[at] ^= 1 << (at % 7)
		if err := os.WriteFile(s.file, changed, 0o600); err != nil {
			t.Fatal(err)
		}
		if v := s.check(); v.OK {
			// Base64 has bits that say nothing at its end, and JSON white space.
			var got struct {
				Payload string `json:"payload"`
			}
			if json.Unmarshal(changed, &got) != nil || got.Payload != e.Payload && !sameBytes(got.Payload, e.Payload) {
				t.Fatalf("byte %d: %q instead of %q is not found", at, changed[at], whole[at])
			}
			continue
		}
		refused++
	}
	if refused < len(whole)/3-400 {
		t.Errorf("%d of %d changes are found", refused, len(whole)/3)
	}
	for what, text := range map[string][]byte{
		"empty": nil, "cut": whole[:len(whole)/2], "no object": []byte("[]"), "another envelope behind": append(bytes.Clone(whole), whole...),
		"without signatures": []byte(`{"payloadType":"` + audit.PayloadType + `","payload":"` + e.Payload + `","signatures":[]}`),
		"another type":       bytes.Replace(whole, []byte(audit.PayloadType), []byte("text/plain"), 1),
		"no base64":          bytes.Replace(whole, []byte(e.Payload[:8]), []byte("********"), 1),
		"many signatures":    []byte(`{"payloadType":"` + audit.PayloadType + `","payload":"` + e.Payload + `","signatures":[` + strings.Repeat(`{"sig":"AA=="},`, 1000) + `{"sig":"AA=="}]}`),
		"garbage":            bytes.Repeat([]byte{0, 1, 2, 0xff}, 1000),
	} {
		if err := os.WriteFile(s.file, text, 0o600); err != nil {
			t.Fatal(err)
		}
		if v := s.check(); v.OK || v.Receipt.Signed {
			t.Errorf("%s: %+v", what, v)
		}
	}
	if err := os.Truncate(s.file, 1<<40); err != nil {
		t.Fatal(err)
	}
	if v, err := CheckReceipt(t.Context(), ReceiptOptions{File: s.file, Key: s.key.Public()}); err == nil {
		t.Errorf("of a terabyte: %+v", v)
	}
}

func sameBytes(a, b string) bool {
	x, errA := decode(a)
	y, errB := decode(b)
	return errA == nil && errB == nil && bytes.Equal(x, y)
}

// seals a statement that another program could have made.
func (s *signed) forge(change func(*audit.Statement)) {
	s.t.Helper()
	st, err := Statement(s.t.Context(), s.dir)
	if err != nil {
		s.t.Fatal(err)
	}
	change(st)
	text, err := seal(s.t.Context(), st, s.key)
	if err == nil {
		err = os.WriteFile(s.file, text, 0o600)
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// The signature is right, and the run is another one.
func TestASignatureDoesNotMakeAReceiptTrue(t *testing.T) {
	s := sign(t)
	for at, change := range map[string]func(*audit.Statement){
		"predicate.decisions.deny":          func(st *audit.Statement) { st.Predicate.Decisions.Deny = 0 },
		"predicate.decisions.refused":       func(st *audit.Statement) { st.Predicate.Decisions.Refused = []audit.RefusedCall{} },
		"predicate.approvals[0].by":         func(st *audit.Statement) { st.Predicate.Approvals[0].By = "the boss" },
		"predicate.cost":                    func(st *audit.Statement) { c := message.Cost(1); st.Predicate.Cost = &c },
		"predicate.journal.head.sha256":     func(st *audit.Statement) { st.Predicate.Journal.Head.SHA256 = strings.Repeat("0", 64) },
		"predicate.auditLog.digest.sha256":  func(st *audit.Statement) { st.Predicate.AuditLog.Digest.SHA256 = "0" },
		"predicate.policySet.digest.sha256": func(st *audit.Statement) { st.Predicate.PolicySet.Digest.SHA256 = "0" },
		"predicate.exit.phase":              func(st *audit.Statement) { st.Predicate.Exit.Phase = "Failed" },
		"predicate.evidence":                func(st *audit.Statement) { st.Predicate.Evidence = json.RawMessage(`[{"name":"tests-passed"}]`) },
		"subject":                           func(st *audit.Statement) { st.Subject = st.Subject[:1] },
		"subject[1].digest.sha256":          func(st *audit.Statement) { st.Subject[1].Digest.SHA256 = sum("x") },
		"subject[0].name":                   func(st *audit.Statement) { st.Subject[0].Name = "other.md" },
	} {
		s.forge(change)
		v := s.check()
		if v.OK || !v.Receipt.Signed || !strings.HasPrefix(v.Problems[0].Problem, at+" of the receipt") {
			t.Errorf("%s: %+v", at, v.Problems)
		}
	}
	s.forge(func(st *audit.Statement) { st.PredicateType = "https://slsa.dev/provenance/v1" })
	if v := s.check(); v.OK {
		t.Errorf("another predicate: %+v", v)
	}
	s.forge(func(st *audit.Statement) { st.Predicate.Run.ID = "another-1" })
	if v := s.check(); !v.OK || v.Receipt.Journal || len(v.Notes) != 1 {
		t.Errorf("the run is not here: %+v", v)
	}
	if v := s.check(func(o *ReceiptOptions) { o.Run = s.id }); v.OK {
		t.Errorf("it is that of another run: %+v", v)
	}
}

func TestTheKeyIsThatOfTheSigner(t *testing.T) {
	s := sign(t)
	_, _, other := keys(t)
	if v := s.check(func(o *ReceiptOptions) { o.Key = other.Public() }); v.OK || v.Receipt.Signed || v.Run != "" {
		t.Errorf("another key: %+v", v)
	}
	// One of several signatures is enough.
	text, err := os.ReadFile(s.file)
	if err != nil {
		t.Fatal(err)
	}
	text = bytes.Replace(text, []byte(`"signatures":[`), []byte(`"signatures":[{"sig":"AAAA"},{"keyid":"x","sig":"!"},`), 1)
	if err := os.WriteFile(s.file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if v := s.check(); !v.OK {
		t.Errorf("behind two others: %+v", v.Problems)
	}
}

func TestTheFilesAreThoseThatTheRunHasLeft(t *testing.T) {
	for what, harm := range map[string]func(tree string) error{
		"changed": func(tree string) error {
			return os.WriteFile(filepath.Join(tree, "README.md"), []byte("# Hellp\n"), 0o600)
		},
		"gone":        func(tree string) error { return os.Remove(filepath.Join(tree, "src", "new.go")) },
		"not deleted": func(tree string) error { return os.WriteFile(filepath.Join(tree, "old.txt"), nil, 0o600) },
		"a folder": func(tree string) error {
			p := filepath.Join(tree, "README.md")
			return errors.Join(os.Remove(p), os.Mkdir(p, 0o700))
		},
		"a link elsewhere": func(tree string) error {
			p := filepath.Join(tree, "README.md")
			return errors.Join(os.Remove(p), os.Symlink("/etc/passwd", p))
		},
		"behind a link": func(tree string) error {
			return errors.Join(os.RemoveAll(filepath.Join(tree, "src")), os.Symlink("/etc", filepath.Join(tree, "src")))
		},
	} {
		s := sign(t)
		if err := harm(s.tree); err != nil {
			t.Fatal(err)
		}
		if v := s.check(s.withFiles); v.OK || v.Problems[0].File == "" {
			t.Errorf("%s: %+v", what, v.Problems)
		}
	}
	s := sign(t)
	s.forge(func(st *audit.Statement) { st.Subject[0].Name = "../../../../etc/passwd" })
	if v := s.check(s.withFiles, func(o *ReceiptOptions) { o.State = t.TempDir() }); v.OK || !strings.Contains(v.Problems[0].Found, "escapes") {
		t.Errorf("a name that leads out of the folder: %+v", v.Problems)
	}
}

func TestAReceiptHoldsAfterTheChangeWasApplied(t *testing.T) {
	s := sign(t)
	w, _, err := trail.Open(t.Context(), journal.Options{Dir: s.dir, Run: s.id})
	if err != nil {
		t.Fatal(err)
	}
	s.kept.w = w
	s.add("", "", event.WorkspaceApplied{Source: "/src", Files: 3, By: "jane"})
	s.close()
	if v := s.check(); !v.OK || !v.Receipt.Journal {
		t.Errorf("got %+v", v.Problems)
	}
	if v := s.kept.verify(); !v.OK {
		t.Errorf("the run: %+v", v.Problems)
	}
}

func TestOnlyARunThatHasEndedHasAReceipt(t *testing.T) {
	_, _, key := keys(t)
	going := begin(t, t.TempDir(), "worker-1", nil)
	waits := begin(t, t.TempDir(), "worker-1", nil)
	waits.add("", "", event.RunFinished{Phase: view.Suspended, Reason: "ApprovalRequired"})
	waits.close()
	for what, k := range map[string]*kept{"in progress": going, "suspended": waits, "killed": killedRun(t)} {
		_, err := Sign(t.Context(), k.dir, key)
		if _, ok := errors.AsType[*reason.UsageError](err); !ok {
			t.Errorf("%s: %v", what, err)
		}
	}
	k := ended(t).copied()
	names, _ := filepath.Glob(k.path("events-*"))
	text, err := os.ReadFile(names[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(names[0], bytes.Replace(text, []byte("ten past two"), []byte("ten past one"), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Sign(t.Context(), k.dir, key); !Changed(err) {
		t.Errorf("a changed journal is signed: %v", err)
	}
}

func TestKeysThatCannotSignAreRefused(t *testing.T) {
	private, public, _ := keys(t)
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	good, err := os.ReadFile(private)
	if err != nil {
		t.Fatal(err)
	}
	ec, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(dir, "ec")
	writePEM(t, other, "PRIVATE KEY", must(x509.MarshalPKCS8PrivateKey(ec)), 0o600)
	for what, c := range map[string]struct{ path, says string }{
		"others may read it":  {write("open", string(good), 0o644), "0644"},
		"its group may":       {write("group", string(good), 0o640), "0640"},
		"it is not there":     {filepath.Join(dir, "gone"), "does not exist"},
		"a folder":            {dir, "not a regular file"},
		"no PEM":              {write("text", "hello", 0o600), "not PEM"},
		"empty":               {write("empty", "", 0o600), "empty"},
		"a public key":        {write("public", string(must(os.ReadFile(public))), 0o600), "public key"},
		"another algorithm":   {other, "Ed25519"},
		"encrypted":           {write("locked", "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n", 0o600), "encrypted"},
		"damaged":             {write("damaged", strings.Replace(string(good), "MC4C", "MC4D", 1), 0o600), "PKCS #8"},
		"two keys":            {write("two", string(good)+string(good), 0o600), "more than one"},
		"longer than any key": {write("long", strings.Repeat("x", 1<<20), 0o600), "longer"},
	} {
		key, err := ReadKey(t.Context(), c.path)
		if _, ok := errors.AsType[*reason.UsageError](err); !ok || key != nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", what, err)
		}
		if err != nil && strings.Contains(err.Error(), strings.TrimSpace(strings.Split(string(good), "\n")[1])) {
			t.Errorf("%s: the error shows the key", what)
		}
	}
	for what, path := range map[string]string{"private": private, "gone": filepath.Join(dir, "gone"), "no PEM": write("nopem", "x", 0o644), "of another algorithm": publicOf(t, dir, ec), "a device": "/dev/zero", "a folder": dir} {
		if _, err := ReadPublicKey(path); err == nil {
			t.Errorf("a public key that is %s is read", what)
		}
	}
}

func publicOf(t *testing.T, dir string, key *ecdsa.PrivateKey) string {
	t.Helper()
	path := filepath.Join(dir, "ec.pub")
	writePEM(t, path, "PUBLIC KEY", must(x509.MarshalPKIXPublicKey(key.Public())), 0o644)
	return path
}

func TestAProgramSigns(t *testing.T) {
	private, _, key := keys(t)
	k := ended(t)
	dir := t.TempDir()
	script := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text), 0o700); err != nil {
			t.Fatal(err)
		}
		return path
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for what, argv := range map[string][]string{"as it is": {self, signCommand, private}, "in base64": {self, signCommand, private, "base64"}} {
		text, err := Sign(t.Context(), k.dir, &Program{Argv: argv, Key: key.Public(), Timeout: time.Minute})
		if err != nil {
			t.Errorf("%s: %v", what, err)
			continue
		}
		if _, err := open(text, key.Public()); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	_, _, other := keys(t)
	for what, c := range map[string]struct {
		argv []string
		key  ed25519.PublicKey
		says string
	}{
		"fails":                 {[]string{script("fails", "echo secret; exit 3")}, key.Public(), "exit code 3"},
		"prints nothing":        {[]string{script("nothing", "")}, key.Public(), "not a signature"},
		"prints garbage":        {[]string{script("garbage", "echo hello world")}, key.Public(), "not a signature"},
		"prints 100 MB":         {[]string{script("much", "head -c 100000000 /dev/zero")}, key.Public(), "more than 4096 bytes"},
		"prints without an end": {[]string{script("endless", "yes")}, key.Public(), "no answer within"},
		"hangs":                 {[]string{script("hangs", "sleep 1000")}, key.Public(), "no answer within"},
		"leaves a child":        {[]string{script("child", "sleep 1000 & sleep 1000")}, key.Public(), "no answer within"},
		"signs nothing":         {[]string{script("zeros", "head -c 64 /dev/zero")}, key.Public(), "not that of the public key"},
		"has another key":       {[]string{self, signCommand, private}, other.Public(), "not that of the public key"},
		"is not there":          {[]string{filepath.Join(dir, "gone")}, key.Public(), "gone"},
		"is no program":         {[]string{private}, key.Public(), "receipt.key"},
	} {
		t.Run(what, func(t *testing.T) {
			limit := time.Minute
			if c.says == "no answer within" {
				limit = 500 * time.Millisecond
			}
			text, err := Sign(t.Context(), k.dir, &Program{Argv: c.argv, Key: c.key, Timeout: limit})
			if err == nil || text != nil || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "secret") {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestACancelledSignatureLeavesNothing(t *testing.T) {
	_, _, key := keys(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if text, err := Sign(ctx, ended(t).dir, &Program{Argv: []string{"/bin/sleep", "1000"}, Key: key.Public()}); err == nil || text != nil {
		t.Errorf("got %s, %v", text, err)
	}
}

func FuzzReceipt(f *testing.F) {
	s := sign(f)
	whole, err := os.ReadFile(s.file)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	f.Add([]byte(`{"payloadType":"application/vnd.in-toto+json","payload":"e30=","signatures":[{"sig":"AA=="}]}`))
	key := s.key.Public()
	want, err := open(whole, key)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if got, err := open(text, key); err == nil && !bytes.Equal(got, want) {
			t.Errorf("a text that the key has not signed is accepted: %q", got)
		}
	})
}
