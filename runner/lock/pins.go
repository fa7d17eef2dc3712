package lock

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/admission"
	"agentctl.dev/agentctl/runner/model"
	"agentctl.dev/agentctl/runner/tool"
	"agentctl.dev/agentctl/runner/tool/skill"
)

// functions is the pin of what the program of a tool describes.
const functions = "functions"

// Limits of the files of a skill, and of a program.
const (
	maxFiles   = 10_000
	maxContent = 1 << 30
)

// Of returns the entries of a plan and of those below it: each object once. What the
// programs of tools describe is not among them.
func Of(p *admission.Plan, providers model.Registry, kinds tool.Kinds) ([]Entry, error) {
	all := map[string]Entry{}
	if err := add(all, p, providers, kinds); err != nil {
		return nil, err
	}
	for _, below := range p.Subagents {
		if err := add(all, below, providers, kinds); err != nil {
			return nil, err
		}
	}
	entries := make([]Entry, 0, len(all))
	for _, e := range all {
		entries = append(entries, e)
	}
	slices.SortFunc(entries, func(a, b Entry) int { return strings.Compare(a.Object, b.Object) })
	return entries, nil
}

// OfAll returns the entries of all agents and models of manifests, without what
// programs describe, and the tools that can be asked for that, by name.
func OfAll(c *admission.Catalog, providers model.Registry, kinds tool.Kinds) ([]Entry, map[string]*v1alpha1.Tool, error) {
	all, tools := map[string]Entry{}, map[string]*v1alpha1.Tool{}
	for _, e := range c.Models {
		entry := Model(e.Object, providers)
		all[entry.Object] = entry
	}
	for _, name := range slices.Sorted(maps.Keys(c.Agents)) {
		p, err := c.Resolve(admission.ResolveOptions{Agent: name, WithoutRun: true, Below: true})
		if err != nil {
			return nil, nil, &reason.UsageError{Err: err, Hint: reason.Hint(err)}
		}
		found, err := Of(p, providers, kinds)
		if err != nil {
			return nil, nil, err
		}
		for _, e := range found {
			all[e.Object] = e
		}
		for _, t := range p.Tools {
			if facts, _ := kinds.Facts(&t.Tool.Spec); facts.Describes && facts.Shipped == "" && facts.Image == "" { // an image is pinned by its digest, with all that it describes
				tools[t.Tool.Name] = t.Tool
			}
		}
	}
	entries := make([]Entry, 0, len(all))
	for _, name := range slices.Sorted(maps.Keys(all)) {
		entries = append(entries, all[name])
	}
	return entries, tools, nil
}

func add(all map[string]Entry, p *admission.Plan, providers model.Registry, kinds tool.Kinds) error {
	for _, m := range slices.Concat([]*v1alpha1.Model{p.Model, p.Summarizer}, p.Fallbacks, p.Coders) {
		if m != nil {
			e := Model(m, providers)
			all[e.Object] = e
		}
	}
	for i := range p.Tools {
		e, err := toolEntry(p.Tools[i].Tool, kinds)
		if err != nil {
			return err
		}
		if len(e.Pins) > 0 {
			all[e.Object] = e
		}
	}
	for i := range p.Skills {
		s := &p.Skills[i]
		if !slices.ContainsFunc(p.Agent.Spec.Skills, func(ref v1alpha1.Reference) bool { return ref.Name == s.Name }) {
			continue // a skill of the files that a run works on
		}
		e, err := skillEntry(s)
		if err != nil {
			return err
		}
		all[e.Object] = e
	}
	return nil
}

// Model is the entry of a Model: who answers, and what it costs.
func Model(m *v1alpha1.Model, providers model.Registry) Entry {
	pins := map[string]string{"provider": string(m.Spec.Provider)}
	set := func(name, value string) {
		if value != "" {
			pins[name] = value
		}
	}
	set("model", m.Spec.Model)
	set("baseURL", m.Spec.BaseURL)
	if price, ok := providers.Price(&m.Spec); ok {
		set("price", rates(price.Pricing))
		if price.LongAbove > 0 {
			set("longPrice", "above "+strconv.FormatInt(price.LongAbove, 10)+": "+rates(price.Long))
		}
	}
	if e, ok := providers.Listed(&m.Spec); ok {
		set("catalog", e.Model+" as of "+e.AsOf)
	}
	if window := providers.Window(&m.Spec); window > 0 {
		set("contextWindow", strconv.FormatInt(window, 10))
	}
	return Entry{Object: "model/" + m.Name, Pins: pins}
}

