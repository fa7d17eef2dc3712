package audit_test

import (
	"encoding/json"
	"flag"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/jsonschema-go/jsonschema"

	"agentctl.dev/agentctl/api/audit"
	"agentctl.dev/agentctl/api/internal/schema"
)

var update = flag.Bool("update", false, "write the published schemas anew")

const base = "https://agentctl.dev/schemas/v1alpha1/"

func source(t *testing.T) *schema.Source {
	t.Helper()
	s, err := schema.ReadSource(".", "../event", "../message", "../reason")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// publishRecords derives the schema of records: one branch per type of details.
func publishRecords(t *testing.T) []byte {
	t.Helper()
	src := source(t)
	root := &jsonschema.Schema{Description: "One line of an audit log. The event type says which details it holds; a reader should skip types it does not know."}
	for _, k := range audit.Kinds() {
		details, err := src.Of(reflect.TypeOf(k.Details))
		if err != nil {
			t.Fatal(err)
		}
		description := details.Description
		details.Description = ""
		kind := &jsonschema.Schema{Const: new(any)}
		*kind.Const = k.EventType
		if strings.HasSuffix(k.EventType, ".") {
			kind = &jsonschema.Schema{Type: "string", Pattern: "^" + strings.ReplaceAll(k.EventType, ".", `\.`) + "[A-Za-z0-9_-]{1,64}$"}
		}
		record, err := src.Of(reflect.TypeFor[audit.Record]())
		if err != nil {
			t.Fatal(err)
		}
		record.Title, record.Description = k.EventType, description
		record.Properties["event_type"], record.Properties["details"] = kind, details
		root.OneOf = append(root.OneOf, record)
	}
	text, err := schema.Document("agentctl audit record", base+"audit.schema.json", root)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func publishStatement(t *testing.T) []byte {
	t.Helper()
	s, err := source(t).Of(reflect.TypeFor[audit.Statement]())
	if err != nil {
		t.Fatal(err)
	}
	text, err := schema.Document("agentctl receipt", base+"receipt.schema.json", s)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestPublishedSchemasAreFresh(t *testing.T) {
	for file, c := range map[string]struct{ want, have []byte }{
		"audit.schema.json":   {publishRecords(t), audit.RecordSchema},
		"receipt.schema.json": {publishStatement(t), audit.StatementSchema},
	} {
		if *update {
			if err := os.WriteFile(file, c.want, 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if diff := cmp.Diff(string(c.want), string(c.have)); diff != "" {
			t.Errorf("%s is stale, run go generate (-want +got):\n%s", file, diff)
		}
	}
}

func resolved(t *testing.T, text []byte) *jsonschema.Resolved {
	t.Helper()
	var s jsonschema.Schema
	if err := json.Unmarshal(text, &s); err != nil {
		t.Fatal(err)
	}
	r, err := s.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestPublishedSchemaJudgesRecords(t *testing.T) {
	r := resolved(t, audit.RecordSchema)
	decode := func(rec audit.Record) (v any) {
		line, err := audit.Append(nil, rec)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(line, &v); err != nil {
			t.Fatal(err)
		}
		return v
	}
	for _, k := range audit.Kinds() {
		kind := k.EventType
		if kind == "tool." {
			kind += "opencode_run"
		}
		rec := audit.Record{Timestamp: "2026-01-02T03:04:05.006Z", EventType: kind, Seq: 1, Run: "r", Agent: "a", Details: k.Details}
		if err := r.Validate(decode(rec)); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
		if rec.EventType = "tool.b c"; r.Validate(decode(rec)) == nil {
			t.Errorf("details of %s pass as those of %s", kind, rec.EventType)
		}
	}
}

// The names that the audit of an external coding agent has are those of the log.
func TestRecordsOfCallsHaveTheFieldsOfCodingAgents(t *testing.T) {
	n, one, code := 1, int64(1), 0
	seconds := 300.0
	line, err := audit.Append(nil, audit.Record{Timestamp: "2026-01-02T03:04:05.006Z", EventType: "tool.opencode_run", Details: audit.Call{
		Task: audit.Task{TaskID: "t"}, StepID: "step_1", Workspace: "w", TaskPrompt: "p", OutputMode: "diff", TimeoutSeconds: &seconds, ExitCode: &code,
		StdoutLen: &one, StderrLen: &one, ChangedFiles: []string{"f"}, ChangedFilesCount: &n, OpencodeVersion: "1", EvidenceRefs: []string{"e"}, ApprovalID: "approval_1", RiskLevel: "R3",
	}})
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Timestamp string                     `json:"timestamp"`
		EventType string                     `json:"event_type"`
		Details   map[string]json.RawMessage `json:"details"`
	}
	if err := json.Unmarshal(line, &got); err != nil || got.Timestamp == "" || got.EventType != "tool.opencode_run" {
		t.Fatalf("%s: %v", line, err)
	}
	for _, name := range []string{
		"task_id", "step_id", "workspace", "task_prompt", "output_mode", "timeout_seconds", "exit_code", "duration_ms", "stdout_len", "stderr_len",
		"changed_files", "changed_files_count", "opencode_version", "evidence_refs", "approval_id", "risk_level",
	} {
		if _, ok := got.Details[name]; !ok {
			t.Errorf("a record has no %s: %s", name, line)
		}
	}
}

// Every field of a record and of a receipt is on the page about them.
func TestEveryFieldStandsInTheDocs(t *testing.T) {
	text, err := os.ReadFile("../../docs/audit.md")
	if err != nil {
		t.Fatal(err)
	}
	checked := map[string]bool{}
	var check func(of reflect.Type)
	check = func(of reflect.Type) {
		for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice {
			of = of.Elem()
		}
		if of.Kind() != reflect.Struct || strings.HasPrefix(of.PkgPath(), "agentctl.dev/agentctl/api/message") {
			return
		}
		for _, f := range reflect.VisibleFields(of) {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if f.Anonymous || name == "" || name == "-" {
				continue
			}
			if !regexp.MustCompile(`\b` + name + `\b`).Match(text) {
				t.Errorf("docs/audit.md does not name %s of %s", name, of)
			}
			checked[name] = true
			check(f.Type)
		}
	}
	for _, k := range audit.Kinds() {
		check(reflect.TypeOf(k.Details))
		if !strings.Contains(string(text), "`"+strings.TrimSuffix(k.EventType, ".")) {
			t.Errorf("docs/audit.md does not name %s", k.EventType)
		}
	}
	check(reflect.TypeFor[audit.Receipt]())
	if len(checked) < 100 {
		t.Errorf("%d fields are found: they are looked for wrongly", len(checked))
	}
}
