package policy

import "agentctl.dev/agentctl/plugins/sdk/patch"

// patched adds the files of a patch, read from its text by what applies it:
//
//	section              the file is                   its new place is
//	add                  written
//	update               read and written
//	update with a move   read, written and deleted     written
//	delete               written and deleted
//
// A file that may not be read can neither be updated nor moved to where it may be read.
// A patch that cannot be read cannot be judged, which denies it.
func (w Workspace) patched(f *facts, fields map[string]any) {
	text, _ := fields["patch"].(string)
	changes, err := patch.Parse(text)
	if err != nil {
		f.unreadable = err
		return
	}
	for _, c := range changes {
		ops := []string{opWrite}
		switch {
		case c.Kind == patch.Delete:
			ops = append(ops, opDelete)
		case c.MoveTo != "":
			ops = append(ops, opRead, opDelete)
		case c.Kind == patch.Update:
			ops = append(ops, opRead)
		}
		for _, op := range ops {
			f.add(w.resolve(c.Path, op))
		}
		if c.MoveTo != "" {
			f.add(w.resolve(c.MoveTo, opWrite))
		}
	}
}

// merged adds the files that a call takes over from a copy: what is deleted there is
// written and deleted. The names are those of files in the workspace, also one that begins
// with a tilde.
func (w Workspace) merged(f *facts, fields map[string]any) {
	add := func(argument string, ops ...string) {
		all, _ := fields[argument].([]any)
		for _, v := range all {
			file, _ := v.(string)
			for _, op := range ops {
				p := w.resolve("./"+file, op)
				p.Raw = file
				f.add(p)
			}
		}
	}
	add("files", opWrite)
	add("deleted", opWrite, opDelete)
}
