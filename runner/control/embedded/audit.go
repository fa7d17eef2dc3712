package embedded

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	auditinternal "k8s.io/apiserver/pkg/apis/audit"
	"k8s.io/apiserver/pkg/audit"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"agentctl.dev/agentctl/runner/statedir"
)

const (
	// auditSize is how large the audit log gets before it is put aside, and
	// auditKept how many that were put aside are kept.
	auditSize = 16 << 20
	auditKept = 3
	// maxWord bounds each value that a client chose: the name of what it
	// requests, and its user agent.
	maxWord = 256
)

// AuditRecord is one line of the audit log: a write, as it was answered.
type AuditRecord struct {
	Time time.Time `json:"time"`
	// User is the name of the identity.
	User string `json:"user"`
	Verb string `json:"verb"`
	// Group, Resource, Subresource, Namespace and Name are the object's. Name is
	// empty where the server chooses it, and for a whole collection.
	Group       string `json:"group,omitempty"`
	Resource    string `json:"resource,omitempty"`
	Subresource string `json:"subresource,omitempty"`
	Namespace   string `json:"namespace,omitempty"`
	Name        string `json:"name,omitempty"`
	// Run is the Run that was created, or whose call was decided on. Decision is
	// approved or rejected, followed by Always if set.
	Run      string `json:"run,omitempty"`
	Decision string `json:"decision,omitempty"`
	// Path is that of a request for no object.
	Path string `json:"path,omitempty"`
	// Code is the HTTP status of the answer.
	Code int32 `json:"code"`
	// Reason is why the roles let it through or not.
	Reason string `json:"reason,omitempty"`
	Agent  string `json:"agent,omitempty"`
	// LeftOut is how many more requests of this identity that came to nothing are
	// not in the log: there were too many of them, and this is the latest.
	LeftOut int64 `json:"leftOut,omitempty"`
}

// auditLog is the audit log: which identity wrote what, and the outcome. Reads
// are not in it. Requests without a valid token are not in it either: any
// program that can connect could use them to push everything else out of a file
// of bounded size.
type auditLog struct {
	path string
	size int64 // before a file is put aside
	log  *slog.Logger

	mu      sync.Mutex
	file    *os.File // nil where it could not be opened, and once it is closed
	written int64
	cut     bool // the last line is not whole
	closed  bool
	// unwritten are the lines for which the disk had no room, in their order.
	unwritten [][]byte
	refused   map[string]*refusals // by identity
}

func openAudit(path string, log *slog.Logger) (*auditLog, error) {
	a := &auditLog{path: path, size: auditSize, log: log, refused: map[string]*refusals{}}
	if err := a.open(); err != nil {
		return nil, err
	}
	return a, nil
}

func (a *auditLog) open() error {
	f, err := statedir.OpenFile(a.path, os.O_CREATE|os.O_APPEND|os.O_RDWR)
	if err != nil {
		return unusable(a.path, fmt.Errorf("open the audit log: %w", err))
	}
	info, err := f.Stat()
	if err == nil && info.Mode().Perm() != 0o600 {
		err = f.Chmod(0o600)
	}
	if err != nil {
		_ = f.Close()
		return fmt.Errorf("open the audit log: %w", err)
	}
	a.file, a.written, a.cut = f, info.Size(), false
	if last := make([]byte, 1); a.written > 0 {
		n, _ := f.ReadAt(last, a.written-1) // what cannot be read is not whole
		a.cut = n == 0 || last[0] != '\n'
	}
	return nil
}

// EvaluatePolicyRule picks the requests that become events.
func (*auditLog) EvaluatePolicyRule(at authorizer.Attributes) audit.RequestAuditConfig {
	none := audit.RequestAuditConfig{Level: auditinternal.LevelNone}
	if at.IsReadOnly() || slices.Contains(readVerbs, at.GetVerb()) || at.GetUser() == nil {
		return none
	}
	if isReview(at.GetAPIGroup(), at.GetResource()) {
		return none // nothing is written
	}
	if at.GetUser().GetName() == user.APIServerUser && at.GetSubresource() == "status" && at.GetAPIGroup() == crdGroup {
		return none // the server itself writes there which kinds it serves
	}
	return audit.RequestAuditConfig{
		Level:      auditinternal.LevelMetadata,
		OmitStages: []auditinternal.Stage{auditinternal.StageRequestReceived, auditinternal.StageResponseStarted},
	}
}

