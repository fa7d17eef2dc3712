package modeltest

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/reason"
)

// fault is one way to fail.
type fault struct {
	step     Step
	want     reason.Reason
	requests int
	// says is a part of the error or its hint.
	says string
}

// faults is every way to fail on a wire format, by name: those that every server
// has in common, in the format's own shapes, and those that are its own.
func faults(w Wire) map[string]fault {
	head := func(k, v string) http.Header { return http.Header{k: {v}} }
	own, begun := w.traits(), w.Begun("half")
	all := map[string]fault{
		"401":                   {Refuse(401, nil, w.Fault(401, "bad key", "")), reason.CredentialRejected, 1, "key"},
		"403":                   {Refuse(403, nil, "forbidden"), reason.CredentialRejected, 1, "forbidden"},
		"403 in its own words":  {Refuse(403, nil, w.Fault(403, "not yours", "")), reason.CredentialRejected, 1, "not yours"},
		"401 asking for more":   {Refuse(401, head("X-Should-Retry", "true"), "{}"), reason.CredentialRejected, 1, ""},
		"400":                   {Refuse(400, nil, w.Fault(400, "no such parameter", "")), reason.ModelError, 1, "no such parameter"},
		"400 overloaded":        {Refuse(400, nil, w.Fault(400, "the text says overloaded", "")), reason.ModelError, 1, ""},
		"404":                   {Refuse(404, nil, "<html>nothing here</html>"), reason.ModelError, 1, own.address},
		"404 in its own words":  {Refuse(404, nil, w.Fault(404, "no such model: x", "")), reason.ModelError, 1, "no such model: x"},
		"422":                   {Refuse(422, nil, `{"detail":"wrong"}`), reason.ModelError, 1, "wrong"},
		"redirect":              {Refuse(302, head("Location", "https://elsewhere.example/"), ""), reason.ModelError, 1, "elsewhere.example"},
		"429 for its size":      {Refuse(429, nil, w.Fault(429, "Request too large for test-model on tokens per min (TPM): Limit 30000, Requested 45000.", "")), reason.ContextExhausted, 1, ""},
		"overflow of SGLang":    {Refuse(400, nil, w.Fault(400, "The input (61709 tokens) is longer than the model's context length (40960 tokens).", "")), reason.ContextExhausted, 1, ""},
		"overflow in a stream":  {Events(begun + w.InStream(0, "The number of tokens to keep from the initial prompt is greater than the context length", "")), reason.ContextExhausted, 1, ""},
		"413":                   {Refuse(413, nil, "too large"), reason.ContextExhausted, 1, ""},
		"408":                   {Refuse(408, nil, ""), reason.ProviderUnavailable, 3, ""},
		"409":                   {Refuse(409, nil, w.Fault(409, "conflict", "")), reason.ModelError, 1, ""},
		"409 that may pass":     {Refuse(409, head("X-Should-Retry", "true"), ""), reason.ProviderUnavailable, 3, ""},
		"429":                   {Refuse(429, nil, w.Fault(429, "slow down", "")), reason.ProviderUnavailable, 3, "slow down"},
		"429 that will not":     {Refuse(429, head("X-Should-Retry", "false"), ""), reason.ProviderUnavailable, 1, ""},
		"429 far away":          {Refuse(429, head("Retry-After", "3600"), ""), reason.ProviderUnavailable, 1, "maxDelay"},
		"500":                   {Refuse(500, nil, "oops"), reason.ProviderUnavailable, 3, "oops"},
		"500 in its own words":  {Refuse(500, nil, w.Fault(500, "internal trouble", "")), reason.ProviderUnavailable, 3, "internal trouble"},
		"502":                   {Refuse(502, nil, "<html>bad gateway</html>"), reason.ProviderUnavailable, 3, ""},
		"503":                   {Refuse(503, nil, ""), reason.ProviderUnavailable, 3, ""},
		"503 in its own words":  {Refuse(503, nil, w.Fault(503, "too many people", "")), reason.ProviderUnavailable, 3, "too many people"},
		"504":                   {Refuse(504, nil, ""), reason.ProviderUnavailable, 3, ""},
		"524":                   {Refuse(524, nil, ""), reason.ProviderUnavailable, 3, ""},
		"529":                   {Refuse(529, nil, ""), reason.ProviderUnavailable, 3, ""},
		"501":                   {Refuse(501, nil, ""), reason.ModelError, 1, own.address},
		"507":                   {Refuse(507, nil, ""), reason.ProviderUnavailable, 1, ""},
		"200 with a page":       {Page(), reason.ModelError, 1, own.address},
		"200 with JSON error":   {Refuse(200, nil, w.Fault(404, "no such model", "")), reason.ModelError, 1, "no such model"},
		"200 with busy error":   {Refuse(200, nil, w.Fault(503, "overloaded, try again", "")), reason.ProviderUnavailable, 3, "overloaded"},
		"200 with JSON":         {Refuse(200, nil, `{"hello":"world"}`), reason.ModelError, 1, "hello"},
		"200 with a list":       {Refuse(200, nil, `["hello"]`), reason.ModelError, 1, "hello"},
		"200 with broken JSON":  {Refuse(200, nil, `{"choices":[{"mess`), reason.ModelError, 1, ""},
		"200 with text":         {Events("hello, I am no model\n"), reason.ModelError, 1, "no model"},
		"200 with nothing":      {Refuse(200, nil, ""), reason.ModelError, 1, "empty"},
		"empty stream":          {Events("").EndAt(0), reason.ProviderUnavailable, 3, "ended"},
		"only comments":         {Events(": hello\n\n: hello\n\n"), reason.ProviderUnavailable, 3, "ended"},
		"garbage event":         {Events("data: not json at all\n\n"), reason.ModelError, 1, "not json"},
		"event that is a list":  {Events("data: [\"hello\"]\n\n"), reason.ModelError, 1, "hello"},
		"10 MB line":            {LongLine(10 << 20), reason.ModelError, 1, "longer than"},
		"10 MB without an end":  {Events("data: " + strings.Repeat("x", 10<<20)), reason.ModelError, 1, "longer than"},
		"10 MB of short lines":  {Events(strings.Repeat("data: "+strings.Repeat("x", 994)+"\n", 10<<10)), reason.ModelError, 1, "longer than"},
		"503 in the stream":     {Events(begun + w.InStream(503, "upstream", "")), reason.ProviderUnavailable, 3, "upstream"},
		"busy in the stream":    {Events(begun + w.InStream(529, "overloaded", "")), reason.ProviderUnavailable, 3, "overloaded"},
		"error in the stream":   {Events(begun + w.InStream(400, "it broke", "")), reason.ModelError, 1, "it broke"},
		"error at once":         {Events(w.InStream(400, "it broke", "")), reason.ModelError, 1, "it broke"},
		"stream without finish": {Events(begun), reason.ProviderUnavailable, 3, "ended"},
		"server repeats key":    {Refuse(400, nil, w.Fault(400, "key "+Key+" may not", "")), reason.ModelError, 1, "***"},
		"key in the stream":     {Events(begun + w.InStream(400, "key "+Key+" may not", "")), reason.ModelError, 1, "***"},
	}
	maps.Copy(all, own.faults())
	return all
}

