package control

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTheLineIsFair(t *testing.T) {
	for name, c := range map[string]struct{ reason, in, want string }{
		"order":      {"runs of one agent keep their order", "a/x/1 a/x/2 a/x/3", "a/x/1 a/x/2 a/x/3"},
		"agents":     {"agents of a namespace take turns", "a/x/1 a/x/2 a/x/3 a/y/1", "a/x/1 a/y/1 a/x/2 a/x/3"},
		"namespaces": {"a namespace with many agents has no more than another", "a/x/1 a/y/1 a/z/1 b/x/1 b/x/2", "a/x/1 b/x/1 a/y/1 b/x/2 a/z/1"},
		"none":       {"nobody waits", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			var q queue
			for w := range strings.FieldsSeq(c.in) {
				part := strings.Split(w, "/")
				q.push(&item{work: Work{ID: w, Namespace: part[0], Agent: part[1]}})
			}
			var got []string
			for i := q.pop(); i != nil; i = q.pop() {
				got = append(got, i.work.ID)
			}
			if diff := cmp.Diff(c.want, strings.Join(got, " ")); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.reason, diff)
			}
			if len(q.namespaces.of) > 0 || len(q.namespaces.names) > 0 {
				t.Errorf("an empty line remembers %v", q.namespaces.names)
			}
		})
	}
}

func TestWhoComesLaterDoesNotWaitForAll(t *testing.T) {
	var q queue
	push := func(id, namespace string) { q.push(&item{work: Work{ID: id, Namespace: namespace, Agent: "x"}}) }
	for range 1000 {
		push("many", "a")
	}
	q.pop()
	push("one", "b")
	for n := 1; ; n++ {
		if q.pop().work.ID == "one" {
			if n > 2 {
				t.Errorf("it was number %d", n)
			}
			return
		}
	}
}
