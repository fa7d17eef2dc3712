package approval

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFactsAreToldInWords(t *testing.T) {
	for name, c := range map[string]struct{ reason, raw, want string }{
		"all": {
			"one thing a line, and nothing left out",
			`{"commands":["ls a","printf x\ny"],"paths":[
				{"raw":"a","clean":"/w/a","real":"/w/a","inWorkspace":true,"op":"read"},
				{"raw":"a","clean":"/w/a","real":"/w/a","inWorkspace":true,"op":"read"},
				{"raw":"l","clean":"/w/l","real":"/w/m","inWorkspace":true,"op":"write"},
				{"raw":"~/.ssh/id","clean":"~/.ssh/id","real":"/h/.ssh/id","inWorkspace":false,"op":"delete","secret":true},
				{"raw":"?","clean":"?","real":"?","inWorkspace":false,"op":"execute"}],
			"network":{"hosts":["a.test"],"ports":[443],"schemes":["https"]},"dynamic":true,"reasons":["a variable"],"audit":["p/r would ask: x"]}`,
			"    runs: ls a\n    runs:\n      | printf x\n      | y\n    reads: a\n    writes: l   (leads to /w/m)\n" +
				"    deletes: ~/.ssh/id   (outside the workspace: /h/.ssh/id)   (a file that holds secrets)\n" +
				"    may use: ?   (only the run can tell where that is)\n    reaches: a.test, https, port 443\n" +
				"    only the run can tell: a variable\n    audit: p/r would ask: x\n",
		},
		"hidden":  {"what is invisible is named", `{"commands":["ls \u202e\u001b[2J"]}`, "    runs: ls <U+202E><U+001B>[2J\n"},
		"more":    {"what has no words is shown as it is", `{"labels":["x"]}`, "    as data:\n      | {\n      |   \"labels\": [\n      |     \"x\"\n      |   ]\n      | }\n"},
		"no JSON": {"so is what cannot be read", "{", "    as data: {\n"},
	} {
		t.Run(name, func(t *testing.T) {
			var b bytes.Buffer
			writeFacts(&b, []byte(c.raw))
			if diff := cmp.Diff(c.want, b.String()); diff != "" {
				t.Errorf("%s:\n%s", c.reason, diff)
			}
		})
	}
}
