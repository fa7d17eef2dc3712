package client

import (
	"cmp"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/yaml"

	"agentctl.dev/agentctl/api/reason"
)

// LocalContext is the context of the control plane in the state folder.
const LocalContext = "local"

// The places of contexts in the environment.
const (
	contextVar    = "AGENTCTL_CONTEXT"
	kubeconfigVar = "AGENTCTL_KUBECONFIG"
	kubectlVar    = "KUBECONFIG"
)

// Context is a server by the name that people give it.
type Context struct {
	Name, Cluster, User, Namespace, Server string
	// File is the kubeconfig that has it; "" for the local one.
	File string
	// Current is set for the default context.
	Current bool
}

// Config is everything one can talk with: the local control plane, and the
// contexts of the kubeconfig files that the environment names.
type Config struct {
	// State is the state folder of the local control plane.
	State string
	// Origin is where the current context was chosen, for people.
	Origin string

	current  string
	variable string
	files    []*kubeconfig
}

// LoadConfig reads the kubeconfig files that AGENTCTL_KUBECONFIG, else
// KUBECONFIG, names; a file that does not exist is left out, as kubectl does.
// The current context is that of the flag, else AGENTCTL_CONTEXT, else that of
// the files, else local. kubectl's own default file is not read: a control
// plane is never changed because kubectl happens to point at it.
func LoadConfig(state, flag string, getenv func(string) string) (*Config, error) {
	c := &Config{State: state}
	list := getenv(kubeconfigVar)
	if c.variable = kubeconfigVar; list == "" {
		list, c.variable = getenv(kubectlVar), kubectlVar
	}
	for _, path := range filepath.SplitList(list) {
		if path == "" {
			continue
		}
		abs, err := filepath.Abs(path)
		if err != nil {
			return nil, fail(err, "kubeconfig %s", path)
		}
		k, err := readConfig(abs)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		c.files = append(c.files, k)
	}
	c.choose(flag, getenv(contextVar))
	return c, nil
}

func (c *Config) choose(flag, env string) {
	if c.current, c.Origin = flag, "--context"; flag != "" {
		return
	}
	if c.current, c.Origin = env, contextVar; env != "" {
		return
	}
	for _, k := range c.files {
		if k.CurrentContext != "" {
			c.current, c.Origin = k.CurrentContext, k.path
			return
		}
	}
	c.current, c.Origin = LocalContext, "default"
}

// Current is the name of the context that is meant.
func (c *Config) Current() string { return c.current }

// Contexts lists all, the local one first, then by name.
func (c *Config) Contexts() []Context {
	all := []Context{{Name: LocalContext, Server: "", Namespace: "default"}}
	k := c.merged()
	for _, name := range slices.Sorted(maps.Keys(k.Contexts)) {
		if name == LocalContext {
			continue
		}
		x := k.Contexts[name]
		e := Context{Name: name, Cluster: x.Cluster, User: x.AuthInfo, Namespace: cmp.Or(x.Namespace, "default"), File: x.LocationOfOrigin}
		if cl := k.Clusters[x.Cluster]; cl != nil {
			e.Server = cl.Server
		}
		all = append(all, e)
	}
	for i := range all {
		all[i].Current = all[i].Name == c.current
	}
	return all
}

// merged returns the files as one: of entries with the same name the first
// counts, as with kubectl.
func (c *Config) merged() *api.Config {
	all := api.NewConfig()
	for _, k := range slices.Backward(c.files) {
		maps.Copy(all.Clusters, k.Clusters)
		maps.Copy(all.AuthInfos, k.AuthInfos)
		maps.Copy(all.Contexts, k.Contexts)
	}
	return all
}

