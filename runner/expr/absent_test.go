package expr

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAbsencesNameWhatMayHaveNoValue(t *testing.T) {
	args, err := FromSchema("Args", []byte(`{"type":"object","required":["to"],"properties":{"to":{"type":"string"},"cc":{"type":"string"},"tags":{"type":"array","items":{"type":"string"}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	command := NewObject("Command", Field{Name: "name", Type: String}, Field{Name: "argv", Type: List(String)})
	env, err := NewEnv(Var{"call", NewObject("Call", Field{Name: "args", Type: args})}, Var{"cmd", NewObject("Cmd", Field{Name: "commands", Type: List(command)})},
		Var{"paths", List(NewObject("Path", Field{Name: "clean", Type: String}))}, Var{"agent", NewObject("Agent", Field{Name: "labels", Type: Map(String)})})
	if err != nil {
		t.Fatal(err)
	}
	for src, want := range map[string]string{
		// Nothing shows that it is there.
		"paths[0].clean == ''":                                           "paths[0]",
		"paths[1].clean == '' || paths[0].clean == ''":                   "paths[0] paths[1]",
		"cmd.commands.exists(c, c.argv[1] == 'x')":                       "c.argv[1]",
		"cmd.commands[0].argv[1] == 'x'":                                 "cmd.commands[0] cmd.commands[0].argv[1]",
		"agent.labels.team == 'web'":                                     "agent.labels.team",
		"agent.labels['team'] == 'web'":                                  `agent.labels["team"]`,
		"call.args.cc == 'x'":                                            "call.args.cc",
		"call.args.to == 'x'":                                            "",
		"'x' in call.args.tags":                                          "call.args.tags",
		"call.args.?cc.orValue('') == 'x'":                               "",
		"agent.labels.?team.orValue('') == 'x'":                          "",
		"has(agent.labels.team)":                                         "",
		"paths.exists(p, p.clean == '')":                                 "",
		"size(paths) > 0 || paths[0].clean == ''":                        "paths[0]",
		"has(agent.labels.a) && agent.labels.team == 'web'":              "agent.labels.team",
		"size(paths) >= 0 && paths[0].clean == ''":                       "paths[0]",
		"size(paths) > 1 && paths[2].clean == ''":                        "paths[2]",
		"!has(agent.labels.team) && agent.labels.team == 'web'":          "agent.labels.team",
		"paths.all(p, p.clean != '') && paths[0].clean == ''":            "paths[0]",
		"cmd.commands.exists(c, c.argv.size() < 2 && c.argv[1] == '-x')": "c.argv[1]",
		"call.args.to.split('/')[1] == 'etc'":                            `call.args.to.split("/")[1]`,
		"call.args.to.split('/')[0] == 'etc'":                            "",
		// Guarded, in every way that holds.
		"size(call.args.to.split('/')) > 1 && call.args.to.split('/')[1] == 'etc'":            "",
		"size(paths) > 0 && paths[0].clean == ''":                                             "",
		"paths[0].clean == '' && paths.size() >= 1":                                           "",
		"0 < size(paths) && paths[0].clean == ''":                                             "",
		"paths != [] && paths[0].clean == ''":                                                 "",
		"size(paths) != 0 && paths[0].clean == ''":                                            "",
		"size(paths) == 2 && paths[1].clean == ''":                                            "",
		"size(paths) == 0 || paths[0].clean == ''":                                            "",
		"!(size(paths) < 2) && paths[1].clean == ''":                                          "",
		"size(paths) > 0 ? paths[0].clean == '' : false":                                      "",
		"paths.exists(p, p.clean == 'a') && paths[0].clean == 'b'":                            "",
		"!paths.all(p, p.clean == 'a') && paths[0].clean == 'b'":                              "",
		"paths.exists(p, p.clean == paths[0].clean)":                                          "",
		"cmd.commands.exists(c, size(c.argv) > 1 && c.argv[1] == 'x')":                        "",
		"cmd.commands.exists(c, c.argv.size() > 2 && (c.argv[1] == 'x' || c.argv[2] == 'y'))": "",
		"has(agent.labels.team) && agent.labels.team == 'web'":                                "",
		"'team' in agent.labels && agent.labels['team'] == 'web'":                             "",
		"'team' in agent.labels && agent.labels.team == 'web'":                                "",
		"!has(agent.labels.team) || agent.labels.team == 'web'":                               "",
		"!(has(call.args.cc) && call.args.cc == 'x')":                                         "",
	} {
		p, err := env.Bool(src)
		if err != nil {
			t.Errorf("%s: %v", src, err)
			continue
		}
		var got []string
		for _, a := range p.Absences() {
			got = append(got, a.Text)
			// The guard is an expression that removes the finding.
			again, err := env.Bool("(" + a.Guard + ") && (" + src + ")")
			if err != nil {
				if strings.Contains(src, "exists(c") { // it is part of the macro
					continue
				}
				t.Errorf("%s: the guard %s: %v", src, a.Guard, err)
				continue
			}
			for _, b := range again.Absences() {
				if b.Text == a.Text && !strings.Contains(src, "exists(c") {
					t.Errorf("%s: the guard %s does not help", src, a.Guard)
				}
			}
		}
		if d := cmp.Diff(want, strings.Join(got, " ")); d != "" {
			t.Errorf("%s\n%s", src, d)
		}
	}
}