// FaultNamed is a way to fail of the suite's table, such as overflow, quota or
// content filter, in the words of a wire format.
func FaultNamed(w Wire, name string) Step {
	f, ok := faults(w)[name]
	if !ok {
		panic(fmt.Sprintf("there is no fault %q of %s", name, w.Name()))
	}
	return f.step
}

// FaultNames lists the names that FaultNamed takes for a wire format, in order.
func FaultNames(w Wire) []string { return slices.Sorted(maps.Keys(faults(w))) }

func (s suite) faults(t *testing.T) {
	for name, f := range faults(s.wire) {
		t.Run(name, func(t *testing.T) {
			k := s.talk(t, slices.Repeat([]Step{f.step}, f.requests+1)...)
			k.fails(t, f)
			// The failure is not part of the conversation, which can continue.
			k.restart(Answer{Text: "fine again"}.Step())
			k.deltas = nil
			if out, err := k.next(t, t.Context(), message.Request{}); err != nil || out.Text != "fine again" {
				t.Errorf("after the fault: %+v, %v", out, err)
			}
		})
	}
}

// fails asks, and holds the failure against what it has to be.
func (k *talk) fails(t *testing.T, f fault) {
	t.Helper()
	_, err := k.next(t, t.Context(), message.Request{})
	if err == nil {
		t.Fatal("no error")
	}
	if got := reason.Of(err); got != f.want {
		t.Errorf("reason %s, want %s: %v", got, f.want, err)
	}
	if got := len(k.Requests()); got != f.requests {
		t.Errorf("%d requests, want %d: %v", got, f.requests, err)
	}
	retries := 0
	for _, d := range k.deltas {
		if d.Kind == message.DeltaRetry {
			retries++
		}
	}
	if retries != f.requests-1 {
		t.Errorf("%d retries were sent, want %d", retries, f.requests-1)
	}
	all := err.Error() + " " + reason.Hint(err)
	if !strings.Contains(all, f.says) {
		t.Errorf("the error does not say %q: %s", f.says, all)
	}
	if strings.Contains(all, Key) {
		t.Errorf("the error shows the key: %s", all)
	}
	if strings.Contains(all, " : ") {
		t.Errorf("the error has a gap: %s", all)
	}
	if len(all) > 2000 || strings.ContainsAny(all, "\x00\n") {
		t.Errorf("the error is not one short line: %q", all)
	}
}
