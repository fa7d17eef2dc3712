package tool

import (
	"fmt"
	"strings"
	"testing"

	"agentctl.dev/agentctl/api/v1alpha1"
)

func TestFunctionsOfOneToolHaveTheirOwnCallNames(t *testing.T) {
	long := strings.Repeat("x", 80)
	for _, c := range []struct{ reason, tool, function, want string }{
		{"the two names are joined", "github", "get_issue", "github_get_issue"},
		{"what no model accepts is replaced", "files", "read file/α.b", "files_read_file___b"},
		{"a control character cannot pass", "s", "a\x1b[2Jb", "s_a__2Jb"},
	} {
		if got := FunctionName(c.tool, c.function); got != c.want {
			t.Errorf("%s: %q, want %q", c.reason, got, c.want)
		}
	}
	name := FunctionName("server", long)
	if len(name) != 64 || name != FunctionName("server", long) || name == FunctionName("server", long+"y") {
		t.Errorf("a long name is shortened to %q", name)
	}
}

func TestAFunctionIsChosenByGlobsOnItsOwnName(t *testing.T) {
	d := &Definition{Name: "s", Select: &Selection{Include: []string{"get_*", "list"}, Exclude: []string{"get_secret"}}, Spec: v1alpha1.ToolSpec{Risk: v1alpha1.RiskR1}}
	all, err := Expand(d, []Function{{Name: "put"}, {Name: "list"}, {Name: "get_secret"}, {Name: "get_b"}, {Name: "get_a"}})
	var names []string
	for _, one := range all {
		names = append(names, one.Name+"="+one.Function)
		if one.Of != "s" || one.Program() != "s" || one.Spec.Risk != v1alpha1.RiskR1 || one.Select != nil {
			t.Errorf("%+v", one)
		}
	}
	if got := strings.Join(names, " "); err != nil || got != "s_get_a=get_a s_get_b=get_b s_list=list" {
		t.Errorf("%s, %v", got, err)
	}
	d.Select = &Selection{Include: []string{"nothing"}}
	if _, err := Expand(d, []Function{{Name: "put"}}); err == nil || !strings.Contains(err.Error(), "select none of the functions that its program serves: put") {
		t.Errorf("a selection of nothing: %v", err)
	}
}

func TestACallNameBelongsToOneFunction(t *testing.T) {
	d := &Definition{Name: "s", Select: &Selection{}}
	all, err := Expand(d, []Function{{Name: "a.b"}, {Name: "a b"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := Distinct(all); err == nil || !strings.Contains(err.Error(), `function "a b" of tool "s"`) || !strings.Contains(err.Error(), `function "a.b" of tool "s"`) {
		t.Errorf("a collision: %v", err)
	}
	if err := Distinct([]Definition{{Name: "s_a"}, {Name: "s_a", Of: "s", Facts: Facts{Function: "a"}}}); err == nil || !strings.Contains(err.Error(), `tool "s_a" and function "a" of tool "s"`) {
		t.Errorf("a collision with a tool: %v", err)
	}
	if err := Distinct([]Definition{{Name: "bash", Of: "b", Facts: Facts{Function: "ash"}}}); err == nil || !strings.Contains(err.Error(), "shipped tool") {
		t.Errorf("the name of a shipped tool: %v", err)
	}
}

// Hints are claims: without the manifest's word they change nothing, and no hint lowers
// the risk of what it calls destructive.
func TestHintsCountOnlyWhereTheManifestTrustsThem(t *testing.T) {
	found := []Function{{Name: "read", Hints: Hints{ReadOnly: true}}, {Name: "wipe", Hints: Hints{Destructive: true, Idempotent: true}}, {Name: "x"}}
	for trusted, want := range map[bool]string{false: "s_read=R2 s_wipe=R2 s_x=R2", true: "s_read=R0 s_wipe=R3 s_x=R2"} {
		d := &Definition{Name: "s", Select: &Selection{}, Spec: v1alpha1.ToolSpec{Risk: v1alpha1.RiskR2, Retry: v1alpha1.RetryNever}, Facts: Facts{TrustHints: trusted}}
		all, err := Expand(d, found)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, one := range all {
			got = append(got, fmt.Sprintf("%s=%s", one.Name, one.Spec.Risk))
			if one.Function == "wipe" && one.Spec.Retry != v1alpha1.RetryNever {
				t.Errorf("a destructive function may be repeated: %s", one.Spec.Retry)
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("trusted %t: %v, want %s", trusted, got, want)
		}
	}
}
