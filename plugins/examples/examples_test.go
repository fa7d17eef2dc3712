package examples_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/descriptorpb"

	"agentctl.dev/agentctl/plugins/examples"
	"agentctl.dev/agentctl/plugins/host/conformance"
	"agentctl.dev/agentctl/plugins/sdk/toolpb"
	"agentctl.dev/agentctl/plugins/sdktest"
)

// write puts a project into a new folder.
func write(t *testing.T, language, name string) string {
	t.Helper()
	dir := t.TempDir()
	project, err := examples.Project(language, name)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range project {
		mode := os.FileMode(0o644)
		if f.Program {
			mode = 0o755
		}
		if err := os.WriteFile(filepath.Join(dir, f.Path), f.Text, mode); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// missing ends a test whose real component is not there. In the gate it fails:
// there .ci/plugins has brought it.
func missing(t *testing.T, what string) {
	t.Helper()
	if os.Getenv("CI") != "" {
		t.Fatalf("missing: %s; .ci/plugins installs it", what)
	}
	t.Skipf("missing: %s; .ci/plugins installs it", what)
}

// installed is where .ci/plugins puts what package managers bring.
func installed(t *testing.T, language string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "../../.ci/plugins", "--where", language).Output()
	if err != nil {
		t.Fatalf(".ci/plugins --where %s: %v", language, err)
	}
	return strings.TrimSpace(string(out))
}

// python returns the environment and the program with which the example runs.
func python(t *testing.T) (program string, env []string) {
	t.Helper()
	modules := installed(t, "python")
	for _, name := range []string{"python3", "/usr/bin/python3"} {
		for _, env := range [][]string{nil, {"PYTHONPATH=" + modules}} {
			path, err := exec.LookPath(name)
			if err != nil {
				continue
			}
			c := exec.CommandContext(t.Context(), path, "-c", "import grpc, google.protobuf")
			c.Env = append(os.Environ(), env...)
			if c.Run() == nil {
				return path, env
			}
		}
	}
	missing(t, "Python 3 with grpcio and protobuf")
	return "", nil
}

func conforms(t *testing.T, tool string, env []string, command ...string) {
	t.Helper()
	dir := t.TempDir()
	sample := func(args string) []conformance.Sample {
		return []conformance.Sample{{Tool: tool, Args: json.RawMessage(args)}}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	r := conformance.Run(ctx, conformance.Options{
		Name: command[0], Env: env, Launch: sdktest.Launch(command, env, dir), Workspace: dir,
		Good: sample(`{"text":"to be or not"}`), Slow: sample(`{"text":"a","seconds":60}`),
	})
	for _, c := range r.Checks {
		t.Logf("%-22s %-7s %d ms %s", c.Name, c.Outcome, c.DurationMicros/1000, c.Problem)
		if c.Outcome != conformance.Passed {
			t.Errorf("%s %s: %s", c.Name, c.Outcome, c.Problem)
		}
	}
	if len(r.Tools) != 1 || r.Tools[0] != tool || r.Passed < 19 {
		t.Errorf("tools %v, %d passed", r.Tools, r.Passed)
	}
}

func TestGoExampleKeepsEveryPromise(t *testing.T) {
	t.Parallel()
	program := filepath.Join(t.TempDir(), "wordcount")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, "./go/wordcount").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	conforms(t, "wordcount", []string{"PATH=/usr/bin:/bin"}, program)
}

func TestPythonExampleKeepsEveryPromise(t *testing.T) {
	t.Parallel()
	program, env := python(t)
	dir := write(t, "python", "my-tool")
	conforms(t, "my-tool", append(env, "PATH="+os.Getenv("PATH"), "HOME=/nonexistent", "PYTHONDONTWRITEBYTECODE=1"), program, filepath.Join(dir, "main.py"))
}

func TestNodeExampleKeepsEveryPromise(t *testing.T) {
	t.Parallel()
	dir := nodeProject(t)
	node, err := exec.LookPath("node")
	if err != nil {
		t.Fatal(err)
	}
	conforms(t, "my-tool", []string{"PATH=" + filepath.Dir(node) + ":/usr/bin:/bin"}, filepath.Join(dir, "main.js"))
}

// nodeProject writes the example with the modules it needs.
func nodeProject(t *testing.T) string {
	t.Helper()
	modules := installed(t, "node")
	_, err := exec.LookPath("node")
	if _, lost := os.Stat(filepath.Join(modules, "@grpc", "grpc-js")); err != nil || lost != nil {
		missing(t, "Node with @grpc/grpc-js and @grpc/proto-loader")
	}
	dir := write(t, "node", "my-tool")
	if err := os.Symlink(modules, filepath.Join(dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
	return dir
}

// arguments are validated alike in every language.
const arguments = `[
	[true,  {"type": "object"}, {}], [false, {"type": "object"}, []], [false, {"type": "object"}, null],
	[true,  {"type": "integer"}, 5], [true, {"type": "integer"}, 5.0], [false, {"type": "integer"}, 5.5], [false, {"type": "integer"}, true],
	[true,  {"type": "number"}, 1.5], [false, {"type": "number"}, "1"], [false, {"type": "boolean"}, 0],
	[true,  {"type": ["string", "null"]}, null], [false, {"type": ["string", "null"]}, 1], [true, {}, 1], [true, {"type": "other"}, 1],
	[true,  {"enum": ["a"]}, "a"], [false, {"enum": ["a"]}, "b"],
	[false, {"required": ["a"]}, {}], [true, {"required": ["a"]}, {"a": null}], [false, {"required": ["toString"]}, {}],
	[false, {"additionalProperties": false}, {"a": 1}], [true, {"additionalProperties": true}, {"a": 1}],
	[false, {"properties": {}, "additionalProperties": false}, {"constructor": 1}],
	[false, {"properties": {"a": {"type": "array", "items": {"type": "string"}}}}, {"a": ["x", 1]}],
	[true,  {"properties": {"a": {"type": "array", "items": {"type": "string"}}}}, {"a": ["x", "1"]}]
]`

func TestPythonHoldsArgumentsAgainstTheSchema(t *testing.T) {
	t.Parallel()
	program, env := python(t)
	c := exec.CommandContext(t.Context(), program, "-c", `
import json, sys, toolserver
for want, schema, value in json.load(sys.stdin):
    if (toolserver.misfit(schema, value) is None) != want:
        print(schema, value, "fits:", not want)`)
	c.Dir, c.Env = "python", append(append(os.Environ(), env...), "PYTHONDONTWRITEBYTECODE=1")
	c.Stdin = strings.NewReader(arguments)
	if out, err := c.CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestNodeHoldsArgumentsAgainstTheSchema(t *testing.T) {
	t.Parallel()
	dir := nodeProject(t)
	c := exec.CommandContext(t.Context(), "node", "-e", `
const { misfit } = require('./toolserver')
for (const [want, schema, value] of JSON.parse(require('fs').readFileSync(0))) {
  if (!misfit(schema, value) !== want) console.log(schema, value, 'fits:', !want)
}`)
	c.Dir, c.Stdin = dir, strings.NewReader(arguments)
	if out, err := c.CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("%v\n%s", err, out)
	}
}

// The copies of the protocol in the examples are what their programs speak.
func TestProtocolOfTheExamplesIsTheOne(t *testing.T) {
	t.Parallel()
	want, err := os.ReadFile("../sdk/toolpb/tool.proto")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"python/tool.proto", "node/tool.proto"} {
		if got, err := os.ReadFile(name); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not plugins/sdk/toolpb/tool.proto (%v): run make generate", name, err)
		}
	}
}

// Whatever protoc wrote Python's module, it holds the same messages.
func TestPythonsModuleOfTheProtocolIsFresh(t *testing.T) {
	t.Parallel()
	program, env := python(t)
	c := exec.CommandContext(t.Context(), program, "-c", "import sys, tool_pb2; sys.stdout.buffer.write(tool_pb2.DESCRIPTOR.serialized_pb)")
	c.Dir, c.Env = "python", append(append(os.Environ(), env...), "PYTHONDONTWRITEBYTECODE=1")
	out, err := c.Output()
	if err != nil {
		t.Fatal(err)
	}
	var got descriptorpb.FileDescriptorProto
	if err := proto.Unmarshal(out, &got); err != nil {
		t.Fatal(err)
	}
	want := protodesc.ToFileDescriptorProto(toolpb.File_tool_proto)
	if diff := cmp.Diff(want, &got, protocmp.Transform(), protocmp.IgnoreFields(&descriptorpb.FieldDescriptorProto{}, "json_name")); diff != "" {
		t.Errorf("tool_pb2.py is stale; write it again as examples.go says (-want +got):\n%s", diff)
	}
}

func TestAProjectHasItsNameEverywhere(t *testing.T) {
	t.Parallel()
	for _, language := range examples.Languages() {
		project, err := examples.Project(language, "my-tool")
		if err != nil {
			t.Fatal(err)
		}
		found := false
		for _, f := range project {
			if strings.Contains(f.Path, examples.Name) || bytes.Contains(f.Text, []byte(examples.Name)) {
				t.Errorf("%s: %s still speaks of %s", language, f.Path, examples.Name)
			}
			found = found || f.Path == "tool.yaml" && bytes.Contains(f.Text, []byte("name: my-tool"))
		}
		if !found {
			t.Errorf("%s: no tool.yaml of that name", language)
		}
	}
	if _, err := examples.Project("cobol", "x"); err == nil || !strings.Contains(err.Error(), "shell") {
		t.Errorf("error = %v, want the languages there are", err)
	}
}
