package embedded

import (
	"bufio"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	authnv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	auditinternal "k8s.io/apiserver/pkg/apis/audit"
)

// TestWritesAreAudited: who, what, and how it was answered; refused ones too.
func TestWritesAreAudited(t *testing.T) {
	t.Parallel()
	s := sharedServer(t)
	c := newCaller(t, s)
	user, viewer := token(t, s, "audit-user", RoleUser), token(t, s, "audit-viewer", RoleViewer)
	const base = "/apis/agentctl.dev/v1alpha1/namespaces/audit/runs"
	const body = `{"apiVersion": "agentctl.dev/v1alpha1", "kind": "Run", "metadata": {"name": "r"}, "spec": {"agentRef": {"name": "a"}, "prompt": "a secret of the prompt"}}`
	do := func(method, path, bearer, body string) {
		kind := "application/json"
		if method == "PATCH" {
			kind = "application/merge-patch+json"
		}
		c.do(method, path, bearer, strings.NewReader(body), header("Content-Type", kind))
	}
	do("POST", base, user, body)
	do("POST", base, user, body)
	do("GET", base, user, "")
	do("GET", base+"?watch=1&timeoutSeconds=1", user, "")
	do("GET", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", user, "")
	do("PATCH", base+"/r", viewer, `{"spec": {"prompt": "x"}}`)
	do("PATCH", base+"/r/status", user, `{"status": {}}`)
	do("POST", base, "", body)
	do("POST", base, newToken(), body)
	do("POST", "/readyz", user, "")
	do("DELETE", base+"/r", user, "")
	do("DELETE", base, user, "")
	want := []AuditRecord{
		{User: "audit-user", Verb: "create", Group: group, Resource: "runs", Namespace: "audit", Name: "r", Run: "r", Code: 201},
		{User: "audit-user", Verb: "create", Group: group, Resource: "runs", Namespace: "audit", Name: "r", Run: "r", Code: 409},
		{User: "audit-viewer", Verb: "patch", Group: group, Resource: "runs", Namespace: "audit", Name: "r", Code: 403, Reason: "role viewer may not do this"},
		{User: "audit-user", Verb: "patch", Group: group, Resource: "runs", Subresource: "status", Namespace: "audit", Name: "r", Code: 403, Reason: "role user may not do this"},
		{User: "audit-user", Verb: "post", Path: "/readyz", Code: 403, Reason: "role user may not do this"},
		{User: "audit-user", Verb: "delete", Group: group, Resource: "runs", Namespace: "audit", Name: "r", Code: 200},
		{User: "audit-user", Verb: "deletecollection", Group: group, Resource: "runs", Namespace: "audit", Code: 200},
	}
	got := []AuditRecord{}
	for _, r := range readAudit(t, s.audit.path) {
		if strings.HasPrefix(r.User, "audit-") {
			if r.Time.IsZero() || r.Agent == "" {
				t.Errorf("a record without time or agent: %+v", r)
			}
			got = append(got, r)
		}
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(AuditRecord{}, "Time", "Agent")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	text, err := os.ReadFile(s.audit.path)
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{"a secret of the prompt", user, viewer} {
		if strings.Contains(string(text), secret) {
			t.Errorf("the log has %q", secret)
		}
	}
}

func readAudit(t *testing.T, path string) []AuditRecord {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	records := []AuditRecord{}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var r AuditRecord
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			t.Fatalf("%s: %v", lines.Text(), err)
		}
		records = append(records, r)
	}
	return records
}

func TestAuditLogIsBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	a, err := openAudit(path, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	a.size = 2000
	event := &auditinternal.Event{Verb: "create", User: authnv1.UserInfo{Username: "jane"}, UserAgent: strings.Repeat("x", 10000)}
	for range 100 {
		if !a.ProcessEvents(event) {
			t.Fatal("a record was not written")
		}
	}
	a.Shutdown()
	found, err := filepath.Glob(path + "*")
	if err != nil {
		t.Fatal(err)
	}
	if len(found) != 1+auditKept {
		t.Errorf("files %v", found)
	}
	for _, f := range found {
		info, err := os.Stat(f)
		if err != nil {
			t.Fatal(err)
		}
		if info.Size() > a.size || info.Size() == 0 || info.Mode() != 0o600 {
			t.Errorf("%s: %d bytes, mode %v", f, info.Size(), info.Mode())
		}
		readAudit(t, f)
	}
	if a.ProcessEvents(event) {
		t.Error("written to a log that is closed")
	}
	if a, err = openAudit(path, a.log); err != nil || a.written == 0 {
		t.Errorf("opened again: %v", err)
	}
	a.Shutdown()
}