// ProcessEvents writes the events. A line that cannot be written is kept and
// written as soon as there is room; until then the server refuses writes (see
// disk), so there are not more such lines than requests at a time.
func (a *auditLog) ProcessEvents(events ...*auditinternal.Event) bool {
	ok := true
	for _, e := range events {
		for _, r := range a.worth(newAuditRecord(e)) {
			if err := a.write(r); err != nil {
				a.log.Error("write the audit log", "error", err)
				ok = false
			}
		}
	}
	return ok
}

// worth returns what to write for a record. There are not more identities than
// tokens, which are bounded.
func (a *auditLog) worth(r AuditRecord) []AuditRecord {
	if r.Code < http.StatusBadRequest {
		return []AuditRecord{r}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.refused[r.User] == nil {
		a.refused[r.User] = &refusals{}
	}
	return a.refused[r.User].count(r)
}

func newAuditRecord(e *auditinternal.Event) AuditRecord {
	r := AuditRecord{Time: e.StageTimestamp.UTC(), User: e.User.Username, Verb: e.Verb, Agent: e.UserAgent, Reason: e.Annotations["authorization.k8s.io/reason"]}
	r.Run, r.Decision = e.Annotations[AuditRun], e.Annotations[AuditDecision]
	if o := e.ObjectRef; o != nil {
		r.Group, r.Resource, r.Subresource, r.Namespace, r.Name = o.APIGroup, o.Resource, o.Subresource, o.Namespace, o.Name
	} else {
		r.Path = e.RequestURI
	}
	if e.ResponseStatus != nil {
		r.Code = e.ResponseStatus.Code
	}
	for _, word := range []*string{&r.Verb, &r.Group, &r.Resource, &r.Subresource, &r.Namespace, &r.Name, &r.Path, &r.Agent} {
		if len(*word) > maxWord {
			*word = strings.ToValidUTF8((*word)[:maxWord], "") + "…"
		}
	}
	return r
}

func (a *auditLog) write(r AuditRecord) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return fs.ErrClosed
	}
	return a.put(r)
}

// put is write for a caller that holds the mutex.
func (a *auditLog) put(r AuditRecord) error {
	line, err := json.Marshal(r)
	if err != nil {
		return err
	}
	a.unwritten = append(a.unwritten, append(line, '\n'))
	return a.putUnwritten()
}

// flush writes the lines for which the disk had no room before.
func (a *auditLog) flush() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return nil
	}
	return a.putUnwritten()
}

// putUnwritten writes lines until one cannot be written. The mutex is held.
func (a *auditLog) putUnwritten() error {
	for len(a.unwritten) > 0 {
		if err := a.putLine(a.unwritten[0]); err != nil {
			return err
		}
		a.unwritten = a.unwritten[1:]
	}
	return nil
}

func (a *auditLog) putLine(line []byte) error {
	if a.file == nil { // there may be room again
		if err := a.open(); err != nil {
			return err
		}
	}
	if a.written > 0 && a.written+int64(len(line)) > a.size {
		if err := a.rotate(); err != nil {
			return err
		}
	}
	if a.cut {
		line = append([]byte{'\n'}, line...) // a part of the line before does not spoil this one
	}
	n, err := a.file.Write(line)
	a.written += int64(n)
	a.cut = a.cut && n == 0 || n > 0 && n < len(line)
	return err
}

// rotate puts the file aside: audit.jsonl.1 is the newest of those.
func (a *auditLog) rotate() error {
	err := a.file.Close()
	a.file = nil
	for i := auditKept; i > 0; i-- {
		from := a.path
		if i > 1 {
			from = fmt.Sprintf("%s.%d", a.path, i-1)
		}
		if e := os.Rename(from, fmt.Sprintf("%s.%d", a.path, i)); !errors.Is(e, fs.ErrNotExist) {
			err = errors.Join(err, e)
		}
	}
	return errors.Join(err, a.open())
}

// Run is there for audit.Backend; there is nothing to start.
func (*auditLog) Run(<-chan struct{}) error { return nil }

// Shutdown closes the file.
func (a *auditLog) Shutdown() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed = true
	for _, user := range slices.Sorted(maps.Keys(a.refused)) {
		for _, r := range a.refused[user].rest() {
			_ = a.put(r) // what cannot be written is reported below
		}
	}
	for _, line := range a.unwritten {
		a.log.Error("a line of the audit log cannot be written", "line", string(line))
	}
	if a.file != nil {
		_ = a.file.Close() // every line has been written by itself
		a.file = nil
	}
}

// String is the name of the backend.
func (*auditLog) String() string { return "audit" }
