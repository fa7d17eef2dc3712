package manifest

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/types"
)

// kustomizeTime bounds a build.
const kustomizeTime = time.Minute

// building serialises builds: the library keeps its OpenAPI schema in a variable of
// the process.
var building sync.Mutex

// buildKustomization returns the text that the kustomization of a folder describes, and
// the files that it was built from.
//
// A kustomization is foreign input, so it is restricted to reading files: remote
// bases and files, plugins, generators and helm charts are refused, files are read
// only in and below the folder of the kustomization that names them, and the number
// and size of the files are bounded.
func buildKustomization(ctx context.Context, dir string) (text []byte, files []string, found Findings) {
	ctx, cancel := context.WithTimeout(ctx, kustomizeTime)
	defer cancel()
	building.Lock()
	defer building.Unlock()
	f := &kustomizeFS{ctx: ctx, kustomizations: map[string]bool{}}
	text, err := f.build(dir)
	switch {
	case f.refused != nil:
		return nil, nil, Findings{*f.refused}
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	case err == nil:
		return text, f.read, nil
	}
	return nil, nil, Findings{fileError(dir, "build the kustomization: %s", oneLine(err)).With("kubectl kustomize " + dir + " builds the same folder")}
}

func (f *kustomizeFS) build(dir string) (text []byte, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("kustomize failed: %v", r)
		}
	}()
	resources, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(f, dir)
	if err != nil {
		return nil, err
	}
	if err := f.ctx.Err(); err != nil {
		return nil, err
	}
	if text, err = resources.AsYaml(); err != nil {
		return nil, err
	}
	if len(text) > MaxFile {
		return nil, fmt.Errorf("the manifests that it describes are larger than %d MiB", MaxFile>>20)
	}
	if len(text) == 0 {
		return nil, errors.New("it describes no object")
	}
	return text, nil
}

// oneLine is an error of the library, whose text has line breaks and indents.
func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }

// check judges the text of a kustomization before the library gets it; nil admits it.
func check(file string, text []byte) *Finding {
	var k types.Kustomization
	if err := k.Unmarshal(text); err != nil { // the library decodes with the same function
		f := fileError(file, "%s", oneLine(err))
		return &f
	}
	if field, why := unsupported(&k); field != "" {
		f := fileError(file, "%s: %s", field, why).With("build it elsewhere and pipe the result in: kustomize build . | agentctl apply -f -")
		f.Position.Line, f.Position.Col = place(text, field)
		return &f
	}
	for _, r := range references(&k) {
		if remote(r.path) {
			f := fileError(file, "%s: %q: only local files and folders are read, not what is on another host", r.field, r.path).
				With("fetch it into the folder, or pipe the result in: kustomize build . | agentctl apply -f -")
			f.Position.Line, f.Position.Col = place(text, r.path)
			return &f
		}
	}
	return nil
}

// unsupported names a field that makes kustomize execute something, or objects that
// are not of agentctl.
func unsupported(k *types.Kustomization) (field, why string) {
	const (
		plugins = "plugins are not executed"
		helm    = "helm charts are not rendered"
		objects = "ConfigMaps and Secrets are not kinds of agentctl"
	)
	for _, f := range []struct {
		used       bool
		field, why string
	}{
		{k.Generators != nil, "generators", plugins},
		{k.Transformers != nil, "transformers", plugins},
		{k.Validators != nil, "validators", plugins},
		{k.HelmCharts != nil, "helmCharts", helm},
		{k.HelmGlobals != nil, "helmGlobals", helm},
		{k.HelmChartInflationGenerator != nil, "helmChartInflationGenerator", helm},
		{k.ConfigMapGenerator != nil, "configMapGenerator", objects},
		{k.SecretGenerator != nil, "secretGenerator", objects},
		{k.GeneratorOptions != nil, "generatorOptions", objects},
	} {
		if f.used {
			return f.field, f.why
		}
	}
	return "", ""
}

// reference is a path in a kustomization.
type reference struct{ field, path string }

// references are all paths that the library would read.
func references(k *types.Kustomization) (all []reference) {
	add := func(field string, paths ...string) {
		for _, p := range paths {
			if p != "" {
				all = append(all, reference{field, p})
			}
		}
	}
	add("resources", k.Resources...)
	add("bases", k.Bases...) //nolint:staticcheck // deprecated fields are read all the same
	add("components", k.Components...)
	add("crds", k.Crds...)
	add("configurations", k.Configurations...)
	add("openapi.path", k.OpenAPI["path"])
	for _, p := range slices.Concat(k.Patches, k.PatchesJson6902) { //nolint:staticcheck // see above
		add("patches.path", p.Path)
	}
	for _, p := range k.PatchesStrategicMerge { //nolint:staticcheck // see above
		if !strings.Contains(string(p), "\n") { // else it is the patch itself, which is not a URL
			add("patchesStrategicMerge", string(p))
		}
	}
	for _, r := range k.Replacements {
		add("replacements.path", r.Path)
	}
	return all
}

// hostName matches what the library takes for a repository: github.com without a
// scheme, and user@host.
var hostName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?i)^(github\.com/|[a-z][a-z0-9-]*@)`) })

// remote reports whether the library could take a path for that of another host.
// Every form of URL and scp(1) has a colon.
func remote(path string) bool { return strings.Contains(path, ":") || hostName().MatchString(path) }

// place is the line and column at which a word is first written.
func place(text []byte, word string) (line, col int) {
	for n, l := range strings.Split(string(text), "\n") {
		if before, _, found := strings.Cut(l, word); found {
			return n + 1, len([]rune(before)) + 1
		}
	}
	return 0, 0
}

// isKustomization reports whether a file has the name of a kustomization.
func isKustomization(path string) bool {
	return slices.Contains(konfig.RecognizedKustomizationFileNames(), filepath.Base(path))
}
