package gitguard

import "strings"

// setting is one value of a config of git.
type setting struct {
	// key is section.name, or section.name with a subsection left out, in lower case.
	key, value string
	// include names another config; hooks names a folder of hooks.
	include, hooks bool
}

// parse reads a config of git as far as it matters what its values name. It takes
// more for a value than git does, never less.
func parse(b []byte) (values []setting) {
	section := ""
	text := strings.ReplaceAll(strings.ReplaceAll(string(b), "\r\n", "\n"), "\\\n", "")
	for line := range strings.SplitSeq(text, "\n") {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "[") {
			head, rest, _ := strings.Cut(line[1:], "]")
			if strings.Contains(head, `"`) { // a subsection may hold the bracket
				if end := strings.LastIndex(line, `"]`); end > 0 {
					head, rest = line[1:end], line[end+2:]
				}
			}
			section = strings.ToLower(strings.TrimSpace(head))
			if i := strings.IndexAny(section, " \t\"."); i >= 0 {
				section = section[:i]
			}
			line = strings.TrimSpace(rest)
		}
		if line == "" || line[0] == '#' || line[0] == ';' {
			continue
		}
		name, value, _ := strings.Cut(line, "=")
		v := setting{key: section + "." + strings.ToLower(strings.TrimSpace(name)), value: strings.ReplaceAll(strings.Trim(strings.TrimSpace(value), `"`), `\\`, `\`)}
		v.include = v.key == "include.path" || v.key == "includeif.path"
		v.hooks = v.key == "core.hookspath"
		values = append(values, v)
	}
	return values
}

// data are the settings by which git runs nothing and reads no other config.
var data = map[string]bool{
	"core.repositoryformatversion": true, "core.filemode": true, "core.bare": true, "core.logallrefupdates": true, "core.ignorecase": true,
	"core.precomposeunicode": true, "core.symlinks": true, "core.autocrlf": true, "core.eol": true, "user.name": true, "user.email": true,
	"branch.remote": true, "branch.merge": true, "remote.fetch": true, "init.defaultbranch": true, "submodule.active": true, "extensions.objectformat": true,
	"remote.url": true, "submodule.url": true,
}

// harmless reports whether a config holds nothing but such settings.
func harmless(f *File) bool {
	if f == nil || f.Target != "" {
		return false
	}
	for _, v := range parse(f.Content) {
		if !data[v.key] || strings.HasSuffix(v.key, ".url") && strings.Contains(v.value, "::") {
			return false
		}
	}
	return true
}