// rates are prices in dollars for a million tokens.
func rates(p v1alpha1.Pricing) string {
	var parts []string
	for _, r := range []struct {
		name string
		rate v1alpha1.Money
	}{{"input", p.Input}, {"output", p.Output}, {"cacheRead", p.CacheRead}, {"cacheWrite", p.CacheWrite}} {
		if r.rate != "" {
			parts = append(parts, r.name+" "+string(r.rate))
		}
	}
	return strings.Join(parts, ", ")
}

// toolEntry pins the files of a command, the image, and where a server is.
func toolEntry(t *v1alpha1.Tool, kinds tool.Kinds) (Entry, error) {
	e := Entry{Object: "tool/" + t.Name, Tool: admission.CallName(t), Pins: map[string]string{}}
	facts, _ := kinds.Facts(&t.Spec) // admission has reported what is wrong
	if facts.Image != "" {
		e.Pins["image"] = withoutFolder(facts.Image)
	}
	if facts.Remote != "" {
		e.Pins["server"] = facts.Remote
	}
	for i, word := range facts.Command {
		if !filepath.IsAbs(word) {
			continue
		}
		sum, err := fileDigest(word)
		if errors.Is(err, errNotFile) {
			continue
		}
		if err != nil {
			return e, reason.Usagef("tool %q: pin %s: %w", t.Name, word, err).WithHint("build or install the program first")
		}
		e.Pins["command["+strconv.Itoa(i)+"]"] = sum
	}
	return e, nil
}

// withoutFolder is an image without where its layout is on this machine.
func withoutFolder(image string) string {
	if path, sum, ok := strings.Cut(image, "@"); ok && strings.HasPrefix(path, "oci:") {
		return "oci@" + sum
	}
	return image
}

func skillEntry(s *skill.Entry) (Entry, error) {
	e := Entry{Object: "skill/" + s.Name, Pins: map[string]string{}}
	switch {
	case s.Image != "":
		e.Pins["image"] = withoutFolder(s.Image)
	case s.Dir != "":
		sum, err := folderDigest(s.Dir)
		if err != nil {
			return e, reason.Usagef("skill %q: pin its files: %w", s.Name, err)
		}
		e.Pins["files"] = sum
	default:
		sum := sha256.Sum256([]byte(s.Plan))
		e.Pins["plan"] = "sha256:" + hex.EncodeToString(sum[:])
	}
	return e, nil
}

var errNotFile = errors.New("it is not a file")

func fileDigest(path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() {
		return "", errNotFile
	}
	h := sha256.New()
	if err := content(h, path); err != nil {
		return "", err
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil)), nil
}

// content writes what a file holds.
func content(w io.Writer, path string) error {
	f, err := os.Open(path) //nolint:gosec // a file that a manifest names
	if err != nil {
		return err
	}
	n, err := io.Copy(w, io.LimitReader(f, maxContent+1))
	if err == nil && n > maxContent {
		err = fmt.Errorf("it is larger than %d bytes", maxContent)
	}
	return errors.Join(err, f.Close())
}

// folderDigest is over the names, the kinds and the contents of all files of a folder.
func folderDigest(dir string) (string, error) {
	h, files := sha256.New(), 0
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if files++; files > maxFiles {
			return fmt.Errorf("it has more than %d files", maxFiles)
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		of := sha256.New()
		switch {
		case info.Mode()&fs.ModeSymlink != 0:
			to, err := os.Readlink(path)
			if err != nil {
				return err
			}
			_, _ = io.WriteString(of, to) // a hash takes everything
		case info.Mode().IsRegular():
			if err := content(of, path); err != nil {
				return err
			}
		}
		_, err = fmt.Fprintf(h, "%q %s %t %x\n", filepath.ToSlash(name), info.Mode().Type(), info.Mode()&0o111 != 0, of.Sum(nil))
		return err
	})
	return "sha256:" + hex.EncodeToString(h.Sum(nil)), err
}