func TestAuditLogGoesOnWhenThereIsRoomAgain(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "control")
	path := filepath.Join(dir, "audit.jsonl")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(`{"user":"ja`), 0o600); err != nil { // the disk was full
		t.Fatal(err)
	}
	a, err := openAudit(path, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer a.Shutdown()
	event := &auditinternal.Event{Verb: "create", User: authnv1.UserInfo{Username: "jane"}}
	if !a.ProcessEvents(event, event) {
		t.Fatal("a record was not written")
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(text), "\n")
	if len(lines) != 4 || !json.Valid([]byte(lines[1])) || !json.Valid([]byte(lines[2])) {
		t.Errorf("half a line spoils those behind it:\n%s", text)
	}
	a.size = 1 // the next record is for a new file, which cannot be made
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if a.ProcessEvents(event) {
		t.Error("a record is said to be written that is nowhere")
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := a.flush(); err != nil || len(readAudit(t, path)) != 1 {
		t.Errorf("the record for which there was no room is lost: %v", err)
	}
	if !a.ProcessEvents(event) {
		t.Error("nothing is noted any more after it could not be once")
	}
}

// TestRefusalsDoNotPushOutWhatWasDone has an identity that may do nothing ask for
// it again and again, with names as long as a request can be.
func TestRefusalsDoNotPushOutWhatWasDone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	a, err := openAudit(path, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	ask := func(user string, code int32) {
		t.Helper()
		long := strings.Repeat("x", 100_000)
		if !a.ProcessEvents(&auditinternal.Event{
			Verb: "delete", User: authnv1.UserInfo{Username: user}, UserAgent: long, RequestURI: long, ResponseStatus: &metav1.Status{Code: code},
			ObjectRef: &auditinternal.ObjectReference{Resource: "runs", Name: long, Namespace: long}, StageTimestamp: metav1.NewMicroTime(now),
		}) {
			t.Fatal("a record was not written")
		}
	}
	ask("jane", 200)
	for range 10_000 {
		ask("viewer", 403)
	}
	ask("worker", 409)
	now = now.Add(refusalsWithin)
	ask("viewer", 403)
	now = now.Add(-24 * time.Hour)
	for range refusalsKept + 2 {
		ask("viewer", 403)
	}
	ask("jane", 201)
	a.Shutdown()
	if info, err := os.Stat(path); err != nil || info.Size() > 1<<20 {
		t.Fatalf("%d bytes, %v", info.Size(), err)
	}
	type told struct {
		User    string
		Code    int32
		LeftOut int64
		Times   int
	}
	got := []told{}
	for _, r := range readAudit(t, path) {
		one := told{r.User, r.Code, r.LeftOut, 1}
		if n := len(got) - 1; n >= 0 && got[n].User == r.User && got[n].LeftOut == r.LeftOut && r.LeftOut == 0 {
			got[n].Times++
		} else {
			got = append(got, one)
		}
		if len(r.Name) > maxWord+3 || len(r.Namespace) > maxWord+3 || len(r.Agent) > maxWord+3 {
			t.Fatalf("a word of %d bytes", max(len(r.Name), len(r.Namespace), len(r.Agent)))
		}
	}
	want := []told{
		{"jane", 200, 0, 1},
		{"viewer", 403, 0, refusalsKept},
		{"worker", 409, 0, 1},
		{"viewer", 403, 10_000 - refusalsKept - 1, 1},
		{"viewer", 403, 0, 1 + refusalsKept},
		{"jane", 201, 0, 1},
		{"viewer", 403, 1, 1},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
