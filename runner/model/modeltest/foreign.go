package modeltest

import (
	"strings"
	"testing"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/reason"
)

// RunForeign points a provider at servers of every other wire format, as a wrong
// baseURL or a gateway does. It has to say so at once: with reason ModelError and
// a hint, after one request, with no half answer.
func RunForeign(t *testing.T, wire Wire, open Open) {
	t.Helper()
	s := suite{wire, open}
	for _, other := range Wires() {
		if other == wire {
			continue
		}
		t.Run(other.Name(), func(t *testing.T) {
			t.Run("AnotherAddress", func(t *testing.T) {
				k := s.connect(t, Options{Wire: other}, patience)
				k.foreign(t)
			})
			t.Run("AnotherStream", func(t *testing.T) {
				for name, a := range map[string]Answer{"full": full, "text": {Text: "ok"}, "nothing": {}} {
					t.Run(name, func(t *testing.T) {
						k := s.connect(t, Options{Wire: other, Unrouted: true, Unchecked: true}, patience, a.Step(), a.Step())
						k.foreign(t)
					})
				}
			})
			t.Run("AnotherFault", func(t *testing.T) { s.foreignFaults(t, other) })
			t.Run("AnotherEvent", func(t *testing.T) { s.foreignEvents(t, other) })
		})
	}
}

// foreign asks a server that speaks something else.
func (k *talk) foreign(t *testing.T) {
	t.Helper()
	_, err := k.next(t, t.Context(), message.Request{})
	if err == nil {
		t.Fatal("no error")
	}
	if got := reason.Of(err); got != reason.ModelError || len(k.Requests()) != 1 {
		t.Errorf("reason %s after %d requests, want %s after one: %v", got, len(k.Requests()), reason.ModelError, err)
	}
	if hint := reason.Hint(err); !strings.Contains(hint, "baseURL") {
		t.Errorf("the hint does not name baseURL: %q of %v", hint, err)
	}
}

// foreignFaults are refusals in another API's shape: their status is enough, and
// their words are shown.
func (s suite) foreignFaults(t *testing.T, other Wire) {
	for status, f := range map[int]fault{
		400: {want: reason.ModelError, requests: 1}, 401: {want: reason.CredentialRejected, requests: 1}, 403: {want: reason.CredentialRejected, requests: 1},
		404: {want: reason.ModelError, requests: 1}, 413: {want: reason.ContextExhausted, requests: 1}, 429: {want: reason.ProviderUnavailable, requests: 3},
		500: {want: reason.ProviderUnavailable, requests: 3}, 503: {want: reason.ProviderUnavailable, requests: 3},
	} {
		f.step, f.says = Refuse(status, nil, other.Fault(status, "so it says", "")), "so it says"
		k := s.connect(t, Options{Wire: other, Unrouted: true, Unchecked: true}, patience, f.step, f.step, f.step)
		k.fails(t, f)
	}
}

// foreignEvents puts each event of another API into a stream. They are skipped or they end
// it; the answer is complete or there is none.
func (s suite) foreignEvents(t *testing.T, other Wire) {
	first, rest, _ := strings.Cut(string(s.wire.Stream(full)), "\n\n")
	for _, e := range strings.SplitAfter(string(other.Stream(full)), "\n\n") {
		if e == "" {
			continue
		}
		k := s.talk(t, Events(first+"\n\n"+e+rest))
		out, err := k.next(t, t.Context(), message.Request{})
		if err != nil {
			if reason.Of(err) != reason.ModelError || len(k.Requests()) != 1 {
				t.Errorf("with the event %q: reason %s after %d requests: %v", e, reason.Of(err), len(k.Requests()), err)
			}
			continue
		}
		if out.Text != full.Text || out.Reasoning != full.Reasoning || len(out.Calls) != len(full.Calls) {
			t.Errorf("with the event %q the answer is another: %+v", e, out)
		}
	}
}
