package approval

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/v1alpha1"
)

func asked(risk string, grants ...message.Grant) message.Question {
	q := question(risk, hashA)
	q.Decision.Always = grants
	return q
}

func bash(pattern string) message.Grant { return message.Grant{Permission: "bash", Pattern: pattern} }

func edit(pattern string) message.Grant { return message.Grant{Permission: "edit", Pattern: pattern} }

func changing(pattern, place string) message.Grant {
	return message.Grant{Permission: "bash", Pattern: pattern, Within: place}
}

func TestMemoryCoversWhatIsRemembered(t *testing.T) {
	rule := message.Grant{Tool: "post", When: "has(call.args.to)"}
	memory := NewMemory([]message.Grant{bash("git commit *"), bash("ls *"), edit("src/*"), rule, changing("rm -f *", "build/*")})
	again := asked("R2", bash("ls *"))
	again.Unknown = true
	for name, c := range map[string]struct {
		reason string
		q      message.Question
		want   bool
	}{
		"same":         {"the same kind of command", asked("R2", bash("ls *")), true},
		"both":         {"each command is remembered", asked("R2", bash("ls *"), bash("git commit *")), true},
		"one":          {"one of the commands is not", asked("R2", bash("ls *"), bash("mv *")), false},
		"longer":       {"another command of the same program", asked("R2", bash("git push *")), false},
		"nothing":      {"a call that can only be approved once", asked("R2"), false},
		"folder":       {"the folder", asked("R1", edit("src/*")), true},
		"deeper":       {"a folder in it", asked("R1", edit("src/a/b/*")), true},
		"sibling":      {"a folder whose name begins alike", asked("R1", edit("srcs/*")), false},
		"file":         {"a file beside it", asked("R1", edit("go.mod")), false},
		"permission":   {"reading is no writing", asked("R0", message.Grant{Permission: "read", Pattern: "src/*"}), false},
		"there":        {"a command that changes a place", asked("R2", changing("rm -f *", "build/x")), true},
		"less":         {"one that changes nothing", asked("R2", changing("rm -f *", "")), true},
		"elsewhere":    {"another place", asked("R2", changing("rm -f *", "src/*")), false},
		"no options":   {"fewer options", asked("R2", changing("rm *", "build/*")), true},
		"options":      {"one more in a cluster", asked("R2", changing("rm -fr *", "build/*")), false},
		"long option":  {"one more by its name", asked("R2", changing("rm --recursive *", "build/*")), false},
		"other place":  {"that place was for another command", asked("R2", changing("ls *", "build/*")), false},
		"folder of it": {"the same command in another folder", asked("R2", message.Grant{Permission: "bash", Pattern: "ls *", Dir: "src"}), false},
		"rule":         {"the same tool and arguments", asked("R2", rule), true},
		"other rule":   {"other arguments", asked("R2", message.Grant{Tool: "post", When: "has(call.args.from)"}), false},
		"undoable":     {"what cannot be undone is never remembered", asked("R3", bash("ls *")), false},
		"no risk":      {"nor what has no known risk", asked("", bash("ls *")), false},
		"interrupted":  {"nor a call that may have happened", again, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := memory.Covers(c.q); got != c.want {
				t.Errorf("%s: got %v", c.reason, got)
			}
		})
	}
	if (*Memory)(nil).Covers(asked("R2", bash("ls *"))) {
		t.Error("no memory covers nothing")
	}
}

func TestPolicyReadsAsAManifest(t *testing.T) {
	var p v1alpha1.Policy
	text := Policy([]message.Grant{bash(`git "x" *`), {Tool: "post", When: "call.args.all(k, k in ['a'])"}})
	if err := yaml.UnmarshalStrict([]byte(text), &p); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	want := v1alpha1.PolicySpec{
		Permissions: []v1alpha1.Permission{{Permission: "bash", Pattern: `git "x" *`, Action: v1alpha1.ActionAllow}},
		Rules:       []v1alpha1.Rule{{Name: "always-2", Match: v1alpha1.Match{Tools: []string{"post"}}, When: "call.args.all(k, k in ['a'])", Action: v1alpha1.ActionAllow}},
	}
	if diff := cmp.Diff(want, p.Spec); diff != "" || p.Name != "remembered" || p.Kind != "Policy" {
		t.Errorf("%s\n%s", diff, text)
	}
}

func TestGrantsAreToldOnOneLine(t *testing.T) {
	got := Summary([]message.Grant{
		changing("rm -f *", "a"), changing("rm -f *", "b/*"), {Permission: "bash", Pattern: "make test *", Dir: "src"}, bash("ls *"), {Tool: "post", When: "true"},
	})
	const want = `bash "rm -f *" changing "a" and "b/*", bash "make test *" in "src", bash "ls *", post when true`
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestPolicySaysNoMoreThanItCan(t *testing.T) {
	got := Policy([]message.Grant{{Permission: "bash", Pattern: "rm *", Dir: "src", Within: "src/a/*"}})
	const want = `  permissions:
  - {permission: "edit", pattern: "*", action: ask}
  - {permission: "edit", pattern: "src/a/*", action: allow}
  - {permission: "bash", pattern: "cd src", action: allow}
  - {permission: "bash", pattern: "rm *", action: allow}
  - {permission: "bash", pattern: "rm -r*", action: ask}
  - {permission: "bash", pattern: "rm -f*", action: ask}
`
	if _, list, _ := strings.Cut(got, "spec:\n"); list != want {
		t.Errorf("%s", cmp.Diff(want, list))
	}
}
