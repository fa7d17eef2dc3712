package shell

import (
	"path"
	"strings"
)

// packed records the file that a compressor makes of another one. Suffixes are separated
// by colons; the first is added by packing, all are removed by unpacking. One may be
// exchanged, as in .tgz=.tar.
func (a *analyser) packed(kind, suffixes string, w word, sc *scope) {
	a.disturbed = true
	took := []word{w}
	switch list := strings.Split(suffixes, ":"); {
	case !w.known || w.text == "-":
	case w.glob && !w.bound:
		a.write(path.Dir(w.text), sc)
		if kind == "replace" || kind == "pack" {
			a.write(w.text+list[0], sc)
		}
	case kind == "replace" || kind == "pack":
		a.write(w.text+list[0], sc)
	default:
		bare, had := unpackedName(w.text, list)
		a.write(bare, sc)
		for _, suffix := range list {
			if !had && !strings.Contains(suffix, "=") { // it looks for such a name
				took = append(took, literal(w.text+suffix))
			}
		}
	}
	for _, t := range took {
		a.touchWord(t, "r", sc)
		if (kind == "replace" || kind == "restore") && t.text != "-" {
			a.touchWord(t, "w", sc)
			a.deleted([]word{t}, sc)
		}
	}
}

// unpackedName is the name of a file without its suffix, if it has one.
func unpackedName(name string, suffixes []string) (bare string, had bool) {
	for _, s := range suffixes {
		from, to, _ := strings.Cut(s, "=")
		if bare, had := strings.CutSuffix(name, from); had {
			return bare + to, true
		}
	}
	return name, false
}