// Endpoint returns where a context leads to. That of the local one is found by
// Connect.
func (c *Config) Endpoint(name string) (*Endpoint, error) {
	k := c.merged()
	x := k.Contexts[name]
	if x == nil {
		return nil, c.unknown(name)
	}
	e := &Endpoint{Context: name, Namespace: x.Namespace}
	cluster := k.Clusters[x.Cluster]
	if cluster == nil {
		return nil, fail(nil, "kubeconfig %s: context %q names the cluster %q, which is not there", x.LocationOfOrigin, name, x.Cluster)
	}
	if err := e.setCluster(x.Cluster, cluster); err != nil {
		return nil, err
	}
	user := k.AuthInfos[x.AuthInfo]
	switch {
	case user != nil:
		if err := e.setUser(x.AuthInfo, user, cluster); err != nil {
			return nil, err
		}
	case x.AuthInfo != "":
		return nil, fail(nil, "kubeconfig %s: context %q names the user %q, who is not there", x.LocationOfOrigin, name, x.AuthInfo)
	}
	return e, nil
}

// unknown is the error for a context that does not exist.
func (c *Config) unknown(name string) error {
	var known []string
	for _, x := range c.Contexts() {
		known = append(known, x.Name)
	}
	origin := ""
	if name == c.current { // a name from the command line needs no origin
		origin = " (" + c.Origin + ")"
	}
	e := fail(nil, "there is no context %q%s", name, origin).hint("see which there are: agentctl config get-contexts")
	if s := reason.Nearest(name, known); s != "" {
		return e.hint("did you mean %q?", s)
	}
	return e
}

// Use makes a context the current one, in the file that sets the current
// context. The rest of the file stays as it is, byte by byte.
func (c *Config) Use(name string) (path string, err error) {
	i := slices.IndexFunc(c.Contexts(), func(x Context) bool { return x.Name == name && x.File != "" })
	if i < 0 && name == LocalContext {
		if len(c.files) == 0 {
			return "", nil // it is already
		}
		return "", fail(nil, "the context local stands in no kubeconfig, so none can make it the current one").hint("set %s=local, or unset %s", contextVar, c.variable)
	}
	if i < 0 {
		_, err := c.Endpoint(name)
		return "", err
	}
	k := c.files[0]
	for _, x := range c.files {
		if x.CurrentContext != "" {
			k = x
			break
		}
	}
	text, err := readSmall(k.path)
	if err != nil {
		return "", fail(err, "read the kubeconfig")
	}
	changed := withCurrent(string(text), name)
	if !differsOnlyInCurrent(text, changed, name) {
		return "", fail(nil, "the kubeconfig %s has no line of its own for current-context", k.path).hint("run kubectl config use-context %s, which writes the whole file, or set %s=%s", name, contextVar, name)
	}
	return k.path, replace(k.path, changed)
}

// differsOnlyInCurrent reports whether a changed kubeconfig reads as the old one
// with another current context. An edit by line does not hold for a file in flow
// style (JSON), or for one whose key is quoted or indented.
func differsOnlyInCurrent(old, changed []byte, name string) bool {
	var want, got map[string]any
	if yaml.Unmarshal(old, &want) != nil || yaml.Unmarshal(changed, &got) != nil {
		return false
	}
	if want == nil {
		want = map[string]any{}
	}
	want["current-context"] = name
	return reflect.DeepEqual(want, got)
}

// withCurrent puts a name into the line of a kubeconfig that names the current
// context.
func withCurrent(text, name string) []byte {
	line := "current-context: " + strconv.Quote(name) + "\n"
	var b strings.Builder
	done := false
	for old := range strings.Lines(text) {
		if !done && strings.HasPrefix(old, "current-context:") {
			old, done = line, true
		}
		b.WriteString(old)
	}
	if !done {
		if text != "" && !strings.HasSuffix(text, "\n") {
			b.WriteByte('\n')
		}
		b.WriteString(line)
	}
	return []byte(b.String())
}

// replace writes a file as a whole, with the mode it has. A concurrent reader
// finds the old text or the new one.
func replace(path string, text []byte) error {
	if to, err := filepath.EvalSymlinks(path); err == nil {
		path = to
	}
	info, err := os.Stat(path)
	if err != nil {
		return fail(err, "write the kubeconfig")
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".kubeconfig-")
	if err != nil {
		return fail(err, "write the kubeconfig")
	}
	defer os.Remove(f.Name()) // gone after the rename
	_, err = f.Write(text)
	if err = errors.Join(err, f.Chmod(info.Mode().Perm()), f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return fail(err, "write the kubeconfig %s", path)
	}
	return nil
}
