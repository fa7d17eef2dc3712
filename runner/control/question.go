package control

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/runs"
)

const (
	// RunLabel names the run of an Approval, where a label can hold the name.
	RunLabel = "agentctl.dev/run"
	maxLabel = 63
	// maxCall bounds the name of a call in an object.
	maxCall = 512
	// maxShown bounds what an object holds of a call. A server accepts about 1.5 MB, and
	// stores with each field the name of its writer.
	maxShown = 256 << 10
	// readableName is how much of a run's name begins that of an Approval, and
	// questionDigits how many hex digits of the question end it.
	readableName   = 200
	questionDigits = 12
)

// bound is a question as the spec of its object names it.
func bound(q *runs.Asked) string { return "sha256:" + q.ID }

// callBelow names a call of a run below the run of an object: several of those may have
// calls of one name.
func callBelow(q *runs.Asked) string {
	if name := q.Run + "/" + q.Call; len(name) <= maxCall {
		return name
	}
	return q.Run + "/" + q.ID[:questionDigits]
}

// newApproval returns the object of a question. Its content is that of the journal, so it
// has no secrets; it shows the whole call or nothing of it.
func newApproval(run *v1alpha1.Run, q *runs.Asked, scheme *runtime.Scheme) (*v1alpha1.Approval, error) {
	a := &v1alpha1.Approval{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: run.Namespace,
			Name:      strings.TrimRight(run.Name[:min(len(run.Name), readableName)], ".-") + "-" + q.ID[:questionDigits],
		},
		Spec: v1alpha1.ApprovalSpec{
			RunRef: v1alpha1.Reference{Name: run.Name}, Agent: run.Spec.AgentRef.Name, Call: q.Call, Tool: q.Tool, Risk: v1alpha1.Risk(q.Risk),
			Rule: cut(q.Rule, 512), Message: cut(q.Message, 4096), Unknown: q.Unknown, Once: cut(q.Once, 1024),
			CallHash: q.Hash, Binding: bound(q), ExpiresAt: deadline(q),
		},
	}
	if in := q.Question; in != nil {
		a.Spec.Question, a.Spec.Options, a.Spec.Multiple, a.Spec.Once = in.Text, in.Options, in.Multiple, ""
		a.Spec.CallHash = cmp.Or(a.Spec.CallHash, bound(q))
	}
	if q.Run != RunID(run) {
		a.Spec.Agent, a.Spec.Call = q.Agent, callBelow(q)
	}
	if len(run.Name) <= maxLabel {
		a.Labels = map[string]string{RunLabel: run.Name}
	}
	if err := controllerutil.SetControllerReference(run, a, scheme); err != nil {
		return nil, fmt.Errorf("make an approval its run's, %s: %w", client.ObjectKeyFromObject(run), err)
	}
	always, err := json.Marshal(q.Always)
	if err != nil {
		return nil, fmt.Errorf("write down what an approval for always allows: %w", err)
	}
	s := &a.Spec
	if len(q.Args)+len(q.Facts)+len(always) > maxShown || !keeps(q.Args) || !keeps(q.Facts) {
		s.Summary = fmt.Sprintf("%s: the call is larger than an object can show", q.Tool)
		return a, nil
	}
	s.Summary = cut(summary(q.Tool, q.Args), 1024)
	if q.Question != nil {
		s.Summary = cut(q.Tool+" asks: "+q.Question.Text, 1024)
	}
	s.Args = &v1alpha1.JSON{Raw: q.Args}
	if len(q.Args) == 0 {
		s.Args.Raw = json.RawMessage("{}")
	}
	if len(q.Facts) > 0 {
		s.Facts = &v1alpha1.JSON{Raw: q.Facts}
	}
	if len(q.Always) > 0 {
		s.Always = &v1alpha1.JSON{Raw: always}
	}
	return a, nil
}

// deadline of a question, in the precision of an object; nil if there is none.
func deadline(q *runs.Asked) *metav1.Time {
	if q.ExpiresAt == nil {
		return nil
	}
	return &metav1.Time{Time: q.ExpiresAt.Truncate(time.Second)}
}

// summary is a call in one line.
func summary(tool string, args json.RawMessage) string {
	var b bytes.Buffer
	if json.Compact(&b, args) != nil {
		b.Reset()
	}
	return tool + " " + b.String()
}

// keeps reports whether a server stores a value unchanged. A server parses numbers as 64
// bits: with other digits, the object would show another call than the one that runs.
func keeps(raw json.RawMessage) bool {
	if len(raw) == 0 || !json.Valid(raw) {
		return len(raw) == 0
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	for {
		t, err := d.Token()
		if errors.Is(err, io.EOF) {
			return true
		}
		if n, ok := t.(json.Number); err != nil || ok && !exact(n.String()) {
			return false
		}
	}
}

func exact(number string) bool {
	if _, err := strconv.ParseInt(number, 10, 64); err == nil {
		return true
	}
	f, err := strconv.ParseFloat(number, 64)
	if err != nil || len(number) > 64 {
		return false
	}
	if exponent := strings.IndexAny(number, "eE"); exponent >= 0 {
		if n, err := strconv.Atoi(number[exponent+1:]); err != nil || n < -400 || n > 400 {
			return false // exact arithmetic would take for ever
		}
	}
	want, ok1 := new(big.Rat).SetString(number)
	got, ok2 := new(big.Rat).SetString(strconv.FormatFloat(f, 'g', -1, 64))
	return ok1 && ok2 && want.Cmp(got) == 0
}
