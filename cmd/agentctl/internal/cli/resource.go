package cli

import (
	"slices"
	"strings"

	"agentctl.dev/agentctl/api/crds"
	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/runner/client"
)

// allKinds is the word for every kind. As a category it stands for fewer, for the
// sake of clusters on which kubectl delete all is about the objects of others, too.
const allKinds = "all"

// wanted is what words on the command line name: kinds, or objects.
type wanted struct {
	kinds []string
	refs  []client.Ref
	// single says that one object was named.
	single bool
}

// parseWanted reads "agents", "agents,models", "all", "agent NAME...", and
// "agent/NAME model/NAME...".
func parseWanted(args []string, namespace string) (*wanted, error) {
	if len(args) == 0 {
		return nil, usagef("say which kind of objects").try("agentctl api-resources")
	}
	if strings.Contains(args[0], "/") {
		w := &wanted{single: len(args) == 1}
		for _, arg := range args {
			word, name, ok := strings.Cut(arg, "/")
			if !ok || name == "" {
				return nil, usagef("%q is not of the form KIND/NAME, as the first one is", arg)
			}
			kind, err := parseKind(word)
			if err != nil {
				return nil, err
			}
			w.refs = append(w.refs, client.Ref{Kind: kind, Namespace: namespace, Name: name})
			if !slices.Contains(w.kinds, kind) {
				w.kinds = append(w.kinds, kind)
			}
		}
		return w, nil
	}
	w := &wanted{}
	for word := range strings.SplitSeq(args[0], ",") {
		kinds, err := parseKinds(word)
		if err != nil {
			return nil, err
		}
		for _, kind := range kinds {
			if !slices.Contains(w.kinds, kind) {
				w.kinds = append(w.kinds, kind)
			}
		}
	}
	for _, name := range args[1:] {
		if strings.Contains(name, "/") {
			return nil, usagef("%q is a kind and a name, where a name is expected", name)
		}
		for _, kind := range w.kinds {
			w.refs = append(w.refs, client.Ref{Kind: kind, Namespace: namespace, Name: name})
		}
	}
	w.single = len(w.refs) == 1
	return w, nil
}

// eventWords are what events are called on the command line.
var eventWords = []string{"events", "event", "ev"}

// wantedEvents reads "events", "event NAME..." and "event/NAME"; nil: other
// kinds are meant. Events are no kind of ours, and verbs that write have no use
// for them.
func wantedEvents(args []string, namespace string) *wanted {
	if len(args) == 0 {
		return nil
	}
	word, name, named := strings.Cut(args[0], "/")
	if !slices.Contains(eventWords, word) || named && len(args) > 1 {
		return nil
	}
	names := args[1:]
	if named {
		names = []string{name}
	}
	w := &wanted{kinds: []string{client.KindEvent}, single: len(names) == 1}
	for _, name := range names {
		w.refs = append(w.refs, client.Ref{Kind: client.KindEvent, Namespace: namespace, Name: name})
	}
	return w
}

// parseKinds reads one kind, or a word for several.
func parseKinds(word string) ([]string, error) {
	if word == allKinds {
		return crds.Kinds(), nil
	}
	if kinds := crds.InCategory(word); kinds != nil {
		return kinds, nil
	}
	kind, err := parseKind(word)
	return []string{kind}, err
}

// parseKind reads agent, agents, ag, Agent or agents.agentctl.dev.
func parseKind(word string) (string, error) {
	bare := word
	if name, group, ok := strings.Cut(word, "."); ok && (group == "agentctl.dev" || group == "v1alpha1.agentctl.dev") {
		bare = name
	}
	if kind, ok := crds.Resolve(bare); ok {
		return kind, nil
	}
	var known []string
	for _, k := range crds.Kinds() {
		s, _ := crds.Kind(k)
		known = append(append(known, s.Plural, s.Singular), s.ShortNames...)
	}
	err := usagef("there is no kind %q", word)
	if s := reason.Nearest(strings.ToLower(bare), known); s != "" {
		return "", usagef("%w; did you mean %s?", err, s)
	}
	return "", usagef("%w; see agentctl api-resources", err)
}
