package shell

import (
	"path"
	"slices"
	"strings"
)

// savedAs records the files that a download names after its addresses. A pattern, a
// server, or another option may decide the name.
func (a *analyser) savedAs(g *arguments, sc *scope) {
	a.disturbed = true
	addresses := slices.Clone(g.operands)
	for _, v := range g.values {
		if v.name == "--url" {
			addresses = append(addresses, v.value)
		}
	}
	for _, w := range addresses {
		name := path.Base(w.text)
		if !w.known || w.glob || g.has("--remote-header-name") || g.has("--output-dir") || strings.ContainsAny(name, "?#{}[]") || name == "/" {
			name = "."
		}
		a.write(name, sc)
	}
}

// formatted judges the format of an output, which may name a file to read behind @, or one
// to write.
func (a *analyser) formatted(name string, w word, sc *scope) {
	switch {
	case !w.known || strings.Contains(w.text, "%output{"):
		a.dynamic("the format of what " + name + " prints may name a file")
	case strings.HasPrefix(w.text, "@"):
		a.touchWord(w.from(1), "r", sc)
		a.dynamic("the format of what " + name + " prints is in a file")
	}
}

// recordTypes are words of a query that name no host.
var recordTypes = []string{
	"a", "aaaa", "any", "axfr", "caa", "cname", "dnskey", "ds", "hinfo", "https", "ixfr", "key", "loc", "mx", "naptr", "ns", "nsec", "nsec3", "ptr", "rrsig", "soa", "spf", "srv", "sshfp", "svcb", "tlsa", "txt", "in", "ch", "hs",
}

// lookedUp judges a name that is asked for, or the server that is asked.
func (a *analyser) lookedUp(w word) {
	if w.known && (w.text == "" || strings.IndexByte("+-", w.text[0]) >= 0 || slices.Contains(recordTypes, strings.ToLower(w.text))) {
		return
	}
	if strings.HasPrefix(w.text, "@") {
		w = w.from(1)
	}
	a.url(w)
}

// exchanged judges files that are copied between hosts: the last one is the target.
func (a *analyser) exchanged(ops []word, sc *scope) {
	for i, w := range ops {
		far := w.known && strings.Contains(w.text, ":") && !strings.HasPrefix(w.text, "/") && !strings.HasPrefix(w.text, "./")
		switch {
		case far && strings.Contains(w.text, "://"):
			a.hostOf(w.text)
		case far:
			a.remote(w.text)
		case i == len(ops)-1:
			a.disturbed = true
			a.touchWord(w, "w", sc)
		default:
			a.touchWord(w, "r", sc)
		}
	}
}
