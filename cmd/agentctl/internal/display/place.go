package display

// Place is where a run is found by the commands that follow.
type Place struct {
	// State is the --state flag, which they have to repeat.
	State string
	// Object is the name of the Run where a control plane executes it, and Namespace
	// and Context are the flags that lead there; "" where none was needed.
	Object, Namespace, Context string
	// Home is the namespace of the Run, whether a flag names it or not.
	Home string
	// Away says that the files of the run are on another machine.
	Away bool
	// Export is the file that holds the run; "" is none.
	Export string
}

// flags are the flags that have to be repeated.
func (p Place) flags() string {
	text := ""
	for _, f := range []struct{ name, value string }{{"-n", p.Namespace}, {"--context", p.Context}, {"--state", p.State}} {
		if f.value != "" {
			text += " " + f.name + " " + shellWord(f.value)
		}
	}
	return text
}

// name is how people call the run.
func (p Place) name(id string) string {
	if p.Object != "" {
		return Line(p.Object)
	}
	return Line(id)
}

// Attach is the command that follows a run of a control plane.
func (p Place) Attach() string { return "agentctl attach run/" + Line(p.Object) + p.flags() }

// goOn is the command that continues a run, or shows it again.
func (p Place) goOn(id string) string {
	if p.Object != "" {
		return p.Attach()
	}
	return Resume(id, p.State)
}

// Approve is the command that answers a call.
func (p Place) Approve(id, call string) string {
	if p.Object != "" {
		return "agentctl approve " + shellWord("run/"+p.Object+"/"+call) + p.flags()
	}
	return Approve(id+"/"+call, p.State)
}
